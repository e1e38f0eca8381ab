/* A pack in the making, of loose objects that the sandbox made. */
#ifndef WARD_GIT_PACK_H
#define WARD_GIT_PACK_H

#include "git/git.h"

#define PACK_OBJECT_MAX ((uint64_t)1 << 30) /* one object */

struct pack {
	int fd; /* a file without a name; the caller closes it */
	uint32_t count;
	uint64_t room;    /* bytes that the content of further objects may have together */
	size_t too_large; /* objects that were left out for that */
};

/* Makes the file, in the directory's file system where that can be. */
must_check int pack_begin(struct pack *p, int dir_fd);
/* Adds a loose object. 1: it is none, or too large; -errno: the pack cannot be written. */
must_check int pack_add_loose(struct pack *p, int fd);
/* The number of objects in front, the hash of all behind; the file is at its beginning again. */
must_check int pack_finish(struct pack *p, unsigned hash);

#endif

/* Files into records (tree.h) and back, for programs that differ in how the bytes travel and in
 * what a file that cannot be had means. */
#ifndef WARD_VM_TREE_FILES_H
#define WARD_VM_TREE_FILES_H

#include <sys/stat.h>

#include "base/own.h"
#include "vm/tree.h"

/* ---- tree_walk.c ---- */

enum tree_part { TREE_WHOLE, TREE_EMPTY, TREE_LEFT_OUT };

struct tree_walk {
	const struct tree_walk_how *how;
	void *ctx;
	int error;                    /* -errno: the walk has ended */
	bool read_only;               /* the directory that is being read: how.mounts */
	char path[TREE_NAME_MAX + 1]; /* the present name, len bytes; "": the top */
	size_t len;
	char chunk[TREE_CHUNK_MAX];
};

struct tree_walk_how {
	uint16_t mode; /* the permission bits that are kept */
	/* records say where writing begins to be possible, or ends to be: enum tree_mount */
	bool mounts;
	/* what no process here may read, and a device, stands there as TREE_CLOSED */
	bool closed;
	/* Bytes on their way. 0, or -errno: the walk ends. */
	int (*put)(void *ctx, const void *bytes, size_t n);
	/* The present name is not in the records, or not all of it. 0: the walk goes on, or
	 * -errno. */
	int (*fail)(struct tree_walk *w, int error);
	/* How much of a directory belongs to this tree. */
	enum tree_part (*enter)(const struct tree_walk *w, const struct stat *st);
};

/* The records of one tree and its end. fd is borrowed. Returns w->error. */
int tree_walk(struct tree_walk *w, int fd);

/* ---- tree_make.c ---- */

struct tree_maker {
	const struct tree_maker_how *how;
	char *const *paths; /* of the trees that are still to come, the present one first */
	size_t left;
	const char *path; /* of the present one */
	int root_fd;      /* -1: the tree is one file, or closed */
	int closed;       /* why it cannot be opened out here: nothing of it comes back */
	int dir_fd;       /* parent of the present record; -1: none */
	char dir[TREE_NAME_MAX + 1]; /* its name */
	int file_fd;
	bool probed, nameless; /* whether files can be made without a name, once that was tried */
	const char *base;      /* the present file's name in it */
	struct tree_head head;
	char name[TREE_NAME_MAX + 1];
	int failure;               /* of the present file */
	uint64_t lost;             /* for the caller to count */
	struct tree_reader reader; /* to be fed */
};

struct tree_maker_how {
	uint16_t mode;        /* the permission bits that are kept */
	uint64_t records_max; /* with more of them the stream is not believed */
	/* A record did not become a file. 0: the rest goes on, or -errno. */
	int (*lose)(struct tree_maker *m, const char *name, int error);
};

/* *m is zeroed. count is not 0. */
void tree_make_begin(struct tree_maker *m, const struct tree_maker_how *how, char *const *paths,
		     size_t count, uint64_t bytes_max);
/* A file that was begun and never ended is not there. -EPIPE: the records are not complete. */
must_check int tree_make_end(struct tree_maker *m);

#endif

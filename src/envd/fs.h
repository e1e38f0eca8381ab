/* What the methods about files share. */
#ifndef WARD_ENVD_FS_H
#define WARD_ENVD_FS_H

#include "envd/call.h"

struct fs_request {
	struct buf path, destination, watcher;
	uint64_t depth;
	bool recursive, include_entry;
};

/* Reads the message; -1: the call's error is set. Freed in any case by the caller. */
must_check int fs_request_read(struct call *c, struct fs_request *r);
void fs_request_free(struct fs_request *r);
/* The path that a client gave as an absolute one; -1: the call's error is set. */
must_check int fs_path(struct call *c, const struct buf *given, char ret[PATH_MAX]);
/* Makes a directory with all above it. 0, also if it is there, or -errno. */
must_check int fs_make_dirs(const char *path, mode_t mode);
must_check int fs_make_parents(const char *path);

#endif

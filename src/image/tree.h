/* The tree that an image is unpacked into: every path stays beneath its root, whatever links lie in
 * it. */
#ifndef WARD_IMAGE_TREE_H
#define WARD_IMAGE_TREE_H

#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "image/entry.h"

/* Counted where the program that shows progress sees it. */
struct tree_count {
	uint64_t bytes, entries;
	uint64_t skipped; /* devices, pipes and sockets: not made */
	uint64_t set_id;  /* files that lost a set-uid or set-gid bit */
};

/* The 64-bit digests of paths that the present layer made or passed through. */
struct tree_touched {
	uint64_t *slots; /* 0: free */
	size_t cap, len;
};

struct tree {
	int root_fd; /* borrowed */
	/* where ids and modes are noted that the files here do not have; borrowed, -1: nowhere */
	int owners_fd;
	uint64_t max_bytes, max_entries;
	struct tree_count *count; /* borrowed */
	uint64_t read_bytes;      /* of archives, decompressed: what is no file costs time, too */
	bool older;               /* there is something older than the present layer */
	struct tree_touched touched;
	struct buf owners; /* not written yet */
	/* whose descriptor parent_fd is; the last one is likely the next one, too */
	char parent[ENTRY_PATH_MAX];
	int parent_fd; /* owned; -1: none */
};

/* What an archive says of an entry beside its name. */
struct tree_meta {
	unsigned mode; /* permission bits */
	uint64_t uid, gid;
	struct timespec mtime;
};

void tree_begin(struct tree *t, int root_fd, int owners_fd, struct tree_count *count,
		uint64_t max_bytes, uint64_t max_entries);
/* What follows belongs to the next layer. */
void tree_next_layer(struct tree *t);
/* Writes what is noted, frees. */
must_check int tree_end(struct tree *t, struct ward_err *e);
void tree_free(struct tree *t);

/* Each makes one thing at a clean path, in place of what lies there. Missing directories above it
 * are made. */
must_check int tree_add_dir(struct tree *t, const char *path, const struct tree_meta *m,
			    struct ward_err *e);
must_check int tree_add_symlink(struct tree *t, const char *path, const char *target,
				const struct tree_meta *m, struct ward_err *e);
must_check int tree_add_hardlink(struct tree *t, const char *path, const char *to,
				 struct ward_err *e);
/* A regular file of that many bytes, which are counted. *ret_fd is for the caller to write and
 * close. */
must_check int tree_add_file(struct tree *t, const char *path, uint64_t bytes,
			     const struct tree_meta *m, int *ret_fd, struct ward_err *e);
/* Sets what writing changes; before the close. */
must_check int tree_finish_file(int fd, const struct tree_meta *m, struct ward_err *e);
/* What is no file, link or directory is counted and left out. */
must_check int tree_skip(struct tree *t, struct ward_err *e);
/* Takes away what older layers have at the path, or in that directory ("": the root). */
must_check int tree_whiteout(struct tree *t, const char *path, struct ward_err *e);
must_check int tree_opaque(struct tree *t, const char *path, struct ward_err *e);

/* Opens path (of an entry, or what a link in the tree says) with root_fd as the root of everything:
 * links lead where they would lead inside. */
must_check int tree_open(int root_fd, const char *path, int flags);
/* Removes name and all that is in it, through no link. -errno. */
must_check int tree_remove(int dir_fd, const char *name);

#endif

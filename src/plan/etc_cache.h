/*
 * The sandboxes' /etc, made once and shown to all of them: a directory in ward's state that is
 * mounted read-only, in place of a file or a mount for each of its entries.
 */
#ifndef WARD_PLAN_ETC_CACHE_H
#define WARD_PLAN_ETC_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "model/plan.h"

#define ETC_CACHE_DIR "kept-etc" /* in the state directory */
#define ETC_CACHE_NOW "now"      /* a link to the newest one */
/* in each: what it was made of; the process that uses it holds a shared lock */
#define ETC_CACHE_LIST "list"
#define ETC_CACHE_ROOT "root" /* in each: the directory itself */
/* where /etc/gitconfig leads, which differs from run to run */
#define ETC_CACHE_GIT "/.ward/gitconfig"
#define ETC_CACHE_ID_BYTES 24
#define ETC_CACHE_LIST_MAX 65536
#define ETC_CACHE_MAGIC "ward-etc 2"

/* The list: a head, the checks, the entries, then texts; an offset is counted from the
 * beginning. */
struct etc_head {
	char magic[16];
	/* the digest of tables/root.def and of what makes one of it */
	char table[72];
	/* nothing is synced: what a crash of the machine left is not believed */
	char boot[40];
	char id[ETC_CACHE_ID_BYTES];
	uint32_t check_count, entry_count;
};

/* A directory or file of the host's that was looked at, relative to /etc, and how it was. */
struct etc_check {
	uint64_t dev, ino, size, mtime, ctime;
	uint32_t mode, path;
};

/* What of the host's is in it. */
struct etc_entry {
	uint32_t target; /* absolute */
	uint32_t link;   /* where it leads; 0: no link */
	uint32_t is_file;
	uint32_t mounted; /* the host's own directory is mounted there */
};

/* Whether the bytes are a list of this build, every offset in it leading to text, every path to
 * something in /etc; then *ret_head is it. A pure function. */
bool etc_list_check(const void *bytes, size_t n, const struct etc_head **ret_head);
/* What of a file's state is kept. */
void etc_check_fill(struct etc_check *c, const struct stat *st);

/* Finds a directory that is as the host's files are now, and holds it. as_root: the sandbox's
 * process has no right to its path. */
bool etc_cache_find(bool as_root, struct etc_cache *ret_kept);
/* Another tree_fd, for another sandbox: each can be mounted once. -1: errno says why. */
int etc_cache_open_tree(const struct etc_cache *k);
/* Fine for an empty one. */
void etc_cache_release(struct etc_cache *k);

/* Makes one of these rows, those of /etc among them. They were read at that time; *stamp is how
 * /etc was before. Whatever is in the way: there is none. Who asks first in a state directory is
 * only noted, because many ask just once. */
void etc_cache_make(const struct plan_mount *rows, size_t count, const struct stat *stamp,
		    time_t read);
/* Removes what a killed process left half made. */
void etc_cache_tidy(void);

#endif

/* Named volumes: caches of a project and homes, kept in the state directory, never the host's
 * own. */
#ifndef WARD_STATE_VOLUME_H
#define WARD_STATE_VOLUME_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum volume_kind { VOLUME_CACHE, VOLUME_HOME };

/* Which one: a cache has its workspace, name and part; a home its name alone. Everything is
 * borrowed. */
struct volume_key {
	enum volume_kind kind;
	const char *workspace; /* CACHE: absolute, resolved */
	const char *name;
	const char *part; /* CACHE: "" where there is one directory only */
	/* whom the files belong to; 0 for root's agents that are id-mapped or root */
	uid_t owner;
	gid_t group;
};

/* Where the volume is, absolute. With `make` it is made if it is missing, belongs to key->owner,
 * and *ret_fd is its directory, locked (shared) for as long as the descriptor is open; without,
 * nothing is changed and *ret_fd is -1. The caller frees the path and closes. */
must_check int volume_open(const struct volume_key *key, bool make, char **ret_path, int *ret_fd,
			   struct ward_err *e);

/* Makes the directories (or, at last, the empty file) of `path` beneath the volume at dir_fd,
 * through no link. */
must_check int volume_make_point(int dir_fd, const char *path, bool is_file,
				 const struct volume_key *key, struct ward_err *e);

/* One volume of the list. */
struct volume_item {
	char *name;      /* "cache/PROJECT/pip", "home/claude" */
	char *workspace; /* CACHE: whose it is; "" otherwise */
	uint64_t bytes;  /* on disk */
	uint64_t files;
	bool in_use; /* a sandbox has it now */
};

struct volume_items {
	struct volume_item *items;
	size_t len;
};

/* Every volume, sorted by name. The caller frees with volume_items_clear(). */
must_check int volume_list(struct volume_items *ret_items, struct ward_err *e);
void volume_items_clear(struct volume_items *v);
/* Removes a volume of the list; -EBUSY while a sandbox has it, -ENOENT when there is none. */
must_check int volume_remove(const char *name, struct ward_err *e);

#endif

/* The first bytes of files that hold objects. Pure functions; whether content and name agree is the
 * importer's to check. */
#ifndef WARD_RULES_GIT_OBJECT_H
#define WARD_RULES_GIT_OBJECT_H

#include "rules/git_name.h"

#define GIT_LOOSE_HEAD 2u /* bytes that git_loose_ok() needs */
#define GIT_PACK_HEAD 12u

enum git_object_type { GIT_OBJECT_BAD, GIT_COMMIT, GIT_TREE, GIT_BLOB, GIT_TAG };

/* Whether a loose object begins as a zlib stream that git reads. */
bool git_loose_ok(const uint8_t *bytes, size_t n);

/* Reads the header of an inflated loose object, "TYPE SIZE\0": *ret_size is what it says, *ret_head
 * the header's length. */
enum git_object_type git_loose_header(const uint8_t *bytes, size_t n, uint64_t *ret_size,
				      size_t *ret_head);

/* Whether a pack begins with "PACK", version 2 and a number of objects; *ret_count is that number.
 */
bool git_pack_ok(const uint8_t *bytes, size_t n, uint32_t *ret_count);

/* Gets each entry of a tree in order; anything but 0 stops the reading. id has as many bytes as the
 * repository's ids. */
typedef int git_tree_fn(void *ctx, uint32_t mode, const char *name, size_t name_n,
			const uint8_t *id);

/* Reads the body of a tree. Every name must be one that git may write. fn may be NULL. Returns 0,
 * what fn stopped with, or -EINVAL with static text in *ret_why. */
int git_tree_read(const uint8_t *bytes, size_t n, unsigned hash, git_tree_fn *fn, void *ctx,
		  const char **ret_why);

#endif

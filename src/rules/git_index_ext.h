/* Extensions of the index, for git_index.c. */
#ifndef WARD_RULES_GIT_INDEX_EXT_H
#define WARD_RULES_GIT_INDEX_EXT_H

#include "rules/git_index.h"

/* What the extensions are compared with. */
struct git_index_shape {
	unsigned hash;
	uint32_t entries;
	size_t end;     /* where the entries end and the extensions begin */
	uint32_t empty; /* entries without a path, which only a split index has */
};

/* Reads the extensions between shape->end and the trailer of an index of n bytes. IEOT's blocks are
 * kept in *ret_blocks (a place in bytes, NULL: none) for the caller to compare with the entries.
 * Returns NULL, or why they are refused (static text). */
const char *git_index_extensions(const uint8_t *bytes, size_t n,
				 const struct git_index_shape *shape, struct git_index_info *info,
				 const uint8_t **ret_blocks, size_t *ret_count);

#endif

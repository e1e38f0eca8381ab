/* What a compiled list of patterns is made of: for ignore.c, and for the lists that are compiled
 * when ward is built. */
#ifndef WARD_POLICY_IGNORE_INTERNAL_H
#define WARD_POLICY_IGNORE_INTERNAL_H

#include "policy/ignore.h"

#define BUCKETS 256u
#define GENERAL BUCKETS /* chain of the patterns whose last component is not literal */
#define CHAIN_END UINT32_MAX

/* IN_NAMED: "**" "/DIR/GLOB", where DIR has no wildcard and GLOB no slash: what matches lies in a
 * DIR. */
enum { NEGATIVE = 1, MUST_BE_DIR = 2, NAME_ONLY = 4, ENDS_WITH = 8, IN_NAMED = 16 };

struct pattern {
	uint32_t offset;  /* in ignore.text */
	uint32_t len;     /* without "!", leading and trailing slash */
	uint32_t literal; /* length of the beginning without wildcards */
	uint32_t next;    /* older pattern of the same chain */
	uint32_t hash;    /* of the last component, in its chain */
	uint8_t flags;
	char last;  /* the last byte that a name must have, where that is known */
	char above; /* IN_NAMED: the last byte of DIR */
};

struct ignore {
	struct pattern *items;
	uint32_t count, cap;
	uint32_t chains[BUCKETS + 1];
	/* of the general chain: which bytes `last` and `above` have there, see ignore.c */
	uint64_t lasts, aboves;
	struct buf text;
	const struct ignore *below; /* asked where no pattern matches; NULL: none */
	bool built;                 /* with ward: it is neither changed nor freed */
};

#endif

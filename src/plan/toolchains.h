/* The toolchains of tables/toolchains.def on this host: where they are, and what may be shown. */
#ifndef WARD_PLAN_TOOLCHAINS_H
#define WARD_PLAN_TOOLCHAINS_H

#include "base/buf.h"

/* One file or directory that a preset shows. */
struct toolchain_item {
	char *path; /* as the manager calls it: absolute, cleaned, may go through links */
	char *real; /* what that is, without links */
	char *row;  /* the path of its row in the table, with stars */
	/* why it may not be shown: static text; NULL: it may */
	const char *refused;
	bool is_file;
};

struct toolchain_items {
	struct toolchain_item *items;
	size_t len;
	struct strv managers; /* that are installed */
	struct strv bins;     /* directories for PATH */
	struct strv env;      /* NAME=VALUE that the managers want */
	bool failed;          /* out of memory */
};

/* The name of preset number i; NULL: there are no more. */
const char *toolchain_preset(size_t i);
/* Whether a project that has a file of this name chooses the preset (NULL: any). Pure. */
bool toolchain_is_marker(const char *preset, const char *file);
/* Whether the directory has a file for which the preset (NULL: any) is chosen. */
bool toolchain_has_marker(const char *dir, const char *preset);
/* Whether the preset brings a cache of that name for a project in dir. */
bool toolchain_has_cache(const char *preset, const char *cache, const char *dir);
/* Whether a file or directory of that name is hidden in what a preset shows. Pure. */
bool toolchain_hides(const char *name);
/* What the preset shows on this host, for the caller's HOME and environment. The caller clears. */
void toolchain_find(const char *preset, struct toolchain_items *ret);
void toolchain_clear(struct toolchain_items *t);
/* The preset that shows the path, by its own name or by where links lead; NULL: none does. */
const char *toolchain_of(const char *path);
/* Variable number i that is passed on with the preset while it points at what is shown; NULL: no
 * more. */
const char *toolchain_passes(const char *preset, size_t i);

#endif

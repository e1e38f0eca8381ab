/* Git configuration files, as git reads them: for what is the user's own. rules/git_config.h is for
 * what an agent can write. */
#ifndef WARD_POLICY_GITCONFIG_H
#define WARD_POLICY_GITCONFIG_H

#include "base/buf.h"

/* One setting, valid during the call only. */
struct gitconfig_entry {
	const char *section;    /* lower case */
	const char *subsection; /* "" when there is none */
	const char *key;        /* lower case */
	const char *value;      /* NULL: the key stands alone, which means true */
};

/* Gets each setting in order; anything but 0 stops the reading. */
typedef int gitconfig_fn(void *ctx, const struct gitconfig_entry *entry);

/* Reads a text as git does. Returns 0, what fn stopped with, -ENOMEM, or -EINVAL where git would
 * refuse the text. */
must_check int gitconfig_read(const char *text, size_t n, gitconfig_fn *fn, void *ctx);

/* The path in the text of a .git file ("gitdir: PATH"), NULL if it is none; the caller frees. */
must_check char *gitconfig_gitdir(const char *text, size_t n);

#endif

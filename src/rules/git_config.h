/* Configuration of a repository that an agent can write: a strict reader and an allow-list of
 * settings. Pure functions. */
#ifndef WARD_RULES_GIT_CONFIG_H
#define WARD_RULES_GIT_CONFIG_H

#include "policy/gitconfig.h"
#include "rules/git_path.h"

/* Reads a text in the form in which git itself writes configuration, and nothing that another
 * version or another program might read differently: no NUL, CR, BOM, continued line, [a.b], key
 * without "=", second thing on a line, comment behind a value. Lines that are only a comment are
 * skipped. entry->value is never NULL. Returns 0, what fn stopped with, -ENOMEM, or -EINVAL with
 * static text in *ret_why and the line's number in *ret_line (may be NULL). */
must_check int git_config_read(const char *text, size_t n, gitconfig_fn *fn, void *ctx,
			       const char **ret_why, size_t *ret_line);

enum git_config_verdict {
	GIT_CONFIG_PLAIN,    /* starts nothing, reads nothing else, contacts no process */
	GIT_CONFIG_URL,      /* an address: where it is new or changed, the user must confirm it */
	GIT_CONFIG_WORKTREE, /* core.worktree of a submodule: the caller checks that the place
				points back */
	GIT_CONFIG_REMOTE,   /* the name of a remote, which the caller must find (remote.NAME.url):
			      git takes any other word for a path */
	GIT_CONFIG_REFUSED
};

/* Judges one setting of a configuration in a directory of that kind. *ret_why is static text for
 * every verdict but PLAIN. */
enum git_config_verdict git_config_allowed(const struct gitconfig_entry *entry,
					   enum git_dir_kind kind, const char **ret_why);

/* The same for .gitmodules: sections submodule only. */
enum git_config_verdict git_modules_allowed(const struct gitconfig_entry *entry,
					    const char **ret_why);

/* Whether git would run the setting's value, or what lies in the directory that it names, as a
 * program: for finding programs that the user's own configuration points at. */
bool git_config_runs(const struct gitconfig_entry *entry);

/* Whether a URL is one that git may be handed: https, ssh, git, user@host:path, or a path.
 * *ret_path is true for a path, which the caller must find inside the workspace, in a repository
 * that was judged. */
bool git_url_ok(const char *url, bool *ret_path);

/* The object format that a configuration says: GIT_SHA1 or GIT_SHA256; 0: the text is refused or
 * says something else. */
unsigned git_config_hash(const char *text, size_t n);

#endif

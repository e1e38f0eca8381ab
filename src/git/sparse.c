/*
 * Repositories that an earlier run made. In: a repository whose sparse checkout keeps protected
 * names of its commits out of the work tree (guard/guard_sparse.c). Out: what of the sandbox's
 * would end that. Runs in ward-git.
 *
 * The commits are on the host, and so count as the user's own; only a person ends the sparse
 * checkout. So the sandbox's patterns and settings of one do not arrive, a new work tree only with
 * the same patterns, and an index only with the flags (doubts.c).
 */
#include <stdio.h>
#include <string.h>

#include "git/git.h"
#include "guard/guard_sparse.h"
#include "policy/gitconfig.h"

#define PATTERNS "info/sparse-checkout"

/* How long the part of a path is that names the repository: "", "modules/NAME/". */
static size_t repository_n(const struct take *t, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < t->repositories.len; i++) {
		size_t len = strlen(t->repositories.items[i]);

		if (len > n && strncmp(path, t->repositories.items[i], len) == 0)
			n = len;
	}
	return n;
}

static int see_setting(void *ctx, const struct gitconfig_entry *entry)
{
	if (strcmp(entry->section, "core") == 0 && !*entry->subsection &&
	    strcmp(entry->key, "sparsecheckout") == 0)
		*(bool *)ctx = !entry->value || strcasecmp(entry->value, "false") != 0;
	return 0;
}

/* Whether a person has ended the sparse checkout on the host. */
static bool is_off(struct take *t, const char *path, size_t n)
{
	static const char *const names[] = { "config", "config.worktree" };
	bool on = true;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_buf name = { 0 }, bytes = { 0 };
		struct file f;

		buf_printf(&name, "%.*s%s", (int)n, path, names[i]);
		if (!name.failed && read_host(t, name.data, &bytes, &f))
			(void)!gitconfig_read(f.bytes, f.n, see_setting, &on);
	}
	return !on;
}

/* The patterns of the repository that path lies in, if ward wrote them. */
static bool read_patterns(struct take *t, const char *path, struct buf *bytes,
			  struct file *ret_patterns)
{
	size_t n = repository_n(t, path);
	auto_buf name = { 0 };

	buf_printf(&name, "%.*s" PATTERNS, (int)n, path);
	return !name.failed && read_host(t, name.data, bytes, ret_patterns) &&
	       !is_off(t, path, n) && ret_patterns->n >= strlen(GUARD_SPARSE_MARK) &&
	       memcmp(ret_patterns->bytes, GUARD_SPARSE_MARK, strlen(GUARD_SPARSE_MARK)) == 0;
}

bool keeps_out(struct take *t, const char *path)
{
	auto_buf bytes = { 0 };
	struct file patterns;

	return read_patterns(t, path, &bytes, &patterns);
}

bool sparse_differs(struct take *t, const char *path, const struct file *now)
{
	size_t n = strlen(path), k = strlen(PATTERNS);
	auto_buf bytes = { 0 };
	struct file patterns;

	return n >= k && strcmp(path + n - k, PATTERNS) == 0 &&
	       read_patterns(t, path, &bytes, &patterns) && !files_equal(now, &patterns);
}

bool sparse_setting(struct take *t, const char *path, const char *name)
{
	return strncmp(name, "core.sparsecheckout", strlen("core.sparsecheckout")) == 0 &&
	       keeps_out(t, path);
}

/*
 * Fuzzer of the judgement over a file: a path up to the first newline, a byte for kind, hash and
 * type, the content. Nothing that git runs is admitted, whatever the path around it, and every
 * verdict but ADMIT has its reason.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "rules/git_judge.h"
#include "rules/git_link.h"
#include "rules/git_object.h"
#include "rules/git_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const mode_t types[] = { S_IFREG | 0644, S_IFDIR | 0755, S_IFLNK | 0777, S_IFREG | 04755 };

/* The name of a hook that git runs, in any repository. */
static bool is_hook(const char *path)
{
	const char *hooks = strstr(path, "hooks/pre-commit");

	return hooks && strcmp(hooks, "hooks/pre-commit") == 0 &&
	       (hooks == path || hooks[-1] == '/');
}

static void try_parts(const uint8_t *bytes, size_t n)
{
	uint64_t size;
	uint32_t count;
	size_t head, len;
	const char *at, *why = NULL;

	if (git_link_read(bytes, n, &at, &len) &&
	    (memchr(at, '\0', len) || memchr(at, '\n', len) || !len))
		abort();
	(void)git_worktree_gitdir_read(bytes, n, &at, &len);
	(void)git_loose_ok(bytes, n);
	(void)git_pack_ok(bytes, n, &count);
	if (git_loose_header(bytes, n, &size, &head) != GIT_OBJECT_BAD && head > n)
		abort();
	if (git_tree_read(bytes, n, GIT_SHA1, NULL, NULL, &why) != 0 && !why)
		abort();
	if (!git_todo_refused(bytes, n, GIT_SHA1) && n >= 5 && memcmp(bytes, "exec ", 5) == 0)
		abort();
	for (enum git_form form = GIT_FORM_UNKNOWN; form <= GIT_FORM_COMMONDIR; form++)
		(void)git_state_refused(form, bytes, n, GIT_SHA1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const uint8_t *end = n ? memchr(bytes, '\n', n) : NULL;
	auto_free char *path = NULL;
	struct git_file f = { 0 };
	struct git_judged j;
	size_t max, path_n;

	if (!end || end + 2 > bytes + n)
		return 0;
	path_n = (size_t)(end - bytes);
	path = strndup((const char *)bytes, path_n);
	f = (struct git_file){ .path = path,
			       .kind = (enum git_dir_kind)(end[1] % 3),
			       .hash = end[1] & 4 ? GIT_SHA256 : GIT_SHA1,
			       .mode = types[end[1] >> 3 & 3],
			       .links = 1,
			       .bytes = end + 2,
			       .n = n - path_n - 2 };
	f.size = f.n;
	j = git_judge(&f);
	(void)git_judge_needs(path, f.kind, f.hash, &max);
	if (j.verdict > GIT_REFUSE || (j.verdict != GIT_ADMIT && !j.why[0]))
		abort();
	if (j.verdict < GIT_DERIVED &&
	    (is_hook(path) || S_ISLNK(f.mode) || f.mode & S_ISUID || strstr(path, "..")))
		abort();
	try_parts(f.bytes, f.n);
	return 0;
}

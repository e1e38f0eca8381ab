/*
 * Fuzzer of the strict reader of configuration: what it accepts, the lenient one, which follows
 * git's grammar, reads the same way; and every setting has a verdict.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/git_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int keep(void *ctx, const struct gitconfig_entry *entry)
{
	buf_printf(ctx, "%s\n%s\n%s\n%s\n;", entry->section, entry->subsection, entry->key,
		   entry->value ? entry->value : "(none)");
	return 0;
}

static int keep_and_judge(void *ctx, const struct gitconfig_entry *entry)
{
	const char *why = NULL;
	bool path;

	for (enum git_dir_kind kind = GIT_DIR_MAIN; kind <= GIT_DIR_MODULE; kind++) {
		enum git_config_verdict v = git_config_allowed(entry, kind, &why);

		if (v != GIT_CONFIG_PLAIN && (!why || !*why))
			abort();
		if (v != GIT_CONFIG_REFUSED &&
		    (git_config_runs(entry) || strncmp(entry->section, "include", 7) == 0))
			abort();
		if (v == GIT_CONFIG_URL &&
		    (!git_url_ok(entry->value, &path) || *entry->value == '-'))
			abort();
		if (v == GIT_CONFIG_WORKTREE && kind != GIT_DIR_MODULE)
			abort();
	}
	(void)git_modules_allowed(entry, &why);
	return keep(ctx, entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	auto_buf strict = { 0 }, lenient = { 0 };
	const char *why = NULL, *text = n ? (const char *)bytes : "";
	unsigned hash = git_config_hash(text, n);
	int status = git_config_read(text, n, keep_and_judge, &strict, &why, NULL);

	if (status != 0) {
		if (status != -EINVAL || !why || hash)
			abort();
		return 0;
	}
	if (gitconfig_read(text, n, keep, &lenient) != 0 ||
	    strcmp(buf_text(&strict), buf_text(&lenient)) != 0)
		abort();
	return 0;
}

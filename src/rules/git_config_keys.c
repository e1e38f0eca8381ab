/*
 * Which settings of a repository may cross to the host. In: one setting. Out: a verdict, by a row
 * of tables/gitconfig.def and the kind of value that the row allows. Pure; run by the importer and
 * the sweep, in the supervisor; fuzzed (fuzz/git_config.c).
 *
 * A list of the settings that run programs would have to be complete, for every version of git;
 * this list only has to be useful. A value is checked too: a plain word cannot be an option or a
 * command, the name of a remote cannot be an address.
 */
#include "rules/git_config.h"

#include <string.h>
#include <strings.h>

#include "rules/git_ref.h"

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

enum sub { SUB_NO, SUB_SUB, SUB_ANY };
enum kind {
	KIND_BOOL,
	KIND_OFF,
	KIND_NUMBER,
	KIND_WORD,
	KIND_VERSION,
	KIND_CHAR,
	KIND_TEXT,
	KIND_LINES,
	KIND_URL,
	KIND_REFSPEC,
	KIND_REF,
	KIND_BRANCH,
	KIND_REMOTE,
	KIND_TAGOPT,
	KIND_REBASE,
	KIND_UPDATE,
	KIND_HASH,
	KIND_PATH,
	KIND_WORKTREE,
	KIND_RUNS,
	KIND_REFUSED
};

static const struct row {
	const char *section, *key;
	enum sub sub;
	enum kind kind;
	const char *why;
} rows[] = {
#define GITCONFIG(section, sub, key, kind, why) { section, key, SUB_##sub, KIND_##kind, why },
#include "gitconfig.def"
};

static bool is_one_of(const char *value, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false;
}

static bool is_off(const char *value)
{
	static const char *const words[] = { "false", "no", "off", "0" };

	return is_one_of(value, words, ARRAY_LEN(words));
}

static bool is_bool(const char *value)
{
	static const char *const words[] = { "true", "yes", "on", "1" };

	return is_off(value) || is_one_of(value, words, ARRAY_LEN(words));
}

static bool is_rebase(const char *value)
{
	static const char *const words[] = { "merges", "m", "interactive", "i" };

	return is_bool(value) || is_one_of(value, words, ARRAY_LEN(words));
}

static bool is_update(const char *value)
{
	static const char *const words[] = { "none", "checkout", "rebase", "merge" };

	return is_one_of(value, words, ARRAY_LEN(words));
}

static bool is_word(const char *value)
{
	size_t n = strlen(value);

	if (!n || n > 64 || *value == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_word_char(value[i]))
			return false;
	return true;
}

static bool is_number(const char *value)
{
	size_t n;

	value += *value == '-';
	n = strspn(value, "0123456789");
	return n && n < 19 && (!value[n] || (strchr("kKmMgG", value[n]) && !value[n + 1]));
}

static bool is_char(const char *value)
{
	return strcmp(value, "auto") == 0 || (*value && strchr("#;@!$%^&|:", *value) && !value[1]);
}

static bool is_text(const char *value, bool lines)
{
	for (; *value; value++)
		if (((unsigned char)*value < 0x20 &&
		     !(lines && (*value == '\n' || *value == '\t'))) ||
		    *value == 0x7f)
			return false;
	return true;
}

/* The name of a branch: with "refs/heads/" in front it is a ref. */
static bool is_branch(const char *value)
{
	auto_buf name = { 0 };

	if (strcmp(value, ".") == 0)
		return true; /* of a submodule: the branch of the repository around it */
	buf_printf(&name, "refs/heads/%s", value);
	return !name.failed && git_ref_name_ok(name.data, name.len);
}

/* One side of a refspec: "refs/..." with at most one "*", which stands for a component or a part of
 * one. */
static bool is_refspec_side(const char *s, size_t n)
{
	const char *star = n ? memchr(s, '*', n) : NULL;
	auto_buf name = { 0 };

	buf_add(&name, s, n);
	if (name.failed || (star && memchr(star + 1, '*', n - (size_t)(star + 1 - s))))
		return false;
	if (star)
		name.data[star - s] = 'x';
	return git_ref_name_ok(buf_text(&name), n) || (n == 4 && memcmp(s, "HEAD", 4) == 0);
}

static bool is_refspec(const char *value)
{
	const char *colon;
	size_t n;

	value += *value == '+' || *value == '^';
	colon = strchr(value, ':');
	n = colon ? (size_t)(colon - value) : strlen(value);
	return is_refspec_side(value, n) &&
	       (!colon || is_refspec_side(colon + 1, strlen(colon + 1)));
}

/* The name of a remote, as git remote add takes it; "." is this repository. */
static bool is_remote(const char *value)
{
	return is_branch(value);
}

static bool is_value(enum kind kind, const char *value)
{
	bool path;

	switch (kind) {
	case KIND_BOOL:
		return is_bool(value);
	case KIND_OFF:
		return is_off(value);
	case KIND_NUMBER:
		return is_number(value);
	case KIND_WORD:
		return is_word(value);
	case KIND_VERSION:
		return strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
	case KIND_CHAR:
		return is_char(value);
	case KIND_TEXT:
		return is_text(value, false);
	case KIND_LINES:
		return is_text(value, true);
	case KIND_URL:
		return git_url_ok(value, &path);
	case KIND_REFSPEC:
		return is_refspec(value);
	case KIND_REF:
		return git_ref_name_ok(value, strlen(value));
	case KIND_BRANCH:
		return is_branch(value);
	case KIND_REMOTE:
		return is_remote(value);
	case KIND_TAGOPT:
		return strcmp(value, "--tags") == 0 || strcmp(value, "--no-tags") == 0;
	case KIND_REBASE:
		return is_rebase(value);
	case KIND_UPDATE:
		return is_update(value);
	case KIND_HASH:
		return strcmp(value, "sha1") == 0 || strcmp(value, "sha256") == 0;
	case KIND_PATH:
		return *value != '-' && !git_path_refused(value, strlen(value), false);
	case KIND_WORKTREE:
		return *value && is_text(value, false);
	case KIND_RUNS:
	case KIND_REFUSED:
		return false;
	}
	return false;
}

/* Whether n characters are a host as it stands in an address: ssh would take "-x" for an option,
 * git undoes escapes. */
static bool is_host(const char *s, size_t n, bool escapes)
{
	const char *at = memrchr(s, '@', n);

	if (*s == '-' || *s == '%' || (!escapes && memchr(s, '%', n)))
		return false;
	if (at) {
		n -= (size_t)(at + 1 - s);
		s = at + 1;
	}
	return n && *s != '-' && !memchr(s, '%', n);
}

bool git_url_ok(const char *url, bool *ret_path)
{
	static const char *const schemes[] = { "https://", "ssh://", "git://" };
	const char *colon = strchr(url, ':'), *slash = strchr(url, '/');

	*ret_path = false;
	if (!*url || *url == '-' || strlen(url) > 4000 || strpbrk(url, " \\\"'`"))
		return false;
	if (!is_text(url, false))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (strncmp(url, schemes[i], n) == 0)
			return is_host(url + n, strcspn(url + n, "/?#"), i == 0);
	}
	if (strstr(url, "://") ||
	    strstr(url, "::")) /* another scheme, or a helper program's name */
		return false;
	if (colon && (!slash || colon < slash)) /* user@host:path */
		return is_host(url, (size_t)(colon - url), false) && colon[1] && colon[1] != '-';
	*ret_path = true;
	return *url != '~' && *url != '@';
}

static const struct row *find_row(const struct gitconfig_entry *entry)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		if (strcmp(r->section, entry->section) == 0 &&
		    (*r->key == '*' || strcmp(r->key, entry->key) == 0) &&
		    (r->sub == SUB_ANY || (r->sub == SUB_SUB) == (*entry->subsection != '\0')))
			return r;
	}
	return NULL;
}

/* Whether the subsection is a name that git gives to such a thing. */
static bool is_subsection(const struct gitconfig_entry *entry)
{
	if (!*entry->subsection)
		return true;
	if (strcmp(entry->section, "remote") == 0)
		return strcmp(entry->subsection, ".") != 0 && is_remote(entry->subsection);
	if (strcmp(entry->section, "branch") == 0)
		return is_branch(entry->subsection);
	if (strcmp(entry->section, "submodule") == 0)
		return git_module_name_ok(entry->subsection, strlen(entry->subsection));
	return is_text(entry->subsection, false);
}

enum git_config_verdict git_config_allowed(const struct gitconfig_entry *entry,
					   enum git_dir_kind kind, const char **ret_why)
{
	const struct row *r = find_row(entry);

	*ret_why = r ? r->why : "is not known to be harmless";
	if (!r || !entry->value || !is_value(r->kind, entry->value))
		return GIT_CONFIG_REFUSED;
	if (!is_subsection(entry)) {
		*ret_why = "belongs to a name that git does not use";
		return GIT_CONFIG_REFUSED;
	}
	if (r->kind == KIND_WORKTREE)
		return kind == GIT_DIR_MODULE ? GIT_CONFIG_WORKTREE : GIT_CONFIG_REFUSED;
	if (r->kind == KIND_REMOTE && strcmp(entry->value, ".") != 0)
		return GIT_CONFIG_REMOTE;
	if (r->kind != KIND_URL)
		return GIT_CONFIG_PLAIN;
	*ret_why = "is a URL to which git connects";
	return GIT_CONFIG_URL;
}

enum git_config_verdict git_modules_allowed(const struct gitconfig_entry *entry,
					    const char **ret_why)
{
	if (strcmp(entry->section, "submodule") != 0 || !*entry->subsection) {
		*ret_why = "is not a setting of a submodule";
		return GIT_CONFIG_REFUSED;
	}
	return git_config_allowed(entry, GIT_DIR_MAIN, ret_why);
}

bool git_config_runs(const struct gitconfig_entry *entry)
{
	const struct row *r = find_row(entry);

	return r && (r->kind == KIND_RUNS ||
		     (r->kind == KIND_UPDATE && entry->value && *entry->value == '!'));
}

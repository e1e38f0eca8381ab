/*
 * Configuration. In: the settings of a repository as both sides had them last, as the sandbox has them and as the host has them.
 * Out: `git config` on the host for each setting that the sandbox changed and that starts nothing, reads nothing and contacts
 * no host. Runs in ward-git with the rights of the repository's owner.
 *
 * The sandbox's file is read strictly, the host's as git reads it. A new or changed address is never taken over: a fetch would
 * contact it. It is named with the command that sets it.
 */
#include "git/git.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "rules/git_config.h"

#define TEXT_MAX (1u << 20)

/* One setting; multiple values of one key are several. */
struct setting {
	char *name;	/* SECTION.SUB.KEY as git config takes it; owned */
	char *value;	/* owned */
	enum git_config_verdict verdict;
	const char *why;
};

struct settings {
	struct setting *items;
	size_t len, cap;
	enum git_dir_kind kind;
	bool failed;
};

static void clear(struct settings *s)
{
	for (size_t i = 0; i < s->len; i++) {
		free(s->items[i].name);
		free(s->items[i].value);
	}
	free(s->items);
	*s = (struct settings){ 0 };
}

static int add_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct settings *s = ctx;
	struct setting one = { .why = "" };
	auto_buf name = { 0 };

	if (s->len == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 32;
		struct setting *grown = reallocarray(s->items, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->items = grown;
		s->cap = cap;
	}
	buf_printf(&name, "%s%s%s.%s", entry->section, *entry->subsection ? "." : "", entry->subsection, entry->key);
	one.name = buf_take(&name);
	one.value = strdup(entry->value ? entry->value : "true");
	one.verdict = git_config_allowed(entry, s->kind, &one.why);
	if (!one.name || !one.value) {
		free(one.name);
		free(one.value);
		return -ENOMEM;
	}
	s->items[s->len++] = one;
	return 0;
}

/* The user's own file, as git reads it. */
static int read_loose(const struct file *f, enum git_dir_kind kind, struct settings *ret)
{
	ret->kind = kind;
	return f && f->n ? gitconfig_read(f->bytes, f->n, add_setting, ret) : 0;
}

/* Whether two lists have the same values of a key in the same order. */
static bool same_values(const struct settings *a, const struct settings *b, const char *name)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a->len && strcmp(a->items[i].name, name) != 0)
			i++;
		while (k < b->len && strcmp(b->items[k].name, name) != 0)
			k++;
		if (i == a->len || k == b->len)
			return i == a->len && k == b->len;
		if (strcmp(a->items[i].value, b->items[k].value) != 0)
			return false;
		i++;
		k++;
	}
}

/* The worst verdict over the values of a key; PLAIN where there are none. */
static enum git_config_verdict worst(const struct settings *s, const char *name, const char **ret_why, const char **ret_value)
{
	enum git_config_verdict v = GIT_CONFIG_PLAIN;

	for (size_t i = 0; i < s->len; i++)
		if (strcmp(s->items[i].name, name) == 0 && s->items[i].verdict >= v) {
			v = s->items[i].verdict;
			*ret_why = s->items[i].why;
			*ret_value = s->items[i].value;
		}
	return v;
}

static bool has(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->len; i++)
		if (strcmp(s->items[i].name, name) == 0)
			return true;
	return false;
}

/* branch.N.remote may name only a remote that the host has: git takes an address there, too. */
static bool names_known_remote(const struct settings *host, const char *name, const char *value)
{
	size_t n = strlen(name);
	auto_buf url = { 0 };

	if (strncmp(name, "branch.", 7) != 0 ||
	    ((n < 7 || strcmp(name + n - 7, ".remote") != 0) && (n < 11 || strcmp(name + n - 11, ".pushremote") != 0)))
		return true;
	if (strcmp(value, ".") == 0)
		return true;
	buf_printf(&url, "remote.%s.url", value);
	return !url.failed && has(host, url.data);
}

struct merge {
	struct take *t;
	const char *path;	/* in the git directory */
	char *file;		/* on the host */
	struct settings base, mine, host;
	struct buf refused;
};

/* A value that the sandbox gave the key and that names no remote of the host's; NULL: there is none. */
static const char *find_unknown_remote(const struct merge *m, const char *name)
{
	for (size_t i = 0; i < m->mine.len; i++)
		if (strcmp(m->mine.items[i].name, name) == 0 && !names_known_remote(&m->host, name, m->mine.items[i].value))
			return m->mine.items[i].value;
	return NULL;
}

/* remote.N.KEY without remote.N.url makes a remote whose address is its name, and `git fetch --all` goes there. */
static bool makes_remote(const struct settings *host, const char *name)
{
	const char *key = strrchr(name, '.');
	auto_buf url = { 0 };

	if (strncmp(name, "remote.", 7) != 0 || key <= name + 6)
		return false;
	buf_printf(&url, "%.*s.url", (int)(key - name), name);
	return url.failed || !has(host, url.data);
}

static int set_values(struct take *t, const char *file, const struct settings *mine, const struct settings *host, const char *name)
{
	const char *unset[] = { "config", "--file", file, "--unset-all", name, NULL };
	struct git_call call = { .git_dir = t->record.git_dir, .words = unset };
	int status = has(host, name) ? git_call(&call, NULL) : 0;

	for (size_t i = 0; i < mine->len && status == 0; i++) {
		const char *add[] = { "config", "--file", file, "--add", name, mine->items[i].value, NULL };

		call.words = add;
		if (strcmp(mine->items[i].name, name) == 0)
			status = git_call(&call, NULL);
	}
	return status;
}

/* The command is given only where the words mean themselves in a shell. */
static void say_address(struct take *t, const char *name, const char *value)
{
	if (text_is_plain(name) && text_is_plain(value))
		say_note(t, "git: the sandbox set %s to an address that the host's repository does not have: %s; to take it over: "
			 "git config %s '%s'", name, value, name, value);
	else
		say_note(t, "git: the sandbox set %.200s to an address that the host's repository does not have", name);
}

static int merge_key(struct merge *m, const char *name)
{
	const char *why = "", *value = "";
	enum git_config_verdict v, old;
	int status;

	if (same_values(&m->mine, &m->base, name) || same_values(&m->mine, &m->host, name))
		return 0;
	v = worst(&m->mine, name, &why, &value);
	if (v == GIT_CONFIG_URL) {
		say_address(m->t, name, value);
		return 0;
	}
	if (v == GIT_CONFIG_REMOTE && (value = find_unknown_remote(m, name)) != NULL) {
		say_note(m->t, "git: %s is not taken over: the host's repository has no remote %s", name, value);
		return 0;
	}
	if (v != GIT_CONFIG_REFUSED && has(&m->mine, name) && makes_remote(&m->host, name)) {
		say_note(m->t, "git: %s is not taken over: the host's repository has no address of that remote", name);
		return 0;
	}
	old = has(&m->mine, name) ? v : worst(&m->base, name, &why, &value);	/* what is removed must have been harmless */
	if (v == GIT_CONFIG_REFUSED || v == GIT_CONFIG_WORKTREE || old == GIT_CONFIG_REFUSED || old == GIT_CONFIG_WORKTREE) {
		buf_printf(&m->refused, "%s%s %s", m->refused.len ? "; " : "git configuration whose ", name, why);
		return 0;
	}
	if (!same_values(&m->host, &m->base, name)) {
		say_note(m->t, "git: %s changed on the host and in the sandbox; the host's stays", name);
		return 0;
	}
	status = set_values(m->t, m->file, &m->mine, &m->host, name);
	if (status)
		say_note(m->t, "git: %s could not be set on the host", name);
	return status < 0 ? ward_fail(m->t->e, -status, "cannot start git") : 0;
}

static int merge_keys(struct merge *m)
{
	auto_strv names = { 0 };
	int status = 0;

	for (size_t i = 0; i < m->mine.len; i++)	/* in the order in which they were set */
		if (!strv_has(&names, m->mine.items[i].name))
			strv_add(&names, m->mine.items[i].name);
	for (size_t i = 0; i < m->base.len; i++)
		if (!strv_has(&names, m->base.items[i].name))
			strv_add(&names, m->base.items[i].name);
	if (names.failed)
		return ward_fail(m->t->e, ENOMEM, "out of memory");
	for (size_t i = 0; i < names.len && status == 0; i++)
		status = merge_key(m, names.items[i]);
	return status;
}

static int merge_config(struct take *t, const char *path)
{
	struct git_place place = git_path_find(path, GIT_DIR_MAIN, t->hash, false);
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	struct merge m = { .t = t, .path = path, .mine.kind = place.kind };
	auto_buf bytes = { 0 };
	struct file now = { 0 };
	const char *why = "";
	int status;

	if (!v || files_equal(v, b))
		return 0;
	if (t->record.free_config)
		return file_write(t->host_fd, path, v->bytes, v->n) < 0 ? ward_fail(t->e, EIO, "cannot write %s", path) : 0;
	if (git_config_read(v->bytes, v->n, add_setting, &m.mine, &why, NULL) != 0) {
		clear(&m.mine);
		if (!t->live)
			say(t, "refused", path, why && *why ? why : "is configuration that git does not write in this form");
		return 0;
	}
	if (file_read(t->host_fd, path, TEXT_MAX, &bytes) == 0)
		now = (struct file){ .bytes = bytes.data, .n = bytes.len };
	status = read_loose(b, place.kind, &m.base);
	if (status == 0)
		status = read_loose(&now, place.kind, &m.host);
	if (status == 0 && asprintf(&m.file, "%s/%s", t->record.git_dir, path) < 0)
		status = -ENOMEM;
	if (status == 0)
		status = merge_keys(&m);
	else
		status = ward_fail(t->e, -status, "cannot read %s of the repository", path);
	if (m.refused.len && !t->live)
		say(t, "refused", path, buf_text(&m.refused));
	if (status == 0 && t->live && !m.refused.len && files_set(&t->base, path, v->bytes, v->n) < 0)
		status = ward_fail(t->e, ENOMEM, "out of memory");
	clear(&m.base);
	clear(&m.mine);
	clear(&m.host);
	free(m.file);
	buf_free(&m.refused);
	return status;
}

int take_configs(struct take *t)
{
	auto_strv paths = { 0 };
	int status = 0;

	for (size_t i = 0; i < t->view.len; i++)
		if (git_path_find(t->view.items[i].path, GIT_DIR_MAIN, t->hash, false).form == GIT_FORM_CONFIG)
			strv_add(&paths, t->view.items[i].path);
	if (paths.failed)
		return ward_fail(t->e, ENOMEM, "out of memory");
	for (size_t i = 0; i < paths.len && status == 0; i++)
		status = merge_config(t, paths.items[i]);
	return status;
}

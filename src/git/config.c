/*
 * Configuration. In: the settings of a repository as both sides had them last, as the sandbox has
 * them and as the host has them. Out: `git config` on the host for each setting that the sandbox
 * changed and that starts nothing, reads nothing and contacts no host. Runs in ward-git with the
 * rights of the repository's owner.
 *
 * The sandbox's file is read strictly, the host's as git reads it. A new or changed address is
 * never taken over: a fetch would contact it. It is named with the command that sets it.
 */
#include "git/git.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "rules/git_config.h"

#define TEXT_MAX (4u << 20)
#define CHANGED_MAX 1000 /* git is called for each */
#define REFUSED_TEXT_MAX 2000

/* One setting; multiple values of one key are several. */
struct setting {
	char *name;  /* SECTION.SUB.KEY as git config takes it; owned */
	char *value; /* owned */
	enum git_config_verdict verdict;
	const char *why;
};

struct settings {
	struct setting *items;
	size_t len, cap;
	struct setting **order; /* sorted by name, then as in the file; owned */
	enum git_dir_kind kind;
};

static void clear(struct settings *s)
{
	for (size_t i = 0; i < s->len; i++) {
		free(s->items[i].name);
		free(s->items[i].value);
	}
	free(s->items);
	free(s->order);
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
	buf_printf(&name, "%s%s%s.%s", entry->section, *entry->subsection ? "." : "",
		   entry->subsection, entry->key);
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

static int compare_settings(const void *a, const void *b)
{
	const struct setting *x = *(struct setting *const *)a, *y = *(struct setting *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x > y) - (x < y);
}

/* Once all are there: so that a file of very many settings costs no more than its size. */
static int sort_settings(struct settings *s)
{
	s->order = calloc(s->len + 1, sizeof(*s->order));
	if (!s->order)
		return -ENOMEM;
	for (size_t i = 0; i < s->len; i++)
		s->order[i] = &s->items[i];
	qsort(s->order, s->len, sizeof(*s->order), compare_settings);
	return 0;
}

/* The user's own file, as git reads it. */
static int read_loose(const struct file *f, enum git_dir_kind kind, struct settings *ret)
{
	ret->kind = kind;
	if (f && f->n) {
		int status = gitconfig_read(f->bytes, f->n, add_setting, ret);

		if (status)
			return status;
	}
	return sort_settings(ret);
}

/* Where names that are at least this one begin; behind: names that come after it. */
static size_t find_place(const struct settings *s, const char *name, bool behind)
{
	size_t low = 0, high = s->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->order[middle]->name, name) < (behind ? 1 : 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The values of a key, in the order of the file. */
static struct setting *const *find(const struct settings *s, const char *name, size_t *ret_n)
{
	size_t from = find_place(s, name, false);

	*ret_n = find_place(s, name, true) - from;
	return s->order + from;
}

static bool has(const struct settings *s, const char *name)
{
	size_t n;

	(void)find(s, name, &n);
	return n > 0;
}

/* Whether two lists have the same values of a key in the same order. */
static bool same_values(const struct settings *a, const struct settings *b, const char *name)
{
	size_t n, k;
	struct setting *const *x = find(a, name, &n), *const *y = find(b, name, &k);
	bool same = n == k;

	for (size_t i = 0; i < n && same; i++)
		same = strcmp(x[i]->value, y[i]->value) == 0;
	return same;
}

/* The worst verdict over the values of a key; PLAIN where there are none. */
static enum git_config_verdict worst(const struct settings *s, const char *name,
				     const char **ret_why, const char **ret_value)
{
	enum git_config_verdict v = GIT_CONFIG_PLAIN;
	size_t n;
	struct setting *const *all = find(s, name, &n);

	for (size_t i = 0; i < n; i++)
		if (all[i]->verdict >= v) {
			v = all[i]->verdict;
			*ret_why = all[i]->why;
			*ret_value = all[i]->value;
		}
	return v;
}

/* branch.N.remote may name only a remote that the host has: git takes an address there, too. */
static bool names_known_remote(const struct settings *host, const char *name, const char *value)
{
	size_t n = strlen(name);
	auto_buf url = { 0 };

	if (strncmp(name, "branch.", 7) != 0 ||
	    ((n < 7 || strcmp(name + n - 7, ".remote") != 0) &&
	     (n < 11 || strcmp(name + n - 11, ".pushremote") != 0)))
		return true;
	if (strcmp(value, ".") == 0)
		return true;
	buf_printf(&url, "remote.%s.url", value);
	return !url.failed && has(host, url.data);
}

struct merge {
	struct take *t;
	const char *path; /* in the git directory */
	char *file;       /* on the host */
	struct settings base, mine, host;
	struct buf refused;
};

/* A value that the sandbox gave the key and that names no remote of the host's; NULL: there is
 * none. */
static const char *find_unknown_remote(const struct merge *m, const char *name)
{
	size_t n;
	struct setting *const *all = find(&m->mine, name, &n);

	for (size_t i = 0; i < n; i++)
		if (!names_known_remote(&m->host, name, all[i]->value))
			return all[i]->value;
	return NULL;
}

/* remote.N.KEY without remote.N.url makes a remote whose address is its name, and `git fetch --all`
 * goes there. */
static bool makes_remote(const struct settings *host, const char *name)
{
	const char *key = strrchr(name, '.');
	auto_buf url = { 0 };

	if (strncmp(name, "remote.", 7) != 0 || key <= name + 6)
		return false;
	buf_printf(&url, "%.*s.url", (int)(key - name), name);
	return url.failed || !has(host, url.data);
}

static int set_values(struct take *t, const char *file, const struct settings *mine,
		      const struct settings *host, const char *name)
{
	const char *unset[] = { "config", "--file", file, "--unset-all", name, NULL };
	struct git_call call = { .git_dir = t->record.git_dir, .words = unset };
	int status = has(host, name) ? git_call(&call, NULL) : 0;
	size_t n;
	struct setting *const *all = find(mine, name, &n);

	for (size_t i = 0; i < n && status == 0; i++) {
		const char *add[] = {
			"config", "--file", file, "--add", name, all[i]->value, NULL
		};

		call.words = add;
		status = git_call(&call, NULL);
	}
	return status;
}

/* The command is given only where the words mean themselves in a shell. */
static void say_address(struct take *t, const char *name, const char *value)
{
	if (text_is_plain(name) && text_is_plain(value))
		say_lost(t,
			 "git: the sandbox set %s to a URL that the host's repository does not "
			 "have: %s; to import it: git config %s '%s'",
			 name, value, name, value);
	else
		say_lost(t,
			 "git: the sandbox set %.200s to a URL that the host's repository does not "
			 "have",
			 name);
}

static int merge_key(struct merge *m, const char *name)
{
	const char *why = "", *value = "";
	enum git_config_verdict v, old;
	int status;

	if (same_values(&m->mine, &m->base, name) || same_values(&m->mine, &m->host, name))
		return 0;
	if (sparse_setting(m->t, m->path, name)) {
		say_lost(m->t,
			 "git: %s was not imported: the host's sparse checkout keeps protected "
			 "files of the commits out of the work tree",
			 name);
		return 0;
	}
	v = worst(&m->mine, name, &why, &value);
	if (v == GIT_CONFIG_URL) {
		say_address(m->t, name, value);
		return 0;
	}
	if (v == GIT_CONFIG_REMOTE && (value = find_unknown_remote(m, name)) != NULL) {
		say_lost(m->t, "git: %s was not imported: the host's repository has no remote %s",
			 name, value);
		return 0;
	}
	if (v != GIT_CONFIG_REFUSED && has(&m->mine, name) && makes_remote(&m->host, name)) {
		say_lost(m->t,
			 "git: %s was not imported: the host's repository has no URL for that "
			 "remote",
			 name);
		return 0;
	}
	/* what is removed must have been harmless */
	old = has(&m->mine, name) ? v : worst(&m->base, name, &why, &value);
	if (v == GIT_CONFIG_REFUSED || v == GIT_CONFIG_WORKTREE || old == GIT_CONFIG_REFUSED ||
	    old == GIT_CONFIG_WORKTREE) {
		if (m->refused.len < REFUSED_TEXT_MAX)
			buf_printf(&m->refused, "%s%.200s %s",
				   m->refused.len ? "; " : "git configuration whose ", name, why);
		return 0;
	}
	if (!same_values(&m->host, &m->base, name)) {
		say_lost(m->t,
			 "git: %s changed on the host and in the sandbox; the host's version stays",
			 name);
		return 0;
	}
	status = set_values(m->t, m->file, &m->mine, &m->host, name);
	if (status)
		say_lost(m->t, "git: cannot set %s on the host", name);
	return status < 0 ? ward_fail(m->t->e, -status, "cannot start git") : 0;
}

/* The keys whose values the sandbox changed, in the order in which they were set. *ret_values: how
 * many values they have. */
static int find_changed(const struct merge *m, struct strv *names, size_t *ret_values)
{
	const struct settings *lists[2] = { &m->mine, &m->base };

	*ret_values = 0;
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < lists[k]->len; i++) {
			const char *name = lists[k]->items[i].name;
			size_t n;

			if (*find(lists[k], name, &n) != &lists[k]->items[i] ||
			    (k && has(&m->mine, name)) || same_values(&m->mine, &m->base, name))
				continue;
			strv_add(names, name);
			*ret_values += n;
		}
	return names->failed ? -ENOMEM : 0;
}

static int merge_keys(struct merge *m)
{
	auto_strv names = { 0 };
	size_t values;
	int status = find_changed(m, &names, &values);

	if (status < 0)
		return ward_fail(m->t->e, ENOMEM, "out of memory");
	if (values > CHANGED_MAX) {
		buf_printf(&m->refused, "git configuration with %zu changed settings, more than %d",
			   values, CHANGED_MAX);
		return 0;
	}
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
		return file_write(t->host_fd, path, v->bytes, v->n, &t->wait_ms) < 0
			       ? ward_fail(t->e, EIO, "cannot write %s", path)
			       : 0;
	if (v->n > TEXT_MAX)
		why = "is configuration that is too large";
	if (v->n > TEXT_MAX ||
	    git_config_read(v->bytes, v->n, add_setting, &m.mine, &why, NULL) != 0) {
		clear(&m.mine);
		if (!t->live)
			say(t, "refused", path,
			    why && *why ? why
					: "is configuration that git does not write in this form");
		return 0;
	}
	status = file_read(t->host_fd, path, TEXT_MAX, &bytes);
	if (status == 0)
		now = (struct file){ .bytes = bytes.data, .n = bytes.len };
	if (status == 0 || status == -ENOENT)
		status = sort_settings(&m.mine);
	if (status == 0)
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
	if (status == 0 && t->live && !m.refused.len &&
	    files_set(&t->base, path, v->bytes, v->n) < 0)
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
		if (git_path_find(t->view.items[i].path, GIT_DIR_MAIN, t->hash, false).form ==
		    GIT_FORM_CONFIG)
			strv_add(&paths, t->view.items[i].path);
	if (paths.failed)
		return ward_fail(t->e, ENOMEM, "out of memory");
	for (size_t i = 0; i < paths.len && status == 0; i++)
		status = merge_config(t, paths.items[i]);
	return status;
}

/*
 * What lies under protected names in a commit or an index. In: paths with the ids of their content.
 * Out: which of them are not the user's own. Runs in ward-git; git on the host's side says what the
 * host's branches have.
 *
 * A checkout of one of the host's branches, or a rebase of its commits, brings the user's own files
 * under such names. So content counts as known that the newest commit of one of the branches has
 * under the same name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "git/protect.h"
#include "rules/git_ref.h"

#define TIPS "50"          /* of the host's branches and tags, the newest */
#define DOUBTS_MAX 500     /* that are looked for there */
#define NOBODYS "replaced" /* no file has such an id, so nobody's content clears the doubt */

int doubts_add(struct doubts *d, size_t of, const char *id, const char *path)
{
	struct doubt one = { .of = of, .id = strdup(id), .path = strdup(path) };

	if (d->len == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 64;
		struct doubt *grown = reallocarray(d->items, cap, sizeof(*grown));

		if (grown) {
			d->items = grown;
			d->cap = cap;
		}
	}
	if (!one.id || !one.path || d->len == d->cap) {
		free(one.id);
		free(one.path);
		return -ENOMEM;
	}
	d->items[d->len++] = one;
	return 0;
}

void doubts_clear(struct doubts *d)
{
	for (size_t i = 0; i < d->len; i++) {
		free(d->items[i].id);
		free(d->items[i].path);
	}
	free(d->items);
	*d = (struct doubts){ 0 };
}

/* The newest commits of the host's branches. */
static int list_tips(const char *git_dir, const char *also, struct strv *tips)
{
	static const char *const words[] = { "for-each-ref",  "--sort=-committerdate",
					     "--count=" TIPS, "--format=%(objectname)",
					     "refs/heads",    "refs/remotes",
					     "refs/tags",     NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };
	auto_buf out = { 0 };
	int status = git_call(&call, &out);

	strv_add(tips, "HEAD");
	if (also)
		strv_add(tips, also);
	for (char *rest = out.data, *line; status == 0 && rest && (line = strsep(&rest, "\n"));)
		if (*line)
			strv_add(tips, line);
	return status ? -EIO : tips->failed ? -ENOMEM : 0;
}

/* A name that git can be asked for on a line of its own. */
static bool can_ask(const struct doubt *d)
{
	return !strchr(d->path, '\n');
}

int doubts_clear_known(struct take *t, const char *git_dir, const char *also, struct doubts *d)
{
	static const char *const words[] = { "cat-file", "--batch-check=%(objectname)", NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };
	size_t count = d->len < DOUBTS_MAX ? d->len : DOUBTS_MAX;
	auto_buf asked = { 0 }, answer = { 0 };
	auto_strv tips = { 0 };
	int status = list_tips(git_dir, also, &tips);
	char *rest;

	for (size_t i = 0; i < count && status == 0; i++)
		for (size_t k = 0; k < tips.len && can_ask(&d->items[i]); k++)
			buf_printf(&asked, "%s:%s\n", tips.items[k], d->items[i].path);
	if (status < 0 || asked.failed)
		return status < 0 ? status : -ENOMEM;
	call.input = asked.data;
	call.input_n = asked.len;
	status = asked.len ? git_call(&call, &answer) : 0;
	rest = answer.data;
	for (size_t i = 0; i < count && status == 0; i++)
		for (size_t k = 0; k < tips.len && can_ask(&d->items[i]); k++) {
			struct doubt *one = &d->items[i];
			const char *line = rest ? strsep(&rest, "\n") : NULL;
			bool gone = strspn(one->id, "0") == (size_t)t->hash * 2;

			if (line)
				one->known |= gone ? strstr(line, " missing") != NULL
						   : strcmp(line, one->id) == 0;
		}
	return status ? -EIO : 0;
}

/* The entries of one index in its order: a path with its NUL, the mode, the id, whether git leaves
 * the file alone. What replaces an entry of a shared part has no path. */
struct entries {
	struct buf text;
	unsigned hash;
	bool nameless, split;
};

static int list_entry(void *ctx, const struct git_index_entry *entry)
{
	struct entries *l = ctx;

	l->nameless |= entry->path_n == 0;
	buf_add(&l->text, entry->path, entry->path_n + 1);
	buf_add(&l->text, &entry->mode, sizeof(entry->mode));
	buf_add(&l->text, entry->id, l->hash);
	buf_add(&l->text, entry->skip_worktree ? "s" : "", 1);
	return l->text.failed ? -ENOMEM : 0;
}

static int list_entries(const struct take *t, const struct file *index, struct entries *ret)
{
	struct git_index_info info;
	const char *why;

	int status;

	*ret = (struct entries){ .hash = t->hash };
	if (!index)
		return 0;
	status = git_index_read((const uint8_t *)index->bytes, index->n, t->hash, list_entry, ret,
				&info, &why);
	ret->split = info.split;
	return status;
}

/* The path of the next entry at *at, with its mode, id and flag at *ret_rest; NULL: no more. */
static const char *next_entry(const struct entries *l, size_t *at, const char **ret_rest)
{
	const char *path = buf_text(&l->text) + *at;

	if (*at >= l->text.len)
		return NULL;
	*ret_rest = path + strlen(path) + 1;
	*at = (size_t)(*ret_rest - buf_text(&l->text)) + sizeof(uint32_t) + l->hash + 1;
	return path;
}

static int doubt_entry(struct doubts *d, const struct entries *l, const char *path,
		       const char *rest)
{
	char id[GIT_HASH_MAX * 2 + 1];

	for (unsigned i = 0; i < l->hash; i++)
		snprintf(id + 2 * i, 3, "%02x", (uint8_t)rest[sizeof(uint32_t) + i]);
	return doubts_add(d, 0, id, path);
}

/* A submodule's commit in an index, which `git submodule update` checks out. */
static int doubt_link(struct take *t, const char *prefix, const char *tree, struct doubts *d,
		      const struct entries *l, const char *path, const char *rest)
{
	struct doubts one = { 0 };
	int status = doubt_entry(&one, l, path, rest);

	if (status == 0)
		status = d->len < DOUBTS_MAX ? history_link_fault(t, prefix, tree, one.items) : 1;
	if (status == 1)
		status = doubts_add(d, 0, one.items[0].id, path);
	doubts_clear(&one);
	return status;
}

/* Doubts about what the new index has and the old one has not: both are in the order of paths.
 * kept: the host's branches do not count, only the flag by which git leaves a file alone. */
static int compare_entries(struct take *t, const char *prefix, const char *tree, bool kept,
			   const struct entries *old, const struct entries *now, struct doubts *d)
{
	size_t n = sizeof(uint32_t) + now->hash;
	const char *old_rest = "", *rest, *path, *before;
	size_t old_at = 0, at = 0;
	int status = 0;

	before = next_entry(old, &old_at, &old_rest);
	while (status == 0 && (path = next_entry(now, &at, &rest))) {
		uint32_t mode;

		while (before && strcmp(before, path) < 0)
			before = next_entry(old, &old_at, &old_rest);
		if (before && strcmp(before, path) == 0 && memcmp(old_rest, rest, n + kept) == 0)
			continue;
		memcpy(&mode, rest, sizeof(mode));
		if (mode == GIT_MODE_GITLINK)
			status = doubt_link(t, prefix, tree, d, now, path, rest);
		/* a directory of a sparse index: what is in it is not listed */
		if (status < 0 || (mode != GIT_MODE_TREE && !protect_has(t, tree, path, mode)))
			continue;
		status = kept && !rest[n] ? doubts_add(d, 0, NOBODYS, path)
					  : doubt_entry(d, now, path, rest);
	}
	return status;
}

struct shared {
	struct take *t;
	const char *tree;
	struct doubts *doubts;
};

static int doubt_name(void *ctx, const struct git_index_entry *entry)
{
	struct shared *s = ctx;

	return entry->path_n && protect_has(s->t, s->tree, entry->path, entry->mode)
		       ? doubts_add(s->doubts, 0, NOBODYS, entry->path)
		       : 0;
}

/* An entry without a path replaces one of the shared part: it may be any. */
static int check_shared(struct take *t, const char *tree, const char *path, struct doubts *d)
{
	struct shared s = { t, tree, d };
	size_t n = strlen(path) - strlen("index");
	int status = 0;

	for (size_t i = 0; i < t->view.len && status == 0; i++) {
		const struct file *f = &t->view.items[i];
		struct git_index_info info;
		const char *why;

		if (strncmp(f->path, path, n) == 0 &&
		    strncmp(f->path + n, "sharedindex.", strlen("sharedindex.")) == 0)
			status = git_index_read((const uint8_t *)f->bytes, f->n, t->hash,
						doubt_name, &s, &info, &why);
	}
	return status;
}

/* The branch that the work tree of this index is on; NULL: none. */
static char *branch_of(const struct take *t, const char *path)
{
	auto_buf head = { 0 };
	const struct file *f;
	const char *name;
	size_t n;

	buf_printf(&head, "%.*sHEAD", (int)(strlen(path) - strlen("index")), path);
	f = head.failed ? NULL : files_find(&t->view, head.data);
	return f && git_head_read(f->bytes, f->n, t->hash, &name, &n) == GIT_REF_SYMBOLIC
		       ? strndup(name, n)
		       : NULL;
}

int index_brings(struct take *t, const char *path, const struct file *old, const struct file *index,
		 char **ret_path)
{
	const char *module = strncmp(path, "modules/", 8) == 0 ? path : "";
	auto_free char *git_dir = NULL, *tree = NULL, *branch = branch_of(t, path),
		       *prefix = strndup(module, *module ? strlen(path) - strlen("index") : 0);
	struct entries before = { 0 }, now = { 0 };
	struct doubts d = { 0 };
	bool kept = keeps_out(t, path);
	int status = prefix ? repository_of(t, path, &git_dir) : -ENOMEM;

	*ret_path = NULL;
	if (status == 0)
		status = protect_open(t, prefix, &tree);
	if (status == 0)
		status = list_entries(t, old, &before);
	if (status == 0)
		status = list_entries(t, index, &now);
	if (status == 0)
		status = compare_entries(t, prefix, tree, kept, &before, &now, &d);
	if (status == 0 && (now.nameless || (kept && now.split)))
		status = check_shared(t, tree, path, &d);
	if (status == 0 && d.len)
		status = doubts_clear_known(t, git_dir, branch, &d);
	for (size_t i = 0; i < d.len && status == 0 && !*ret_path; i++)
		if (!d.items[i].known || i >= DOUBTS_MAX) {
			*ret_path = strdup(d.items[i].path);
			status = *ret_path ? 0 : -ENOMEM;
		}
	doubts_clear(&d);
	buf_free(&before.text);
	buf_free(&now.text);
	return status;
}

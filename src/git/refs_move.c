/*
 * Moving refs of the host's. In: a list of refs with the values that the sandbox gave them. Out:
 * those are moved whose objects the host has. Runs in ward-git with the rights of the repository's
 * owner.
 *
 * All of them go in one transaction of git's. Where git refuses that, each half is tried, and so
 * on: one bad ref among many costs a few calls, not one call a ref, and does not keep the others
 * back. Many bad ones end at a bound.
 */
#include "git/refs.h"

#include <errno.h>
#include <string.h>

#define TRIES_MAX 300   /* parts that are tried, in one taking */
#define SYMBOLIC_MAX 50 /* symbolic refs are moved one by one */

static bool is_symbolic(const char *value)
{
	return value && strncmp(value, "ref: ", 5) == 0;
}

int ref_moves_add(struct ref_moves *m, const char *name, const char *old, const char *now,
		  bool kept)
{
	struct ref_move one = { .name = strdup(name), .old = old, .now = now, .kept = kept };

	if (one.name && m->len == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 64;
		struct ref_move *grown = reallocarray(m->items, cap, sizeof(*grown));

		if (!grown) {
			free(one.name);
			return -ENOMEM;
		}
		m->items = grown;
		m->cap = cap;
	}
	if (!one.name)
		return -ENOMEM;
	m->items[m->len++] = one;
	return 0;
}

void ref_moves_clear(struct ref_moves *m)
{
	for (size_t i = 0; i < m->len; i++)
		free(m->items[i].name);
	free(m->items);
	*m = (struct ref_moves){ 0 };
}

int ids_missing(const char *git_dir, const char *store, const struct buf *ids, struct buf *missing)
{
	static const char *const words[] = { "cat-file", "--batch-check=%(objectname)", NULL };
	struct git_call call = { .git_dir = git_dir,
				 .words = words,
				 .input = ids->data,
				 .input_n = ids->len,
				 .store = store };
	auto_buf answer = { 0 };
	int status = ids->len ? git_call(&call, &answer) : 0;
	char *rest = answer.data, *line;

	while (status == 0 && rest && (line = strsep(&rest, "\n"))) {
		char *end = strstr(line, " missing");

		if (end)
			buf_printf(missing, "%.*s\n", (int)(end - line), line);
	}
	return status ? status : missing->failed ? -ENOMEM : 0;
}

/* Whether everything that ids which are there lead to is there, too. */
static bool reach_all(const char *git_dir, const char *lines)
{
	/* not --all: another work tree's HEAD may lead nowhere for a moment; a ref of the host's
	 * may be broken */
	static const char *const words[] = { "rev-list",         "--objects", "--quiet",
					     "--ignore-missing", "--stdin",   "--not",
					     "--glob=refs/*",    NULL };
	struct git_call call = {
		.git_dir = git_dir, .words = words, .input = lines, .input_n = strlen(lines)
	};

	return git_call(&call, NULL) == 0;
}

bool ids_complete(const char *git_dir, const char *lines)
{
	const struct buf ids = { .data = (char *)(uintptr_t)lines, .len = strlen(lines) };
	auto_buf missing = { 0 };

	return ids_missing(git_dir, NULL, &ids, &missing) == 0 && missing.len == 0 &&
	       reach_all(git_dir, lines);
}

struct moving {
	struct take *t;
	const char *git_dir;
	struct ref_move **items; /* what is tried, borrowed */
	size_t len;
	size_t left; /* behind the bound */
};

static void add_line(struct buf *lines, const struct ref_move *m)
{
	if (!m->now)
		buf_printf(lines, "delete %s %s\n", m->name, m->old);
	else if (m->kept)
		buf_printf(lines, "update %s %s\n", m->name, m->now);
	else if (m->old)
		buf_printf(lines, "update %s %s %s\n", m->name, m->now, m->old);
	else
		buf_printf(lines, "create %s %s\n", m->name, m->now);
}

/* One transaction. 0: moved; 1: git refuses. */
static int move_range(struct moving *m, size_t from, size_t to)
{
	/* Thousands of refs are not flushed to the disk one by one: the view is there until all is
	 * done. Reflogs come from the sandbox. */
	static const char *const words[] = { "-c",         "core.fsync=-reference",
					     "-c",         "core.logAllRefUpdates=false",
					     "update-ref", "--no-deref",
					     "-m",         "ward-import",
					     "--stdin",    NULL };
	struct git_call call = { .git_dir = m->git_dir, .words = words };
	auto_buf lines = { 0 }, ids = { 0 };
	int status;

	for (size_t i = from; i < to; i++) {
		add_line(&lines, m->items[i]);
		if (m->items[i]->now)
			buf_printf(&ids, "%s\n", m->items[i]->now);
	}
	if (lines.failed || ids.failed)
		return -ENOMEM;
	if (ids.len && !reach_all(m->git_dir, ids.data))
		return 1;
	call.input = lines.data;
	call.input_n = lines.len;
	status = git_call(&call, NULL);
	for (size_t i = from; i < to && status == 0; i++)
		m->items[i]->done = true;
	return status < 0 ? status : status > 0;
}

static int try_range(struct moving *m, size_t from, size_t to)
{
	int status;

	if (from == to)
		return 0;
	if (m->t->tries++ >= TRIES_MAX) {
		m->left += to - from;
		return 0;
	}
	status = move_range(m, from, to);
	if (status <= 0)
		return status;
	if (to - from == 1) {
		say_note(m->t,
			 "git: %s was not imported: git rejects it, or objects that it refers to "
			 "are missing",
			 m->items[from]->name);
		return 0;
	}
	status = try_range(m, from, from + (to - from) / 2);
	return status < 0 ? status : try_range(m, from + (to - from) / 2, to);
}

/* Takes off the list what cannot be moved anyway: the object is missing, or is no commit, which a
 * branch must be. */
static int drop_hopeless(struct moving *m)
{
	static const char *const words[] = { "cat-file", "--batch-check=%(objecttype)", NULL };
	struct git_call call = { .git_dir = m->git_dir, .words = words };
	auto_buf ids = { 0 }, types = { 0 };
	size_t kept = 0;
	char *rest;
	int status;

	for (size_t i = 0; i < m->len; i++)
		buf_printf(&ids, "%s\n", m->items[i]->now);
	if (ids.failed)
		return -ENOMEM;
	call.input = ids.data;
	call.input_n = ids.len;
	status = m->len ? git_call(&call, &types) : 0;
	if (status)
		return status < 0 ? status : -EIO;
	rest = types.data;
	for (size_t i = 0; i < m->len; i++) {
		const char *type = rest ? strsep(&rest, "\n") : "", *name = m->items[i]->name;

		if (strchr(type, ' ') || !*type)
			say_note(m->t,
				 "git: %s was not imported: objects that it refers to are missing",
				 name);
		else if (strncmp(name, "refs/heads/", 11) == 0 && strcmp(type, "commit") != 0)
			say_note(m->t,
				 "git: %s was not imported: a branch must refer to a commit, not "
				 "to a %s",
				 name, type);
		else
			m->items[kept++] = m->items[i];
	}
	m->len = kept;
	return 0;
}

/* Whether the ref is there and is no symbolic one itself: a chain of them may be a loop, and git
 * fails in a repository that has one. */
static bool is_end(const struct moving *m, const char *name)
{
	const char *there[] = { "show-ref", "--verify", "--quiet", "--", name, NULL };
	const char *symbolic[] = { "symbolic-ref", "-q", name, NULL };
	struct git_call call = { .git_dir = m->git_dir, .words = there };

	if (git_call(&call, NULL) != 0)
		return false;
	call.words = symbolic;
	return git_call(&call, NULL) == 1;
}

/* Alone: update-ref does not make symbolic refs. */
static int move_symbolic(struct moving *m, struct ref_move *one)
{
	const char *set[] = { "symbolic-ref", one->name, one->now ? one->now + 5 : NULL, NULL };
	const char *unset[] = { "symbolic-ref", "-d", one->name, NULL };
	struct git_call call = { .git_dir = m->git_dir, .words = one->now ? set : unset };
	/* git does not make a plain ref of a symbolic one in ordinary work */
	bool refused = one->now && (!is_symbolic(one->now) || !is_end(m, one->now + 5));
	int status = refused ? 1 : git_call(&call, NULL);

	if (status > 0)
		say_note(m->t, "git: cannot update %s on the host", one->name);
	one->done = status == 0;
	return status < 0 ? status : 0;
}

/* Which moves go together; the rest is left to move_symbolic(). */
static int choose(struct moving *m, const struct ref_moves *all, bool deletes)
{
	m->len = 0;
	for (size_t i = 0; i < all->len; i++)
		if (!is_symbolic(all->items[i].now) && !is_symbolic(all->items[i].old) &&
		    !all->items[i].now == deletes)
			m->items[m->len++] = &all->items[i];
	return 0;
}

int ref_moves_do(struct take *t, const char *git_dir, struct ref_moves *all)
{
	auto_free struct ref_move **items = calloc(all->len + 1, sizeof(*items));
	struct moving m = { .t = t, .git_dir = git_dir, .items = items };
	size_t symbolic = 0;
	int status = items ? choose(&m, all, true) : -ENOMEM;

	if (status == 0)
		status = try_range(&m, 0, m.len); /* first: a/b makes room for a */
	if (status == 0)
		status = choose(&m, all, false);
	if (status == 0)
		status = drop_hopeless(&m);
	if (status == 0)
		status = try_range(&m, 0, m.len);
	for (size_t i = 0; i < all->len && status == 0; i++)
		if (is_symbolic(all->items[i].now) || is_symbolic(all->items[i].old)) {
			if (symbolic++ < SYMBOLIC_MAX)
				status = move_symbolic(&m, &all->items[i]);
			else
				m.left++;
		}
	if (m.left)
		say_note(t, "git: %zu more refs were not imported: git rejects too many", m.left);
	return status < 0 ? ward_fail(t->e, -status, "cannot move the refs of %s", git_dir) : 0;
}

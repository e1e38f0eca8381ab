/*
 * Moving refs of the host's. In: a list of refs with the values that the sandbox gave them. Out:
 * those are moved whose objects the host has. Runs in ward-git with the rights of the repository's
 * owner.
 *
 * All of them go in one transaction of git's. Where git refuses that, each half is tried, and so
 * on: one bad ref among many costs a few calls, not one call a ref, and does not keep the others
 * back. Many bad ones end at a bound. A ref that another git has locked is waited for; if it stays
 * locked the view is kept, and `ward recover` tries again. Every ref that is not moved gets its
 * reason.
 */
#include "git/refs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES_MAX 600    /* parts that are tried, in one taking */
#define TRIES_MS 60000   /* the same, in time */
#define SYMBOLIC_MAX 50  /* symbolic refs are moved one by one */
#define LOCK_PAUSE_MS 20 /* between two looks at a lock */
#define SAID_ALONE 10    /* refs of one reason that get a line each */
#define NAMED_MAX 5      /* of more than that: so many in one line */
#define NAMES_BYTES 800  /* of names in one note */
#define NAMES_NOTES 40   /* so many notes of names; the file has all of them */
#define LEFT_FILE "refs-not-imported"

static const char is_locked[] = "another git holds its lock file, or was killed and left it";
static const char is_rejected[] = "git rejects it, or objects that it refers to are missing";
static const char is_unfounded[] = "objects that it refers to are missing";
static const char is_no_commit[] = "a branch must refer to a commit";
static const char is_behind[] = "git rejects too many: it was not tried";
static const char is_symbol[] = "git cannot make this symbolic reference";

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
	int64_t until_ms;
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
	auto_buf lines = { 0 };
	int status;

	for (size_t i = from; i < to; i++)
		add_line(&lines, m->items[i]);
	if (lines.failed)
		return -ENOMEM;
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
	if (m->t->tries++ >= TRIES_MAX || now_ms() > m->until_ms) {
		for (size_t i = from; i < to; i++)
			m->items[i]->why = is_behind;
		return 0;
	}
	status = move_range(m, from, to);
	if (status <= 0)
		return status;
	if (to - from == 1) {
		m->items[from]->why = is_rejected;
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
			m->items[i]->why = is_unfounded;
		else if (strncmp(name, "refs/heads/", 11) == 0 && strcmp(type, "commit") != 0)
			m->items[i]->why = is_no_commit;
		else
			m->items[kept++] = m->items[i];
	}
	m->len = kept;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct ref_move *const *x = a, *const *y = b;

	return strcmp((*x)->now, (*y)->now);
}

/* Refs in the order of their ids: each group has one id. */
struct groups {
	struct ref_move **sorted;
	size_t *starts; /* of each group, and the end of the last */
	size_t len;
};

static int make_groups(const struct moving *m, struct groups *g)
{
	g->sorted = calloc(m->len + 1, sizeof(*g->sorted));
	g->starts = calloc(m->len + 1, sizeof(*g->starts));
	if (!g->sorted || !g->starts)
		return -ENOMEM;
	memcpy(g->sorted, m->items, m->len * sizeof(*g->sorted));
	qsort(g->sorted, m->len, sizeof(*g->sorted), compare_ids);
	for (size_t i = 0; i < m->len; i++)
		if (i == 0 || strcmp(g->sorted[i]->now, g->sorted[i - 1]->now) != 0)
			g->starts[g->len++] = i;
	g->starts[g->len] = m->len;
	return 0;
}

static void set_reason(const struct groups *g, size_t from, size_t to, const char *why)
{
	for (size_t i = g->starts[from]; i < g->starts[to]; i++)
		g->sorted[i]->why = why;
}

/* Sets the reason of those groups whose objects are not all there. */
static int sift(struct moving *m, const struct groups *g, size_t from, size_t to)
{
	auto_buf ids = { 0 };
	int status;

	for (size_t i = from; i < to; i++)
		buf_printf(&ids, "%s\n", g->sorted[g->starts[i]]->now);
	if (ids.failed)
		return -ENOMEM;
	if (from == to || reach_all(m->git_dir, ids.data))
		return 0;
	if (to - from == 1) {
		set_reason(g, from, to, is_unfounded);
		return 0;
	}
	if (m->t->tries++ >= TRIES_MAX || now_ms() > m->until_ms) {
		set_reason(g, from, to, is_behind);
		return 0;
	}
	status = sift(m, g, from, from + (to - from) / 2);
	return status < 0 ? status : sift(m, g, from + (to - from) / 2, to);
}

/* Takes off the list what refers to objects of which some are missing: git would refuse the whole
 * transaction, and to try its parts costs far more than to look. */
static int drop_incomplete(struct moving *m)
{
	struct groups g = { 0 };
	int status = make_groups(m, &g);
	size_t kept = 0;

	if (status == 0)
		status = sift(m, &g, 0, g.len);
	for (size_t i = 0; i < m->len; i++)
		if (!m->items[i]->why)
			m->items[kept++] = m->items[i];
	m->len = kept;
	free(g.sorted);
	free(g.starts);
	return status;
}

static bool is_there(const char *git_dir, const char *lock_of)
{
	auto_buf path = { 0 };

	buf_printf(&path, "%s/%s.lock", git_dir, lock_of);
	return !path.failed && faccessat(AT_FDCWD, path.data, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether another git has locked what is needed to move it. */
static bool has_lock(const struct moving *m, const struct ref_move *one)
{
	return is_there(m->git_dir, one->name) ||
	       (!one->now && is_there(m->git_dir, "packed-refs"));
}

/* Takes off the list what stays locked by another git. One that works keeps its locks for moments,
 * and they are waited for. */
static void drop_locked(struct moving *m)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };
	size_t kept = 0;

	for (size_t i = 0; i < m->len; i++) {
		while (!m->t->live && has_lock(m, m->items[i]) && m->t->wait_ms > 0) {
			m->t->wait_ms -= LOCK_PAUSE_MS;
			nanosleep(&pause, NULL);
		}
		if (has_lock(m, m->items[i]))
			m->items[i]->why = is_locked;
		else
			m->items[kept++] = m->items[i];
	}
	m->t->failed |= kept < m->len && !m->t->live;
	m->len = kept;
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
		one->why = is_symbol;
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
	struct moving m = {
		.t = t, .git_dir = git_dir, .items = items, .until_ms = now_ms() + TRIES_MS
	};
	size_t symbolic = 0;
	int status = items ? choose(&m, all, true) : -ENOMEM;

	if (status == 0) {
		drop_locked(&m);
		status = try_range(&m, 0, m.len); /* first: a/b makes room for a */
	}
	if (status == 0)
		status = choose(&m, all, false);
	if (status == 0)
		status = drop_hopeless(&m);
	if (status == 0)
		status = drop_incomplete(&m);
	if (status == 0) {
		drop_locked(&m);
		status = try_range(&m, 0, m.len);
	}
	for (size_t i = 0; i < all->len && status == 0; i++)
		if (is_symbolic(all->items[i].now) || is_symbolic(all->items[i].old)) {
			if (symbolic++ < SYMBOLIC_MAX)
				status = move_symbolic(&m, &all->items[i]);
			else
				all->items[i].why = is_behind;
		}
	return status < 0 ? ward_fail(t->e, -status, "cannot move the refs of %s", git_dir) : 0;
}

static bool is_left(const struct ref_move *one, const char *why)
{
	return !one->done && !one->again && one->why == why;
}

/* The names of all that did not arrive for one reason: for the report and the journal. */
static void say_names(struct take *t, const char *prefix, const struct ref_moves *m,
		      const char *why)
{
	auto_buf names = { 0 };
	size_t notes = 0;

	for (size_t i = 0; i < m->len && notes < NAMES_NOTES; i++) {
		if (!is_left(&m->items[i], why))
			continue;
		buf_printf(&names, " %s%s", prefix, m->items[i].name);
		if (names.len > NAMES_BYTES) {
			say_note(t, "git: not imported:%.1000s", buf_text(&names));
			names.len = 0;
			notes++;
		}
	}
	if (names.len && notes < NAMES_NOTES)
		say_note(t, "git: not imported:%.1000s", buf_text(&names));
}

/* One line for many of one reason, which goes to standard error, too. */
static void say_many(struct take *t, const char *prefix, const struct ref_moves *m, const char *why,
		     size_t count)
{
	auto_buf names = { 0 };
	size_t named = 0;

	for (size_t i = 0; i < m->len && named < NAMED_MAX; i++)
		if (is_left(&m->items[i], why))
			buf_printf(&names, "%s%s%.100s", named++ ? ", " : "", prefix,
				   m->items[i].name);
	say_lost(t, "git: %zu refs were not imported: %s: %s and %zu more", count, why,
		 buf_text(&names), count - named);
	say_names(t, prefix, m, why);
}

static void say_reason(struct take *t, const char *prefix, const struct ref_moves *m,
		       const char *why, struct buf *file)
{
	size_t count = 0;

	for (size_t i = 0; i < m->len; i++)
		count += is_left(&m->items[i], why);
	for (size_t i = 0; i < m->len; i++) {
		const struct ref_move *one = &m->items[i];

		if (!is_left(one, why))
			continue;
		if (count > SAID_ALONE)
			buf_printf(file, "%s %s%s\n", one->now ? one->now : "deleted", prefix,
				   one->name);
		else if (one->now)
			say_lost(t, "git: %s%s was not imported: %s (it is %s)", prefix, one->name,
				 why, one->now);
		else
			say_lost(t, "git: %s%s was not deleted: %s", prefix, one->name, why);
	}
	if (count > SAID_ALONE)
		say_many(t, prefix, m, why, count);
}

void ref_moves_say_left(struct take *t, const char *prefix, const struct ref_moves *m,
			struct buf *file)
{
	static const char *const reasons[] = { is_locked,    is_rejected, is_unfounded,
					       is_no_commit, is_behind,   is_symbol };

	for (size_t i = 0; i < ARRAY_LEN(reasons) && !t->live; i++)
		say_reason(t, prefix, m, reasons[i], file);
}

int refs_leave(struct take *t, const char *prefix, const struct buf *file)
{
	auto_buf path = { 0 };

	if (!file->len)
		return 0;
	buf_printf(&path, "%s" LEFT_FILE, prefix);
	if (file->failed || path.failed)
		return ward_fail(t->e, ENOMEM, "out of memory");
	if (file_write(t->view_fd, path.data, file->data, file->len, NULL) == 0)
		say(t, "refused", path.data,
		    "lists refs that were not imported, with their values");
	return 0;
}

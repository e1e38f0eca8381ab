/*
 * References. In: the refs of one repository as both sides had them last, as the sandbox has them
 * and as the host has them now. Out: the host's refs moved (refs_move.c), with the value that each
 * must still have. Runs in ward-git with the rights of the repository's owner.
 *
 * What only the sandbox changed goes to the host, if everything that it leads to is there. What
 * only the host changed goes to the view while the sandbox runs. Where both changed a ref
 * differently the host's stays, and the sandbox's is kept under refs/ward/conflict. A branch that a
 * work tree has checked out moves only together with its index.
 */
#include "git/refs.h"

#include <errno.h>
#include <string.h>

#include "git/protect.h"
#include "gitview/git_view.h"
#include "rules/git_ref.h"

#define CONFLICT "refs/ward/conflict/"
#define HELD "refs/ward/held/"
#define BRANCHES "refs/heads/"
#define COUNT_MS 5000 /* for the count of a branch's commits */
#define ROUNDS_MAX 3  /* of planning and moving, where the host moved refs meanwhile */

/* Names and values ("ID", or "ref: NAME"), as files of an imaginary directory. */
struct refs {
	struct files files;
};

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

static int add_packed(void *ctx, const struct git_packed_ref *ref)
{
	struct files *packed = ctx;
	auto_free char *name = strndup(ref->name, ref->name_n);

	return name ? files_add(packed, name, ref->id, strspn(ref->id, "0123456789abcdef"))
		    : -ENOMEM;
}

/* Adds those of packed that there is no loose one of. */
static int add_missing(struct files *loose, const struct files *packed)
{
	size_t n = loose->len;
	int status = 0;

	for (size_t i = 0; i < packed->len && status == 0; i++) {
		const struct files sorted = { .items = loose->items, .len = n };
		const struct file *p = &packed->items[i];

		status = files_find(&sorted, p->path) ? 0
						      : files_add(loose, p->path, p->bytes, p->n);
	}
	files_sort(loose);
	return status;
}

/* The refs that files of a repository hold: loose ones first, they win. */
static int read_refs(const struct files *f, const char *prefix, unsigned hash, struct refs *ret)
{
	struct files from_packed = { 0 };
	auto_buf start = { 0 }, packed_path = { 0 };
	const struct file *packed;
	const char *why;
	int status = 0;

	buf_printf(&start, "%srefs/", prefix);
	buf_printf(&packed_path, "%spacked-refs", prefix);
	if (start.failed || packed_path.failed)
		return -ENOMEM;
	for (size_t i = 0; i < f->len && status == 0; i++) {
		const struct file *file = &f->items[i];
		const char *value, *name = file->path + strlen(prefix);
		size_t n;
		enum git_ref_kind kind;

		if (strncmp(file->path, start.data, start.len) != 0)
			continue;
		kind = git_ref_read(file->bytes, file->n, hash, &value, &n);
		if (kind == GIT_REF_ID)
			status = files_add(&ret->files, name, value, n);
		else if (kind == GIT_REF_SYMBOLIC)
			status = files_add(&ret->files, name, file->bytes, file->n - 1);
	}
	files_sort(&ret->files);
	packed = files_find(f, packed_path.data);
	if (status == 0 && packed)
		status = git_packed_read(packed->bytes, packed->n, hash, add_packed, &from_packed,
					 &why);
	if (status == -EINVAL) /* the host's own, in a form that is not known here */
		status = 0;
	if (status == 0)
		status = add_missing(&ret->files, &from_packed);
	files_clear(&from_packed);
	return status;
}

/* The host's, as git itself sees them. */
static int read_host_refs(const char *git_dir, struct refs *ret)
{
	static const char *const words[] = { "for-each-ref",
					     "--format=%(refname)%00%(objectname)%00%(symref)",
					     NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };
	auto_buf out = { 0 };
	int status = git_call(&call, &out);
	const char *at = buf_text(&out), *end = at + out.len;

	while (status == 0 && at < end) {
		const char *id = memchr(at, '\0', (size_t)(end - at)),
			   *symref = id ? memchr(id + 1, '\0', (size_t)(end - id - 1)) : NULL;
		const char *line = symref ? memchr(symref, '\n', (size_t)(end - symref)) : NULL;
		auto_buf value = { 0 };

		if (!line)
			return -EPROTO;
		if (line > symref + 1)
			buf_printf(&value, "ref: %.*s", (int)(line - symref - 1), symref + 1);
		else
			buf_puts(&value, id + 1);
		status = value.failed ? -ENOMEM : files_set(&ret->files, at, value.data, value.len);
		at = line + 1;
	}
	return status;
}

static bool is_symbolic(const struct file *f)
{
	return f && strncmp(f->bytes, "ref: ", 5) == 0;
}

static bool is_own_name(const char *name)
{
	return strncmp(name, "refs/ward/", 10) == 0 || strncmp(name, "refs/replace/", 13) == 0;
}

/* The host's news go into the view as a loose ref. */
static int pull_ref(struct take *t, const char *prefix, const char *name, const struct file *theirs)
{
	auto_buf path = { 0 }, text = { 0 };

	buf_printf(&path, "%s%s", prefix, name);
	if (theirs)
		buf_printf(&text, "%s\n", theirs->bytes);
	if (path.failed || text.failed)
		return out_of_memory(t);
	return theirs ? file_write(t->view_fd, path.data, text.data, text.len, NULL) : 0;
}

/* All refs of a repository, and what is to be done. */
struct merge {
	struct take *t;
	const char *prefix;
	struct refs base, mine, theirs;
	struct ref_moves moves;
};

/* Both sides have this from now on; NULL: neither has the ref. */
static int agree_on_ref(struct merge *m, const char *name, const struct file *f)
{
	if (f)
		return files_set(&m->base.files, name, f->bytes, f->n);
	files_drop(&m->base.files, name);
	return 0;
}

/* The sandbox's value of a ref that stays as the host has it is kept beside it. */
static int plan_beside(struct merge *m, const char *where, const char *name,
		       const struct file *mine)
{
	auto_buf to = { 0 };

	buf_printf(&to, "%s%s", where, name + 5);
	if (to.failed)
		return -ENOMEM;
	if (!mine || is_symbolic(mine) ||
	    (m->t->live && files_equal(mine, files_find(&m->theirs.files, to.data))))
		return 0;
	return ref_moves_add(&m->moves, to.data, NULL, mine->bytes, true);
}

/* One name: what is equal is agreed on, the rest is planned. */
static int plan_ref(struct merge *m, const char *name)
{
	const struct file *b = files_find(&m->base.files, name),
			  *v = files_find(&m->mine.files, name);
	const struct file *h = files_find(&m->theirs.files, name);
	const char *why;
	auto_buf full = { 0 };

	if (is_own_name(name) || (files_equal(v, b) && files_equal(h, b)))
		return 0;
	if (files_equal(v, h))
		return agree_on_ref(m, name, v);
	if (files_equal(v, b))
		return m->t->live && pull_ref(m->t, m->prefix, name, h) < 0
			       ? 0
			       : agree_on_ref(m, name, h);
	buf_printf(&full, "%s%s", m->prefix, name);
	if (full.failed)
		return -ENOMEM;
	why = v ? history_fault(m->t, v->bytes, strlen(v->bytes)) : NULL;
	if (why && *why)
		return plan_beside(m, HELD, name, v);
	if (!files_equal(h, b) || strv_has(&m->t->blocked, full.data))
		return plan_beside(m, CONFLICT, name, v);
	return ref_moves_add(&m->moves, name, b ? b->bytes : NULL, v ? v->bytes : NULL, false);
}

/* A ref that stays because of what its commits bring: the sandbox's goes to the quarantine as a
 * file, from where it can be put in place. */
static int say_held(struct merge *m, const struct ref_move *one)
{
	auto_buf path = { 0 }, value = { 0 }, why = { 0 };
	const char *brings = history_fault(m->t, one->now, strlen(one->now));

	if (m->t->live)
		return 0;
	buf_printf(&path, "%srefs/%s", m->prefix, one->name + strlen(HELD));
	buf_printf(&value, "%s\n", one->now);
	buf_printf(&why, "its commits bring %s, which is protected; `git merge %s` accepts them",
		   brings ? brings : "a file", one->name);
	if (path.failed || value.failed || why.failed)
		return -ENOMEM;
	if (file_write(m->t->view_fd, path.data, value.data, value.len, NULL) == 0)
		say(m->t, "refused", path.data, why.data);
	else
		say_lost(m->t, "git: %s was not imported: %s", path.data, why.data);
	return 0;
}

/* What was moved is what both have. */
static int agree_on_moved(struct merge *m)
{
	int status = 0;

	for (size_t i = 0; i < m->moves.len && status == 0; i++) {
		const struct ref_move *one = &m->moves.items[i];

		if (one->done && strncmp(one->name, HELD, strlen(HELD)) == 0)
			status = say_held(m, one);
		else if (one->done && one->kept)
			say_lost(m->t,
				 "git: refs/%s changed on the host and in the sandbox; the host's "
				 "version stays, the sandbox's is %s",
				 one->name + strlen(CONFLICT), one->name);
		else if (one->done)
			status = agree_on_ref(m, one->name, files_find(&m->mine.files, one->name));
	}
	return status;
}

/* The refs of the base: as they were agreed on last, or as they were copied. */
static int read_base(struct take *t, const char *prefix, unsigned hash, const char *agreed_path,
		     struct refs *ret)
{
	const struct file *agreed = files_find(&t->base, agreed_path);
	const char *at = agreed ? agreed->bytes : NULL;
	int status = agreed ? 0 : read_refs(&t->base, prefix, hash, ret);

	while (at && *at && status == 0) {
		const char *space = strchr(at, ' '), *line = strchr(at, '\n');
		auto_free char *name =
			space && line && space < line ? strndup(at, (size_t)(space - at)) : NULL;

		if (!name)
			return -EINVAL;
		status = files_add(&ret->files, name, space + 1, (size_t)(line - space - 1));
		at = line + 1;
	}
	files_sort(&ret->files);
	return status;
}

static int write_base(struct take *t, const char *agreed_path, const struct refs *base)
{
	auto_buf text = { 0 };

	for (size_t i = 0; i < base->files.len; i++)
		buf_printf(&text, "%s %s\n", base->files.items[i].path, base->files.items[i].bytes);
	return text.failed || files_set(&t->base, agreed_path, buf_text(&text), text.len) < 0
		       ? out_of_memory(t)
		       : 0;
}

static int collect_names(const struct refs *all[3], struct strv *names)
{
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < all[k]->files.len; i++)
			strv_add(names, all[k]->files.items[i].path);
	if (names->failed)
		return -ENOMEM;
	strv_sort(names);
	return 0;
}

/* Whether the sorted list has that one before, too. */
static bool is_again(const struct strv *names, size_t i)
{
	return i > 0 && strcmp(names->items[i], names->items[i - 1]) == 0;
}

/* How many commits a ref gains and loses; false: that cannot be said. git counts them on the host's
 * side, with the view's objects beside the host's: it parses commits and nothing else of them. */
static bool count_commits(struct take *t, const char *prefix, const char *old_id,
			  const char *new_id, unsigned long *ret_new, unsigned long *ret_gone)
{
	const char *const moved[] = { "rev-list",         "--count", "--left-right",
				      "--end-of-options", NULL,      NULL },
			  *const made[] = { "rev-list", "--count", NULL, "--not", "--all", NULL };
	const struct file *lent = files_find(&t->base, "objects/info/alternates"),
			  *seen = files_find(&t->view, "objects/info/alternates");
	auto_buf git_dir = { 0 }, store = { 0 }, range = { 0 }, out = { 0 };
	const char *words[ARRAY_LEN(moved)];
	struct git_call call = { .words = words, .until_ms = now_ms() + COUNT_MS };
	char *end;

	/* objects that lie elsewhere are not the view's */
	if (!files_equal(lent, seen) || !git_is_id(new_id, strlen(new_id), t->hash))
		return false;
	buf_printf(&git_dir, "%s/%s", t->record.git_dir, prefix);
	buf_printf(&store, "%s/" GIT_VIEW_DIR "/%sobjects", t->dir, prefix);
	buf_printf(&range, "%s...%s", old_id ? old_id : "", new_id);
	if (git_dir.failed || store.failed || range.failed || strchr(store.data, ':'))
		return false;
	call.git_dir = git_dir.data;
	call.borrowed = store.data;
	memcpy(words, old_id ? moved : made, sizeof(words));
	if (old_id)
		words[4] = range.data;
	else
		words[2] = new_id;
	if (git_call(&call, &out) != 0)
		return false;
	*ret_gone = old_id ? strtoul(buf_text(&out), &end, 10) : 0;
	*ret_new = strtoul(old_id ? end : buf_text(&out), NULL, 10);
	return true;
}

/* One line for a branch: what a person would say of it. */
static bool show_branch(struct take *t, const char *prefix, const char *name, const struct file *b,
			const struct file *m)
{
	const char *branch = name + strlen(BRANCHES);
	unsigned long made, gone;
	char ids[64] = "", lost[64] = "";

	if (strncmp(name, BRANCHES, strlen(BRANCHES)) != 0 || !m || is_symbolic(b) ||
	    is_symbolic(m) ||
	    !count_commits(t, prefix, b ? b->bytes : NULL, m->bytes, &made, &gone))
		return false;
	if (b)
		snprintf(ids, sizeof(ids), " (%.9s..%.9s)", b->bytes, m->bytes);
	else
		snprintf(ids, sizeof(ids), ", which is new (%.9s)", m->bytes);
	if (gone)
		snprintf(lost, sizeof(lost), "; %lu earlier one%s no longer on it", gone,
			 gone == 1 ? " is" : "s are");
	say_note(t, "git: %lu commit%s on branch %s%s%s%s%s", made, made == 1 ? "" : "s", branch,
		 *prefix ? " of " : "", prefix, ids, lost);
	return true;
}

static void show_ref(struct take *t, const char *prefix, const char *name, const struct file *b,
		     const struct file *m)
{
	if (show_branch(t, prefix, name, b, m))
		return;
	say_note(t, "git: %s%s %s %.12s%s%.12s", prefix, name,
		 !m   ? "deleted"
		 : !b ? "new"
		      : "moved",
		 b ? b->bytes : "", b && m ? ".." : "", m ? m->bytes : "");
}

int show_refs(struct take *t, const char *prefix)
{
	struct refs base = { 0 }, mine = { 0 };
	const struct refs *all[3] = { &base, &mine, &mine };
	auto_free char *agreed = NULL;
	auto_strv names = { 0 };
	int status;

	if (asprintf(&agreed, "%s.ward-refs", prefix) < 0)
		return out_of_memory(t);
	status = read_base(t, prefix, t->hash, agreed, &base);
	if (status == 0)
		status = read_refs(&t->view, prefix, t->hash, &mine);
	if (status == 0)
		status = collect_names(all, &names);
	for (size_t i = 0; i < names.len && status == 0; i++) {
		const struct file *b = files_find(&base.files, names.items[i]),
				  *m = files_find(&mine.files, names.items[i]);

		if (!is_again(&names, i) && !files_equal(b, m))
			show_ref(t, prefix, names.items[i], b, m);
	}
	files_clear(&base.files);
	files_clear(&mine.files);
	return status < 0 ? ward_fail(t->e, -status,
				      "cannot read the refs of the private git directory")
			  : 0;
}

static int read_all(struct merge *m, const char *git_dir, const char *agreed)
{
	int status = read_base(m->t, m->prefix, m->t->hash, agreed, &m->base);

	if (status == 0)
		status = read_refs(&m->t->view, m->prefix, m->t->hash, &m->mine);
	if (status == 0)
		status = read_host_refs(git_dir, &m->theirs);
	return status;
}

/* The names that were not moved and have another value on the host than it was planned for: to be
 * planned again. false: there are none, or that cannot be said. */
static bool find_overtaken(struct merge *m, const char *git_dir, struct strv *names)
{
	struct refs now = { 0 };
	bool left = false;

	strv_free(names);
	*names = (struct strv){ 0 };
	for (size_t i = 0; i < m->moves.len; i++)
		left |= !m->moves.items[i].done && !m->moves.items[i].kept;
	left = left && read_host_refs(git_dir, &now) == 0;
	for (size_t i = 0; left && i < m->moves.len; i++) {
		struct ref_move *one = &m->moves.items[i];

		one->again = !one->done && !one->kept &&
			     !files_equal(files_find(&now.files, one->name),
					  files_find(&m->theirs.files, one->name));
		if (one->again)
			strv_add(names, one->name);
	}
	if (left) {
		files_clear(&m->theirs.files);
		m->theirs = now;
	} else {
		files_clear(&now.files);
	}
	return names->len > 0;
}

/* Plans and moves refs; those whose value on the host became another one meanwhile once more. */
static int move_refs(struct merge *m, const char *git_dir, struct strv *names)
{
	auto_buf left = { 0 };
	bool again = true;
	int status = 0;

	for (int round = 0; round < ROUNDS_MAX && again && status == 0; round++) {
		ref_moves_clear(&m->moves);
		for (size_t i = 0; i < names->len && status == 0; i++)
			if (!is_again(names, i))
				status = plan_ref(m, names->items[i]);
		if (status)
			return ward_fail(m->t->e, status < 0 ? -status : EIO,
					 "cannot read the refs of %s", git_dir);
		status = ref_moves_do(m->t, git_dir, &m->moves);
		if (agree_on_moved(m) < 0) /* also where only some were moved */
			return out_of_memory(m->t);
		again = status == 0 && !m->t->live && round + 1 < ROUNDS_MAX &&
			find_overtaken(m, git_dir, names);
		ref_moves_say_left(m->t, m->prefix, &m->moves, &left);
	}
	return status < 0 ? status : refs_leave(m->t, m->prefix, &left);
}

int take_refs(struct take *t, const char *prefix)
{
	struct merge m = { .t = t, .prefix = prefix };
	const struct refs *all[3] = { &m.base, &m.mine, &m.theirs };
	auto_free char *git_dir = NULL, *agreed = NULL;
	auto_strv names = { 0 };
	int status;

	if (asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0 ||
	    asprintf(&agreed, "%s.ward-refs", prefix) < 0)
		return out_of_memory(t);
	status = read_all(&m, git_dir, agreed);
	if (status == 0)
		status = collect_names(all, &names);
	if (status)
		status = ward_fail(t->e, status < 0 ? -status : EIO, "cannot read the refs of %s",
				   git_dir);
	else {
		int written;

		status = move_refs(&m, git_dir, &names);
		written = write_base(t, agreed, &m.base);
		status = status ? status : written;
	}
	ref_moves_clear(&m.moves);
	files_clear(&m.base.files);
	files_clear(&m.mine.files);
	files_clear(&m.theirs.files);
	return status;
}

/*
 * References. In: the refs of one repository as both sides had them last, as the sandbox has them and as the host has them now.
 * Out: the host's refs moved by `git update-ref`, with the value that it must still have. Runs in ward-git with the rights of the
 * repository's owner.
 *
 * What only the sandbox changed goes to the host, if everything that it leads to is there. What only the host changed goes to the
 * view while the sandbox runs. Where both changed a ref differently the host's stays, and the sandbox's is kept under
 * refs/ward/conflict. A branch that a work tree has checked out moves only together with its index.
 */
#include "git/git.h"

#include <errno.h>
#include <string.h>

#include "rules/git_ref.h"

#define CONFLICT "refs/ward/conflict/"
#define SINGLE_MAX 500	/* calls of git for single refs, in one taking; more are left out, so that the end of a run stays bounded */

/* Names and values ("ID", or "ref: NAME"), as files of an imaginary directory. */
struct refs {
	struct files files;
};

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

struct packed {
	struct refs *refs;
};

static int add_packed(void *ctx, const struct git_packed_ref *ref)
{
	struct packed *p = ctx;
	auto_free char *name = strndup(ref->name, ref->name_n);
	size_t n = strspn(ref->id, "0123456789abcdef");

	if (!name)
		return -ENOMEM;
	return files_find(&p->refs->files, name) ? 0 : files_set(&p->refs->files, name, ref->id, n);
}

/* The refs that files of a repository hold: loose ones first, they win. */
static int read_refs(const struct files *f, const char *prefix, unsigned hash, struct refs *ret)
{
	struct packed p = { .refs = ret };
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
			status = files_set(&ret->files, name, value, n);
		else if (kind == GIT_REF_SYMBOLIC)
			status = files_set(&ret->files, name, file->bytes, file->n - 1);
	}
	packed = files_find(f, packed_path.data);
	if (status == 0 && packed)
		status = git_packed_read(packed->bytes, packed->n, hash, add_packed, &p, &why);
	return status == -EINVAL ? 0 : status;
}

/* The host's, as git itself sees them. */
static int read_host_refs(const char *git_dir, struct refs *ret)
{
	static const char *const words[] = { "for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };
	auto_buf out = { 0 };
	int status = git_call(&call, &out);
	const char *at = buf_text(&out), *end = at + out.len;

	while (status == 0 && at < end) {
		const char *id = memchr(at, '\0', (size_t)(end - at)), *symref = id ? memchr(id + 1, '\0', (size_t)(end - id - 1)) : NULL;
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

bool ids_complete(const char *git_dir, const char *lines)
{
	/* not --all: another work tree's HEAD may lead nowhere for a moment */
	static const char *const fast[] = { "rev-list", "--objects", "--quiet", "--stdin", "--not", "--glob=refs/*", NULL };
	static const char *const whole[] = { "rev-list", "--objects", "--quiet", "--stdin", NULL };
	struct git_call call = { .git_dir = git_dir, .words = fast, .input = lines, .input_n = strlen(lines) };

	if (git_call(&call, NULL) == 0)
		return true;
	call.words = whole;	/* a ref of the host's may be broken */
	return git_call(&call, NULL) == 0;
}

static bool is_complete(const char *git_dir, const char *id)
{
	auto_buf line = { 0 };

	buf_printf(&line, "%s\n", id);
	return !line.failed && ids_complete(git_dir, line.data);
}

static bool is_symbolic(const struct file *f)
{
	return f && strncmp(f->bytes, "ref: ", 5) == 0;
}

/* Moves one ref of the host's; now NULL: it is deleted, old NULL: it must not be there. */
static int move_ref(struct take *t, const char *git_dir, const char *name, const struct file *old, const struct file *now)
{
	const char *symbolic[] = { "symbolic-ref", name, now ? now->bytes + 5 : NULL, NULL };
	const char *unset[] = { "symbolic-ref", "-d", name, NULL };
	const char *update[] = { "update-ref", "--no-deref", "-m", "ward-import", name, now ? now->bytes : "", old ? old->bytes : "", NULL };
	const char *delete[] = { "update-ref", "--no-deref", "-d", name, old ? old->bytes : "", NULL };
	auto_buf none = { 0 };
	struct git_call call = { .git_dir = git_dir, .words = update };

	for (size_t i = 0; now && !old && i < now->n; i++)	/* as many zeros as an id has digits: it must be new */
		buf_puts(&none, "0");
	if (now && !old && !is_symbolic(now))
		update[6] = buf_text(&none);
	if (is_symbolic(now))
		call.words = symbolic;
	else if (!now)
		call.words = is_symbolic(old) ? unset : delete;
	if (!is_symbolic(now) && now && is_symbolic(old))
		return 1;	/* git does not do that in ordinary work */
	(void)t;
	return git_call(&call, NULL);
}

/* Keeps the sandbox's value of a ref that the host moved meanwhile. */
static int keep_conflict(struct take *t, const char *git_dir, const char *name, const struct file *mine, const struct refs *theirs)
{
	auto_buf to = { 0 };
	struct file now = { 0 };

	buf_printf(&to, CONFLICT "%s", name + 5);
	if (to.failed)
		return out_of_memory(t);
	if (!mine || is_symbolic(mine) || (t->live && files_equal(mine, files_find(&theirs->files, to.data))) ||
	    !is_complete(git_dir, mine->bytes))
		return 0;
	now = (struct file){ .bytes = mine->bytes, .n = mine->n };
	const char *words[] = { "update-ref", to.data, now.bytes, NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };

	if (git_call(&call, NULL) == 0)
		say_note(t, "git: %s changed on the host and in the sandbox; the host's stays, the sandbox's is %s", name, to.data);
	return 0;
}

static bool is_own_name(const char *name)
{
	return strncmp(name, "refs/ward/", 10) == 0 || strncmp(name, "refs/replace/", 13) == 0;
}

static int push_ref(struct take *t, const char *git_dir, const char *name, const struct file *base, const struct file *mine, bool complete)
{
	int status;

	if (t->single_refs++ >= SINGLE_MAX) {
		if (t->single_refs == SINGLE_MAX + 1)
			say_note(t, "git: more than %d refs could not be moved together: %s and those behind it are not taken over",
				 SINGLE_MAX, name);
		return 1;
	}
	if (mine && !complete && !is_symbolic(mine) && !is_complete(git_dir, mine->bytes)) {
		say_note(t, "git: %s is not taken over: objects that it leads to are missing", name);
		return 1;
	}
	status = move_ref(t, git_dir, name, base, mine);
	if (status < 0)
		return ward_fail(t->e, -status, "cannot start git");
	if (status > 0)
		say_note(t, "git: %s could not be moved on the host", name);
	return status > 0;
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
	return theirs ? file_write(t->view_fd, path.data, text.data, text.len) : 0;
}

/* One name. *base_refs is changed to what both sides have from now on. */
static int merge_ref(struct take *t, const char *prefix, const char *git_dir, const char *name, struct refs *base, const struct refs *mine,
		     const struct refs *theirs, bool complete)
{
	const struct file *b = files_find(&base->files, name), *m = files_find(&mine->files, name), *h = files_find(&theirs->files, name);
	const struct file *agreed = m;
	auto_buf full = { 0 };
	int status = 0;

	if (is_own_name(name) || (files_equal(m, b) && files_equal(h, b)))
		return 0;
	buf_printf(&full, "%s%s", prefix, name);
	if (full.failed)
		return out_of_memory(t);
	if (files_equal(m, b)) {
		if (t->live && pull_ref(t, prefix, name, h) < 0)
			return 0;
		agreed = h;
	} else if (!files_equal(m, h)) {
		bool held = strv_has(&t->blocked, full.data);

		if (!files_equal(h, b) || held)
			return keep_conflict(t, git_dir, name, m, theirs);
		status = push_ref(t, git_dir, name, b, m, complete);
		if (status)
			return status < 0 ? status : 0;
	}
	if (agreed)
		return files_set(&base->files, name, agreed->bytes, agreed->n) < 0 ? out_of_memory(t) : 0;
	files_drop(&base->files, name);
	return 0;
}

/* The refs of the base: as they were agreed on last, or as they were copied. */
static int read_base(struct take *t, const char *prefix, unsigned hash, const char *agreed_path, struct refs *ret)
{
	const struct file *agreed = files_find(&t->base, agreed_path);
	const char *at = agreed ? agreed->bytes : NULL;
	int status = agreed ? 0 : read_refs(&t->base, prefix, hash, ret);

	while (at && *at && status == 0) {
		const char *space = strchr(at, ' '), *line = strchr(at, '\n');
		auto_free char *name = space && line && space < line ? strndup(at, (size_t)(space - at)) : NULL;

		if (!name)
			return -EINVAL;
		status = files_set(&ret->files, name, space + 1, (size_t)(line - space - 1));
		at = line + 1;
	}
	return status;
}

static int write_base(struct take *t, const char *agreed_path, const struct refs *base)
{
	auto_buf text = { 0 };

	for (size_t i = 0; i < base->files.len; i++)
		buf_printf(&text, "%s %s\n", base->files.items[i].path, base->files.items[i].bytes);
	return text.failed || files_set(&t->base, agreed_path, buf_text(&text), text.len) < 0 ? out_of_memory(t) : 0;
}

static int collect_names(const struct refs *all[3], struct strv *names)
{
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < all[k]->files.len; i++)
			strv_add(names, all[k]->files.items[i].path);
	strv_sort(names);
	return names->failed ? -ENOMEM : 0;
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
		const struct file *b = files_find(&base.files, names.items[i]), *m = files_find(&mine.files, names.items[i]);

		if ((i == 0 || strcmp(names.items[i], names.items[i - 1]) != 0) && !files_equal(b, m))
			say_note(t, "git: %s%s %s %.12s%s%.12s", prefix, names.items[i], !m ? "deleted" : !b ? "new" : "moved",
				 b ? b->bytes : "", b && m ? ".." : "", m ? m->bytes : "");
	}
	files_clear(&base.files);
	files_clear(&mine.files);
	return status < 0 ? ward_fail(t->e, -status, "cannot read the refs of the private git directory") : 0;
}

/* Moves what only the sandbox changed in one transaction of git's. Where that works *theirs and the host agree with the sandbox; where
 * it does not nothing is moved, and merge_ref() goes on one by one. */
static int move_together(struct take *t, const char *git_dir, const struct refs *base, const struct refs *mine, struct refs *theirs)
{
	/* thousands of refs are not flushed to the disk one by one: the view is there until all is done */
	static const char *const words[] = { "-c", "core.fsync=default,-reference", "update-ref", "--no-deref", "-m", "ward-import",
					     "--stdin", NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };
	auto_strv moved = { 0 };
	auto_buf lines = { 0 };
	int status = 0;

	for (size_t i = 0; i < mine->files.len; i++) {
		const struct file *m = &mine->files.items[i], *b = files_find(&base->files, m->path), *h = files_find(&theirs->files, m->path);

		if (is_own_name(m->path) || files_equal(m, b) || files_equal(m, h) || !files_equal(h, b) || is_symbolic(m) ||
		    is_symbolic(b) || strv_has(&t->blocked, m->path))
			continue;
		if (b)
			buf_printf(&lines, "update %s %s %s\n", m->path, m->bytes, b->bytes);
		else
			buf_printf(&lines, "create %s %s\n", m->path, m->bytes);
		strv_add(&moved, m->path);
	}
	if (lines.failed || moved.failed)
		return out_of_memory(t);
	call.input = lines.data;
	call.input_n = lines.len;
	if (moved.len < 2 || git_call(&call, NULL) != 0)
		return 0;
	for (size_t i = 0; i < moved.len && status == 0; i++) {
		const struct file *m = files_find(&mine->files, moved.items[i]);

		status = files_set(&theirs->files, m->path, m->bytes, m->n);
	}
	return status < 0 ? out_of_memory(t) : 0;
}

/* Whether everything that the sandbox's new values lead to is there: asked once for all of them. */
static bool all_complete(const char *git_dir, const struct refs *base, const struct refs *mine)
{
	auto_buf ids = { 0 };

	for (size_t i = 0; i < mine->files.len; i++) {
		const struct file *m = &mine->files.items[i];

		if (!is_symbolic(m) && !files_equal(m, files_find(&base->files, m->path)))
			buf_printf(&ids, "%s\n", m->bytes);
	}
	return !ids.failed && (!ids.len || ids_complete(git_dir, ids.data));
}

int take_refs(struct take *t, const char *prefix)
{
	struct refs base = { 0 }, mine = { 0 }, theirs = { 0 };
	const struct refs *all[3] = { &base, &mine, &theirs };
	auto_free char *git_dir = NULL, *agreed = NULL;
	auto_strv names = { 0 };
	bool complete = false;
	int status;

	if (asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0 || asprintf(&agreed, "%s.ward-refs", prefix) < 0)
		return out_of_memory(t);
	status = read_base(t, prefix, t->hash, agreed, &base);
	if (status == 0)
		status = read_refs(&t->view, prefix, t->hash, &mine);
	if (status == 0)
		status = read_host_refs(git_dir, &theirs);
	if (status == 0)
		status = collect_names(all, &names);
	if (status)
		status = ward_fail(t->e, status < 0 ? -status : EIO, "cannot read the refs of %s", git_dir);
	if (status == 0)
		complete = all_complete(git_dir, &base, &mine);
	if (status == 0 && complete && !*prefix)	/* names of blocked refs are without a prefix in the main repository */
		status = move_together(t, git_dir, &base, &mine, &theirs);
	for (size_t i = 0; i < names.len && status == 0; i++)
		if (i == 0 || strcmp(names.items[i], names.items[i - 1]) != 0)
			status = merge_ref(t, prefix, git_dir, names.items[i], &base, &mine, &theirs, complete);
	if (status == 0)
		status = write_base(t, agreed, &base);
	files_clear(&base.files);
	files_clear(&mine.files);
	files_clear(&theirs.files);
	return status;
}

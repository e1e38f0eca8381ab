/*
 * Files that stand for themselves: HEAD, the index, reflogs, what a merge, rebase or bisect leaves while it is under way. In: the
 * files of both sides, as they had them last and have them now. Out: replaced files, written as git writes them. Runs in ward-git
 * with the rights of the repository's owner.
 *
 * What only the sandbox changed goes to the host, what only the host changed goes to the view while the sandbox runs. Where both
 * changed a file the host's stays, but for reflogs, which are joined. `git status` on the host writes the index anew without
 * changing it: indexes are compared by their entries.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sha256.h"
#include "rules/git_index.h"
#include "rules/git_ref.h"
#include "rules/git_reflog.h"

#define FILE_MAX (64u << 20)
#define IMPORT_MARK "ward-import"	/* the message of what update-ref writes into a reflog, which is not kept */

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

/* The host's file now; *ret_file borrows bytes. false: it is not there. */
static bool read_host(struct take *t, const char *path, struct buf *bytes, struct file *ret_file)
{
	if (file_read(t->host_fd, path, FILE_MAX, bytes) < 0)
		return false;
	*ret_file = (struct file){ .bytes = bytes->data, .n = bytes->len };
	return true;
}

/* Both sides have the bytes from now on; NULL: neither has the file. */
static int agree(struct take *t, const char *path, const struct file *f)
{
	if (!f) {
		files_drop(&t->base, path);
		return 0;
	}
	return files_set(&t->base, path, f->bytes ? f->bytes : "", f->n) < 0 ? out_of_memory(t) : 0;
}

/* Directories in which git keeps nothing but state: an empty one would look like an operation under way. */
static void remove_empty(struct take *t, const char *path)
{
	static const char *const states[] = { "rebase-merge", "rebase-apply", "sequencer", "NOTES_MERGE_WORKTREE" };
	auto_free char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	const char *name;

	if (!slash)
		return;
	*slash = '\0';
	name = strrchr(dir, '/');
	name = name ? name + 1 : dir;
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strcmp(name, states[i]) == 0)
			(void)unlinkat(t->host_fd, dir, AT_REMOVEDIR);
	if (strncmp(dir, "worktrees/", 10) == 0) {
		static const char *const subs[] = { "logs", "refs/bisect", "refs/worktree", "refs/rewritten", "refs", "" };

		slash = strchr(dir + 10, '/');
		if (slash)
			*slash = '\0';
		for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
			auto_buf one = { 0 };

			buf_printf(&one, "%s%s%s", dir, *subs[i] ? "/" : "", subs[i]);
			if (!one.failed)
				(void)unlinkat(t->host_fd, one.data, AT_REMOVEDIR);
		}
		(void)unlinkat(t->host_fd, "worktrees", AT_REMOVEDIR);
	}
}

/* Whether trying again later may help. Anything else is a name that the sandbox chose, and is not worth keeping the view for. */
static bool is_host_trouble(int status)
{
	return status == -ENOSPC || status == -EDQUOT || status == -EIO || status == -EROFS || status == -EACCES || status == -EBUSY;
}

static int write_host(struct take *t, const char *path, const struct file *f)
{
	int status = file_write(t->host_fd, path, f ? (f->bytes ? f->bytes : "") : NULL, f ? f->n : 0);

	if (status < 0) {
		say_note(t, "git: %s could not be written on the host: %s", path, strerror(-status));
		t->failed |= is_host_trouble(status) && !t->live;
		return 1;
	}
	if (!f)
		remove_empty(t, path);
	return agree(t, path, f);
}

static int pull(struct take *t, const char *path, const struct file *theirs)
{
	if (!t->live)
		return 0;
	if (file_write(t->view_fd, path, theirs ? (theirs->bytes ? theirs->bytes : "") : NULL, theirs ? theirs->n : 0) < 0)
		return 0;	/* the sandbox is in the way; the end of the run decides */
	return agree(t, path, theirs);
}

/* ---- the index ---- */

struct digest {
	struct sha256 sum;
};

static int add_entry(void *ctx, const struct git_index_entry *entry)
{
	struct digest *d = ctx;
	unsigned char flags[2] = { (unsigned char)entry->stage,
				   (unsigned char)(entry->assume_unchanged | entry->skip_worktree << 1 | entry->intent_to_add << 2) };

	sha256_add(&d->sum, &entry->mode, sizeof(entry->mode));
	sha256_add(&d->sum, entry->id, 20);
	sha256_add(&d->sum, flags, sizeof(flags));
	sha256_add(&d->sum, entry->path, entry->path_n + 1);
	return 0;
}

/* Whether two indexes say the same of the same files, whatever they know of times and inodes. */
static bool same_index(const struct take *t, const struct file *a, const struct file *b)
{
	const struct file *both[2] = { a, b };
	unsigned char sums[2][32];

	if (files_equal(a, b))
		return true;
	for (size_t i = 0; i < 2; i++) {
		struct git_index_info info;
		struct digest d;
		const char *why;

		sha256_begin(&d.sum);
		if (!both[i] || git_index_read((const uint8_t *)both[i]->bytes, both[i]->n, t->hash, add_entry, &d, &info, &why) != 0 ||
		    info.split)
			return false;
		sha256_end(&d.sum, sums[i]);
	}
	return memcmp(sums[0], sums[1], sizeof(sums[0])) == 0;
}

/* The branch that the work tree of this index has checked out must not move on the host. */
static int block_branch(struct take *t, const char *index_path)
{
	size_t n = strlen(index_path) - strlen("index"), repository;
	auto_buf head = { 0 }, bytes = { 0 };
	struct file f;
	const char *name;
	size_t name_n;

	buf_printf(&head, "%.*sHEAD", (int)n, index_path);
	if (head.failed)
		return out_of_memory(t);
	repository = strncmp(index_path, "worktrees/", 10) == 0 ? 0 : n;
	if (!read_host(t, head.data, &bytes, &f) || git_head_read(f.bytes, f.n, t->hash, &name, &name_n) != GIT_REF_SYMBOLIC)
		return 0;
	strv_addf(&t->blocked, "%.*s%.*s", (int)repository, index_path, (int)name_n, name);
	return t->blocked.failed ? out_of_memory(t) : 0;
}

static bool is_index(const char *path)
{
	struct git_place place = git_path_find(path, GIT_DIR_MAIN, GIT_SHA1, false);

	return place.form == GIT_FORM_INDEX && strcmp(path + place.inner, "index") == 0;
}

/* Whether the shared part that a split index is read with may come, too. */
static bool has_shared_part(const struct take *t, const char *path, const struct file *index)
{
	struct git_index_info info = { 0 };
	auto_buf name = { 0 };
	const char *why;
	bool any = false;

	if (git_index_read((const uint8_t *)index->bytes, index->n, t->hash, NULL, NULL, &info, &why) != 0)
		return false;
	buf_printf(&name, "%.*ssharedindex.", (int)(strlen(path) - strlen("index")), path);
	for (unsigned i = 0; info.split && i < t->hash; i++) {
		buf_printf(&name, "%02x", info.base[i]);
		any |= info.base[i] != 0;
	}
	return !name.failed && (!any || files_find(&t->view, name.data));
}

/* 1: the sandbox's index goes to the host. */
static int decide_index(struct take *t, const char *path)
{
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	auto_buf bytes = { 0 };
	struct file now;
	bool there = read_host(t, path, &bytes, &now);
	const struct file *h = there ? &now : NULL;

	if (files_equal(v, b))
		return files_equal(h, b) ? 0 : pull(t, path, h);
	if (files_equal(h, v))
		return agree(t, path, v);
	if (v && !has_shared_part(t, path, v)) {
		if (!t->live)
			say(t, "refused", path, "is a split index without its shared part");
		return block_branch(t, path);
	}
	if (files_equal(h, b) || (h && b && same_index(t, h, b)) || !h)
		return 1;
	if (v && same_index(t, h, v))
		return agree(t, path, v);
	say_note(t, "git: the index changed on the host and in the sandbox; the host's stays, and so does the branch that is checked out");
	return block_branch(t, path);
}

int take_indexes(struct take *t)
{
	int status = 0;

	for (int k = 0; k < 2; k++) {
		const struct files *list = k ? &t->base : &t->view;

		for (size_t i = 0; i < list->len && status >= 0; i++) {
			const char *path = list->items[i].path;

			if (!is_index(path) || (k && files_find(&t->view, path)))
				continue;
			status = decide_index(t, path);
			if (status == 1)
				strv_add(&t->indexes, path);
		}
	}
	return t->indexes.failed ? out_of_memory(t) : status < 0 ? status : 0;
}

/* ---- reflogs ---- */

static int drop_marked(void *ctx, const struct git_reflog_line *line)
{
	struct buf *out = ctx;

	if (line->message_n == strlen(IMPORT_MARK) && memcmp(line->message, IMPORT_MARK, line->message_n) == 0)
		return 0;
	buf_printf(out, "%.*s", (int)(line->who - line->old_id), line->old_id);
	buf_add(out, line->who, line->who_n);
	if (line->message) {
		buf_puts(out, "\t");
		buf_add(out, line->message, line->message_n);
	}
	buf_puts(out, "\n");
	return out->failed ? -ENOMEM : 0;
}

/* The host's log without the lines that our own update-ref wrote. */
static int clean_log(struct take *t, const struct file *h, struct buf *ret)
{
	const char *why;

	if (!memmem(h->bytes, h->n, "\t" IMPORT_MARK "\n", strlen(IMPORT_MARK) + 2) ||
	    git_reflog_read(h->bytes, h->n, t->hash, drop_marked, ret, &why) != 0) {
		ret->len = 0;
		buf_add(ret, h->bytes ? h->bytes : "", h->n);
	}
	return ret->failed ? out_of_memory(t) : 0;
}

static bool begins_with(const struct file *f, const struct file *start)
{
	return f && (!start || (f->n >= start->n && memcmp(f->bytes, start->bytes, start->n) == 0));
}

static int merge_log(struct take *t, const char *path)
{
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	auto_buf bytes = { 0 }, clean = { 0 };
	struct file now = { 0 }, joined;
	bool there = read_host(t, path, &bytes, &now), marked;
	int status;

	if (files_equal(v, b) && (!there || !memmem(now.bytes, now.n, IMPORT_MARK, strlen(IMPORT_MARK))))
		return there && !files_equal(&now, b) ? pull(t, path, &now) : 0;
	status = there ? clean_log(t, &now, &clean) : 0;
	if (status < 0)
		return status;
	joined = (struct file){ .bytes = clean.data, .n = clean.len };
	marked = there && clean.len != now.n;
	if (files_equal(v, b))
		return marked ? write_host(t, path, &joined) : 0;
	if (!v)
		return there && files_equal(&joined, b) ? write_host(t, path, NULL) : agree(t, path, NULL);
	if (!there || files_equal(&joined, b))
		return write_host(t, path, v);
	if (begins_with(v, b)) {	/* both went on: the sandbox's lines behind the host's */
		buf_add(&clean, v->bytes + (b ? b->n : 0), v->n - (b ? b->n : 0));
		if (clean.failed)
			return out_of_memory(t);
		joined = (struct file){ .bytes = clean.data, .n = clean.len };
		status = write_host(t, path, &joined);
		return status < 0 ? status : agree(t, path, v);
	}
	return marked ? write_host(t, path, &joined) : 0;
}

/* ---- all else ---- */

static bool is_elsewhere(const struct git_place *place)
{
	return (place->form == GIT_FORM_REF && place->kind != GIT_DIR_WORKTREE) || place->form == GIT_FORM_PACKED_REFS ||
	       place->form == GIT_FORM_REFLOG || place->form == GIT_FORM_INDEX || place->form == GIT_FORM_CONFIG;
}

static bool is_taken(const struct take *t, const char *path, const struct git_place *place)
{
	if (t->record.free_hooks && strncmp(path, "hooks/", 6) == 0)
		return true;
	return place->treat == GIT_TREAT_ADMIT || place->treat == GIT_TREAT_REPORT ||
	       (place->treat == GIT_TREAT_MERGE && place->form == GIT_FORM_TEXT);
}

/* A HEAD that holds an id must hold one that is there: git refuses to work otherwise. */
static bool leads_somewhere(struct take *t, const char *path, const struct git_place *place, const struct file *head)
{
	auto_buf git_dir = { 0 };
	const char *id;
	size_t n, module = strncmp(path, "modules/", 8) == 0 && place->kind == GIT_DIR_MODULE ? place->inner : 0;

	if (git_head_read(head->bytes, head->n, t->hash, &id, &n) != GIT_REF_ID)
		return true;
	buf_printf(&git_dir, "%s/%.*s", t->record.git_dir, (int)module, path);
	if (!git_dir.failed && ids_complete(git_dir.data, head->bytes))
		return true;
	say_note(t, "git: %s is not taken over: the commit that it leads to is missing", path);
	return false;
}

static int merge_file(struct take *t, const char *path)
{
	struct git_place place = git_path_find(path, GIT_DIR_MAIN, t->hash, false);
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	auto_buf bytes = { 0 };
	struct file now;
	bool there;
	const struct file *h;
	int status;

	if (is_elsewhere(&place) || strstr(path, ".ward-refs"))
		return 0;
	there = read_host(t, path, &bytes, &now);
	h = there ? &now : NULL;
	if (files_equal(v, b))
		return files_equal(h, b) ? 0 : pull(t, path, h);
	if (!is_taken(t, path, &place))
		return 0;
	if (files_equal(h, v))
		return agree(t, path, v);
	if (!files_equal(h, b)) {
		if (place.treat != GIT_TREAT_ADMIT || place.form == GIT_FORM_HEAD)
			say_note(t, "git: %s changed on the host and in the sandbox; the host's stays", path);
		return 0;
	}
	if (place.form == GIT_FORM_HEAD && v && !leads_somewhere(t, path, &place, v))
		return 0;
	status = write_host(t, path, v);
	return status < 0 ? status : 0;
}

/* Every path of both sides, once. */
static int for_each(struct take *t, int (*fn)(struct take *t, const char *path), bool logs)
{
	auto_strv paths = { 0 };
	int status = 0;

	for (size_t i = 0; i < t->base.len; i++)
		strv_add(&paths, t->base.items[i].path);
	for (size_t i = 0; i < t->view.len; i++)
		if (!files_find(&t->base, t->view.items[i].path))
			strv_add(&paths, t->view.items[i].path);
	if (paths.failed)
		return out_of_memory(t);
	for (size_t i = 0; i < paths.len && status >= 0; i++) {
		struct git_place place = git_path_find(paths.items[i], GIT_DIR_MAIN, t->hash, false);

		if ((place.form == GIT_FORM_REFLOG) == logs)
			status = fn(t, paths.items[i]);
	}
	return status < 0 ? status : 0;
}

int take_state(struct take *t)
{
	int status = for_each(t, merge_file, false);

	for (size_t i = 0; i < t->view.len && status >= 0; i++)	/* a split index is read with its shared part */
		if (strstr(t->view.items[i].path, "sharedindex.") && t->indexes.len && !files_find(&t->base, t->view.items[i].path))
			status = write_host(t, t->view.items[i].path, &t->view.items[i]);
	for (size_t i = 0; i < t->indexes.len && status >= 0; i++)
		status = write_host(t, t->indexes.items[i], files_find(&t->view, t->indexes.items[i]));
	return status < 0 ? status : 0;
}

int take_logs(struct take *t)
{
	return for_each(t, merge_log, true);
}

/*
 * Reading a view. In: the sandbox's private git directory, hostile. Out: the files that may be
 * taken over, in memory; the names of its objects; a line for everything that is refused. Runs in
 * ward-git with the rights of the repository's owner.
 *
 * A file that equals what was copied is not judged: it is the user's own. A file that is refused
 * counts as unchanged, so that nothing of the host's is removed for it.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/walk.h"
#include "policy/gitconfig.h"

#define VIEW_BYTES_MAX ((uint64_t)512 << 20)
#define FILES_MAX 200000   /* of a view, but for objects */
#define OBJECTS_MAX 500000 /* loose objects and packs of a view */

struct scan {
	struct take *t;
	unsigned hash;
	uint64_t bytes;
	size_t files;
};

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

/* The user's own configuration may have any form that git reads. */
static int find_format(void *ctx, const struct gitconfig_entry *entry)
{
	unsigned *hash = ctx;

	if (strcmp(entry->section, "extensions") == 0 && strcmp(entry->key, "objectformat") == 0 &&
	    entry->value)
		*hash = strcmp(entry->value, "sha256") == 0 ? GIT_SHA256
			: strcmp(entry->value, "sha1") == 0 ? GIT_SHA1
							    : 0;
	return 0;
}

static unsigned hash_of(const struct take *t)
{
	const struct file *config = files_find(&t->base, "config");
	unsigned hash = GIT_SHA1;

	if (config && gitconfig_read(config->bytes, config->n, find_format, &hash) < 0)
		return GIT_SHA1;
	return hash ? hash : GIT_SHA1;
}

/* The host's own directories: mounted over in the sandbox, empty here. */
static bool is_lent(const struct take *t, const char *path)
{
	for (size_t i = 0; i < t->record.lent.len; i++) {
		const char *end = strchr(t->record.lent.items[i], '\n');
		size_t n = end ? (size_t)(end - t->record.lent.items[i]) : 0;

		if (n && strncmp(path, t->record.lent.items[i], n) == 0 && path[n] == '\0')
			return true;
	}
	return false;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* Counts as it was. */
static int keep_old(struct take *t, const char *path)
{
	const struct file *old = files_find(&t->base, path);

	return old && files_add(&t->view, path, old->bytes, old->n) < 0 ? out_of_memory(t) : 0;
}

static int refuse(struct take *t, const char *path, const char *why)
{
	if (!t->live)
		say(t, "refused", path, why);
	return keep_old(t, path);
}

static int note_object(struct take *t, const struct walk_entry *entry,
		       const struct git_place *place)
{
	if (t->objects.len == OBJECTS_MAX)
		return refuse(t, entry->path, "exceeds the maximum number of objects");
	strv_addf(&t->objects, "%.*s\n%s", (int)place->inner, entry->path, entry->path);
	return t->objects.failed ? out_of_memory(t) : 0;
}

/* What a policy has released is taken as it is. */
static bool is_free(const struct take *t, const char *path)
{
	return (t->record.free_config &&
		(strcmp(path, "config") == 0 || strcmp(path, "config.worktree") == 0)) ||
	       (t->record.free_hooks && strncmp(path, "hooks/", 6) == 0);
}

/* Whether a list of the base, in the same directory, has this line. */
static bool had_line(const struct take *t, const char *path, const char *line, size_t n)
{
	static const char *const lists[] = { "git-rebase-todo", "git-rebase-todo.backup", "done" };
	size_t dir = (size_t)(strrchr(path, '/') - path);

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		auto_buf name = { 0 };
		const struct file *f;

		buf_printf(&name, "%.*s/%s", (int)dir, path, lists[i]);
		f = name.failed ? NULL : files_find(&t->base, name.data);
		for (const char *at = f ? f->bytes : ""; *at;
		     at += strcspn(at, "\n"), at += *at == '\n')
			if (strcspn(at, "\n") == n && memcmp(at, line, n) == 0)
				return true;
	}
	return false;
}

/* A rebase of the user's that was under way may go on inside: commands that its list had before are
 * the user's own. They are taken out of the text that is judged. */
static void drop_own_commands(const struct take *t, const char *path, const struct buf *bytes,
			      struct buf *ret)
{
	for (const char *at = buf_text(bytes); *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t n = strcspn(at, "\n");
		bool command = strncmp(at, "exec ", 5) == 0 || strncmp(at, "x ", 2) == 0;

		if (!command || !strrchr(path, '/') || !had_line(t, path, at, n))
			buf_add(ret, at, n + (at[n] == '\n'));
	}
}

static int judge_file(struct scan *s, const struct walk_entry *entry, const struct stat *st,
		      const struct buf *bytes)
{
	struct take *t = s->t;
	auto_buf judged_bytes = { 0 };
	struct git_file file = { .path = entry->path,
				 .kind = GIT_DIR_MAIN,
				 .hash = s->hash,
				 .mode = st->st_mode,
				 .links = st->st_nlink,
				 .size = (uint64_t)st->st_size,
				 .bytes = (const uint8_t *)buf_text(bytes),
				 .n = bytes->len };
	struct git_judged judged;

	if (git_path_find(entry->path, GIT_DIR_MAIN, s->hash, false).form == GIT_FORM_TODO &&
	    !memchr(buf_text(bytes), '\0', bytes->len)) {
		drop_own_commands(t, entry->path, bytes, &judged_bytes);
		if (judged_bytes.failed)
			return out_of_memory(t);
		file.bytes = (const uint8_t *)buf_text(&judged_bytes);
		file.n = file.size = judged_bytes.len;
	}
	judged = git_judge(&file);
	switch (judged.verdict) {
	case GIT_REPORT:
		say_note(t, "git: %s %s", entry->path, judged.why);
		break;
	case GIT_ADMIT:
	case GIT_COPY:
	case GIT_CONFIRM:
		break;
	case GIT_DERIVED:
	case GIT_DROP:
		return 0;
	case GIT_REFUSE:
		if (judged.form == GIT_FORM_CONFIG) /* config.c says which setting */
			break;
		return refuse(t, entry->path, judged.why);
	}
	return files_add(&t->view, entry->path, buf_text(bytes), bytes->len) < 0 ? out_of_memory(t)
										 : 0;
}

static int see_file(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	struct take *t = s->t;
	struct git_place place = git_path_find(entry->path, GIT_DIR_MAIN, s->hash, false);
	auto_fd fd = openat(d->fd, entry->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct file now = { 0 };
	auto_buf bytes = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return t->live ? keep_old(t, entry->path)
			       : refuse(t, entry->path, "is not a readable regular file");
	if (place.form == GIT_FORM_LOOSE || place.form == GIT_FORM_PACK)
		return note_object(t, entry, &place);
	if (place.treat == GIT_TREAT_DERIVED || place.treat == GIT_TREAT_DROP ||
	    ends_with(entry->path, "objects/info/alternates"))
		return 0;
	if (st.st_size > (64 << 20) || s->bytes + (uint64_t)st.st_size > VIEW_BYTES_MAX)
		return refuse(t, entry->path, "is too large to import");
	if (++s->files > FILES_MAX)
		return refuse(t, entry->path, "exceeds the maximum number of files");
	s->bytes += (uint64_t)st.st_size;
	if (io_read_all(fd, 64u << 20, &bytes) < 0)
		return refuse(t, entry->path, "cannot be read");
	now = (struct file){ .bytes = bytes.data, .n = bytes.len };
	if (files_equal(files_find(&t->base, entry->path), &now) || is_free(t, entry->path))
		return files_add(&t->view, entry->path, buf_text(&bytes), bytes.len) < 0
			       ? out_of_memory(t)
			       : 0;
	return judge_file(s, entry, &st, &bytes);
}

static int see_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct scan *s = ctx;
	struct take *t = s->t;
	struct git_place place;

	if (is_lent(t, entry->path))
		return 0;
	if (entry->type == DT_REG)
		return see_file(s, d, entry);
	if (entry->type == DT_LNK) {
		const struct file *old = files_find(&t->base, entry->path);

		/* links were copied as such; they never leave */
		return old ? keep_old(t, entry->path) : 0;
	}
	if (entry->type != DT_DIR)
		return refuse(t, entry->path, "is neither a file nor a directory");
	place = git_path_find(entry->path, GIT_DIR_MAIN, s->hash, true);
	if (place.treat != GIT_TREAT_REFUSE)
		return 1;
	/* the user's own directory may have any name */
	if (files_any_beneath(&t->base, entry->path))
		return 1;
	return refuse(t, entry->path,
		      place.why && *place.why ? place.why
					      : "is not a directory that git creates there");
}

/* Whether git would still take the directory (prefix "", "modules/x/") for a repository. */
static bool is_repository(const struct take *t, const char *prefix)
{
	static const char *const dirs[] = { "objects", "refs" };
	auto_buf head = { 0 };
	bool good;

	buf_printf(&head, "%sHEAD", prefix);
	good = !head.failed && files_find(&t->view, head.data);
	for (size_t i = 0; i < ARRAY_LEN(dirs) && good; i++) {
		auto_buf dir = { 0 };
		struct ward_err e = { 0 };
		auto_fd fd = -1;

		buf_printf(&dir, "%s%s", prefix, dirs[i]);
		fd = dir.failed ? -1
				: path_open_nolink(t->view_fd, dir.data, O_PATH | O_DIRECTORY, &e);
		good = fd >= 0;
	}
	return good;
}

/* Where the sandbox has removed or broken a repository, all that it does not have any more counts
 * as unchanged: git removes no repository, so nothing of the host's is removed for it. */
static int restore_broken(struct take *t, const char *prefix)
{
	size_t n = t->view.len;
	int status = 0;

	if (is_repository(t, prefix))
		return 0;
	for (size_t i = 0; i < t->base.len && status == 0; i++) {
		const struct files sorted = { .items = t->view.items, .len = n };
		const struct file *f = &t->base.items[i];

		if (strncmp(f->path, prefix, strlen(prefix)) == 0 &&
		    !strstr(f->path, ".ward-refs") && !files_find(&sorted, f->path))
			status = files_add(&t->view, f->path, f->bytes, f->n);
	}
	files_sort(&t->view);
	say_lost(t, "git: the sandbox removed %s%s%s or parts of it; the host's version stays",
		 t->record.git_dir, *prefix ? "/" : "", prefix);
	return status < 0 ? out_of_memory(t) : 0;
}

static int restore_all(struct take *t)
{
	int status = restore_broken(t, "");

	/* every repository of the base has a HEAD */
	for (size_t i = 0; i < t->base.len && status == 0; i++) {
		struct git_place place =
			git_path_find(t->base.items[i].path, GIT_DIR_MAIN, t->hash, false);

		if (place.kind == GIT_DIR_MODULE && place.form == GIT_FORM_HEAD) {
			auto_free char *prefix = strndup(t->base.items[i].path, place.inner);

			status = prefix ? restore_broken(t, prefix) : out_of_memory(t);
		}
	}
	return status;
}

int scan_view(struct take *t)
{
	static const struct walk_ops ops = { .entry = see_entry, .force = true };
	struct scan s = { .t = t, .hash = hash_of(t) };
	int status;

	t->hash = s.hash;
	status = walk_tree(t->view_fd, &ops, &s, 0, t->e);
	files_sort(&t->view);
	return status < 0 ? status : restore_all(t);
}

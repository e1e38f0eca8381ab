/*
 * Judging a repository in place. In: a git directory that a sandbox made, or could write. Out:
 * everything in it that git does not write in ordinary work is in the quarantine. Runs in the
 * supervisor at the sweep, on hostile files: each is opened by one name, without following links,
 * and only regular files are read, up to the bound that its form has.
 *
 * What may stay is a list of names, types and forms (tables/gitdata.def, src/rules); nothing is
 * trusted because it is old. In a repository that was there before, only what changed since the run
 * began is judged.
 */
#include "guard/guard_repository.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/walk.h"
#include "rules/git_alternates.h"
#include "guard/guard_dirs.h"
#include "guard/guard_judge.h"
#include "guard/guard_sparse.h"
#include "rules/git_config.h"
#include "rules/git_judge.h"
#include "rules/git_link.h"

#define CONFIG_MAX (1u << 20)

struct judging {
	const struct guard_root *g;
	int root_fd; /* of the tree */
	const struct guard_taker *taker;
	const char *path; /* of the git directory in the tree */
	uint64_t since_ns;
	unsigned hash;
	bool counts; /* nothing is taken, only counted */
	/* only what git would run or read settings from, and only what came with the run */
	bool parts;
	size_t refused;
	struct strv dirs; /* the git directories in it, this one is "" */
	struct ward_err *e;
};

/* Whether an entry is a hook or a configuration that the run made. */
static bool is_part(const struct judging *j, const struct walk_dir *d,
		    const struct walk_entry *entry)
{
	struct stat st;

	if (strncmp(entry->path, "hooks/", 6) != 0 && strcmp(entry->path, "config") != 0 &&
	    strcmp(entry->path, "config.worktree") != 0)
		return false;
	return fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       guard_ctime_ns(&st) >= j->g->since_ns;
}

/* Takes an entry out of the repository; its path in the tree is put together here. */
static int take(struct judging *j, const struct walk_dir *d, const struct walk_entry *entry,
		const char *why)
{
	auto_buf path = { 0 };

	j->refused++;
	if (j->counts || (j->parts && !is_part(j, d, entry)))
		return 0;
	buf_printf(&path, "%s%s%s", j->path, *j->path ? "/" : "", entry->path);
	if (path.failed)
		return ward_fail(j->e, ENOMEM, "out of memory");
	return j->taker->take(j->taker->ctx, d->fd, entry->name, path.data, why);
}

static unsigned hash_of(int git_fd)
{
	auto_fd fd =
		openat(git_fd, "config", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf text = { 0 };
	struct stat st;
	unsigned hash = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    io_read_all(fd, CONFIG_MAX, &text) == 0)
		hash = git_config_hash(buf_text(&text), text.len);
	return hash ? hash : GIT_SHA1;
}

static bool is_alternates(const char *path)
{
	static const char end[] = "objects/info/alternates";
	size_t n = strlen(path), k = sizeof(end) - 1;

	return n >= k && strcmp(path + n - k, end) == 0 && (n == k || path[n - k - 1] == '/');
}

/* A clone of a repository that the sandbox saw as a private copy borrows its objects where the view
 * showed them. On the host the same objects are in the repository itself: the file is written anew.
 * Returns whether that was so. */
static bool lend_again(struct judging *j, const struct walk_dir *d, const struct walk_entry *entry)
{
	static const char temp[] = "alternates.ward";
	auto_fd fd = openat(d->fd, entry->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
		out = -1;
	auto_free char *place = NULL;
	auto_buf text = { 0 }, line = { 0 };
	struct stat st, dir;
	const char *inner;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, 8192, &text) < 0)
		return false;
	place = git_view_borrowed(buf_text(&text), text.len);
	if (!place || !path_is_beneath(place, j->g->target))
		return false;
	inner = place + strlen(j->g->target);
	inner += *inner == '/';
	if (!guard_in_view(j->g, inner, strlen(inner)))
		return false;
	buf_printf(&line, "%s%s%s/objects\n", j->g->path, *inner ? "/" : "", inner);
	unlinkat(d->fd, temp, 0);
	out = openat(d->fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (line.failed || out < 0 || fstat(d->fd, &dir) < 0 ||
	    io_write_all(out, line.data, line.len) < 0 ||
	    (geteuid() == 0 && fchown(out, dir.st_uid, dir.st_gid) < 0) ||
	    renameat(d->fd, temp, d->fd, entry->name) < 0) {
		unlinkat(d->fd, temp, 0);
		return false;
	}
	return true;
}

/* The directory of an entry, as a path in the tree. */
static char *dir_of(const struct judging *j, const struct walk_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');
	auto_buf path = { 0 };

	buf_printf(&path, "%s%s%.*s", j->path, *j->path && slash ? "/" : "",
		   slash ? (int)(slash - entry->path) : 0, entry->path);
	return path.failed ? NULL : path.len ? buf_take(&path) : strdup("");
}

/* A file that names a work tree: git writes and deletes there, so it must lie in the tree. */
static int judge_place(struct judging *j, const struct walk_dir *d, const struct walk_entry *entry,
		       const struct git_file *file, enum git_form form)
{
	auto_free char *dir = dir_of(j, entry), *place = NULL, *inside = NULL;
	auto_buf why = { 0 };
	const char *at;
	size_t n;
	int status;

	if (!dir)
		return ward_fail(j->e, ENOMEM, "out of memory");
	if (form == GIT_FORM_CONFIG) {
		status = judge_config(j->g, j->root_fd, d->fd, dir, entry->name, &why);
		if (status < 0)
			return ward_fail(j->e, -status, "out of memory");
		return status ? take(j, d, entry, buf_text(&why)) : 0;
	}
	if (git_worktree_gitdir_read(file->bytes, file->n, &at, &n))
		place = strndup(at, n);
	inside = place ? judge_resolve(j->g, dir, place) : NULL;
	if (!inside)
		return take(j, d, entry, "names a work tree that is not in the workspace");
	return judge_is_behind_link(j->root_fd, inside)
		       ? take(j, d, entry, "names a work tree behind a link")
		       : 0;
}

/* Rows that let anything lie in a directory because it is never kept; here it would stay, and be a
 * repository in git data. */
static bool is_dropped(const struct walk_entry *entry, const struct git_judged *judged)
{
	return judged->verdict == GIT_DROP &&
	       (strncmp(entry->path, "lfs/", 4) == 0 || strstr(entry->path, "/lfs/"));
}

/* A `git am` under way: what its patches say would be written by --skip or --continue. A rebase in
 * the same directory is made of commits. */
static bool is_patch_series(const struct walk_dir *d, const char *path)
{
	const char *at = strstr(path, "rebase-apply/");
	struct stat st;

	return at && (at == path || at[-1] == '/') && !strchr(at + strlen("rebase-apply/"), '/') &&
	       fstatat(d->fd, "rebasing", &st, AT_SYMLINK_NOFOLLOW) < 0;
}

static int judge_file(struct judging *j, const struct walk_dir *d, const struct walk_entry *entry,
		      const struct stat *st)
{
	size_t max, needed = git_judge_needs(entry->path, GIT_DIR_MAIN, j->hash, &max);
	struct git_file file = { .path = entry->path,
				 .kind = GIT_DIR_MAIN,
				 .hash = j->hash,
				 .mode = st->st_mode,
				 .links = st->st_nlink,
				 .size = (uint64_t)st->st_size };
	struct git_judged judged;
	auto_buf bytes = { 0 };
	auto_fd fd = -1;

	if (S_ISREG(st->st_mode) && needed && file.size <= max) {
		size_t n = needed < file.size ? needed : (size_t)file.size;
		int status;

		fd = openat(d->fd, entry->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return take(j, d, entry, "a git file that cannot be read");
		if (n == file.size) {
			status = io_read_all(fd, n, &bytes);
		} else {
			char head[64] = { 0 };

			status = io_read_exactly(fd, head, n < sizeof(head) ? n : sizeof(head));
			buf_add(&bytes, head, n < sizeof(head) ? n : sizeof(head));
		}
		if (status < 0)
			return take(j, d, entry, "a git file that cannot be read");
		file.bytes = (const uint8_t *)buf_text(&bytes);
		file.n = bytes.len;
	}
	if (is_alternates(entry->path) && lend_again(j, d, entry))
		return 0;
	judged = git_judge(&file);
	if (judged.verdict == GIT_REFUSE || is_dropped(entry, &judged))
		return take(j, d, entry, judged.why);
	if (is_patch_series(d, entry->path))
		return take(j, d, entry,
			    "belongs to a git am under way, whose patches could write "
			    "protected files");
	if (judged.form == GIT_FORM_HEAD && strcmp(entry->name, "HEAD") == 0)
		strv_addf(&j->dirs, "%.*s", (int)(entry->name_at ? entry->name_at - 1 : 0),
			  entry->path);
	return judged.points ? judge_place(j, d, entry, &file, judged.form) : 0;
}

/* In a repository that was there before: what was read-only for the sandbox is the user's own,
 * whatever the user did to it since. */
static bool is_guarded(const struct judging *j, const struct walk_entry *entry)
{
	auto_buf path = { 0 };

	if (!j->since_ns)
		return false;
	buf_printf(&path, "%s%s%s", j->path, *j->path ? "/" : "", entry->path);
	if (path.failed)
		return false;
	for (size_t i = 0; i < j->g->lost.len; i++)
		if (strcmp(j->g->lost.items[i], path.data) == 0)
			return false;
	return guard_list_has(&j->g->baseline, path.data, path.len,
			      entry->type == DT_DIR ? '/' : '\0');
}

static int judge_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct judging *j = ctx;
	struct git_place place;
	struct stat st;

	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || is_guarded(j, entry))
		return 0;
	if (S_ISDIR(st.st_mode)) {
		place = git_path_find(entry->path, GIT_DIR_MAIN, j->hash, true);
		if (place.treat != GIT_TREAT_REFUSE ||
		    (j->since_ns && guard_ctime_ns(&st) < j->since_ns))
			return 1;
		return take(j, d, entry,
			    place.why && *place.why ? place.why
						    : "a directory that git does not create there");
	}
	if (j->since_ns && guard_ctime_ns(&st) < j->since_ns)
		return 0;
	return judge_file(j, d, entry, &st);
}

/* Any directory of the project is a repository to git once it has a HEAD, objects and refs. Where
 * it holds other things, too, those stay, and the HEAD goes, with hooks and settings that the run
 * made: without it git sees no repository there. */
static int break_shape(struct judging *j, int git_fd, const struct walk_ops *ops)
{
	static const char *const parts[] = { "HEAD", "commondir" };
	int status = 0;

	j->counts = false;
	j->parts = true;
	status = walk_tree(git_fd, ops, j, 0, j->e);
	j->parts = false;
	for (size_t i = 0; i < ARRAY_LEN(parts) && status >= 0; i++) {
		struct walk_entry entry = { .name = parts[i], .path = parts[i] };
		struct walk_dir d = { .fd = git_fd };
		struct stat st;

		if (fstatat(git_fd, parts[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			status = take(j, &d, &entry,
				      "makes git treat the directory as a repository, in which it "
				      "would run foreign programs");
	}
	return status;
}

/* What passed: git must not write from it what the run may not leave. */
static int keep_out(struct judging *j, int git_fd)
{
	int status = 0;

	if (j->dirs.failed)
		status = ward_fail(j->e, ENOMEM, "out of memory");
	else if (!j->since_ns && j->dirs.len)
		status = guard_keep_out(j->g, git_fd, j->path, j->hash, &j->dirs, j->taker, j->e);
	return status;
}

int guard_judge_repository(const struct guard_root *g, int root_fd, int git_fd, const char *path,
			   uint64_t since_ns, const struct guard_taker *taker, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = judge_entry, .force = true };
	struct judging j = { .g = g,
			     .root_fd = root_fd,
			     .taker = taker,
			     .path = path,
			     .since_ns = since_ns,
			     .hash = hash_of(git_fd),
			     .e = e };
	size_t n = strlen(path);
	bool named = n >= 4 && strcmp(path + n - 4, ".git") == 0 && (n == 4 || path[n - 5] == '/');
	int status;

	j.counts = !since_ns && !named;
	status = walk_tree(git_fd, &ops, &j, 0, e);
	if (status >= 0 && (!j.counts || !j.refused))
		status = keep_out(&j, git_fd);
	else if (status >= 0)
		status = break_shape(&j, git_fd, &ops) < 0 ? -e->code : 1;
	strv_free(&j.dirs);
	return status;
}

/*
 * What steers a project's own tools. In: the names of tables/steers.def in a tree, before the run
 * and after it. Out: which of them are new or changed. Runs in the supervisor. Nothing is moved:
 * agents write these files in ordinary work, and they take effect only when a person runs the tool.
 * The run's summary and report name them.
 *
 * A file is another one when its inode, size or change time is; no call sets a change time back.
 * What lies in node_modules was brought by a package manager and steers nothing. A package.json
 * counts if it has a script that an installation runs.
 *
 * Version files are noted here, too, so that the sweep finds those that were changed in place
 * (guard_version.c judges them). There is no bound on their number: one more would not be judged.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "guard/guard_dirs.h"

#define STEERS_MAX 4096
#define TEXT_MAX (1u << 20)

static const struct {
	const char *pattern, *why;
} reasons[] = {
#define STEER(pattern, why, source, checked) { pattern, why },
#include "steers.def"
};

/* Whether the name is one of tables/steers.def or tables/versions.def, which are one list. */
static bool is_listed(const struct walk_entry *entry)
{
	return ignore_decide_at(guard_builtin_steers(), entry->path, entry->path_len,
				entry->name_at, false) == IGNORE_EXCLUDED;
}

/* The reason of tables/steers.def; NULL: the name is a version file's alone. */
static const char *reason_of(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		struct ignore *one = NULL;
		bool match =
			ignore_add(&one, reasons[i].pattern, strlen(reasons[i].pattern)) == 0 &&
			ignore_match(one, path, false);

		ignore_free(one);
		if (match)
			return reasons[i].why;
	}
	return NULL;
}

static bool is_steer(const struct walk_entry *entry)
{
	return is_listed(entry) && strncmp(entry->path, "node_modules/", 13) != 0 &&
	       !strstr(entry->path, "/node_modules/") && reason_of(entry->path);
}

/* A package.json without a script that installing runs is like any other file. */
static bool is_harmless(int dir_fd, const char *name)
{
	static const char *const scripts[] = { "\"preinstall\"",  "\"install\"",
					       "\"postinstall\"", "\"prepare\"",
					       "\"prepublish\"",  "\"preprepare\"",
					       "\"postprepare\"" };
	auto_fd fd = -1;
	auto_buf text = { 0 };
	struct stat st;

	if (strcmp(name, "package.json") != 0)
		return false;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, TEXT_MAX, &text) < 0 || memchr(buf_text(&text), '\\', text.len))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
		if (memmem(buf_text(&text), text.len, scripts[i], strlen(scripts[i])))
			return false;
	return true;
}

const char *guard_steer_why(int dir_fd, const struct walk_entry *entry)
{
	return is_steer(entry) && !is_harmless(dir_fd, entry->name) ? reason_of(entry->path) : NULL;
}

static void put_state(struct buf *out, const char *path, const struct stat *st)
{
	guard_escape(out, path);
	buf_printf(out, "\n%" PRIu64 " %" PRId64 " %" PRIu64, (uint64_t)st->st_ino,
		   (int64_t)st->st_size, guard_ctime_ns(st));
}

int guard_steer_note(struct guard_root *g, const struct walk_dir *d, const struct walk_entry *entry,
		     struct ward_err *e)
{
	auto_buf text = { 0 };
	bool version;
	struct stat st;

	if (!is_listed(entry))
		return 0;
	version = guard_is_version_file(entry->path);
	if ((!version && (g->steers.len >= STEERS_MAX || !is_steer(entry))) ||
	    fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	put_state(&text, entry->path, &st);
	if (!text.failed)
		strv_add(&g->steers, text.data);
	return text.failed || g->steers.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether the sorted list has a line for the escaped path. */
static bool was_there(const struct strv *sorted, const char *path, size_t n)
{
	size_t low = 0, high = sorted->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strncmp(sorted->items[middle], path, n);

		if (order == 0)
			order = (unsigned char)sorted->items[middle][n] - '\n';
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool guard_steer_known(const struct guard_root *g, const char *path)
{
	auto_buf escaped = { 0 };

	guard_escape(&escaped, path);
	return !escaped.failed && was_there(&g->steers, buf_text(&escaped), escaped.len);
}

static int report(struct strv *list, const char *path, const char *what, struct ward_err *e)
{
	strv_addf(list, "%s: %s, %s", path, what, reason_of(path));
	return list->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int guard_steer_new(const struct guard_root *g, const struct walk_dir *d,
		    const struct walk_entry *entry, struct strv *list, struct ward_err *e)
{
	struct stat st;

	if (!is_steer(entry) || guard_steer_known(g, entry->path) || g->steers.len >= STEERS_MAX ||
	    is_harmless(d->fd, entry->name) ||
	    fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* the last: it has been quarantined */
	return report(list, entry->path, "new", e);
}

/* Opens the directory of a line's path, which is written to *ret_path for the caller to free; -1:
 * it is gone. */
static int open_dir_of(int root_fd, const char *line, char **ret_path, const char **ret_name)
{
	const char *end = strchr(line, '\n');
	char *path = *ret_path = strndup(line, (size_t)(end - line));
	auto_free char *dir = NULL;
	struct ward_err gone;
	const char *slash;

	if (!path)
		return -ENOMEM;
	guard_unescape(path);
	slash = strrchr(path, '/');
	*ret_name = slash ? slash + 1 : path;
	dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	return dir ? path_open_nolink(root_fd, *dir ? dir : ".", O_PATH | O_DIRECTORY, &gone)
		   : -ENOMEM;
}

int guard_steer_changed(const struct guard_root *g, int root_fd, struct strv *list,
			struct ward_err *e)
{
	int status = 0;

	for (size_t i = 0; i < g->steers.len && status >= 0; i++) {
		auto_free char *path = NULL;
		const char *name = NULL;
		auto_fd fd = open_dir_of(root_fd, g->steers.items[i], &path, &name);
		auto_buf now = { 0 };
		struct stat st;

		if (fd == -ENOMEM)
			return ward_fail(e, ENOMEM, "out of memory");
		if (fd < 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* removed */
		put_state(&now, path, &st);
		if (strcmp(buf_text(&now), g->steers.items[i]) != 0 && reason_of(path) &&
		    !is_harmless(fd, name))
			status = report(list, path, "changed", e);
	}
	return status;
}

/* Judges one version file that was there before the run: changed, or a link whose target may have
 * changed. */
static int judge_known(const struct guard_root *g, int root_fd, const char *line,
		       const struct guard_taker *taker, struct ward_err *e)
{
	auto_free char *path = NULL;
	const char *name = NULL;
	auto_fd fd = open_dir_of(root_fd, line, &path, &name);
	struct walk_entry entry = { .name = name, .path = path };
	auto_buf now = { 0 }, why = { 0 };
	struct stat st;
	int status = 0;

	if (fd < 0 || !guard_is_version_file(path) || guard_is_released(g, path, false) ||
	    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fd == -ENOMEM ? ward_fail(e, ENOMEM, "out of memory") : 0;
	put_state(&now, path, &st);
	entry.type = (unsigned char)IFTODT(st.st_mode);
	if (strcmp(buf_text(&now), line) != 0)
		status = guard_judge_version(fd, &entry, &why);
	else if (entry.type == DT_LNK)
		status = guard_judge_old_link(g, fd, &entry, &why);
	if (status < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	return status ? taker->take(taker->ctx, fd, name, path, why.data) : 0;
}

int guard_steer_judge(const struct guard_root *g, int root_fd, const struct guard_taker *taker,
		      struct ward_err *e)
{
	int status = 0;

	for (size_t i = 0; i < g->steers.len && status >= 0; i++)
		status = judge_known(g, root_fd, g->steers.items[i], taker, e);
	return status < 0 ? status : 0;
}

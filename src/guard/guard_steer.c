/*
 * What steers a project's own tools. In: the names of tables/steers.def in a tree, before the run
 * and after it. Out: which of them are new or changed. Runs in the supervisor. Nothing is moved:
 * agents write these files in ordinary work, and they take effect only when a person runs the tool.
 * The run's summary and report name them.
 *
 * A file is another one when its inode, size or change time is; no call sets a change time back.
 * What lies in node_modules was brought by a package manager and steers nothing. A package.json
 * counts if it has a script that an installation runs, a list of versions if one is a directory.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
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

static bool is_steer(const struct walk_entry *entry)
{
	return ignore_decide_at(guard_builtin_steers(), entry->path, entry->path_len,
				entry->name_at, false) == IGNORE_EXCLUDED &&
	       strncmp(entry->path, "node_modules/", 13) != 0 &&
	       !strstr(entry->path, "/node_modules/");
}

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
	return "affects tools";
}

/* What names versions, and nothing else that counts here. */
static bool names_versions(const char *name)
{
	static const char *const names[] = { ".*-version", ".*-versions", ".nvmrc", ".yvmrc",
					     ".sdkmanrc" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (fnmatch(names[i], name, 0) == 0)
			return true;
	return false;
}

/* A package.json without a script that installing runs is like any other file, and so is a list of
 * versions in which none is a directory. */
static bool is_harmless(int dir_fd, const char *name)
{
	static const char *const scripts[] = {
		"\"path:",        "@path:",          "\"preinstall\"",
		"\"install\"",    "\"postinstall\"", "\"prepare\"",
		"\"prepublish\"", "\"preprepare\"",  "\"postprepare\""
	};
	auto_fd fd = -1;
	auto_buf text = { 0 };
	bool versions = names_versions(name);
	struct stat st;

	if (!versions && strcmp(name, "package.json") != 0)
		return false;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, TEXT_MAX, &text) < 0 || memchr(buf_text(&text), '\\', text.len))
		return false;
	if (versions)
		return !memmem(buf_text(&text), text.len, "path:", 5);
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
	struct stat st;

	if (!is_steer(entry) || g->steers.len >= STEERS_MAX ||
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

int guard_steer_changed(const struct guard_root *g, int root_fd, struct strv *list,
			struct ward_err *e)
{
	int status = 0;

	for (size_t i = 0; i < g->steers.len && status >= 0; i++) {
		const char *line = g->steers.items[i], *end = strchr(line, '\n'), *slash, *name;
		auto_free char *path = strndup(line, (size_t)(end - line)), *dir = NULL;
		auto_buf now = { 0 };
		auto_fd fd = -1;
		struct ward_err gone;
		struct stat st;

		if (!path)
			return ward_fail(e, ENOMEM, "out of memory");
		guard_unescape(path);
		slash = strrchr(path, '/');
		name = slash ? slash + 1 : path;
		dir = strndup(path, slash ? (size_t)(slash - path) : 0);
		fd = dir ? path_open_nolink(root_fd, *dir ? dir : ".", O_PATH | O_DIRECTORY, &gone)
			 : -1;
		if (fd < 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* removed */
		put_state(&now, path, &st);
		if (strcmp(buf_text(&now), line) != 0 && !is_harmless(fd, name))
			status = report(list, path, "changed", e);
	}
	return status;
}

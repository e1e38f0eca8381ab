/*
 * Version files (tables/versions.def). In: a file by one of these names that a run made or changed.
 * Out: why it must not stay, if it holds more than versions. Runs in the supervisor at the sweep,
 * and in the verbs, on hostile files: each is opened by one name, without following links, and only
 * regular files are read, up to a bound.
 *
 * A new link may lead to another version file, which is judged by itself. A link that was there
 * before the run is followed at the sweep: the run may have changed what it leads to.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "rules/version_file.h"

static const struct {
	const char *name;
	enum version_form form;
} rows[] = {
#define VERSION_FILE(name, form, source, checked) { name, VERSION_##form },
#include "versions.def"
};

/* The form that a name says; -1: it is no version file. */
static int form_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (fnmatch(rows[i].name, name, 0) == 0)
			return (int)rows[i].form;
	return -1;
}

bool guard_is_version_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	int form = form_of(slash ? slash + 1 : path);

	/* there are thousands of them, and a package manager brought them */
	if (form == VERSION_PACKAGE &&
	    (strncmp(path, "node_modules/", 13) == 0 || strstr(path, "/node_modules/")))
		return false;
	return form >= 0;
}

static int refuse(struct buf *why, int form, const char *fault)
{
	buf_printf(why,
		   form == VERSION_ENV
			   ? "an environment file with %s; agents and shells that load it would "
			     "run that"
			   : "a version file with %s; mise may take it for a directory of programs",
		   fault);
	return why->failed ? -ENOMEM : 1;
}

static int judge_text(int fd, int form, struct buf *why)
{
	auto_buf text = { 0 };
	const char *fault;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, VERSION_FILE_MAX, &text) < 0)
		return refuse(why, form, "content that cannot be read");
	fault = version_file_fault((enum version_form)form, buf_text(&text), text.len);
	return fault ? refuse(why, form, fault) : 0;
}

/* A link to a version file of the same form: that one is judged where it lies. */
static int judge_link(int dir_fd, const char *name, int form, struct buf *why)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);
	const char *slash;

	target[n < 0 ? 0 : n] = '\0';
	slash = strrchr(target, '/');
	return form_of(slash ? slash + 1 : target) == form
		       ? 0
		       : refuse(why, form, "a link to another kind of file in its place");
}

int guard_judge_version(int dir_fd, const struct walk_entry *entry, struct buf *why)
{
	int form = form_of(entry->name);
	auto_fd fd = -1;

	if (!guard_is_version_file(entry->path))
		return 0;
	if (entry->type == DT_LNK)
		return judge_link(dir_fd, entry->name, form, why);
	if (entry->type == DT_DIR)
		return 0;
	fd = openat(dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? refuse(why, form, "content that cannot be read")
		      : judge_text(fd, form, why);
}

int guard_judge_old_link(const struct guard_root *g, int dir_fd, const struct walk_entry *entry,
			 struct buf *why)
{
	auto_fd way = openat(dir_fd, entry->name, O_PATH | O_CLOEXEC), fd = -1;
	char link[32], place[PATH_MAX];
	int form = form_of(entry->name);
	struct stat st;
	ssize_t n;

	if (way < 0 || fstat(way, &st) < 0 || !S_ISREG(st.st_mode))
		return 0; /* it leads to nothing that could be read */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", way);
	n = readlink(link, place, sizeof(place) - 1);
	place[n < 0 ? 0 : n] = '\0';
	if (!path_is_beneath(place, g->path))
		return 0; /* the person's own */
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? refuse(why, form, "content that cannot be read")
		      : judge_text(fd, form, why);
}

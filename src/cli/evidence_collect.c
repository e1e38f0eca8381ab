/*
 * What ward evidence collects: the processes of a sandbox, by /proc of the host, and the files that
 * it may have changed. In: the supervisor's number; directories of the user's. Out: members of the
 * archive. The sandbox stands still meanwhile, so nothing changes beneath the look. Names and
 * contents are the sandbox's own choice.
 */
#include "cli/evidence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "base/walk.h"

#define PROCESSES_MAX 4096
#define LINK_MAX_BYTES 4096

/* -- processes */

struct found {
	pid_t pids[PROCESSES_MAX];
	size_t count;
};

static bool is_elsewhere(pid_t pid)
{
	char path[32];
	struct stat own, other;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat("/proc/self/ns/pid", &own) == 0 && stat(path, &other) == 0 &&
	       (own.st_ino != other.st_ino || own.st_dev != other.st_dev);
}

/* All below pid. */
static void add_children(struct found *f, pid_t pid)
{
	char path[64];
	auto_buf text = { 0 };
	DIR *tasks;
	struct dirent *task;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.12s/children", pid, task->d_name);
		text.len = 0;
		if (io_read_file(AT_FDCWD, path, 1 << 20, &text) < 0)
			continue;
		for (char *at = text.data, *end; at && *at; at = end) {
			long child = strtol(at, &end, 10);

			if (end == at || child <= 0)
				break;
			if (f->count < PROCESSES_MAX)
				f->pids[f->count++] = (pid_t)child;
		}
	}
	if (tasks)
		closedir(tasks);
}

static void add_link(const char *path, const char *what, struct buf *out)
{
	char target[LINK_MAX_BYTES];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0)
		return;
	target[n] = '\0';
	buf_printf(out, "%s -> ", what);
	text_escape(out, target);
	buf_puts(out, "\n");
}

static void add_links(pid_t pid, struct buf *out)
{
	static const char names[][8] = { "exe", "cwd", "root", "ns/net", "ns/pid", "ns/mnt" };
	char path[64];
	struct dirent *entry;
	DIR *fds;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
		add_link(path, names[i], out);
	}
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	while (fds && (entry = readdir(fds))) {
		char what[32];

		snprintf(path, sizeof(path), "/proc/%d/fd/%.12s", pid, entry->d_name);
		snprintf(what, sizeof(what), "fd/%.12s", entry->d_name);
		if (entry->d_name[0] != '.')
			add_link(path, what, out);
	}
	if (fds)
		closedir(fds);
}

static int add_process(struct archive *a, pid_t pid, bool first, struct ward_err *e)
{
	static const char *const files[] = {
		"status", "cmdline",   "environ", "maps",    "stat",
		"limits", "mountinfo", "net/tcp", "net/udp", "net/unix"
	};
	enum { OWN = 6 }; /* the rest is the same for all */
	auto_buf links = { 0 };
	char name[64], path[64];
	int r = 0;

	for (size_t i = 0; i < (first ? ARRAY_LEN(files) : OWN) && r == 0; i++) {
		const char *slash = strrchr(files[i], '/');

		snprintf(name, sizeof(name), "processes/%d/%s", pid, slash ? slash + 1 : files[i]);
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		r = archive_add_file(a, name, AT_FDCWD, path, e);
	}
	add_links(pid, &links);
	snprintf(name, sizeof(name), "processes/%d/links", pid);
	return r < 0 ? r : archive_add(a, name, buf_text(&links), links.len, e);
}

int evidence_processes(struct archive *a, pid_t supervisor, struct ward_err *e)
{
	struct found *f = calloc(1, sizeof(*f));
	bool first = true;
	int r = 0;

	if (!f)
		return ward_fail(e, ENOMEM, "out of memory");
	if (supervisor > 1)
		add_children(f, supervisor);
	for (size_t i = 0; i < f->count && r == 0; i++) {
		add_children(f, f->pids[i]);
		if (!is_elsewhere(f->pids[i]))
			continue;
		r = add_process(a, f->pids[i], first, e);
		first = false;
	}
	free(f);
	return r;
}

/* -- files */

struct changed {
	struct archive *a;
	uint64_t since_ms;
	size_t number; /* of the directory */
	bool failed;   /* the archive cannot be written, as *e says */
	struct ward_err *e;
};

/* The name of the member. Backslashes are doubled, so that no name reads as another's escape. */
static bool put_name(struct changed *c, const char *path, struct buf *name)
{
	auto_free char *copy = strdup(path);
	char *rest = copy, *part;

	buf_printf(name, "files/%zu/", c->number);
	while ((part = strsep(&rest, "\\"))) {
		text_escape(name, part);
		if (rest)
			buf_puts(name, "\\\\");
	}
	name->failed |= !copy;
	if (name->failed)
		ward_fail(c->e, ENOMEM, "out of memory");
	c->failed |= name->failed;
	return !name->failed;
}

static int on_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct changed *c = ctx;
	auto_buf name = { 0 };
	struct stat st;

	if (entry->type == DT_DIR)
		return 1;
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (uint64_t)st.st_ctim.tv_sec * 1000 + (uint64_t)st.st_ctim.tv_nsec / 1000000 <
		    c->since_ms)
		return 0;
	if (!put_name(c, entry->path, &name) ||
	    archive_add_file(c->a, buf_text(&name), d->fd, entry->name, c->e) < 0)
		c->failed = true;
	return c->failed ? -c->e->code : 0;
}

static int on_unreadable(void *ctx, const struct walk_dir *d, const struct walk_entry *entry)
{
	static const char said[] = "cannot be read: no right to look into this directory\n";
	struct changed *c = ctx;
	auto_buf name = { 0 };

	(void)d;
	c->a->partial = true;
	if (put_name(c, entry->path, &name))
		buf_puts(&name, "/UNREADABLE");
	if (name.failed || archive_add(c->a, buf_text(&name), said, sizeof(said) - 1, c->e) < 0)
		c->failed = true;
	return c->failed ? -c->e->code : 0;
}

/* One directory, which the sandbox may have moved and linked meanwhile: through no link. */
static int add_directory(struct changed *c, const char *path, struct buf *list)
{
	static const struct walk_ops ops = { .entry = on_entry, .unreadable = on_unreadable };
	bool unnamed = strcmp(path, "/") == 0; /* too many to be on record (state/boxes.c) */
	auto_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct ward_err why = { 0 };
	auto_fd fd = -1;
	int r = -1;

	if (unnamed)
		ward_fail(&why, E2BIG,
			  "the run wrote to too many directories for its record to name");
	else
		fd = path_open_nolink(root, path + strspn(path, "/"), O_RDONLY | O_DIRECTORY, &why);
	if (fd >= 0)
		r = walk_tree(fd, &ops, c, 0, &why);
	if (c->failed)
		return -c->e->code;
	buf_printf(list, "%zu ", c->number);
	text_escape(list, path);
	if (r < 0) {
		c->a->partial = true;
		buf_puts(list, " (not read to its end: ");
		text_escape(list, why.why);
		buf_puts(list, ")");
	}
	buf_puts(list, "\n");
	return 0;
}

int evidence_files(struct archive *a, const struct strv *dirs, uint64_t since_ms,
		   struct ward_err *e)
{
	auto_buf list = { 0 };

	for (size_t i = 0; i < dirs->len; i++) {
		struct changed c = { .a = a, .since_ms = since_ms, .number = i, .e = e };
		int r = add_directory(&c, dirs->items[i], &list);

		if (r < 0)
			return r;
	}
	return archive_put(a, "files/DIRECTORIES", buf_text(&list), list.len, e);
}

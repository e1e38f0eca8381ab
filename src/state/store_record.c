/*
 * Records of runs. In: what a run may leave behind (trees with their baselines, cgroup directories,
 * its first process). Out: one text file that is locked as long as the supervisor lives. A process
 * that finds it unlocked finishes the run: the guardian that survives a killed supervisor, or the
 * next start after a crash of the machine.
 *
 * The record is complete before the sandbox starts; one without its last line belongs to a run that
 * never began. It is not synced: after a power failure the kernel may have lost it together with
 * what the run wrote last.
 *
 * The files stay: the process that begins takes the first that is empty and not locked, and empties
 * it again in the end. A file of its own for each run, made and removed, gets dearer with every
 * run: ext4 does not reuse the inode of a file that was removed within the last minutes, and looks
 * through all of them each time.
 */
#include "state/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/path.h"
#include "guard/guard_internal.h"
#include "state/images.h"
#include "state/vm.h"

#define RECORD_MAX (64u << 20)
#define HEADER "ward-run 1"
#define PIDFS 0x50494446 /* PID_FS_MAGIC, which headers do not have yet */
#define SLOTS_KEPT 8     /* files that stay; more are made for more runs at once */
#define SLOTS_MAX 100000
#define BRIEF_BYTES 16384 /* read at a time, of a record of any size */

struct store_run {
	int state_fd, live_fd, record_fd;
	char id[32], slot[16]; /* slot: the record's name */
	char *workspace;
	bool keep; /* the sweep failed: the record stays */
};

static void put_line(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, "%s ", key);
	guard_escape(b, value);
	buf_puts(b, "\n");
}

static void put_list(struct buf *b, const char *key, const struct strv *v)
{
	for (size_t i = 0; i < v->len; i++)
		put_line(b, key, v->items[i]);
}

static void put_root(struct buf *b, const struct guard_root *g)
{
	put_line(b, "root", g->path);
	buf_printf(b, "since %" PRIu64 "\n", g->since_ns);
	put_list(b, "rule", &g->rules);
	put_list(b, "base", &g->baseline);
	put_list(b, "repo", &g->repositories);
	put_list(b, "view", &g->views);
	put_list(b, "link", &g->links);
	put_list(b, "task", &g->tasks);
}

/* Whether something is a part of what ward goes by: all of its state but what ward itself has a
 * sandbox make, under a name of its own. */
static bool is_in_record(const char *state, const char *path)
{
	static const char *const works[] = { IMAGES_DIR "/" IMAGES_WORK, VM_DIR "/" VM_WORK };
	size_t n = strlen(state);

	if (!path_is_beneath(path, state) || !path[n])
		return path_is_beneath(path, state);
	for (size_t i = 0; i < ARRAY_LEN(works); i++)
		if (strncmp(path + n + 1, works[i], strlen(works[i])) == 0)
			return false;
	return true;
}

/* An agent that could write the state directory could forge records and quarantines. */
static int check_outside(const char *state, const char *given, struct ward_err *e)
{
	bool around = path_is_beneath(state, given);

	if (!around && !is_in_record(state, given))
		return 0;
	ward_fail(e, EINVAL,
		  around ? "ward's state directory %s is in %s, which the sandbox may write to"
			 : "ward's state directory %s contains %s, which the sandbox may write to",
		  state, given);
	return ward_remedy(e,
			   "use another workspace, or set WARD_STATE_DIR to a directory elsewhere");
}

static int check_all_outside(int state_fd, const struct guard_root *roots, size_t count,
			     const struct strv *files, struct ward_err *e)
{
	char link[32], path[4096];
	ssize_t n;
	int r = 0;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", state_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return ward_fail_errno(e, "cannot determine the state directory");
	path[n] = '\0';
	for (size_t i = 0; i < count && r == 0; i++)
		r = roots[i].writable ? check_outside(path, roots[i].path, e) : 0;
	for (size_t i = 0; files && i < files->len && r == 0; i++)
		r = check_outside(path, files->items[i], e);
	return r;
}

bool store_is_slot(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

bool store_is_slot_kept(const char *name)
{
	return strlen(name) == 1 && name[0] >= '0' && name[0] < '0' + SLOTS_KEPT;
}

/* Gives the file back that a record was in. */
int store_leave_slot(int live_fd, int record_fd, const char *name)
{
	return store_is_slot_kept(name) && ftruncate(record_fd, 0) == 0
		       ? 0
		       : unlinkat(live_fd, name, 0);
}

static bool is_empty(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0 && st.st_size == 0;
}

/* 1: no process used the file, and it is ours now. One with a record is not even locked: a process
 * may be about to finish its run. */
static int take_slot(int fd)
{
	if (!is_empty(fd))
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	return is_empty(fd);
}

/* Locks the first file that is free. */
static int open_record(struct store_run *r, struct ward_err *e)
{
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		int taken;

		snprintf(r->slot, sizeof(r->slot), "%u", i);
		r->record_fd = openat(
			r->live_fd, r->slot,
			O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_APPEND | O_NONBLOCK, 0600);
		if (r->record_fd < 0) {
			ward_fail_errno(e, "cannot make the run's record");
			return ward_remedy(e, "make the state directory writable, or set "
					      "WARD_STATE_DIR to another one");
		}
		taken = take_slot(r->record_fd);
		if (taken < 0) {
			ward_fail(e, -taken, "cannot lock the run's record: %s", strerror(-taken));
			return ward_remedy(
				e, "set WARD_STATE_DIR to a directory on a file system with locks");
		}
		if (taken)
			return 0;
		close(take_fd(&r->record_fd));
	}
	return ward_fail(e, EMFILE, "there are already records of %d runs", SLOTS_MAX);
}

static int write_record(struct store_run *r, const struct buf *text, struct ward_err *e)
{
	int status;

	status = open_record(r, e);
	if (status < 0)
		return status;
	status = io_write_all(r->record_fd, text->data, text->len);
	if (status < 0) {
		ward_fail(e, -status, "cannot write the run's record: %s", strerror(-status));
		return ward_remedy(e, "free some space in the state directory, or set "
				      "WARD_STATE_DIR to another one");
	}
	return 0;
}

int store_begin(const char *run_id, const char *workspace, const struct guard_root *roots,
		size_t root_count, const struct strv *files, const struct strv *cgroup_dirs,
		struct store_run **ret_run, struct ward_err *e)
{
	struct store_run *r = calloc(1, sizeof(*r));
	auto_buf text = { 0 };
	int status;

	if (!r)
		return ward_fail(e, ENOMEM, "out of memory");
	r->live_fd = r->record_fd = -1;
	snprintf(r->id, sizeof(r->id), "%s", run_id);
	r->workspace = strdup(workspace);
	buf_puts(&text, HEADER "\n");
	put_line(&text, "id", run_id);
	put_line(&text, "workspace", workspace);
	if (cgroup_dirs)
		put_list(&text, "cgroup", cgroup_dirs);
	for (size_t i = 0; i < root_count; i++)
		if (roots[i].writable)
			put_root(&text, &roots[i]);
	buf_puts(&text, "complete\n");
	status = r->state_fd = store_open(e);
	if (status >= 0)
		status = check_all_outside(r->state_fd, roots, root_count, files, e);
	if (status >= 0)
		status = r->live_fd = store_open_dir(r->state_fd, STORE_LIVE, e);
	if (status >= 0)
		status = text.failed || !r->workspace ? ward_fail(e, ENOMEM, "out of memory")
						      : write_record(r, &text, e);
	if (status < 0) {
		store_end(r);
		return status;
	}
	*ret_run = r;
	return 0;
}

uint64_t store_process_start(pid_t pid)
{
	auto_buf stat = { 0 };
	uint64_t ticks = 0;
	char path[32];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (io_read_file(AT_FDCWD, path, 65536, &stat) < 0)
		return 0;
	at = strrchr(stat.data, ')'); /* the name may hold anything */
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at || sscanf(at, "%" SCNu64, &ticks) != 1)
		return 0;
	return ticks;
}

/* What no other process of this boot has, for less than half of what its /proc costs; 0: the kernel
 * (before Linux 6.9) has no such number. */
uint64_t store_process_number(int pid_fd)
{
	struct statfs fs;
	struct stat st;

	return fstatfs(pid_fd, &fs) == 0 && fs.f_type == PIDFS && fstat(pid_fd, &st) == 0
		       ? st.st_ino
		       : 0;
}

int store_started(struct store_run *r, pid_t init_pid, int pid_fd, struct ward_err *e)
{
	uint64_t number = store_process_number(pid_fd);
	auto_buf line = { 0 };
	int status;

	buf_printf(&line, "%s %d %" PRIu64 " %s\n", number ? "process" : "init", init_pid,
		   number ? number : store_process_start(init_pid), io_boot_id());
	status = line.failed ? -ENOMEM : io_write_all(r->record_fd, line.data, line.len);
	return status < 0 ? ward_fail(e, -status, "cannot write the run's record: %s",
				      strerror(-status))
			  : 0;
}

int store_check_panic(const struct store_run *r, struct ward_err *e)
{
	struct stat st;

	if (fstat(r->state_fd, &st) == 0 && !(st.st_mode & STORE_PANIC))
		return 0;
	ward_fail(e, EPERM, "ward panic is in force: no sandbox is started");
	return ward_remedy(e, "find out what happened, then: ward panic --clear");
}

int store_lost(struct store_run *r, struct guard_root *roots, size_t root_count)
{
	auto_buf lines = { 0 };
	int status;

	for (size_t i = 0; i < root_count; i++)
		for (size_t k = roots[i].lost_on_record; k < roots[i].lost.len; k++) {
			auto_buf value = { 0 };

			buf_printf(&value, "%s\n%s", roots[i].path, roots[i].lost.items[k]);
			put_line(&lines, "lost", buf_text(&value));
			lines.failed |= value.failed;
		}
	if (!lines.len)
		return 0;
	status = lines.failed ? -ENOMEM : io_write_all(r->record_fd, lines.data, lines.len);
	for (size_t i = 0; i < root_count && status == 0; i++)
		roots[i].lost_on_record = roots[i].lost.len;
	return status;
}

int store_sweep(struct store_run *r, const struct guard_root *roots, size_t root_count,
		struct strv *moved, struct guard_news *news, struct ward_err *e)
{
	int failure = 0;

	for (size_t i = 0; i < root_count; i++) {
		struct ward_err own = { 0 };

		if (!roots[i].writable)
			continue;
		if (store_sweep_root(r->state_fd, r->id, r->workspace, &roots[i], i, moved, news,
				     &own) < 0 &&
		    !failure) {
			*e = own;
			failure = -own.code;
		}
	}
	r->keep = failure < 0;
	return failure;
}

void store_end(struct store_run *r)
{
	if (!r)
		return;
	if (!r->keep && r->record_fd >= 0)
		(void)!store_leave_slot(r->live_fd, r->record_fd, r->slot);
	own_close_fd(&r->record_fd);
	own_close_fd(&r->live_fd);
	own_close_fd(&r->state_fd);
	free(r->workspace);
	free(r);
}

void dead_run_clear(struct dead_run *d)
{
	for (size_t i = 0; i < d->root_count; i++)
		guard_clear(&d->roots[i]);
	free(d->roots);
	free(d->workspace);
	strv_free(&d->cgroups);
}

static int add_root(struct dead_run *d, const char *path)
{
	struct guard_root *grown = reallocarray(d->roots, d->root_count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	d->roots = grown;
	d->roots[d->root_count] = (struct guard_root){ .path = strdup(path), .writable = true };
	return d->roots[d->root_count++].path ? 0 : -ENOMEM;
}

/* "ROOT\nPATH" */
static int add_lost(struct dead_run *d, const char *value)
{
	const char *path = strchr(value, '\n');

	for (size_t i = 0; path && i < d->root_count; i++)
		if (strncmp(value, d->roots[i].path, (size_t)(path - value)) == 0 &&
		    d->roots[i].path[path - value] == '\0')
			strv_add(&d->roots[i].lost, path + 1);
	return 0;
}

static int read_line(struct dead_run *d, const char *key, char *value)
{
	struct guard_root *g = d->root_count ? &d->roots[d->root_count - 1] : NULL;

	if (strcmp(key, "complete") == 0)
		d->complete = true;
	if (strcmp(key, "init") == 0 || strcmp(key, "process") == 0) {
		d->numbered = key[0] == 'p';
		return sscanf(value, "%d %" SCNu64 " %63s", &d->init_pid, &d->init_start,
			      d->init_boot) < 2
			       ? -EINVAL
			       : 0;
	}
	guard_unescape(value);
	if (strcmp(key, "id") == 0) {
		if (strlen(value) >= sizeof(d->id) ||
		    strspn(value, "0123456789abcdefghijklmnopqrstuvwxyz-") != strlen(value))
			return -EINVAL;
		memcpy(d->id, value, strlen(value) + 1);
	} else if (strcmp(key, "workspace") == 0) {
		free(d->workspace);
		d->workspace = strdup(value);
	} else if (strcmp(key, "cgroup") == 0) {
		strv_add(&d->cgroups, value);
	} else if (strcmp(key, "root") == 0) {
		return add_root(d, value);
	} else if (strcmp(key, "lost") == 0) {
		return add_lost(d, value);
	} else if (g && strcmp(key, "since") == 0) {
		g->since_ns = strtoull(value, NULL, 10);
	} else if (g && strcmp(key, "rule") == 0) {
		strv_add(&g->rules, value);
	} else if (g && strcmp(key, "base") == 0) {
		strv_add(&g->baseline, value);
	} else if (g && strcmp(key, "repo") == 0) {
		strv_add(&g->repositories, value);
	} else if (g && strcmp(key, "view") == 0) {
		strv_add(&g->views, value);
	} else if (g && strcmp(key, "link") == 0) {
		strv_add(&g->links, value);
	} else if (g && strcmp(key, "task") == 0) {
		strv_add(&g->tasks, value);
	}
	return 0;
}

int store_read_record(int fd, struct dead_run *d)
{
	auto_buf text = { 0 };
	int status = io_read_all(fd, RECORD_MAX, &text);
	char *line, *rest;

	if (status < 0)
		return status;
	rest = text.data;
	line = strsep(&rest, "\n");
	if (!line || strcmp(line, HEADER) != 0)
		return text.len ? -EINVAL : 0;
	while (status >= 0 && (line = strsep(&rest, "\n"))) {
		char *key = strsep(&line, " ");

		if (*key)
			status = read_line(d, key, line ? line : key + strlen(key));
	}
	for (size_t i = 0; i < d->root_count; i++) {
		strv_sort(&d->roots[i].baseline);
		strv_sort(&d->roots[i].repositories);
		strv_sort(&d->roots[i].views);
		strv_sort(&d->roots[i].links);
		strv_sort(&d->roots[i].tasks);
	}
	return status;
}

/* The lines in front of the trees, which may be long. */
static int read_head(int fd, struct dead_run *d)
{
	auto_free char *text = malloc(BRIEF_BYTES + 1);
	ssize_t n = text ? pread(fd, text, BRIEF_BYTES, 0) : 0;
	char *rest = text, *line;
	int status = 0;

	if (n <= 0)
		return !text ? -ENOMEM : n < 0 ? -errno : -ENODATA;
	text[n] = '\0';
	line = strsep(&rest, "\n");
	if (strcmp(line, HEADER) != 0)
		return -EINVAL;
	while (status == 0 && (line = strsep(&rest, "\n")) && rest) {
		char *key = strsep(&line, " ");

		if (strcmp(key, "root") == 0 || strcmp(key, "complete") == 0)
			break;
		if (*key)
			status = read_line(d, key, line ? line : key + strlen(key));
	}
	return status;
}

/* The last line that names the first process, in text that ends with NUL. */
static char *find_process(char *text)
{
	char *found = NULL;

	for (char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if ((strncmp(at, "process ", 8) == 0 || strncmp(at, "init ", 5) == 0) &&
		    strchr(at, '\n'))
			found = at;
		if (!*at)
			break;
	}
	return found;
}

/* It stands behind the trees; what was lost since is behind it. */
static int read_process(int fd, struct dead_run *d)
{
	auto_free char *text = malloc(BRIEF_BYTES + 1);
	off_t end = lseek(fd, 0, SEEK_END), at = end;

	if (!text)
		return -ENOMEM;
	while (at > 0) {
		/* the parts overlap by more than such a line is long */
		at = at > BRIEF_BYTES / 2 ? at - BRIEF_BYTES / 2 : 0;

		ssize_t n = pread(fd, text, BRIEF_BYTES, at);
		char *line;

		if (n < 0)
			return -errno;
		text[n] = '\0';
		line = find_process(text);
		if (line) {
			char *rest = line, *value = strsep(&rest, "\n"), *key = strsep(&value, " ");

			return read_line(d, key, value ? value : key + strlen(key));
		}
	}
	return 0;
}

int store_read_brief(int fd, struct dead_run *d)
{
	int status = read_head(fd, d);

	return status < 0 ? status : read_process(fd, d);
}

/* Whether the record of that name is the run's, as far as any process can tell: one that cannot be
 * read may be. */
static bool is_record_of(int live_fd, const char *name, const char *run_id)
{
	char text[128], wanted[80];
	auto_fd fd = openat(live_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int len = snprintf(wanted, sizeof(wanted), HEADER "\nid %s\n", run_id);

	if (n < 0)
		return errno != ENOENT;
	return n >= len && memcmp(text, wanted, (size_t)len) == 0;
}

bool store_has_record(const char *run_id)
{
	struct ward_err ignored;
	auto_fd state = store_open(&ignored);
	auto_dir list = NULL;
	int live = state < 0 ? -1
			     : openat(state, STORE_LIVE,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool found = false;

	if (live < 0)
		return state >= 0 && errno != ENOENT;
	list = fdopendir(live);
	if (!list) {
		close(live);
		return true;
	}
	for (struct dirent *entry = readdir(list); entry && !found; entry = readdir(list))
		found = entry->d_name[0] != '.' && (strcmp(entry->d_name, run_id) == 0 ||
						    is_record_of(live, entry->d_name, run_id));
	return found;
}

/*
 * The processes of a sandbox, as /proc shows them. In: the sandbox's own /proc (or, where it
 * has none, the caller's with the descendants of ward-init picked out). Out: numbers. Runs in
 * the supervisor; reads only.
 *
 * What is read is partly the sandbox's to choose (names, mappings): the parsers are pure, take
 * the last ")" of a stat line, and only ever see a cut copy. A process that goes away while it
 * is read counts as nothing.
 *
 * Memory is counted in steps that get dearer. An upper bound from stat alone (resident pages of any
 * kind, and page tables as large as the address space allows) mostly ends the matter.
 * proc_memory_upper() reads status: anonymous, shared and swapped pages and page tables (reading a
 * sparse mapping of zeroes costs no page but its tables), but not pages of files, which can be
 * dropped. It counts a page once per process: a forked family that shares its memory counts many
 * times. So before any process is killed proc_memory_exact() divides pages by their users
 * (smaps_rollup). Shared pages of the sandbox's tmpfs mounts are counted there already; how many of
 * the mapped ones these are is read from smaps by device, only when the answer hangs on it. What
 * cannot be read counts in full.
 */
#include "limit/watch_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/io.h"

#define SMAPS_TEXT (64u << 20) /* most that is read of all smaps together */
#define SMALL_SHARED (64u << 10)

/* ---- parsing ---- */

bool proc_parse_stat(const char *text, struct proc_info *info)
{
	const char *name_end = strrchr(text, ')');
	unsigned long long user, system, child_user, child_system, start, virtual_bytes, resident;
	unsigned long threads;
	int pid, ppid;
	char state;

	if (!name_end || sscanf(text, "%d (", &pid) != 1)
		return false;
	/* state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime
	 * cutime cstime prio nice threads interval start vsize rss */
	if (sscanf(name_end + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %lu %*d "
		   "%llu %llu %llu",
		   &state, &ppid, &user, &system, &child_user, &child_system, &threads, &start,
		   &virtual_bytes, &resident) != 10)
		return false;
	*info = (struct proc_info){
		.pid = pid,
		.ppid = ppid,
		.state = state,
		.threads = (uint32_t)threads,
		.cpu_ticks = user + system + child_user + child_system,
		.start_ticks = start,
		.virtual_bytes = virtual_bytes,
		.resident_pages = resident,
	};
	return true;
}

uint64_t proc_parse_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, n) == 0 && at[n] == ':')
			return strtoull(at + n + 1, NULL, 10);
	}
	return 0;
}

/* ---- reading ---- */

ssize_t proc_read(const struct proc_view *v, pid_t pid, const char *file, char *out, size_t n)
{
	char path[64];
	size_t len = 0;

	out[0] = '\0';
	snprintf(path, sizeof(path), "%d/%s", pid, file);

	auto_fd fd = openat(v->fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno > 0 ? -errno : -EIO;
	while (len < n - 1) {
		ssize_t got = read(fd, out + len, n - 1 - len);

		if (got < 0)
			return errno > 0 ? -errno : -EIO;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	out[len] = '\0';
	return (ssize_t)len;
}

/* When the process began; 0: it is gone. */
static uint64_t start_time(const struct proc_view *v, pid_t pid)
{
	struct proc_info info;
	char text[1024];

	if (proc_read(v, pid, "stat", text, sizeof(text)) <= 0 || !proc_parse_stat(text, &info))
		return 0;
	return info.start_ticks;
}

int proc_view_open(struct proc_view *v, int proc_fd, pid_t init_pid, struct ward_err *e)
{
	struct proc_view own = { .own_fd = -1 }, inside = { .fd = proc_fd, .own_fd = -1 };
	uint64_t start;

	own.fd = own.own_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (own.fd < 0)
		return ward_fail_errno(e, "cannot open /proc");
	start = start_time(&own, init_pid);
	if (proc_fd >= 0 && start && start_time(&inside, 1) == start) {
		proc_view_close(&own);
		*v = inside;
		return 0;
	}
	own.root = init_pid;
	*v = own;
	return 0;
}

void proc_view_close(struct proc_view *v)
{
	own_close_fd(&v->own_fd);
	v->fd = v->own_fd = -1;
}

static struct proc_info *find_pid(const struct proc_table *t, pid_t pid)
{
	size_t low = 0, high = t->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->items[middle].pid == pid)
			return &t->items[middle];
		if (t->items[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Keeps the descendants of root. A parent may have a higher pid than its child, so look until
 * nothing changes. */
static void keep_family(struct proc_table *t, pid_t root)
{
	bool changed = true;
	size_t kept = 0;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < t->len; i++) {
			struct proc_info *p = &t->items[i];
			const struct proc_info *parent;

			if (p->inside)
				continue;
			parent = p->pid == root ? p : find_pid(t, p->ppid);
			if (p->pid != root && (!parent || !parent->inside))
				continue;
			p->inside = changed = true;
		}
	}
	for (size_t i = 0; i < t->len; i++)
		if (t->items[i].inside)
			t->items[kept++] = t->items[i];
	t->len = kept;
}

static int add_process(const struct proc_view *v, struct proc_table *t, pid_t pid)
{
	char text[1024];
	struct proc_info info;

	if (proc_read(v, pid, "stat", text, sizeof(text)) <= 0 || !proc_parse_stat(text, &info))
		return 0;
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		struct proc_info *items = reallocarray(t->items, cap, sizeof(*items));

		if (!items)
			return -ENOMEM;
		t->items = items;
		t->cap = cap;
	}
	info.inside = v->root == 0;
	t->items[t->len++] = info;
	return 0;
}

int proc_list(const struct proc_view *v, struct proc_table *t)
{
	int fd = openat(v->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		own_close_fd(&fd);
		return r;
	}
	t->len = 0;
	while (r == 0 && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			r = add_process(v, t, (pid_t)strtol(entry->d_name, NULL, 10));
	if (r == 0 && v->root)
		keep_family(t, v->root);
	return r;
}

/* ---- memory ---- */

static uint64_t status_memory(const char *status)
{
	return (proc_parse_key(status, "RssAnon") + proc_parse_key(status, "RssShmem") +
		proc_parse_key(status, "VmPTE") + proc_parse_key(status, "VmSwap")) *
	       1024;
}

uint64_t proc_memory_upper(const struct proc_view *v, const struct proc_table *t,
			   uint64_t *ret_slots)
{
	char status[8192] = "";
	uint64_t sum = 0;

	*ret_slots = 0;
	for (size_t i = 0; i < t->len; i++) {
		if (proc_read(v, t->items[i].pid, "status", status, sizeof(status)) <= 0)
			continue;
		sum += status_memory(status);
		/* a thread may have a table of its own */
		*ret_slots += proc_parse_key(status, "FDSize") * t->items[i].threads;
	}
	return sum;
}

/* Those that were listed. */
static void kill_listed(const struct proc_view *v, const struct proc_table *t)
{
	for (size_t i = 0; i < t->len; i++) {
		char path[16];
		auto_fd dir = -1;

		snprintf(path, sizeof(path), "%d", t->items[i].pid);
		dir = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* the directory stays that process's; another one may have got its number before it
		 * was opened */
		if (dir >= 0 && start_time(v, t->items[i].pid) == t->items[i].start_ticks)
			syscall(SYS_pidfd_send_signal, dir, SIGKILL, NULL, 0);
	}
}

void proc_kill(const struct proc_view *v, struct proc_table *t)
{
	kill_listed(v, t); /* at once, and then who was started since */
	if (proc_list(v, t) == 0)
		kill_listed(v, t);
}

uint64_t proc_written(const struct proc_view *v, const struct proc_table *t)
{
	uint64_t sum = 0;
	char text[512];

	for (size_t i = 0; i < t->len; i++)
		if (proc_read(v, t->items[i].pid, "io", text, sizeof(text)) > 0)
			sum += proc_parse_key(text, "write_bytes");
	return sum;
}

static bool has_device(const dev_t *devs, size_t count, dev_t dev)
{
	for (size_t i = 0; i < count; i++)
		if (devs[i] == dev)
			return true;
	return false;
}

/* What one process has mapped of the given devices, shared pages divided by their users.
 * *budget is text to read. */
static uint64_t mapped_bytes(const struct proc_view *v, pid_t pid, const dev_t *devs, size_t count,
			     size_t *budget)
{
	char path[32];
	auto_free char *line = NULL;
	size_t cap = 0;
	uint64_t sum = 0;
	bool ours = false;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/smaps", pid);

	int fd = openat(v->fd, path, O_RDONLY | O_CLOEXEC);
	auto_file file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file) {
		own_close_fd(&fd);
		return 0;
	}
	while (*budget && (n = getline(&line, &cap, file)) > 0) {
		unsigned device_major, device_minor;

		*budget -= (size_t)n < *budget ? (size_t)n : *budget;
		if (sscanf(line, "%*x-%*x %*s %*x %x:%x ", &device_major, &device_minor) == 2)
			ours = has_device(devs, count, makedev(device_major, device_minor));
		else if (ours && strncmp(line, "Pss:", 4) == 0)
			sum += strtoull(line + 4, NULL, 10) * 1024;
	}
	return sum;
}

uint64_t proc_memory_exact(const struct proc_view *v, const struct proc_table *t,
			   const dev_t *tmpfs_devs, size_t dev_count, uint64_t tmpfs_bytes,
			   uint64_t limit, bool only_files)
{
	uint64_t anonymous = 0, shared = 0, overlap = 0;
	size_t budget = SMAPS_TEXT;
	char status[8192] = "", rollup[4096] = "";

	for (size_t i = 0; i < t->len; i++) {
		pid_t pid = t->items[i].pid;

		if (proc_read(v, pid, "status", status, sizeof(status)) <= 0)
			continue;
		if (proc_read(v, pid, "smaps_rollup", rollup, sizeof(rollup)) <= 0 ||
		    !strstr(rollup, "\nPss_Anon:")) {
			anonymous += status_memory(status) -
				     (only_files ? proc_parse_key(status, "RssShmem") * 1024 : 0);
			continue;
		}
		anonymous += (proc_parse_key(rollup, "Pss_Anon") +
			      proc_parse_key(rollup, "SwapPss") + proc_parse_key(status, "VmPTE")) *
			     1024;
		shared += proc_parse_key(rollup, "Pss_Shmem") * 1024;
	}
	if (only_files)
		return anonymous + tmpfs_bytes;
	if (anonymous + shared + tmpfs_bytes <= limit)
		return anonymous + shared + tmpfs_bytes;
	/* what is mapped may be the same pages: as much as there is for certain, no page twice */
	if (anonymous + (shared > tmpfs_bytes ? shared : tmpfs_bytes) > limit)
		return anonymous + (shared > tmpfs_bytes ? shared : tmpfs_bytes);
	for (size_t i = 0; i < t->len; i++)
		if (t->items[i].resident_pages * 4096 >= SMALL_SHARED)
			overlap += mapped_bytes(v, t->items[i].pid, tmpfs_devs, dev_count, &budget);
	return anonymous + tmpfs_bytes + (shared > overlap ? shared - overlap : 0);
}

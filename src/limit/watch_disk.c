/*
 * What a sandbox has put on disk. In: descriptors of its writable trees and its processes. Out:
 * how much the file systems grew, and how much of that the sandbox can be shown to hold. Runs
 * in the supervisor; reads only.
 *
 * The free space of a file system is what a limit protects, is cheap to ask for (1 us), and
 * cannot be lied to: sparse files cost nothing, fallocate counts at once, and ext4 and xfs
 * subtract what is not yet allocated. But everybody on the machine changes it. The counters of
 * processes (write_bytes) are no proof either way: fallocate and tmpfs are not in them, and a
 * child whose parent ignores SIGCHLD takes its counters with it. So growth past the limit only
 * raises the suspicion, and a close look with every process stopped settles it by finding the
 * files themselves, wherever a sandbox can keep one:
 *
 *   with a name     a walk of the writable trees; ctime cannot be set by the sandbox, so what is
 * older than the run was not touched by it open            the descriptors of every thread (a
 * thread may have a table of its own) mapped          what is mapped and has no name any more
 * in a message    descriptors waiting in a unix socket cannot be looked at, only that there are
 * some. Memory files (memfd_create) are on no disk: they count as memory
 *
 * If these add up to more than the limit, the sandbox did it. If they do not and there is no hiding
 * place (no directory closed to us, no descriptors in sockets, no walk that took too long), another
 * process did, and the difference is forgiven. If there is a hiding place, the growth is put down
 * to the sandbox: who hides things has no claim to the doubt. Processes that cannot be stopped (see
 * struct inner) move while they are looked at: what is gone or on its way is no hiding place then,
 * nothing is forgiven, and the looks go on as long as the growth is there.
 *
 * Others also remove files, and what the sandbox fills would not show. So every rise from one
 * tick to the next is added up beside it, and when that sum has grown by what the sandbox has
 * left, there is a look as well; then only what is found counts.
 *
 * A process that is in the middle of a large write does not stand still before that ends, the
 * process that stops it; only its death interrupts it. So the process that looks is asked now and
 * then whether it goes on growing meanwhile (enough()), and the look may end early.
 */
#include "limit/watch_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_DEPTH 200
#define BLOCK 512
#define ENTRIES_A_TIME 256

/* ---- how much a file system grew ---- */

static uint64_t used_files(const struct statfs *s)
{
	return s->f_files > s->f_ffree ? s->f_files - s->f_ffree : 0;
}

static uint64_t used_bytes(const struct statfs *s)
{
	return (s->f_blocks > s->f_bfree ? s->f_blocks - s->f_bfree : 0) * (uint64_t)s->f_bsize;
}

int disk_start(struct disk *d, int fd, struct ward_err *e)
{
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return ward_fail_errno(
			e, "cannot determine the free space of the workspace's file system");
	*d = (struct disk){
		.fd = fd,
		.start_bytes = used_bytes(&s),
		.start_files = used_files(&s),
		.last_bytes = used_bytes(&s),
		.last_files = used_files(&s),
		.counts_files = s.f_files > 0,
		.id = { (uint64_t)s.f_type },
	};
	memcpy(&d->id[1], &s.f_fsid, sizeof(d->id[1]));
	return 0;
}

bool disk_same(const struct disk *a, const struct disk *b)
{
	return a->id[0] == b->id[0] && a->id[1] == b->id[1];
}

/* Growth beyond the credit; the credit shrinks when others free what it stands for. */
static uint64_t beyond(uint64_t now, uint64_t start, uint64_t *credit)
{
	uint64_t grown = now > start ? now - start : 0;

	if (grown < *credit)
		*credit = grown;
	return grown - *credit;
}

static uint64_t rise(uint64_t now, uint64_t *last)
{
	uint64_t risen = now > *last ? now - *last : 0;

	*last = now;
	return risen;
}

void disk_measure(struct disk *d)
{
	struct statfs s;

	if (fstatfs(d->fd, &s) < 0)
		return;
	d->gross_bytes += rise(used_bytes(&s), &d->last_bytes);
	d->gross_files += rise(used_files(&s), &d->last_files);
	d->grown_bytes = beyond(used_bytes(&s), d->start_bytes, &d->credit_bytes);
	d->grown_files =
		d->counts_files ? beyond(used_files(&s), d->start_files, &d->credit_files) : 0;
}

void disk_forgive(struct disk *d, uint64_t own_bytes, uint64_t own_files)
{
	if (d->grown_bytes > own_bytes) {
		d->credit_bytes += d->grown_bytes - own_bytes;
		d->grown_bytes = own_bytes;
	}
	if (d->grown_files > own_files) {
		d->credit_files += d->grown_files - own_files;
		d->grown_files = own_files;
	}
}

/* ---- files with a name ---- */

static bool is_since(const struct disk_look *k, struct statx_timestamp t)
{
	return t.tv_sec > k->since.tv_sec ||
	       (t.tv_sec == k->since.tv_sec && t.tv_nsec >= k->since.tv_nsec);
}

static void count_file(struct disk_look *k, const struct statx *st)
{
	uint64_t bytes = st->stx_blocks * BLOCK / (st->stx_nlink ? st->stx_nlink : 1);
	bool born = st->stx_mask & STATX_BTIME ? is_since(k, st->stx_btime)
					       : is_since(k, st->stx_ctime);

	if (born) {
		k->new_bytes += bytes;
		k->new_files++;
	} else if (is_since(k, st->stx_ctime)) {
		k->old_bytes += bytes;
	}
}

static bool out_of_time(struct disk_look *k)
{
	struct timespec now;

	if (!k->ended && k->enough && k->enough(k->enough_arg))
		k->ended = true;
	if (k->ended)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < k->deadline.tv_sec ||
	    (now.tv_sec == k->deadline.tv_sec && now.tv_nsec < k->deadline.tv_nsec))
		return false;
	k->hidden = true;
	return true;
}

/* Walks one directory; takes fd. */
static void walk(struct disk_look *k, int fd, unsigned depth)
{
	auto_dir dir = fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		own_close_fd(&fd);
		k->hidden = true;
		return;
	}
	if (out_of_time(k))
		return;
	for (unsigned count = 1; (entry = readdir(dir)) && !k->ended; count++) {
		const unsigned mask =
			STATX_TYPE | STATX_NLINK | STATX_BLOCKS | STATX_CTIME | STATX_BTIME;
		struct statx st;
		int child;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (count % ENTRIES_A_TIME == 0 && out_of_time(k))
			return;
		if (statx(fd, entry->d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, mask, &st) < 0)
			continue;
		if (!S_ISDIR(st.stx_mode)) {
			count_file(k, &st);
			continue;
		}
		st.stx_nlink = 1; /* of a directory: its subdirectories */
		count_file(k, &st);
		child = depth < MAX_DEPTH ? openat(fd, entry->d_name,
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
					  : -1;
		if (child >= 0)
			walk(k, child, depth + 1);
		else if (depth >= MAX_DEPTH ||
			 (is_since(k, st.stx_ctime) && !(k->moving && errno == ENOENT)))
			k->hidden = true; /* too deep, or closed to us during the run */
	}
}

void disk_look_tree(struct disk_look *k, int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (copy < 0)
		k->hidden = true;
	else
		walk(k, copy, 0);
}

/* ---- files without a name ---- */

/* Which ones were counted already: many processes share one. */
struct seen {
	struct file_id {
		uint64_t dev, ino;
	} * items;
	size_t len, cap;
};

static bool seen_before(struct seen *s, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < s->len; i++)
		if (s->items[i].ino == ino && s->items[i].dev == dev)
			return true;
	if (s->len == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		struct file_id *items = reallocarray(s->items, cap, sizeof(*items));

		if (!items)
			return false;
		s->items = items;
		s->cap = cap;
	}
	s->items[s->len++] = (struct file_id){ dev, ino };
	return false;
}

static bool counts_as_memory(const struct disk_look *k, dev_t dev)
{
	for (size_t i = 0; i < k->memory_dev_count; i++)
		if (k->memory_devs[i] == dev)
			return true;
	return k->memory_files.on && k->memory_files.dev == dev;
}

/* A nameless file found at dir_fd/name, a magic link of /proc. */
static void look_at_link(struct disk_look *k, struct seen *s, int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, 0) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 0 ||
	    counts_as_memory(k, st.st_dev) || seen_before(s, st.st_dev, st.st_ino))
		return;
	k->new_bytes += (uint64_t)st.st_blocks * BLOCK;
	k->new_files++;
}

static bool socket_holds_fds(int fdinfo_fd, const char *name)
{
	auto_fd fd = openat(fdinfo_fd, name, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return proc_parse_key(text, "scm_fds") > 0;
}

/* The descriptors of one thread; base is its directory in /proc. closed: it may be closed to us. */
static void look_at_fds(struct disk_look *k, struct seen *s, int base_fd, bool closed)
{
	auto_fd info = openat(base_fd, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(base_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if ((errno == EACCES || errno == EPERM) && !closed)
			k->hidden = true;
		own_close_fd(&fd);
		return;
	}
	while ((entry = readdir(dir)) && !out_of_time(k)) {
		char target[16];
		ssize_t n;

		if (entry->d_name[0] == '.')
			continue;
		n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);
		if (n > 7 && memcmp(target, "socket:", 7) == 0) {
			if (!k->moving && info >= 0 && socket_holds_fds(info, entry->d_name))
				k->hidden = true;
			continue;
		}
		look_at_link(k, s, fd, entry->d_name);
	}
}

/* A line of /proc/PID/maps that names a deleted file on disk: "start-end perms offset
 * major:minor inode path (deleted)". */
static bool is_deleted_mapping(const struct disk_look *k, const char *line, char *range,
			       uint64_t id[2])
{
	static const char mark[] = " (deleted)";
	unsigned long long start, end, ino;
	unsigned device_major, device_minor;
	size_t n = strcspn(line, "\n");
	int at = 0;

	if (n < sizeof(mark) ||
	    memcmp(line + n - (sizeof(mark) - 1), mark, sizeof(mark) - 1) != 0 ||
	    sscanf(line, "%llx-%llx %*s %*x %x:%x %llu %n", &start, &end, &device_major,
		   &device_minor, &ino, &at) != 5)
		return false;
	line += at;
	if (strncmp(line, "/dev/zero (deleted)", 19) == 0 || strncmp(line, "/memfd:", 7) == 0 ||
	    strncmp(line, "/SYSV", 5) == 0)
		return false; /* memory */
	id[0] = makedev(device_major, device_minor);
	id[1] = ino;
	sprintf(range, "%llx-%llx", start, end);
	return !counts_as_memory(k, (dev_t)id[0]);
}

static void look_at_maps(struct disk_look *k, struct seen *s, int base_fd, bool closed)
{
	auto_fd files = openat(base_fd, "map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(base_fd, "maps", O_RDONLY | O_CLOEXEC);
	auto_file file = fd < 0 ? NULL : fdopen(fd, "r");
	auto_free char *line = NULL;
	size_t cap = 0;

	if (!file) {
		if ((errno == EACCES || errno == EPERM) && !closed)
			k->hidden = true;
		own_close_fd(&fd);
		return;
	}
	while (getline(&line, &cap, file) > 0 && !out_of_time(k)) {
		char range[64];
		uint64_t id[2];
		struct stat st;

		if (!is_deleted_mapping(k, line, range, id))
			continue;
		if (files >= 0 && fstatat(files, range, &st, 0) == 0)
			look_at_link(k, s, files, range);
		else if (!seen_before(s, id[0], id[1]))
			k->hidden = true; /* its size is for root to see */
	}
}

/* Those of a process's threads: one table is looked at once, as far as the kernel tells (else each
 * thread's: an inner runtime has dozens, with thousands of descriptors). */
static void look_at_threads(struct disk_look *k, struct seen *s, int proc_fd, pid_t pid,
			    bool closed)
{
	const struct dirent *entry;
	auto_dir tasks = NULL;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "%d/task", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tasks = fd < 0 ? NULL : fdopendir(fd);
	if (!tasks) {
		own_close_fd(&fd);
		return;
	}
	while ((entry = readdir(tasks)) && !out_of_time(k)) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		auto_fd task = -1;

		if (tid <= 0 || (tid != pid && syscall(SYS_kcmp, pid, tid, KCMP_FILES, 0, 0) == 0))
			continue;
		task = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (task >= 0)
			look_at_fds(k, s, task, closed);
	}
}

void disk_look_open(struct disk_look *k, pid_t init_pid)
{
	/* by the numbers of our own pid namespace, for kcmp() */
	struct proc_view own = { .own_fd = -1, .root = init_pid };
	struct proc_table t = { 0 };
	struct seen seen = { 0 };

	memfds_open(&k->memory_files);
	own.fd = own.own_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (own.fd < 0 || proc_list(&own, &t) < 0)
		k->hidden = true;
	for (size_t i = 0; i < t.len && !out_of_time(k); i++) {
		/* ward's own process is closed to everybody, and keeps no files */
		bool is_init = t.items[i].pid == init_pid;
		auto_fd process = -1;
		char path[16];

		look_at_threads(k, &seen, own.fd, t.items[i].pid, is_init);
		snprintf(path, sizeof(path), "%d", t.items[i].pid);
		process = openat(own.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (process >= 0)
			look_at_maps(k, &seen, process, is_init);
	}
	proc_view_close(&own);
	free(t.items);
	free(seen.items);
}

/*
 * What the kernel holds for a sandbox without mapping it into a process: buffers of sockets and
 * pipes, descriptors. In: its processes. Out: bytes. Runs in the supervisor, only where no
 * cgroup counts the kernel's memory; changes nothing.
 *
 * A socket filled to the brim keeps 200 KiB and more, on no process's account, and a process
 * may have thousands. How many sockets a network namespace has stands in
 * /proc/PID/net/sockstat: times the most that one can hold that is the suspicion. Pipes the
 * kernel itself holds to 64 MiB a user and two pages each beyond that; how many there can be
 * follows from the size of the tables of descriptors.
 *
 * The close look borrows each socket and pipe (pidfd_getfd) and asks it. A socket that cannot
 * be asked (it lies in another socket's queue, in a thread's own table, or is closed to us)
 * counts as full, and so does such a pipe. What was borrowed may be the last by the time it is
 * given back, so that is done elsewhere (host/foreign_fds.h); while that takes long, nothing more
 * is borrowed.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "host/foreign_fds.h"
#include "limit/watch_parts.h"

/* twice net.core.wmem_max, the most that SO_SNDBUF gives, and net.core.optmem_max for filters and
 * keys */
#define FULL_BYTES (544u << 10)
#define FULL_TCP_BYTES (10u << 20) /* tcp_rmem and tcp_wmem at their largest */
#define FULL_PIPE_BYTES (64u << 10)
#define PIPES_BYTES (64u << 20) /* fs.pipe-user-pages-soft */
#define FD_BYTES (5u << 10)     /* half of a pipe with two pages */
#define OPEN_BYTES 1024         /* a descriptor and what hangs on it, without buffers */
#define MAX_NAMESPACES 32
#define LOOK_MS 5000
#define WAIT_MS 10
#define WAITS 40

/* Which inodes were seen: a table with open addressing, at most half full. */
struct inode_set {
	uint64_t *slots; /* 0: free; owned */
	size_t size, used;
};

static bool set_place(uint64_t *slots, size_t size, uint64_t inode)
{
	size_t at = (size_t)(inode * 0x9E3779B97F4A7C15u) & (size - 1);

	while (slots[at] && slots[at] != inode)
		at = (at + 1) & (size - 1);
	if (slots[at])
		return false;
	slots[at] = inode;
	return true;
}

/* Adds an inode; false when it was there, or when there is no memory (then it counts as unseen:
 * full). */
static bool set_add(struct inode_set *s, uint64_t inode)
{
	if (s->used * 2 >= s->size) {
		size_t size = s->size ? s->size * 2 : 256;
		uint64_t *slots = calloc(size, sizeof(*slots));

		if (!slots)
			return false;
		for (size_t i = 0; i < s->size; i++)
			if (s->slots[i])
				set_place(slots, size, s->slots[i]);
		free(s->slots);
		s->slots = slots;
		s->size = size;
	}
	if (!set_place(s->slots, s->size, inode))
		return false;
	s->used++;
	return true;
}

/* ---- how many ---- */

uint64_t sock_parse_full(const char *sockstat, uint64_t *ret_count)
{
	const char *used = strstr(sockstat, "sockets: used ");
	const char *tcp = strstr(sockstat, "\nTCP: inuse ");
	uint64_t all = used ? strtoull(used + 14, NULL, 10) : 0;
	uint64_t connected = tcp ? strtoull(tcp + 12, NULL, 10) : 0;

	*ret_count = all;
	if (connected > all)
		connected = all;
	return (all - connected) * FULL_BYTES + connected * FULL_TCP_BYTES;
}

uint64_t sock_memory_upper(const struct proc_view *v, const struct proc_table *t, bool nesting,
			   uint64_t *ret_count)
{
	ino_t seen[MAX_NAMESPACES];
	size_t seen_count = 0, processes = nesting ? t->len : t->len > 0;
	uint64_t sum = 0;

	*ret_count = 0;
	for (size_t i = 0; i < processes && seen_count < MAX_NAMESPACES; i++) {
		char path[32], text[1024] = "";
		uint64_t count;
		struct stat st;
		bool known = false;

		snprintf(path, sizeof(path), "%d/ns/net", t->items[i].pid);
		if (nesting && fstatat(v->fd, path, &st, 0) == 0) {
			for (size_t k = 0; k < seen_count; k++)
				known |= seen[k] == st.st_ino;
			seen[seen_count++] = st.st_ino;
		}
		if (known) {
			seen_count--;
			continue;
		}
		if (proc_read(v, t->items[i].pid, "net/sockstat", text, sizeof(text)) <= 0)
			continue;
		sum += sock_parse_full(text, &count);
		*ret_count += count;
	}
	return sum;
}

uint64_t fd_memory_upper(uint64_t slots)
{
	uint64_t pipes = slots / 2 * FULL_PIPE_BYTES;

	return slots * FD_BYTES + (pipes < PIPES_BYTES ? pipes : PIPES_BYTES);
}

/* ---- how much ---- */

struct kernel_look {
	struct foreign_fds *foreign; /* borrowed; NULL: nothing can be borrowed */
	unsigned waits;
	struct inode_set seen; /* sockets and pipes have their inodes from one counter */
	uint64_t bytes, sockets, until_ms;
	bool late;
};

/* Waits a little where what was borrowed before is not closed yet, but not for long in all. */
static int borrow(struct kernel_look *k, int pid_fd, int number)
{
	struct pollfd room = { .fd = foreign_fds_fd(k->foreign), .events = POLLIN };
	struct foreign_message word;

	if (pid_fd < 0 || !k->foreign)
		return -1;
	while (foreign_fds_is_full(k->foreign) && k->waits) {
		k->waits--;
		(void)!poll(&room, 1, WAIT_MS);
		while (foreign_fds_next(k->foreign, &word))
			;
	}
	return foreign_fds_is_full(k->foreign) ? -1 : pidfd_getfd(pid_fd, number, 0);
}

static void ask_socket(struct kernel_look *k, int pid_fd, int number)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t n = sizeof(info);
	int fd = borrow(k, pid_fd, number);
	bool answered = fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &n) == 0;
	uint64_t out;

	foreign_fds_close(k->foreign, &fd);
	if (!answered)
		return;
	out = info[SK_MEMINFO_WMEM_ALLOC] > info[SK_MEMINFO_WMEM_QUEUED]
		      ? info[SK_MEMINFO_WMEM_ALLOC]
		      : info[SK_MEMINFO_WMEM_QUEUED];
	k->bytes += out + info[SK_MEMINFO_RMEM_ALLOC] + info[SK_MEMINFO_BACKLOG] +
		    info[SK_MEMINFO_OPTMEM];
	k->sockets++;
}

/* One byte takes a page: what is not empty counts as full. */
static void ask_pipe(struct kernel_look *k, int pid_fd, int number)
{
	int fd = borrow(k, pid_fd, number);
	int size = fd < 0 ? -1 : fcntl(fd, F_GETPIPE_SZ), waiting = 0;

	if (size < 0 || ioctl(fd, FIONREAD, &waiting) < 0)
		k->bytes += FULL_PIPE_BYTES;
	else if (waiting > 0)
		k->bytes += (uint64_t)size;
	foreign_fds_close(k->foreign, &fd);
}

/* One table of descriptors: the directory fd of a process or thread. pid_fd: whose it is, -1:
 * cannot be borrowed from. */
static void ask_table(struct kernel_look *k, const struct proc_view *v, const char *path,
		      int pid_fd)
{
	int fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		own_close_fd(&fd);
		return;
	}
	while ((entry = readdir(dir)) && !k->late) {
		char target[64];
		ssize_t n;
		int number = (int)strtol(entry->d_name, NULL, 10);

		k->late = io_now_ms() > k->until_ms;
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (pid_fd >= 0)
			k->bytes += OPEN_BYTES;
		if (strncmp(target, "socket:[", 8) == 0 &&
		    set_add(&k->seen, strtoull(target + 8, NULL, 10)))
			ask_socket(k, pid_fd, number);
		else if (strncmp(target, "pipe:[", 6) == 0 &&
			 set_add(&k->seen, strtoull(target + 6, NULL, 10)))
			ask_pipe(k, pid_fd, number);
	}
}

static void ask_process(struct kernel_look *k, const struct proc_view *v, const struct proc_info *p)
{
	char path[64];
	auto_fd pid_fd = pidfd_open(p->pid, 0);
	const struct dirent *entry;

	snprintf(path, sizeof(path), "%d/fd", p->pid);
	ask_table(k, v, path, pid_fd);
	if (p->threads < 2)
		return;
	snprintf(path, sizeof(path), "%d/task", p->pid);

	int fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir tasks = fd < 0 ? NULL : fdopendir(fd);

	if (!tasks) {
		own_close_fd(&fd);
		return;
	}
	while ((entry = readdir(tasks)) && !k->late) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    syscall(SYS_kcmp, p->pid, strtol(entry->d_name, NULL, 10), KCMP_FILES, 0, 0) ==
			    0)
			continue; /* the process's own, asked above */
		snprintf(path, sizeof(path), "%d/task/%.20s/fd", p->pid, entry->d_name);
		ask_table(k, v, path, -1);
	}
}

bool kernel_memory_exact(pid_t init_pid, uint64_t sockets, struct foreign_fds *foreign,
			 uint64_t *ret_bytes)
{
	struct kernel_look k = { .until_ms = io_now_ms() + LOOK_MS,
				 .foreign = foreign,
				 .waits = WAITS };
	struct proc_table t = { 0 };
	struct proc_view host = { .own_fd = -1, .root = init_pid };

	/* by the numbers of our own pid namespace, for pidfd_open() */
	host.fd = host.own_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (host.fd >= 0 && proc_list(&host, &t) == 0)
		for (size_t i = 0; i < t.len; i++)
			ask_process(&k, &host, &t.items[i]);
	proc_view_close(&host);
	free(t.items);
	free(k.seen.slots);
	*ret_bytes = k.bytes + (sockets > k.sockets ? (sockets - k.sockets) * FULL_BYTES : 0);
	return !k.late;
}

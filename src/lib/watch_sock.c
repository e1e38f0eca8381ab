/*
 * What the sandbox's sockets hold. In: its processes. Out: bytes. Runs in the supervisor, only where no cgroup counts
 * the kernel's memory; changes nothing.
 *
 * A socket filled to the brim keeps 200 KiB and more in the kernel, on no process's account, and a process may have
 * thousands. How many sockets a network namespace has stands in /proc/PID/net/sockstat: times the most that one can
 * hold that is the suspicion. The close look borrows each socket (pidfd_getfd) and asks it (SO_MEMINFO). A socket that
 * cannot be asked (it lies in another socket's queue, in a thread's own table, or is closed to us) counts as full.
 *
 * Pipes are held by the kernel itself: 64 MiB a user, then two pages each.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "lib/watch_parts.h"

#define FULL_BYTES (416u << 10)		/* twice net.core.wmem_max, the most that SO_SNDBUF gives */
#define FULL_TCP_BYTES (10u << 20)	/* tcp_rmem and tcp_wmem at their largest */
#define MAX_NAMESPACES 32
#define LOOK_MS 2000

/* Which inodes were seen: a table with open addressing, at most half full. */
struct inode_set {
	uint64_t *slots;	/* 0: free; owned */
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

/* Adds an inode; false when it was there, or when there is no memory (then it counts as unseen: full). */
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

/* ---- how much ---- */

struct sock_look {
	struct inode_set seen;
	uint64_t bytes, count, until_ms;
};

static void ask_socket(struct sock_look *k, int pid_fd, int number)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t n = sizeof(info);
	auto_fd fd = pidfd_getfd(pid_fd, number, 0);
	uint64_t out;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &n) < 0)
		return;
	out = info[SK_MEMINFO_WMEM_ALLOC] > info[SK_MEMINFO_WMEM_QUEUED] ? info[SK_MEMINFO_WMEM_ALLOC]
									  : info[SK_MEMINFO_WMEM_QUEUED];
	k->bytes += out + info[SK_MEMINFO_RMEM_ALLOC] + info[SK_MEMINFO_BACKLOG];
	k->count++;
}

static void ask_process(struct sock_look *k, const struct proc_view *v, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/fd", pid);

	auto_fd pid_fd = pidfd_open(pid, 0);
	int fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		own_close_fd(&fd);
		return;
	}
	while (pid_fd >= 0 && (entry = readdir(dir)) && io_now_ms() < k->until_ms) {
		char target[64];
		ssize_t n;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);
		if (n <= 8 || memcmp(target, "socket:[", 8) != 0)
			continue;
		target[n] = '\0';
		if (set_add(&k->seen, strtoull(target + 8, NULL, 10)))
			ask_socket(k, pid_fd, (int)strtol(entry->d_name, NULL, 10));
	}
}

uint64_t sock_memory_exact(pid_t init_pid, uint64_t count)
{
	struct sock_look k = { .until_ms = io_now_ms() + LOOK_MS };
	struct proc_table t = { 0 };
	struct proc_view host = { .own_fd = -1, .root = init_pid };

	/* by the numbers of our own pid namespace, for pidfd_open() */
	host.fd = host.own_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (host.fd >= 0 && proc_list(&host, &t) == 0)
		for (size_t i = 0; i < t.len; i++)
			ask_process(&k, &host, t.items[i].pid);
	proc_view_close(&host);
	free(t.items);
	free(k.seen.slots);
	return k.bytes + (count > k.count ? (count - k.count) * FULL_BYTES : 0);
}

/*
 * What the kernel holds for a sandbox that no cgroup counts. In: its processes, and the machine's
 * /proc/meminfo. Out: bytes, and suspicion. Runs in the supervisor; reads only.
 *
 * Two things are accounted to no process, whatever holds the memory limit: what waits unread in
 * netlink sockets (the kernel's own answers, up to 400 KiB and more in each), and locks of files,
 * of which one descriptor can have millions. The former are listed with their sizes in
 * /proc/PID/net/netlink, the latter in /proc/PID/fdinfo. Where the watch holds the limit, so is
 * what a cgroup would count: entries of epoll sets, one for each pair of descriptors, and mappings,
 * 65,530 for each process. The kernel does not report how many rules a Landlock ruleset has, and no
 * program has many such sets: many count as full. Shared memory without a name (MAP_SHARED and
 * MAP_ANONYMOUS, /dev/zero) stays when its pages are unmapped, and then no process's size shows it:
 * what is mapped of it counts as full, as far as the machine's shared memory has grown at all.
 *
 * Locks, sets and mappings are looked for when the kernel's own memory on this machine has risen by
 * half of the limit since the run began or the last acquittal (every rise from one moment to the
 * next counts), and, because what others free at the same time hides a slow rise, now and then, a
 * fiftieth of the time. The look goes on a few milliseconds each tick while the processes move;
 * only what it finds stops them, for a second look that leaves out the process that had nothing.
 * Each open file counts once, however many threads and processes have it. Descriptors that are
 * under way in a socket are in no table, and so are their locks; with process.nesting a sandbox has
 * file systems in memory that no process outside can see; pages of files stay in memory when the
 * file is cut off while a pipe or a socket has one of a large block (splice, sendfile). What stays
 * unexplained ends the sandbox when it has grown by more than the limit and half of the machine,
 * and the machine is short of memory.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/io.h"
#include "limit/watch_parts.h"

#define LOCK_BYTES 200
#define EPOLL_BYTES 200 /* an entry and its place in the queue of what it waits for */
#define MAPPING_BYTES 256
#define RULESETS_USUAL 8
#define RULESET_BYTES ((uint64_t)4 << 20) /* a rule for each port */
#define MANY_ENTRIES 64         /* of one open file: worth counting where no list can be kept */
#define HEAVY_BYTES (64u << 10) /* of mappings */
#define SEEN_MAX (1u << 18)
#define TEXT_BYTES 32768

/* ---- parsing ---- */

uint64_t beyond_parse_netlink(const char *line)
{
	long long received = 0, sent = 0;

	/* address protocol port groups received sent ...; printed as signed, though they are not */
	if (sscanf(line, "%*s %*d %*d %*x %lld %lld", &received, &sent) != 2)
		return 0;
	return (uint64_t)(received > 0 ? received : 0) + (uint64_t)(sent > 0 ? sent : 0);
}

/* What is free, or on an account. */
static uint64_t known_bytes(const char *text)
{
	static const char *const keys[] = { "MemFree",     "Buffers",     "Cached",
					    "SwapCached",  "AnonPages",   "Slab",
					    "KernelStack", "PageTables",  "SecPageTables",
					    "Percpu",      "VmallocUsed", "Hugetlb",
					    "Balloon",     "GPUActive",   "GPUReclaim" };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		sum += proc_parse_key(text, keys[i]) << 10;
	return sum;
}

bool beyond_parse_meminfo(const char *text, struct beyond_machine *ret_machine)
{
	uint64_t known = known_bytes(text);

	*ret_machine = (struct beyond_machine){
		.total_bytes = proc_parse_key(text, "MemTotal") << 10,
		.available_bytes = proc_parse_key(text, "MemAvailable") << 10,
		.kernel_bytes = proc_parse_key(text, "SUnreclaim") << 10,
		.file_bytes = proc_parse_key(text, "Shmem") << 10,
		.locked_bytes = proc_parse_key(text, "Unevictable") << 10,
	};
	if (ret_machine->total_bytes > known)
		ret_machine->lost_bytes = ret_machine->total_bytes - known;
	return ret_machine->total_bytes && ret_machine->kernel_bytes;
}

static uint64_t growth(uint64_t now, uint64_t start)
{
	return now > start ? now - start : 0;
}

enum beyond_alarm beyond_judge(struct beyond_growth *g, const struct beyond_machine *now,
			       uint64_t limit, bool nesting)
{
	uint64_t grown, files, locked;

	if (!g->start_bytes) {
		g->start_bytes = g->last_bytes = now->kernel_bytes;
		g->start_file_bytes = g->last_file_bytes = now->file_bytes;
		g->start_locked_bytes = now->locked_bytes;
		g->start_lost_bytes = now->lost_bytes;
	}
	if (now->kernel_bytes > g->last_bytes)
		g->rise_bytes += now->kernel_bytes - g->last_bytes;
	if (g->files && now->file_bytes > g->last_file_bytes)
		g->rise_bytes += now->file_bytes - g->last_file_bytes;
	g->last_bytes = now->kernel_bytes;
	g->last_file_bytes = now->file_bytes;
	grown = growth(now->kernel_bytes, g->start_bytes);
	files = growth(now->file_bytes, g->start_file_bytes);
	locked = growth(now->locked_bytes, g->start_locked_bytes); /* may be the same pages */
	if (nesting || g->files) /* else it can have none that no process sees */
		grown += files > locked ? files : locked;
	if (g->files)
		grown += growth(now->lost_bytes, g->start_lost_bytes);
	if (grown > limit && grown > now->total_bytes / 2 &&
	    now->available_bytes < now->total_bytes / 8)
		return BEYOND_MACHINE;
	return g->rise_bytes > limit / 2 ? BEYOND_LOOK : BEYOND_QUIET;
}

uint64_t beyond_parse_shared(const char *line, dev_t dev, uint64_t *ret_inode, uint64_t *ret_offset)
{
	unsigned long long start, end, offset, inode;
	unsigned device_major, device_minor;
	char perms[8];

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu", &start, &end, perms, &offset,
		   &device_major, &device_minor, &inode) != 7 ||
	    perms[3] != 's' || end < start || !inode || makedev(device_major, device_minor) != dev)
		return 0;
	*ret_inode = inode;
	*ret_offset = offset;
	return end - start;
}

/* ---- reading ---- */

bool beyond_machine(struct beyond_machine *ret_machine)
{
	auto_fd fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (!beyond_parse_meminfo(text, ret_machine))
		return false;
	/* a cache of pages that are on no account */
	if (access("/proc/spl/kstat/zfs/arcstats", F_OK) == 0)
		ret_machine->lost_bytes = 0;
	return true;
}

/* Calls each() for every line, cut at TEXT_BYTES; ends when it says so. */
static void each_line(int dir_fd, const char *path, bool (*each)(const char *line, void *arg),
		      void *arg)
{
	auto_fd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	char text[TEXT_BYTES];
	size_t have = 0;
	bool more = fd >= 0;

	while (more) {
		ssize_t n = read(fd, text + have, sizeof(text) - 1 - have);
		char *line = text, *end;

		if (n <= 0)
			return;
		have += (size_t)n;
		text[have] = '\0';
		while (more && (end = strchr(line, '\n'))) {
			*end = '\0';
			more = each(line, arg);
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == sizeof(text) - 1)
			have = 0; /* no line is that long */
	}
}

static bool add_netlink(const char *line, void *arg)
{
	*(uint64_t *)arg += beyond_parse_netlink(line);
	return true;
}

void beyond_find_networks(const struct proc_view *v, const struct proc_table *t, bool nesting,
			  struct beyond_networks *ret_networks)
{
	ino_t seen[BEYOND_NETWORKS_MAX] = { 0 };
	size_t count = 0, processes = nesting && t->len ? t->len : 1;

	for (size_t i = 0; i < processes && count < BEYOND_NETWORKS_MAX; i++) {
		pid_t pid = i < t->len ? t->items[i].pid : v->root ? v->root : 1;
		char path[48];
		struct stat st = { 0 };
		bool known = false;

		snprintf(path, sizeof(path), "%d/ns/net", pid);
		if (nesting && fstatat(v->fd, path, &st, 0) == 0)
			for (size_t k = 0; k < count; k++)
				known |= seen[k] == st.st_ino;
		if (known)
			continue;
		seen[count] = st.st_ino;
		ret_networks->pids[count++] = pid;
	}
	ret_networks->count = count;
}

uint64_t beyond_netlink(const struct proc_view *v, const struct beyond_networks *networks)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < networks->count; i++) {
		char path[48];

		snprintf(path, sizeof(path), "%d/net/netlink", networks->pids[i]);
		each_line(v->fd, path, add_netlink, &bytes);
	}
	return bytes;
}

/* ---- the look at the processes ---- */

/* An open file with locks or entries, or a set of rules: where it was found, by our own numbers. */
struct file_place {
	pid_t pid;
	int fd;
	uint64_t entries;
};

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* The kernel's order of open files. Refused: those with as many entries pass for one. Gone
 * meanwhile: any order will do. */
static int compare_files(const void *a, const void *b)
{
	const struct file_place *x = a, *y = b;
	long r = syscall(SYS_kcmp, x->pid, y->pid, KCMP_FILE, x->fd, y->fd);

	if (r >= 0)
		return r == 0 ? 0 : r == 1 ? -1 : 1;
	if (errno != EBADF && errno != ESRCH)
		return order(x->entries, y->entries);
	return x->pid != y->pid ? order((uint64_t)x->pid, (uint64_t)y->pid)
				: order((uint64_t)x->fd, (uint64_t)y->fd);
}

/* Whether this open file was not yet counted. */
static bool is_new(struct beyond_look *k, struct file_place place)
{
	struct file_place *copy = k->seen_count < SEEN_MAX ? malloc(sizeof(*copy)) : NULL;
	void *const *found;

	if (!copy)
		return tfind(&place, &k->seen, compare_files) == NULL &&
		       place.entries >= MANY_ENTRIES;
	*copy = place;
	found = tsearch(copy, &k->seen, compare_files);
	if (!found || *found != copy) {
		free(copy);
		return false;
	}
	k->seen_count++;
	return true;
}

struct file_count {
	struct beyond_look *k;
	uint64_t entries, bytes;
	bool shared;
};

static bool add_entry(const char *line, void *arg)
{
	struct file_count *c = arg;
	bool lock = strncmp(line, "lock:", 5) == 0;

	if (!lock && (!c->k->all || strncmp(line, "tfd:", 4) != 0))
		return true;
	c->entries++;
	c->bytes += lock ? LOCK_BYTES : EPOLL_BYTES;
	return c->bytes <= c->k->limit;
}

struct shared_place {
	uint64_t inode, offset;
};

static int compare_shared(const void *a, const void *b)
{
	const struct shared_place *x = a, *y = b;

	return x->inode != y->inode ? order(x->inode, y->inode) : order(x->offset, y->offset);
}

/* Shared memory that a process has mapped, the process that else has. */
static void add_shared(struct beyond_look *k, struct shared_place place, uint64_t bytes)
{
	struct shared_place *copy = malloc(sizeof(*copy));
	void *const *found;

	if (!copy)
		return;
	*copy = place;
	found = tsearch(copy, &k->shared, compare_shared);
	if (!found || *found != copy)
		free(copy);
	else
		k->shared_bytes += bytes;
}

static bool add_mapping(const char *line, void *arg)
{
	struct file_count *c = arg;
	struct shared_place place;
	uint64_t shared = c->k->shared_max ? beyond_parse_shared(line, c->k->shared_dev,
								 &place.inode, &place.offset)
					   : 0;

	if (shared) {
		add_shared(c->k, place, shared);
		c->shared = true;
	}
	c->bytes += MAPPING_BYTES;
	return c->bytes <= c->k->limit;
}

static bool is_ruleset(int proc_fd, const char *path)
{
	static const char name[] = "anon_inode:[landlock-ruleset]";
	char target[sizeof(name) + 1];

	return readlinkat(proc_fd, path, target, sizeof(target)) == sizeof(name) - 1 &&
	       memcmp(target, name, sizeof(name) - 1) == 0;
}

static void look_at_file(struct beyond_look *k, int proc_fd, pid_t pid, pid_t tid, int fd)
{
	struct file_count c = { .k = k };
	char path[96];
	bool rules;

	snprintf(path, sizeof(path), "%d/task/%d/fdinfo/%d", pid, tid, fd);
	each_line(proc_fd, path, add_entry, &c);
	snprintf(path, sizeof(path), "%d/task/%d/fd/%d", pid, tid, fd);
	rules = k->all && !c.entries && is_ruleset(proc_fd, path);
	if (!c.entries && !rules)
		return;
	k->heavy = true;
	if (!is_new(k, (struct file_place){ tid, fd, c.entries }))
		return;
	k->bytes += c.bytes;
	k->rulesets += rules;
}

/* One table of descriptors, from number k->at_fd on. False when the time is up: k->at_fd is where
 * to go on. */
static bool look_at_table(struct beyond_look *k, int proc_fd, pid_t pid, pid_t tid)
{
	char path[64];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "%d/task/%d/fdinfo", pid, tid);

	int dir_fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);

	if (!dir) {
		own_close_fd(&dir_fd);
		k->at_fd = 0;
		return true;
	}
	while ((entry = readdir(dir)) && k->bytes <= k->limit) {
		int fd = isdigit((unsigned char)entry->d_name[0])
				 ? (int)strtol(entry->d_name, NULL, 10)
				 : -1;

		if (fd < k->at_fd)
			continue;
		look_at_file(k, proc_fd, pid, tid, fd);
		k->at_fd = fd + 1;
		if (io_now_ms() >= k->until_ms)
			return false;
	}
	k->at_fd = 0;
	return true;
}

/* Whether the thread has a table that was not looked at just now; where no process tells, only the
 * first thread's counts. */
static bool has_own_table(pid_t tid, pid_t leader, pid_t last)
{
	return tid == leader ||
	       (syscall(SYS_kcmp, leader, tid, KCMP_FILES, 0, 0) > 0 &&
		(last == leader || syscall(SYS_kcmp, last, tid, KCMP_FILES, 0, 0) > 0));
}

/* Every thread's, from k->at_task on. */
static bool look_at_tables(struct beyond_look *k, int proc_fd, pid_t pid)
{
	char path[48];
	const struct dirent *entry;
	pid_t last = pid;
	unsigned number = 0;

	snprintf(path, sizeof(path), "%d/task", pid);

	int fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir tasks = fd < 0 ? NULL : fdopendir(fd);

	if (!tasks) {
		own_close_fd(&fd);
		return true;
	}
	while ((entry = readdir(tasks)) && k->bytes <= k->limit) {
		pid_t tid = isdigit((unsigned char)entry->d_name[0])
				    ? (pid_t)strtol(entry->d_name, NULL, 10)
				    : 0;

		if (!tid || number++ < k->at_task)
			continue;
		if (has_own_table(tid, pid, last)) {
			if (!look_at_table(k, proc_fd, pid, tid))
				return false;
			last = tid;
		}
		k->at_task = number;
	}
	return true;
}

static bool look_at_process(struct beyond_look *k, int proc_fd, pid_t pid)
{
	char path[48];

	if (k->all && !k->at_task && !k->at_fd) {
		struct file_count c = { .k = k };

		snprintf(path, sizeof(path), "%d/maps", pid);
		each_line(proc_fd, path, add_mapping, &c);
		k->bytes += c.bytes;
		k->heavy |= c.bytes >= HEAVY_BYTES || c.shared;
	}
	return look_at_tables(k, proc_fd, pid);
}

static bool is_light(const struct proc_table *light, const struct proc_info *p)
{
	for (size_t i = 0; light && i < light->len; i++)
		if (light->items[i].pid == p->pid)
			return light->items[i].start_ticks == p->start_ticks;
	return false;
}

/* The device of memory that has no file system. */
static dev_t shared_device(void)
{
	auto_fd fd = memfd_create("ward", MFD_CLOEXEC);
	struct stat st = { 0 };

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_dev : 0;
}

void beyond_start(struct beyond_look *k, pid_t init_pid, bool all, uint64_t limit,
		  uint64_t shared_max, const struct proc_table *light)
{
	/* by the numbers of our own pid namespace, for kcmp() */
	struct proc_view host = { .own_fd = -1, .root = init_pid };
	size_t kept = 0;

	beyond_end(k);
	k->all = all;
	k->limit = limit;
	k->shared_dev = shared_max ? shared_device() : 0;
	k->shared_max = k->shared_dev ? shared_max : 0;
	k->under_way = true;
	host.fd = host.own_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (host.fd < 0 || proc_list(&host, &k->table) < 0)
		k->table.len = 0;
	proc_view_close(&host);
	for (size_t i = 0; i < k->table.len; i++)
		if (!is_light(light, &k->table.items[i]))
			k->table.items[kept++] = k->table.items[i];
	k->table.len = kept;
}

bool beyond_go_on(struct beyond_look *k, uint64_t budget_ms)
{
	auto_fd proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	k->until_ms = io_now_ms() + budget_ms;
	while (proc_fd >= 0 && k->next < k->table.len && k->bytes <= k->limit) {
		if (io_now_ms() >= k->until_ms ||
		    !look_at_process(k, proc_fd, k->table.items[k->next].pid))
			return false;
		if (!k->heavy) /* the light ones gather at the front */
			k->table.items[k->light++] = k->table.items[k->next];
		k->heavy = false;
		k->at_task = 0;
		k->at_fd = 0;
		k->next++;
	}
	if (k->rulesets > RULESETS_USUAL)
		k->bytes += k->rulesets * RULESET_BYTES;
	k->bytes += k->shared_bytes < k->shared_max ? k->shared_bytes : k->shared_max;
	tdestroy(k->shared, free);
	k->shared = NULL;
	tdestroy(k->seen, free);
	k->seen = NULL;
	k->seen_count = 0;
	k->table.len = k->light;
	k->under_way = false;
	return true;
}

void beyond_end(struct beyond_look *k)
{
	tdestroy(k->shared, free);
	tdestroy(k->seen, free);
	free(k->table.items);
	*k = (struct beyond_look){ 0 };
}

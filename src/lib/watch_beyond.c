/*
 * What the kernel holds for a sandbox that no cgroup counts. In: its processes, and the machine's
 * /proc/meminfo. Out: bytes, and suspicion. Runs in the supervisor; reads only.
 *
 * Two things are on nobody's account, whatever holds the memory limit: what waits unread in
 * netlink sockets (the kernel's own answers, up to 400 KiB and more in each), and locks of files,
 * of which one descriptor can have millions. The former are listed with their sizes in
 * /proc/PID/net/netlink, the latter in /proc/PID/fdinfo. Where the watch holds the limit, so is
 * what a cgroup would count: entries of epoll sets, one for each pair of descriptors, and
 * mappings, 65,530 for each process. How many rules a set of Landlock's has nobody tells, and no
 * program has many such sets: who has is taken for the one who made the kernel's memory rise.
 *
 * Locks, sets and mappings are looked for when the kernel's own memory on this machine has risen by
 * half of the limit since the run began or the last acquittal (every rise from one moment to the
 * next counts), and, because what others free at the same time hides a slow rise, now and then, a
 * fiftieth of the time. Descriptors that are under way in a socket are in
 * no table, and so are their locks; with process.nesting a sandbox has file systems in memory that
 * nobody outside can see: what stays unexplained ends the sandbox when it has grown by
 * more than the limit and half of the machine, and the machine is short of memory.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "lib/watch_parts.h"

#define LOCK_BYTES 200
#define EPOLL_BYTES 200		/* an entry and its place in the queue of what it waits for */
#define MAPPING_BYTES 256
#define RULESETS_USUAL 8
#define RULESET_BYTES ((uint64_t)4 << 20)	/* a rule for each port */
#define LOOK_MS 5000
#define TEXT_BYTES 32768
#define NAMESPACES_MAX 32

/* ---- parsing ---- */

uint64_t beyond_parse_netlink(const char *line)
{
	unsigned long long received = 0, sent = 0;

	/* address protocol port groups received sent ... */
	if (sscanf(line, "%*s %*d %*d %*x %llu %llu", &received, &sent) != 2)
		return 0;
	return received + sent;
}

bool beyond_parse_meminfo(const char *text, struct beyond_machine *ret_machine)
{
	*ret_machine = (struct beyond_machine){
		.total_bytes = proc_parse_key(text, "MemTotal") << 10,
		.available_bytes = proc_parse_key(text, "MemAvailable") << 10,
		.kernel_bytes = proc_parse_key(text, "SUnreclaim") << 10,
		.file_bytes = (proc_parse_key(text, "Shmem") + proc_parse_key(text, "Unevictable")) << 10,
	};
	return ret_machine->total_bytes && ret_machine->kernel_bytes;
}

enum beyond_alarm beyond_judge(struct beyond_growth *g, const struct beyond_machine *now, uint64_t limit)
{
	uint64_t grown;

	if (!g->start_bytes) {
		g->start_bytes = g->last_bytes = now->kernel_bytes;
		g->start_file_bytes = now->file_bytes;
	}
	if (now->kernel_bytes > g->last_bytes)
		g->rise_bytes += now->kernel_bytes - g->last_bytes;
	g->last_bytes = now->kernel_bytes;
	grown = now->kernel_bytes > g->start_bytes ? now->kernel_bytes - g->start_bytes : 0;
	grown += now->file_bytes > g->start_file_bytes ? now->file_bytes - g->start_file_bytes : 0;
	if (grown > limit && grown > now->total_bytes / 2 && now->available_bytes < now->total_bytes / 8)
		return BEYOND_MACHINE;
	return g->rise_bytes > limit / 2 ? BEYOND_LOOK : BEYOND_QUIET;
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
	return beyond_parse_meminfo(text, ret_machine);
}

/* Calls each() for every line, cut at TEXT_BYTES; ends when it says so. */
static void each_line(int dir_fd, const char *path, bool (*each)(const char *line, void *arg), void *arg)
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
			have = 0;	/* no line is that long */
	}
}

static bool add_netlink(const char *line, void *arg)
{
	*(uint64_t *)arg += beyond_parse_netlink(line);
	return true;
}

uint64_t beyond_netlink(const struct proc_view *v, const struct proc_table *t, bool nesting)
{
	ino_t seen[NAMESPACES_MAX] = { 0 };
	size_t count = 0, processes = nesting && t->len ? t->len : 1;
	uint64_t bytes = 0;

	for (size_t i = 0; i < processes && count < NAMESPACES_MAX; i++) {
		pid_t pid = i < t->len ? t->items[i].pid : v->root ? v->root : 1;
		char path[48];
		struct stat st;
		bool known = false;

		snprintf(path, sizeof(path), "%d/ns/net", pid);
		if (nesting && fstatat(v->fd, path, &st, 0) == 0) {
			for (size_t k = 0; k < count; k++)
				known |= seen[k] == st.st_ino;
			if (!known)
				seen[count++] = st.st_ino;
		}
		snprintf(path, sizeof(path), "%d/net/netlink", pid);
		if (!known)
			each_line(v->fd, path, add_netlink, &bytes);
	}
	return bytes;
}

/* ---- the close look ---- */

struct beyond_look {
	bool all;	/* also what a cgroup would have counted */
	bool late;
	uint64_t bytes, limit, until_ms;
	unsigned rulesets;	/* of Landlock */
};

static bool add_entry(const char *line, void *arg)
{
	struct beyond_look *k = arg;

	if (strncmp(line, "lock:", 5) == 0)
		k->bytes += LOCK_BYTES;
	else if (k->all && strncmp(line, "tfd:", 4) == 0)
		k->bytes += EPOLL_BYTES;
	return k->bytes <= k->limit;
}

static bool add_mapping(const char *line, void *arg)
{
	struct beyond_look *k = arg;

	(void)line;
	k->bytes += MAPPING_BYTES;
	return k->bytes <= k->limit;
}

static bool is_ruleset(const struct proc_view *v, const char *path)
{
	static const char name[] = "anon_inode:[landlock-ruleset]";
	char target[sizeof(name) + 1];

	return readlinkat(v->fd, path, target, sizeof(target)) == sizeof(name) - 1 && memcmp(target, name, sizeof(name) - 1) == 0;
}

/* One table of descriptors; prefix: the directory of the process or thread. */
static void look_at_table(struct beyond_look *k, const struct proc_view *v, const char *prefix)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/fdinfo", prefix);
	fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		own_close_fd(&fd);
		return;
	}
	while ((entry = readdir(dir)) && !k->late && k->bytes <= k->limit) {
		k->late = io_now_ms() > k->until_ms;
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		each_line(fd, entry->d_name, add_entry, k);
		snprintf(path, sizeof(path), "%s/fd/%.20s", prefix, entry->d_name);
		k->rulesets += k->all && is_ruleset(v, path);
	}
}

static void look_at_process(struct beyond_look *k, const struct proc_view *v, const struct proc_info *p)
{
	char path[64];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "%d/maps", p->pid);
	if (k->all)
		each_line(v->fd, path, add_mapping, k);
	snprintf(path, sizeof(path), "%d", p->pid);
	if (p->threads < 2) {
		look_at_table(k, v, path);
		return;
	}
	/* a thread may have a table of its own; a shared one counts for each, which matters only where there is far too much */
	snprintf(path, sizeof(path), "%d/task", p->pid);

	int fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir tasks = fd < 0 ? NULL : fdopendir(fd);

	if (!tasks) {
		own_close_fd(&fd);
		return;
	}
	while ((entry = readdir(tasks)) && !k->late && k->bytes <= k->limit) {
		snprintf(path, sizeof(path), "%d/task/%.20s", p->pid, entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_table(k, v, path);
	}
}

bool beyond_exact(const struct proc_view *v, const struct proc_table *t, bool all, uint64_t rise_bytes, uint64_t limit, uint64_t *ret_bytes)
{
	struct beyond_look k = { .all = all, .limit = limit, .until_ms = io_now_ms() + LOOK_MS };

	for (size_t i = 0; i < t->len && !k.late && k.bytes <= limit; i++)
		look_at_process(&k, v, &t->items[i]);
	if (k.rulesets > RULESETS_USUAL)
		k.bytes += rise_bytes > k.rulesets * RULESET_BYTES ? rise_bytes : k.rulesets * RULESET_BYTES;
	*ret_bytes = k.bytes;
	return !k.late;
}

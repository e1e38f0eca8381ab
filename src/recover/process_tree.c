/*
 * Killing a process tree. In: the number of a process that the caller holds by a pidfd. Out:
 * SIGKILL to what is below it: first the whole tree is listed, then every process is killed. For
 * sandboxes without a cgroup, and for the processes that serve a run. A process is signalled by its
 * pidfd, and only if its parent, looked up once the pidfd is open, is the one whose child it was
 * listed as: a number that was used again is never hit. A process that forks meanwhile may leave a
 * child out of the list: the caller ends the namespace, or comes again.
 */
#include "recover/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define PROCESSES_MAX 65536
#define TEXT_MAX (1u << 20)
#define HELD_MAX 64

struct process {
	pid_t pid, parent;
};

struct tree {
	struct process *items;
	size_t len, cap;
};

static bool add(struct tree *t, pid_t pid, pid_t parent)
{
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		struct process *grown =
			cap > PROCESSES_MAX ? NULL : reallocarray(t->items, cap, sizeof(*grown));

		if (!grown)
			return false;
		t->items = grown;
		t->cap = cap;
	}
	t->items[t->len++] = (struct process){ .pid = pid, .parent = parent };
	return true;
}

pid_t process_parent(pid_t pid)
{
	auto_buf stat = { 0 };
	char path[32];
	const char *at;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (io_read_file(AT_FDCWD, path, 4096, &stat) < 0)
		return 0;
	at = strrchr(buf_text(&stat), ')'); /* the name may hold anything */
	return at && sscanf(at + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static void add_children(struct tree *t, pid_t parent, int task_fd, const char *tid)
{
	auto_buf text = { 0 };
	char path[NAME_MAX + 16];
	const char *at;
	char *end;

	snprintf(path, sizeof(path), "%s/children", tid);
	if (io_read_file(task_fd, path, TEXT_MAX, &text) < 0)
		return;
	for (at = buf_text(&text);; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);

		if (end == at || pid <= 1 || !add(t, pid, parent))
			break;
	}
}

/* The children of every thread: each may have some of its own. */
static void add_below(struct tree *t, pid_t parent)
{
	char path[32];
	auto_dir tasks = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task", parent);
	tasks = opendir(path);
	for (struct dirent *d = tasks ? readdir(tasks) : NULL; d; d = readdir(tasks))
		if (d->d_name[0] != '.')
			add_children(t, parent, dirfd(tasks), d->d_name);
}

static void list_below(struct tree *t, pid_t top)
{
	add_below(t, top);
	for (size_t i = 0; i < t->len; i++)
		add_below(t, t->items[i].pid);
}

/* A pidfd of the process that was listed, -1: it is gone. Whose parent has just died is a child of
 * the top one. */
static int open_listed(const struct process *p, pid_t top)
{
	auto_fd fd = p->pid == getpid() ? -1 : pidfd_open(p->pid, 0);
	pid_t parent = fd < 0 ? 0 : process_parent(p->pid);

	return parent && (parent == p->parent || parent == top) ? take_fd(&fd) : -1;
}

unsigned process_tree_kill(pid_t top, int top_fd)
{
	struct pollfd dead = { .fd = top_fd, .events = POLLIN };
	struct tree t = { 0 };
	unsigned killed = 0;

	list_below(&t, top);
	/* if it lives now, the number was its own while its children were listed */
	for (size_t i = 0; i < t.len && poll(&dead, 1, 0) == 0; i++) {
		auto_fd fd = open_listed(&t.items[i], top);

		killed += fd >= 0 && pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0;
	}
	free(t.items);
	return killed;
}

/* Waits until all are dead, which a process that waits for a disk is not at once. */
static void await_ends(const struct pollfd *held, size_t n, int wait_ms)
{
	int64_t end = (int64_t)io_now_ms() + wait_ms;

	for (size_t i = 0; i < n; i++) {
		struct pollfd one = held[i];
		int64_t left = end - (int64_t)io_now_ms();

		(void)!poll(&one, 1, left > 0 ? (int)left : 0);
	}
}

void process_tree_end(pid_t top, int top_fd, process_tree_wanted *wanted, int wait_ms)
{
	struct pollfd dead = { .fd = top_fd, .events = POLLIN }, held[HELD_MAX];
	struct tree t = { 0 };
	size_t n = 0;

	list_below(&t, top);
	/* all are held before the first dies: what it leaves behind gets another parent */
	for (size_t i = 0; i < t.len && n < HELD_MAX && poll(&dead, 1, 0) == 0; i++) {
		auto_fd fd = wanted(t.items[i].pid) ? open_listed(&t.items[i], top) : -1;

		if (fd >= 0)
			held[n++] = (struct pollfd){ .fd = take_fd(&fd), .events = POLLIN };
	}
	for (size_t i = 0; i < n; i++)
		(void)!pidfd_send_signal(held[i].fd, SIGKILL, NULL, 0);
	await_ends(held, n, wait_ms);
	for (size_t i = 0; i < n; i++)
		close(held[i].fd);
	free(t.items);
}

bool process_is_namespace_init(pid_t pid)
{
	auto_buf text = { 0 };
	char path[32];
	const char *at, *last;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (io_read_file(AT_FDCWD, path, 65536, &text) < 0)
		return false;
	at = strstr(buf_text(&text), "\nNSpid:");
	if (!at)
		return false;
	at += strlen("\nNSpid:");
	at += strspn(at, "\t ");
	last = at + strcspn(at, "\n");
	while (last > at && last[-1] != '\t')
		last--;
	return last > at && strncmp(last, "1\n", 2) == 0;
}

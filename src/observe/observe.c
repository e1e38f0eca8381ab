/*
 * Reading the calls of tables/watched.def while they wait at the seccomp listener. In: a
 * notification, whose caller is hostile: each pointer may be wrong, each text endless, the caller
 * gone. Out: one struct observation with absolute paths as the sandbox has them. Runs in the
 * supervisor with the user's rights; never on the start path, and only on request.
 *
 * Why the listener and not fanotify: without CAP_SYS_ADMIN fanotify reports no process and marks
 * single inodes only, so an ordinary user would learn neither who opened a file nor that one was
 * missed. The same listener serves root and user.
 *
 * A relative path is put behind what /proc says the directory is called. That is a name at this
 * moment: a directory that is moved meanwhile has another one afterwards.
 */
#include "observe/observe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/path.h"
#include "model/plan.h"
#include "plan/plan_root.h"

#define NO (-1)
#define SET_ID 06000
#define TMPFILE_BIT 020000000 /* O_TMPFILE without O_DIRECTORY */

static const struct watched {
	int nr;
	unsigned group;
	enum observe_act act;
	int8_t dir, path, flags, mode, from_dir, from;
} watched[] = {
#define WATCH(call, group, act, dir, path, flags, mode, from_dir, from)                            \
	{ SYS_##call, OBSERVE_##group, ACT_##act, dir, path, flags, mode, from_dir, from },
#include "watched.def"
};

unsigned observe_wanted(const struct plan *p)
{
	unsigned level = p->spec->policy.audit_level;
	unsigned wanted = p->spec->observe;

	if (level <= AUDIT_EXEC)
		wanted |= OBSERVE_EXEC;
	if (p->asks.len && p->spec->policy.appr_mode == APPROVALS_ASK)
		wanted |= OBSERVE_WRITES | OBSERVE_READS;
	if (level <= AUDIT_WRITES)
		wanted |= OBSERVE_WRITES;
	if (level == AUDIT_FULL)
		wanted |= OBSERVE_READS | (p->net.on ? OBSERVE_NET : 0);
	/* full is refused there */
	return p->level == LEVEL_LANDLOCK ? wanted & OBSERVE_EXEC : wanted;
}

unsigned observe_shown(const struct plan *p)
{
	bool own = p->level != LEVEL_LANDLOCK && !p->spec->inner;

	return observe_wanted(p) | (own && !p->net.on ? OBSERVE_NET : 0) |
	       (own ? OBSERVE_LISTEN : 0);
}

static const struct watched *find(int nr)
{
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		if (watched[i].nr == nr)
			return &watched[i];
	return NULL;
}

bool observe_knows(int nr, unsigned groups)
{
	const struct watched *w = find(nr);

	return w && (w->group & groups);
}

bool observe_denied(const struct seccomp_notif *q)
{
	const struct watched *w = find(q->data.nr);

	if (!w || w->mode == NO ||
	    (w->flags != NO && !(q->data.args[w->flags] & (O_CREAT | TMPFILE_BIT))))
		return false;
	return q->data.args[w->mode] & SET_ID;
}

/* Reads what can be read of n bytes; a supervisor that is locked up (tables/procs.def: BOX) has
 * only the file. */
static size_t read_memory(pid_t pid, uint64_t at, void *out, size_t n)
{
	size_t first = 4096 - at % 4096;
	struct iovec local = { out, n };
	struct iovec remote[2] = { { (void *)(uintptr_t)at, n < first ? n : first },
				   { (void *)(uintptr_t)(at + first), n < first ? 0 : n - first } };
	ssize_t got = at ? process_vm_readv(pid, &local, 1, remote, 2, 0) : 0;
	char path[32];
	auto_fd mem_fd = -1;

	if (got >= 0 || errno != EPERM)
		return got > 0 ? (size_t)got : 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	got = mem_fd < 0 ? -1 : pread(mem_fd, out, remote[0].iov_len, (off_t)at);
	if (got > 0 && (size_t)got == remote[0].iov_len && remote[1].iov_len &&
	    !memchr(out, 0, (size_t)got)) {
		ssize_t more = pread(mem_fd, (char *)out + got, remote[1].iov_len, (off_t)at + got);

		got += more > 0 ? more : 0;
	}
	return got > 0 ? (size_t)got : 0;
}

/* A path of the caller's, whole or not at all. */
static bool read_path(pid_t pid, uint64_t at, char out[PATH_MAX])
{
	/* most are short and lie within a page: the rest is read only where there is more */
	size_t page = 4096 - at % 4096, n = read_memory(pid, at, out, page < 256 ? page : 256);

	if (n && memchr(out, 0, n))
		return out[0] != '\0';
	if (n)
		n += read_memory(pid, at + n, out + n, PATH_MAX - n);
	return n && memchr(out, 0, n) && out[0] != '\0';
}

/* What a descriptor of the caller's, or its directory, is called. */
static bool read_directory(pid_t pid, int dir_fd, char out[PATH_MAX])
{
	char link[48];
	ssize_t n;

	if (dir_fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, dir_fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n <= 0 || out[0] != '/')
		return false;
	out[n] = '\0';
	return true;
}

static void resolve(pid_t pid, const struct seccomp_notif *q, int dir, int path, char out[PATH_MAX])
{
	char text[PATH_MAX], base[PATH_MAX];
	auto_free char *joined = NULL;

	out[0] = '\0';
	if (path == NO || !read_path(pid, q->data.args[path], text))
		return;
	if (text[0] == '/')
		joined = path_clean(text);
	else if (read_directory(pid, dir == NO ? AT_FDCWD : (int)q->data.args[dir], base))
		joined = path_join(base, text);
	if (joined && strlen(joined) < PATH_MAX)
		memcpy(out, joined, strlen(joined) + 1);
}

static void read_address(pid_t pid, const struct seccomp_notif *q, struct observation *o)
{
	sa_family_t family = 0;
	size_t most = sizeof(o->address) - 1,
	       n = q->data.args[2] < most ? (size_t)q->data.args[2] : most;

	memset(o->address, 0, sizeof(o->address));
	n = read_memory(pid, q->data.args[1], o->address, n);
	if (n >= sizeof(family))
		memcpy(&family, o->address, sizeof(family));
	o->address_len = (family == AF_INET && n >= sizeof(struct sockaddr_in)) ||
					 (family == AF_INET6 && n >= sizeof(struct sockaddr_in6)) ||
					 (family == AF_UNIX && n > sizeof(family))
				 ? n
				 : 0;
}

bool observe_look(int listener_fd, const struct seccomp_notif *q, struct observation *ret)
{
	const struct watched *w = find(q->data.nr);
	pid_t pid = (pid_t)q->pid;
	int flags;

	if (!w || pid <= 0)
		return false;
	flags = w->flags == NO ? 0 : (int)q->data.args[w->flags];
	ret->act = w->act;
	ret->pid = pid;
	ret->writes = flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
	ret->creates = flags & O_CREAT;
	ret->address_len = 0;
	ret->from[0] = '\0';
	resolve(pid, q, w->dir, w->path, ret->path);
	if (w->from != NO)
		resolve(pid, q, w->from_dir, w->from, ret->from);
	if (w->act == ACT_CONNECT)
		read_address(pid, q, ret);
	/* its pid may be another process's by now: then all of this was */
	return (ret->path[0] || ret->address_len) &&
	       ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &q->id) == 0;
}

void observe_host_path(const char *inside, const char *home, char *ret)
{
	bool own = home && path_is_beneath(inside, PLAN_HOME);

	snprintf(ret, PATH_MAX, "%s%s", own ? home : "", own ? inside + strlen(PLAN_HOME) : inside);
}

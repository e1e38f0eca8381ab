/*
 * What guarded programs need before a sandbox starts. In: a plan that names some. Out: a descriptor
 * of each program's file, which nothing inside can reach any more; a socket in a directory of its
 * own in the runtime directory, whose file is mounted inside. Runs in `ward` with the user's
 * rights.
 */
#include "run/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "plan/plan_root.h"
#include "state/runtime.h"

#define NAME "socket"
#define BACKLOG 64

static int make_dir(struct commands *c, struct ward_err *e)
{
	uint64_t random;

	c->parent_fd = runtime_open(e);
	if (c->parent_fd < 0)
		return c->parent_fd;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random numbers");
	snprintf(c->dir, sizeof(c->dir), "guard-%016llx", (unsigned long long)random);
	if (mkdirat(c->parent_fd, c->dir, 0700) < 0) {
		c->dir[0] = '\0';
		return ward_fail_errno(e, "cannot make a directory for the socket of "
					  "process.commands");
	}
	c->dir_fd = openat(c->parent_fd, c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return c->dir_fd < 0 ? ward_fail_errno(e, "cannot open the directory of that socket") : 0;
}

static int make_socket(struct commands *c, struct ward_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	c->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" NAME, c->dir_fd);
	if (c->listen_fd < 0 || bind(c->listen_fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    fchmodat(c->dir_fd, NAME, 0666, 0) < 0 || listen(c->listen_fd, BACKLOG) < 0)
		return ward_fail_errno(e, "cannot make the socket of process.commands");
	return 0;
}

/* As root the child that builds the sandbox has no right to the path. */
static int put_mount(struct plan *p, const struct commands *c, struct ward_err *e)
{
	struct plan_mount *m = NULL;
	char link[64], path[PATH_MAX];
	ssize_t n;

	for (size_t i = 0; i < p->mount_count; i++)
		if (strcmp(p->mounts[i].target, PLAN_GUARD_SOCKET) == 0)
			m = &p->mounts[i];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", c->dir_fd);
	n = readlink(link, path, sizeof(path) - 16);
	if (!m || n <= 0 || n >= (ssize_t)sizeof(path) - 16)
		return ward_fail(e, ENAMETOOLONG, "the path of the runtime directory is too long");
	snprintf(path + n, sizeof(path) - (size_t)n, "/" NAME);
	strv_add(&p->strings, path);
	if (p->strings.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->source = p->strings.items[p->strings.len - 1];
	if (p->ids.mode == IDS_OWN)
		return 0;
	m->tree_fd = (int)syscall(SYS_open_tree, c->dir_fd, NAME,
				  AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return m->tree_fd < 0 ? ward_fail_errno(e, "cannot mount the socket of process.commands")
			      : 0;
}

static int open_files(const struct plan *p, struct commands *c, struct ward_err *e)
{
	const struct plan_commands *list = p->commands;

	c->file_fds = calloc(list->guarded_count, sizeof(*c->file_fds));
	if (!c->file_fds)
		return ward_fail(e, ENOMEM, "out of memory");
	for (; c->count < list->guarded_count; c->count++) {
		const char *path = list->guarded[c->count].host;

		c->file_fds[c->count] = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
		if (c->file_fds[c->count] < 0) {
			ward_fail_errno(e, "process.commands: cannot read %s", path);
			return ward_remedy(e, "ward starts a copy of it, so you must be able to "
					      "read it");
		}
	}
	return 0;
}

int commands_start(struct plan *p, struct ward_err *e)
{
	struct commands *c;
	int r;

	if (!p->spec->starts || !p->commands || !p->commands->guarded_count)
		return 0;
	c = p->live->commands = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->parent_fd = c->dir_fd = c->listen_fd = -1;
	r = open_files(p, c, e);
	if (r == 0)
		r = make_dir(c, e);
	if (r == 0)
		r = make_socket(c, e);
	return r < 0 ? r : put_mount(p, c, e);
}

void commands_end(struct plan *p)
{
	struct commands *c = p->live->commands;

	if (!c)
		return;
	if (c->dir_fd >= 0)
		(void)unlinkat(c->dir_fd, NAME, 0);
	if (c->dir[0])
		(void)unlinkat(c->parent_fd, c->dir, AT_REMOVEDIR);
	for (size_t i = 0; i < c->count; i++)
		own_close_fd(&c->file_fds[i]);
	free(c->file_fds);
	own_close_fd(&c->listen_fd);
	own_close_fd(&c->dir_fd);
	own_close_fd(&c->parent_fd);
	free(c);
	p->live->commands = NULL;
}

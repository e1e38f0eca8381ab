/*
 * A socket that programs inside connect to. In: a plan with a mount for it, whose source is not
 * known yet. Out: a socket in a directory of its own in the runtime directory, whose file is
 * mounted inside, read-only; what the sandbox does with the file reaches no other process. Runs in
 * `ward` with the user's rights, before the sandbox starts.
 */
#include "run/inside_socket.h"

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

#include "state/runtime.h"

#define NAME "socket"
#define BACKLOG 64

static int make_dir(struct inside_socket *s, const char *kind, const char *field,
		    struct ward_err *e)
{
	uint64_t random;

	s->parent_fd = runtime_open(e);
	if (s->parent_fd < 0)
		return s->parent_fd;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random numbers");
	snprintf(s->dir, sizeof(s->dir), "%.16s-%016llx", kind, (unsigned long long)random);
	if (mkdirat(s->parent_fd, s->dir, 0700) < 0) {
		s->dir[0] = '\0';
		return ward_fail_errno(e, "cannot make a directory for the socket of %s", field);
	}
	s->dir_fd = openat(s->parent_fd, s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->dir_fd < 0 ? ward_fail_errno(e, "cannot open the directory of that socket") : 0;
}

static int make_socket(struct inside_socket *s, const char *field, struct ward_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" NAME, s->dir_fd);
	if (s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    fchmodat(s->dir_fd, NAME, 0666, 0) < 0 || listen(s->listen_fd, BACKLOG) < 0)
		return ward_fail_errno(e, "cannot make the socket of %s", field);
	return 0;
}

/* As root the child that builds the sandbox has no right to the path. */
static int put_mount(struct plan *p, const struct inside_socket *s, const char *target,
		     const char *field, struct ward_err *e)
{
	struct plan_mount *m = NULL;
	char link[64], path[PATH_MAX];
	ssize_t n;

	for (size_t i = 0; i < p->mount_count; i++)
		if (strcmp(p->mounts[i].target, target) == 0)
			m = &p->mounts[i];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", s->dir_fd);
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
	m->tree_fd = (int)syscall(SYS_open_tree, s->dir_fd, NAME,
				  AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return m->tree_fd < 0 ? ward_fail_errno(e, "cannot mount the socket of %s", field) : 0;
}

int inside_socket_make(struct plan *p, const char *kind, const char *target, const char *field,
		       struct inside_socket *ret, struct ward_err *e)
{
	int r;

	*ret = (struct inside_socket)NO_INSIDE_SOCKET;
	r = make_dir(ret, kind, field, e);
	if (r == 0)
		r = make_socket(ret, field, e);
	return r < 0 ? r : put_mount(p, ret, target, field, e);
}

void inside_socket_mounted(struct inside_socket *s)
{
	if (!s || !s->dir[0])
		return;
	if (s->dir_fd >= 0)
		(void)unlinkat(s->dir_fd, NAME, 0);
	(void)unlinkat(s->parent_fd, s->dir, AT_REMOVEDIR);
	s->dir[0] = '\0';
}

void inside_socket_end(struct inside_socket *s)
{
	inside_socket_mounted(s);
	own_close_fd(&s->listen_fd);
	own_close_fd(&s->dir_fd);
	own_close_fd(&s->parent_fd);
}

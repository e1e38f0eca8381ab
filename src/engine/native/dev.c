/*
 * /dev: six nodes bound from the host, an own instance of devpts, shared memory of limited size,
 * and nothing else; and the command's terminal in that devpts. Runs in the child before pivot_root.
 * The directory and the nodes end read-only and noexec: devices can be written all the same, but
 * where the agent is their owner, the host's uid 0, it cannot change their modes and times.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "base/raw.h"
#include "engine/native/native.h"

static const char *const nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
				     "/dev/random", "/dev/urandom", "/dev/tty" };

static const struct {
	const char *name, *target;
} links[] = {
	{ "dev/fd", "/proc/self/fd" },       { "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" },
	{ "dev/ptmx", "pts/ptmx" },
};

static const char *const points[] = { "dev/pts", "dev/shm" };

static long bind_node(struct native_child *c, const char *node)
{
	long r = native_make_point(c->base_fd, node + 1, true);

	c->failed_path = node;
	return r < 0 ? r : raw_call(SYS_mount, node, node + 1, 0, MS_BIND, 0);
}

long native_dev(struct native_child *c)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NOEXEC };
	/* a part of the root's own file system, as a mount of its own; over an image one of its
	 * own */
	long r = c->system->image ? raw_call(SYS_mount, "ward", "dev", "tmpfs", MS_NOSUID,
					     "mode=0755,size=64k")
				  : raw_call(SYS_mount, "dev", "dev", 0, MS_BIND, 0);

	c->failed_path = "/dev";
	for (size_t i = 0; i < ARRAY_LEN(nodes) && r == 0; i++)
		r = bind_node(c, nodes[i]);
	for (size_t i = 0; i < ARRAY_LEN(links) && r == 0; i++)
		r = raw_call(SYS_symlinkat, links[i].target, c->base_fd, links[i].name);
	for (size_t i = 0; i < ARRAY_LEN(points) && r == 0; i++)
		r = raw_call(SYS_mkdirat, c->base_fd, points[i], 0755);
	if (r == 0)
		r = raw_call(SYS_mount_setattr, c->base_fd, "dev", AT_RECURSIVE, &attr,
			     sizeof(attr));
	c->failed_path = "/dev/pts";
	/* /dev/shm is mounted when its size is known */
	return r < 0 ? r
		     : raw_call(SYS_mount, "ward", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
				c->pts_options);
}

/* The command's terminal, where it gets one. The supervisor takes both ends; the command has only
 * the inner one. */
long native_terminal(struct native_child *c)
{
	int unlock = 0;
	long master, slave;

	if (c->stdio_fds[0] >= 0 && c->stdio_fds[1] >= 0 && c->stdio_fds[2] >= 0)
		return 0;
	c->failed_path = "/dev/pts/ptmx";
	master =
		raw_call(SYS_openat, c->base_fd, c->failed_path + 1, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0)
		return master;
	c->master_fd = (int)master;
	slave = raw_call(SYS_ioctl, master, TIOCSPTLCK, &unlock);
	if (slave == 0)
		slave = raw_call(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return slave;
	c->slave_fd = (int)slave;
	if (c->shape->has_modes)
		raw_call(SYS_ioctl, slave, TCSETS, c->shape->modes);
	raw_call(SYS_ioctl, slave, TIOCSWINSZ, c->shape->size);
	for (int i = 0; i < 3; i++)
		if (c->stdio_fds[i] < 0)
			c->stdio_fds[i] = c->slave_fd;
	return 0;
}

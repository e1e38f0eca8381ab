/* What musl lacks of sys/mount.h: the kernel's newer calls. */
#ifndef WARD_MUSL_SYS_MOUNT_H
#define WARD_MUSL_SYS_MOUNT_H

#include_next <sys/mount.h>

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int open_tree(int dir_fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir_fd, path, flags);
}

static inline int move_mount(int from_fd, const char *from, int to_fd, const char *to,
			     unsigned flags)
{
	return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int mount_setattr(int dir_fd, const char *path, unsigned flags,
				struct mount_attr *attr, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir_fd, path, flags, attr, size);
}

#endif

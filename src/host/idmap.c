/*
 * Id-mapped mounts. In: a directory and two pairs of ids. Out: a detached mount whose files of the
 * one owner are seen as the other's. The kernel takes the mapping from a user namespace, so one is
 * made by a child that does nothing but wait until its maps are written. Runs in the supervisor as
 * root, before the sandbox exists.
 */
#include "host/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/path.h"
#include "base/raw.h"
#include "host/probe.h"

/* PIDFD_GET_USER_NAMESPACE, which headers do not have yet */
#define GET_USER_NAMESPACE _IO(0xff, 9)

int idmap_clone_tree(const char *path, dev_t dev, ino_t ino, struct ward_err *e)
{
	auto_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd at = root < 0 ? -1 : path_open_nolink(root, path + 1, O_PATH, e);
	struct stat st;
	int tree;

	if (root < 0)
		return ward_fail_errno(e, "cannot open /");
	if (at < 0)
		return at;
	if (fstat(at, &st) < 0 || st.st_dev != dev || st.st_ino != ino) {
		ward_fail(e, ESTALE, "%s was replaced while the sandbox was being set up", path);
		return ward_remedy(e, "start the run again");
	}
	tree = open_tree(at, "",
			 AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree >= 0)
		return tree;
	ward_fail_errno(e, "cannot copy the mounts at %s", path);
	return ward_remedy(e, "%s", probe_step_remedy(e->code));
}

static int do_nothing(void *unused)
{
	(void)unused;
	return 0;
}

static int write_map(long pid, const char *file, unsigned inside, unsigned outside)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, file);
	snprintf(line, sizeof(line), "%u %u 1\n", inside, outside);
	return io_write_file(AT_FDCWD, path, line);
}

/* A user namespace that maps owner (on disk) to host (as seen through the mount). It exists as soon
 * as its process does; that one has nothing to do, so no process waits for it: it ends by itself
 * and is collected by idmap_collect(). */
static int make_user_ns(uid_t owner_uid, gid_t owner_gid, uid_t host_uid, gid_t host_gid)
{
	static char stack[1024] __attribute__((aligned(16)));
	struct clone_child child = { .flags = CLONE_NEWUSER | CLONE_VM | CLONE_PIDFD,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = do_nothing,
				     .quiet = true,
				     .pid_fd = -1 };
	long pid = clone_start(&child);
	auto_fd pid_fd = child.pid_fd, ns_fd = -1;
	char path[64];
	int r;

	if (pid < 0)
		return (int)pid;
	/* faster than a path, from Linux 6.11 on and while the process lives */
	ns_fd = ioctl(pid_fd, GET_USER_NAMESPACE);
	r = write_map(pid, "uid_map", owner_uid, host_uid);
	if (r == 0)
		r = write_map(pid, "gid_map", owner_gid, host_gid);
	if (r < 0)
		return r;
	if (ns_fd >= 0)
		return take_fd(&ns_fd);
	snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	return ns_fd < 0 ? -errno : take_fd(&ns_fd);
}

int idmap_apply(int tree_fd, uid_t owner_uid, gid_t owner_gid, uid_t host_uid, gid_t host_gid)
{
	auto_fd ns_fd = make_user_ns(owner_uid, owner_gid, host_uid, host_gid);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)ns_fd };

	if (ns_fd < 0)
		return ns_fd;
	return mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0
		       ? -errno
		       : 0;
}

void idmap_collect(void)
{
	/* only what was made without an exit signal: nothing else of ward's is */
	while (waitpid(-1, NULL, (int)__WCLONE) > 0 || errno == EINTR)
		;
}

/*
 * A terminal in a sandbox that runs already. In: the sandbox's /proc. Out: both ends of a new
 * pseudo terminal in its own devpts. Runs in the supervisor; it opens one name that ward itself
 * mounted, through ward-init's root and through no link, and takes nothing but a devpts for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "run/console.h"

static int open_devpts(int proc_fd)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
						 RESOLVE_BENEATH };
	auto_fd root = openat(proc_fd, "1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd pts = root < 0 ? -1 : (int)syscall(SYS_openat2, root, "dev/pts", &how, sizeof(how));
	struct statfs fs;

	if (pts >= 0 && fstatfs(pts, &fs) == 0 && fs.f_type != DEVPTS_SUPER_MAGIC)
		errno = ENODEV;
	else if (pts >= 0)
		return take_fd(&pts);
	return -1;
}

int console_open_pty(int proc_fd, int *ret_master_fd, int *ret_slave_fd, struct ward_err *e)
{
	auto_fd pts = open_devpts(proc_fd);
	auto_fd master =
		pts < 0 ? -1 : openat(pts, "ptmx", O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd slave = -1;
	int unlock = 0;

	if (master < 0)
		return ward_fail_errno(e, "cannot open a terminal in the sandbox");
	if (ioctl(master, TIOCSPTLCK, &unlock) == 0)
		slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return ward_fail_errno(e, "cannot open the inner end of a terminal in the sandbox");
	*ret_master_fd = take_fd(&master);
	*ret_slave_fd = take_fd(&slave);
	return 0;
}

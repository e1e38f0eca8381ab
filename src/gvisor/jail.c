/*
 * The jails of gVisor's two processes, made by the process that becomes one of them. In: nothing
 * but what lies in the runner's tmpfs. Out: new namespaces, an empty root with a /proc for as long
 * as the program starts, few capabilities, and a child that takes that /proc away when the program
 * says that it has seen enough. `runsc run` makes the same jails; it needs five starts of a large
 * program for it, here it is a handful of system calls.
 *
 *	gofer	a root that has the sandbox's tree in /root, which it enters by itself; capabilities
 *		over the files of the agent's one id
 *	kernel	nothing in its root, no other process in its pid namespace (direct.c); may trace
 *		where that is how it runs programs, and has no capability where KVM runs them
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/confine.h"
#include "gvisor/gvisor.h"

#define FDS_MAX 256 /* more than the runner has */

/* An empty root that no other process has, with the /proc of the sandbox. */
static int make_root(void)
{
	if (mount("ward", GVISOR_JAIL, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0755,size=64k") < 0 ||
	    mount(NULL, GVISOR_JAIL, NULL, MS_UNBINDABLE, NULL) < 0 ||
	    mkdir(GVISOR_JAIL "/proc", 0555) < 0 ||
	    mount("/proc", GVISOR_JAIL "/proc", NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return 0;
}

static int enter_root(void)
{
	if (mount(NULL, GVISOR_JAIL, NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
	    chdir(GVISOR_JAIL) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

/* A child waits for a byte and takes /proc away; the program waits for the child. Returns the
 * descriptor for the byte. */
static int start_unmounter(void)
{
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		return -errno;
	switch (fork()) {
	case -1:
		return -errno;
	case 0:
		for (int fd = 0; fd < FDS_MAX; fd++)
			if (fd != ends[0])
				/* the ends of others' pipes, and the program's own: where that ends
				 * early, so does this */
				close(fd);
		_exit(read(ends[0], &byte, 1) == 1 && umount2("/proc", MNT_DETACH) == 0 ? 0 : 1);
	default:
		close(ends[0]);
		return ends[1];
	}
}

static int drop_rights(enum proc p)
{
	struct ward_err e;

	return confine_enter(p, NULL, &e);
}

int jail_kernel(bool traces)
{
	int r = unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) < 0 ? -errno : make_root(),
	    unmounter;

	if (r == 0)
		r = enter_root();
	if (r < 0)
		return r;
	unmounter = start_unmounter();
	r = unmounter < 0 ? unmounter : drop_rights(traces ? PROC_SENTRY_TRACER : PROC_SENTRY);
	return r < 0 ? r : unmounter;
}

int jail_gofer(void)
{
	int r = unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) < 0 ? -errno
										      : make_root(),
	    unmounter;

	if (r == 0 && mkdir(GVISOR_ROOT, 0755) < 0)
		r = -errno;
	if (r == 0)
		r = gvisor_make_tree();
	/* what it opens files by again, when /proc is gone */
	if (r == 0 && mount("/proc/self/fd", GVISOR_JAIL "/proc/fs", NULL, MS_BIND, NULL) < 0)
		r = -errno;
	if (r == 0)
		r = enter_root();
	if (r < 0)
		return r;
	unmounter = start_unmounter();
	r = unmounter < 0 ? unmounter : drop_rights(PROC_GOFER);
	return r < 0 ? r : unmounter;
}

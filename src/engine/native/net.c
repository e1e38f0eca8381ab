/*
 * The network namespace holds a loopback of its own and nothing else: no route, no other interface.
 *
 * Making one is the kernel's slowest part of a start and needs nothing of the rest, so where processors are idle a helper
 * does it while the child builds the root: on a third one at once, with only two on the supervisor's, when that has done
 * its part and waits. If the child has to wait first (a large workspace is being looked through), it does it itself. The
 * helper shares memory and descriptors, leaves the new namespace behind as a descriptor, and is gone before anything of
 * the sandbox's runs. Both have the capabilities of the sandbox's own user namespace, which owns the new one.
 *
 * The helper takes the old root away, too, when the child has left it: the kernel lets whoever does that wait for every
 * processor, and the child puts on its last layers meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"

static void wait_for(uint32_t *futex)
{
	while (!__atomic_load_n(futex, __ATOMIC_ACQUIRE))
		raw_call(SYS_futex, futex, FUTEX_WAIT, 0, 0, 0, 0);
}

static void set(uint32_t *futex, uint32_t value)
{
	__atomic_store_n(futex, value, __ATOMIC_RELEASE);
	raw_call(SYS_futex, futex, FUTEX_WAKE, 1, 0, 0, 0);
}

static long bring_loopback_up(long socket_fd)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	return raw_call(SYS_ioctl, socket_fd, SIOCSIFFLAGS, &request);
}

/* A descriptor of the namespace that we are in. The socket leads to it faster than a path, if kernel and outer filter let it. */
static long open_net(long socket_fd)
{
	long r = raw_call(SYS_ioctl, socket_fd, SIOCGSKNS, 0);	/* close-on-exec */

	return r >= 0 ? r : raw_call(SYS_openat, AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static void make_net(struct native_child *c)
{
	long r = raw_call(SYS_unshare, CLONE_NEWNET), fd = -1;

	if (r == 0)
		r = fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (r >= 0)
		r = bring_loopback_up(fd);
	if (r >= 0)
		r = open_net(fd);
	if (fd >= 0)
		raw_call(SYS_close, fd);
	c->net_fd = (int)r;
	set(&c->net_done, 1);
}

static bool take_net(struct native_child *c)
{
	return !__atomic_exchange_n(&c->net_taken, true, __ATOMIC_ACQ_REL);
}

static int help(void *argument)
{
	struct native_child *c = argument;

	wait_for(&c->net_go);
	if (take_net(c))
		make_net(c);
	wait_for(&c->entered);
	/* the child has moved our root, too; what lies over it is the old one */
	c->old_root_left = raw_call(SYS_umount2, "/", MNT_DETACH);
	return 0;
}

long native_leave_old_root(struct native_child *c)
{
	if (c->net_pid <= 0)
		return raw_call(SYS_umount2, "/", MNT_DETACH);
	c->old_root_left = -ECHILD;	/* what a helper that is killed leaves behind */
	if (c->net_own)
		native_net_go(c);	/* there is nothing else for it to do */
	set(&c->entered, 1);
	return 0;
}

void native_net_meanwhile(struct native_child *c)
{
	if (!take_net(c))
		return;
	c->net_own = true;
	make_net(c);
}

long native_net_begin(struct native_child *c)
{
	struct clone_child helper = { .flags = CLONE_VM | CLONE_FILES, .stack = c->net_stack,
				      .stack_bytes = sizeof(c->net_stack), .main = help, .argument = c };

	if (!c->apart) {
		native_net_meanwhile(c);
		return 0;
	}
	c->net_pid = clone_start(&helper);
	if (c->net_pid < 0)
		return c->net_pid;
	if (raw_call(SYS_sched_setaffinity, c->net_pid, sizeof(c->here), &c->here) >= 0)
		raw_call(SYS_sched_setaffinity, c->net_pid, sizeof(c->cpus), &c->cpus);
	return 0;
}

void native_net_go(struct native_child *c)
{
	set(&c->net_go, 1);
}

/* Until the namespace is there. A helper that was killed makes none, and says nothing: then it is ours to make. */
static void wait_for_net(struct native_child *c)
{
	const struct timespec a_while = { .tv_nsec = 20000000 };

	while (!__atomic_load_n(&c->net_done, __ATOMIC_ACQUIRE)) {
		if (raw_call(SYS_futex, &c->net_done, FUTEX_WAIT, 0, &a_while, 0, 0) != -ETIMEDOUT || !c->net_pid ||
		    raw_call(SYS_wait4, c->net_pid, 0, WNOHANG | __WALL, 0) != c->net_pid)
			continue;
		c->net_pid = 0;
		if (c->old_root_left == -ECHILD)
			c->old_root_left = raw_call(SYS_umount2, "/", MNT_DETACH);
		if (__atomic_load_n(&c->net_done, __ATOMIC_ACQUIRE))
			continue;	/* its last deed */
		c->net_own = true;
		make_net(c);
	}
}

long native_net_enter(struct native_child *c)
{
	long r;

	if (c->layers[LAYER_NET] == LAYER_IN_FORCE)
		return 0;
	wait_for_net(c);
	if (c->net_fd < 0)
		return c->net_fd;
	r = c->net_own ? 0 : raw_call(SYS_setns, c->net_fd, CLONE_NEWNET);
	if (r < 0) {
		make_net(c);	/* an outer filter: then one of our own */
		if (c->net_fd < 0)
			return c->net_fd;
	}
	if (c->net_own && c->net_pid)
		native_net_go(c);	/* the helper finds nothing to do */
	c->layers[LAYER_NET] = LAYER_IN_FORCE;
	return 0;
}

/* As late as can be: its own end takes the helper a while. */
long native_end_helper(struct native_child *c)
{
	long r;

	do
		r = c->net_pid > 0 ? raw_call(SYS_wait4, c->net_pid, 0, __WALL, 0) : 0;
	while (r == -EINTR);
	return c->old_root_left;
}

/*
 * The network namespace holds a loopback of its own and nothing else: no route, no other interface.
 * Made by the child or its helper (helper.c), with the capabilities of the sandbox's own user
 * namespace, which owns the new one; the helper leaves it behind as a descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/raw.h"
#include "engine/native/native.h"

static long bring_loopback_up(long socket_fd)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	return raw_call(SYS_ioctl, socket_fd, SIOCSIFFLAGS, &request);
}

/* A descriptor of the namespace that we are in. The socket leads to it faster than a path, if
 * kernel and outer filter let it. */
static long open_net(long socket_fd)
{
	long r = raw_call(SYS_ioctl, socket_fd, SIOCGSKNS, 0); /* close-on-exec */

	return r >= 0 ? r
		      : raw_call(SYS_openat, AT_FDCWD, "/proc/thread-self/ns/net",
				 O_RDONLY | O_CLOEXEC);
}

void native_net_make(struct native_child *c)
{
	long r = raw_call(SYS_unshare, CLONE_NEWNET), fd = -1;

	/* of any family: interfaces are asked about through it, and this one is made fastest */
	if (r == 0)
		r = fd = raw_call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (r >= 0)
		r = bring_loopback_up(fd);
	if (r >= 0 && !c->net_own)
		r = open_net(fd);
	if (fd >= 0)
		raw_call(SYS_close, fd);
	c->net_fd = (int)r;
}

/*
 * The network namespace holds a loopback of its own and nothing else: no route, no other interface. Runs in the child
 * while it has the capabilities of the sandbox's own user namespace, which owns the new one.
 */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/raw.h"
#include "engine/native/native.h"

long native_net(struct native_child *c)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	long r = raw_call(SYS_unshare, CLONE_NEWNET), fd;

	if (r < 0)
		return r;
	fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	r = raw_call(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
	raw_call(SYS_close, fd);
	if (r == 0)
		c->layers[LAYER_NET] = LAYER_IN_FORCE;
	return r;
}

/*
 * The network namespace holds a loopback of its own and nothing else: no route, no other interface. Runs in the child
 * while it still has CAP_NET_ADMIN over that namespace.
 */
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/raw.h"
#include "engine/native/native.h"

long native_loopback(struct native_child *c)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	long fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long r;

	c->layers[LAYER_NET] = LAYER_IN_FORCE;
	if (fd < 0)
		return fd;
	r = raw_call(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
	raw_call(SYS_close, fd);
	return r;
}

/*
 * The guest's network: loopback, and one card with a fixed address, the way QEMU's user network
 * wants it. In: "ADDRESS/PREFIX, GATEWAY,DNS" of the kernel's command line. Runs as the guest's
 * root before READY.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define CARD "eth0"

static int set_flags(int fd, const char *name)
{
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -errno;
	r.ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &r) < 0 ? -errno : 0;
}

static int set_address(int fd, unsigned long what, const char *name, in_addr_t address)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { .s_addr = address } };
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	memcpy(&r.ifr_addr, &in, sizeof(in));
	/* one libc takes the request as int, the other as unsigned long */
	return syscall(SYS_ioctl, fd, what, &r) < 0 ? -errno : 0;
}

static int set_route(int fd, in_addr_t gateway)
{
	struct sockaddr_in to = { .sin_family = AF_INET },
			   via = { .sin_family = AF_INET, .sin_addr = { .s_addr = gateway } };
	struct rtentry r = { .rt_flags = RTF_UP | RTF_GATEWAY };

	memcpy(&r.rt_dst, &to, sizeof(to));
	memcpy(&r.rt_genmask, &to, sizeof(to));
	memcpy(&r.rt_gateway, &via, sizeof(via));
	return ioctl(fd, SIOCADDRT, &r) < 0 ? -errno : 0;
}

static int write_resolver(const char *dns)
{
	int fd;

	mkdir("/etc", 0755);
	unlink("/etc/resolv.conf"); /* often a link to a file that a service makes */
	fd = open("/etc/resolv.conf", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	dprintf(fd, "nameserver %s\n", dns);
	close(fd);
	return 0;
}

static int set_card(int fd, char *words)
{
	char *prefix = strchr(words, '/'), *gateway = strchr(words, ','),
	     *dns = gateway ? strchr(gateway + 1, ',') : NULL;
	unsigned bits = prefix ? (unsigned)atoi(prefix + 1) : 0;
	int r;

	if (!prefix || !gateway || !dns || bits < 1 || bits > 32)
		return -EINVAL;
	*prefix = *gateway++ = *dns++ = '\0';
	r = set_address(fd, SIOCSIFADDR, CARD, inet_addr(words));
	if (r == 0)
		r = set_address(fd, SIOCSIFNETMASK, CARD, htonl(~0u << (32 - bits)));
	if (r == 0)
		r = set_flags(fd, CARD);
	if (r == 0)
		r = set_route(fd, inet_addr(gateway));
	return r < 0 ? r : write_resolver(dns);
}

int net_set_up(const char *words)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;
	char copy[128];

	if (fd < 0)
		return -errno;
	snprintf(copy, sizeof(copy), "%s", words);
	r = set_flags(fd, "lo");
	if (r == 0 && copy[0])
		r = set_card(fd, copy);
	close(fd);
	errno = -r;
	return r;
}

/*
 * The way out, as far as it lies inside. In: netlink batches that the supervisor has prepared, and
 * the ports of the policy. Out: sockets of this network namespace, for the gateway. Runs in the
 * child, in the new namespace, with the capabilities of the sandbox's own user namespace; raw
 * system calls only. Nothing here leads anywhere: the namespace has a loopback, and the holder of
 * these sockets decides.
 *
 * Where the kernel has no nf_tables (or no TPROXY) every port of the policy gets a listening socket
 * of its own, and other ports are refused because no socket listens there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/raw.h"
#include "engine/native/native.h"

#define BACKLOG 1024
#define LOOPBACK 1
#define PACKET_IGNORE_OUTGOING_ 23
#define AUDIT_BYTES 128 /* of a packet: its headers */

/* Sends a batch, then reads answers until the one that ends it. */
static long talk(long fd, const struct native_bytes *batch)
{
	long r = raw_call(SYS_sendto, fd, batch->data, batch->len, 0, 0, 0);
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;

	while (r > 0) {
		r = raw_call(SYS_recvfrom, fd, &answer, sizeof(answer), MSG_DONTWAIT, 0, 0);
		if (r < (long)(sizeof(struct nlmsghdr) + sizeof(int)) ||
		    answer.header.nlmsg_type != NLMSG_ERROR)
			return r < 0 ? r : -EPROTO;
		r = ((const struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
		if (r == 0)
			/* only the last message of a batch asks for an answer to what went well */
			break;
	}
	return r;
}

static long say(int protocol, const struct native_bytes *batch)
{
	long fd = raw_call(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), r;

	if (fd < 0)
		return fd;
	r = talk(fd, batch);
	raw_call(SYS_close, fd);
	return r;
}

static void set(long fd, int level, int option, int value)
{
	raw_call(SYS_setsockopt, fd, level, option, &value, sizeof(value));
}

static long keep(struct native_child *c, enum net_socket kind, long fd)
{
	if (fd < 0)
		return fd;
	if (c->net.count >= NET_FDS_MAX) {
		raw_call(SYS_close, fd);
		return -EMFILE;
	}
	c->net.fds[c->net.count++] = (struct net_fd){ .fd = (int)fd, .kind = kind };
	return 0;
}

/* A row for each socket that is always there. */
struct listening {
	enum net_socket kind;
	int type;
	uint16_t port;
	bool v6, transparent;
	uint8_t address[4];
};

static const struct listening listenings[] = {
	{ NET_DNS_UDP, SOCK_DGRAM, 53, false, false, NET_GATE4 },
	{ NET_DNS_TCP, SOCK_STREAM, 53, false, false, NET_GATE4 },
	{ NET_CONNECT, SOCK_STREAM, NET_CONNECT_PORT, false, false, { 127, 0, 0, 1 } },
	{ NET_SOCKS, SOCK_STREAM, NET_SOCKS_PORT, false, false, { 127, 0, 0, 1 } },
};

static const struct listening asks = { NET_ASK, SOCK_STREAM, NET_ASK_PORT, false, false, NET_ASK4 };

static const struct listening brought[] = {
	{ NET_TPROXY4, SOCK_STREAM, NET_GATE_PORT, false, true, NET_GATE4 },
	{ NET_TPROXY6, SOCK_STREAM, NET_GATE_PORT, true, true, { 0 } },
};

static const struct listening makers[] = {
	{ NET_MAKER4, SOCK_STREAM, NET_MAKER_PORT, false, false, { 127, 0, 0, 1 } },
	{ NET_MAKER6, SOCK_STREAM, NET_MAKER_PORT, true, true, { 0 } },
};

static uint16_t big_endian(uint16_t port)
{
	return (uint16_t)(port << 8 | port >> 8);
}

static long bind_socket(long fd, const struct listening *l)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = big_endian(l->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = big_endian(l->port) };
	uint8_t *at = (uint8_t *)&v4.sin_addr;

	for (int i = 0; i < 4; i++)
		at[i] = l->address[i];
	if (l->transparent)
		v6.sin6_addr.s6_addr[15] = 1; /* the loopback's; without: any address */
	return l->v6 ? raw_call(SYS_bind, fd, &v6, sizeof(v6))
		     : raw_call(SYS_bind, fd, &v4, sizeof(v4));
}

static long open_listening(struct native_child *c, const struct listening *l)
{
	long fd = raw_call(SYS_socket, l->v6 ? AF_INET6 : AF_INET,
			   l->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
	     r;

	if (fd < 0)
		return fd;
	if (l->type == SOCK_STREAM) {
		/* what is accepted inherits both; over a loopback there is nothing to be paced */
		raw_call(SYS_setsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
		set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	}
	if (l->transparent && l->v6)
		set(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1);
	if (l->transparent && !l->v6)
		set(fd, IPPROTO_IP, IP_TRANSPARENT, 1);
	if (l->v6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, l->transparent);
	r = bind_socket(fd, l);
	if (r == 0 && l->type == SOCK_STREAM)
		r = raw_call(SYS_listen, fd, BACKLOG);
	if (r < 0) {
		raw_call(SYS_close, fd);
		return r;
	}
	return keep(c, l->kind, fd);
}

/*
 * Passes the beginning of what leaves the sandbox: TCP only where a connection begins, all of the
 * rest. What goes to an address of its own is not seen. The packet begins with the IP header.
 */
#define OWN4_WORD 0x0a00020f
static const struct sock_filter audit_filter[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 13, 0),
	/* 3: IPv4: destination, protocol, flags */
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN4_WORD, 22, 0),
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 24),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 20, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 19),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 16, 0),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 13, 12),
	BPF_STMT(BPF_RET | BPF_K, 0),
	/* 16: IPv6: not the loopback's (its first half is zero), not its own one */
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 24),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xfd776172, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 5),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 40 + 13),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 2, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
	/* 27 */
	BPF_STMT(BPF_RET | BPF_K, 0),
	BPF_STMT(BPF_RET | BPF_K, AUDIT_BYTES),
};

/* Bound only when its filter is there: it never sees what the filter does not pass. */
static long open_packets(struct native_child *c)
{
	struct sock_fprog program = { .len = ARRAY_LEN(audit_filter),
				      .filter = (struct sock_filter *)(uintptr_t)audit_filter };
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
				       .sll_protocol = big_endian(ETH_P_ALL),
				       .sll_ifindex = LOOPBACK };
	long fd = raw_call(SYS_socket, AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return fd;
	set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING_, 1);
	r = raw_call(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	if (r == 0)
		r = raw_call(SYS_bind, fd, &address, sizeof(address));
	if (r < 0) {
		raw_call(SYS_close, fd);
		return r;
	}
	return keep(c, NET_PACKETS, fd);
}

/* A setting of this namespace, through the host's /proc; where that is read-only it stays as it
 * is. */
static void write_setting(const char *path, const char *text)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	raw_call(SYS_write, fd, text, raw_strlen(text));
	raw_call(SYS_close, fd);
}

/* No nf_tables: one socket a port, for both families where there are two. */
static long open_ports(struct native_child *c, bool v6)
{
	long r = open_packets(c);

	for (size_t i = 0; i < c->net.port_count && r == 0; i++) {
		struct listening l = { .kind = v6 ? NET_TPROXY6 : NET_TPROXY4,
				       .type = SOCK_STREAM,
				       .port = c->net.ports[i],
				       .v6 = v6 };

		r = open_listening(c, &l);
	}
	/* the kernel would answer a ping to any address */
	write_setting("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
	c->net.by_port = true;
	c->layer_notes[LAYER_NET] = "this kernel has no nf_tables with TPROXY: one listening "
				    "socket for each port of the "
				    "policy";
	return r;
}

/* For connections from outside to a port in here. */
static long open_inward(struct native_child *c, bool v6)
{
	long r = 0;

	for (int i = 0; i < (v6 ? 2 : 1) && r == 0; i++) {
		r = open_listening(c, &makers[i]);
		if (r == 0)
			r = keep(c, i ? NET_SEED6 : NET_SEED4,
				 raw_call(SYS_socket, i ? AF_INET6 : AF_INET,
					  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	}
	return r;
}

static bool lacks_rules(long r)
{
	return r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -ENOENT || r == -EAFNOSUPPORT ||
	       r == -EINVAL || r == -EPERM;
}

/* The rules, and a socket that hears of what they refuse. */
static long open_rules(struct native_child *c)
{
	long fd = raw_call(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   NETLINK_NETFILTER),
	     r;

	if (fd < 0)
		return fd;
	r = talk(fd, &c->net.rules);
	if (r == 0)
		r = talk(fd, &c->net.log);
	if (r < 0) {
		raw_call(SYS_close, fd);
		return r;
	}
	r = keep(c, NET_LOG, fd);
	/* one more, for changes later: the supervisor's alone */
	return r < 0 ? r
		     : keep(c, NET_RULES,
			    raw_call(SYS_socket, AF_NETLINK,
				     SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_NETFILTER));
}

/* The server of the sandbox's resolv.conf. It answers every query at once that the name does not
 * exist (observe/names.c). An outer filter that refuses the socket costs that alone. */
long native_net_names(struct native_child *c)
{
	static const struct listening names = {
		NET_DNS_UDP, SOCK_DGRAM, 53, false, false, NET_GATE4
	};

	if (!c->net.on)
		(void)!open_listening(c, &names);
	return 0;
}

long native_net_open(struct native_child *c)
{
	bool v6;
	long r;

	if (!c->net.on)
		return 0;
	/* not later, as without a network: the host's /proc is still in view */
	r = native_net_enter(c);
	if (r == 0)
		r = say(NETLINK_ROUTE, &c->net.routes4);
	v6 = r == 0 && say(NETLINK_ROUTE, &c->net.routes6) == 0;
	/* who connects often would fill the host's memory with ended connections that wait for
	 * stray packets; on a loopback there are none */
	write_setting("/proc/sys/net/ipv4/tcp_max_tw_buckets", "1024");
	for (size_t i = 0; i < ARRAY_LEN(listenings) && r == 0; i++)
		r = open_listening(c, &listenings[i]);
	if (r == 0 && c->net.asks)
		r = open_listening(c, &asks);
	if (r == 0 && c->net.inward)
		r = open_inward(c, v6);
	if (r < 0)
		return r;
	r = open_rules(c);
	if (lacks_rules(r))
		return open_ports(c, v6);
	for (size_t i = 0; i < (v6 ? 2U : 1U) && r == 0; i++)
		r = open_listening(c, &brought[i]);
	return r;
}

/* The network of a sandbox: what its namespace holds, and what is handed out of it to the
 * gateway. */
#ifndef WARD_MODEL_NET_H
#define WARD_MODEL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sandbox's own addresses, beside the loopback's. Without one that is no loopback glibc finds
 * no names at all. */
#define NET_OWN4                                                                                   \
	{                                                                                          \
		10, 0, 2, 15                                                                       \
	}
#define NET_OWN6                                                                                   \
	{                                                                                          \
		0xfd, 0x77, 0x61, 0x72, 0x64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x15                   \
	}
/* Where the gateway listens. */
#define NET_GATE4                                                                                  \
	{                                                                                          \
		127, 0, 0, 53                                                                      \
	} /* names (port 53) and what is brought there (port 1) */
#define NET_GATE_PORT 1
#define NET_MAKER_PORT 2
#define NET_CONNECT_PORT 3128
#define NET_SOCKS_PORT 1080
/* http://ward.internal/, of the supervisor; the name stands in tables/root.def */
#define NET_ASK4                                                                                   \
	{                                                                                          \
		127, 0, 0, 54                                                                      \
	}
#define NET_ASK_PORT 80
/* Names are answered with addresses of this block. */
#define NET_NAMES4                                                                                 \
	{                                                                                          \
		198, 18, 0, 0                                                                      \
	}
#define NET_NAMES4_PREFIX 15
/* Of it, names of one port class have a /20 from the beginning on, all others the second half
 * (rules/port_classes.h). */
#define NET_CLASSES_MAX 15
#define NET_CLASS_PREFIX 20
#define NET_CLASS_ADDRESSES 4096
#define NET_REST4                                                                                  \
	{                                                                                          \
		198, 19, 0, 0                                                                      \
	}
#define NET_REST4_PREFIX 16
#define NET_CLASS_PORTS_MAX 64

/* The sets of ports that names may have. */
struct net_classes {
	bool off; /* too many, or every port is brought: there are none */
	uint32_t count, port_count;
	uint16_t ports[NET_CLASS_PORTS_MAX]; /* of all of them */
	uint64_t sets[NET_CLASSES_MAX];      /* a bit for each of ports */
};

/* Sockets that were made in the sandbox's network namespace. */
enum net_socket {
	NET_TPROXY4, /* listens; what is accepted was meant for its own address (getsockname) */
	NET_TPROXY6,
	NET_DNS_UDP,
	NET_DNS_TCP,
	NET_CONNECT, /* HTTP proxy */
	NET_SOCKS,
	NET_LOG, /* netlink: what the rules refused */
	/* where there are no rules: every attempt. Closing it takes the kernel milliseconds */
	NET_PACKETS,
	/* where ports are published: sockets to make others with, see gateway/published.c */
	NET_SEED4,
	NET_MAKER4,
	NET_SEED6,
	NET_MAKER6,
	NET_PUBLISHED, /* listens on the host's loopback, for a port of the sandbox */
	NET_RULES,     /* netlink: to change the rules with; the supervisor keeps it */
	NET_ASK,       /* HTTP for programs inside, as ward-ask; the supervisor keeps it */
	NET_SOCKETS
};

#define NET_PORTS_MAX 24     /* without nf_tables: a listening socket for each */
#define NET_PUBLISHED_MAX 16 /* ports, each for two families */
#define NET_FDS_MAX (NET_SOCKETS + NET_PORTS_MAX + 2 * NET_PUBLISHED_MAX)

struct net_fd {
	int fd; /* -1: none */
	enum net_socket kind;
	uint16_t inside; /* PUBLISHED: the port that it leads to */
};

/* Connections that are brought to the gateway, which then decides; all others are refused at once
 * by the kernel. */
struct net_match {
	bool v6;
	unsigned prefix;
	uint8_t address[16];  /* the first 4 for IPv4 */
	uint16_t first, last; /* ports */
};

#endif

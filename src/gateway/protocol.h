/*
 * What the gateway's processes are told and what they tell. All messages are fixed-size structs over SOCK_SEQPACKET pairs
 * between processes of one build; whoever reads one believes no length, index or text in it.
 *
 *   supervisor -> front   the configuration (a sealed memory file, by descriptor at exec), then GATE_SOCKETS with the
 *                         sandbox's sockets; GATE_FINISH: say the totals and end. The end of the socket means the same.
 *   front -> supervisor   struct gate_event
 *   front -> dial         struct dial_request
 *   dial -> front         struct dial_answer, with a connected socket where there is one
 */
#ifndef WARD_GATEWAY_PROTOCOL_H
#define WARD_GATEWAY_PROTOCOL_H

#include "gateway/decide.h"
#include "lib/net.h"

/* Descriptors that the programs are started with, beside 0-2 (/dev/null). */
enum { GATE_FD_CONTROL = 3, GATE_FD_CONFIG, GATE_FD_HOSTS, GATE_FDS_END };

#define GATE_MAGIC 0x77677431
#define GATE_MATCHES_MAX 64

/* The configuration: this, then rules_bytes of encoded rules, then proxy_bytes (struct upstream, or nothing), which only dial
 * reads: the credentials are not front's business. */
struct gate_config {
	uint32_t magic;
	uint32_t rules_bytes, proxy_bytes;
	uint32_t match_count;
	struct net_match matches[GATE_MATCHES_MAX];	/* what the kernel brings; all else it has refused */
};

enum gate_word { GATE_SOCKETS = 1, GATE_FINISH };

/* GATE_SOCKETS: the kind of each descriptor that comes with it. */
struct gate_order {
	uint32_t word;
	uint32_t count;
	uint8_t kinds[NET_FDS_MAX];	/* enum net_socket */
	bool ports;			/* listening sockets are one a port: the kernel has no nf_tables */
};

enum gate_event_kind { GATE_DENIED = 1, GATE_TOTALS, GATE_FAILED };

struct gate_totals {
	uint64_t connections, bytes_in, bytes_out, names, denied;
};

struct gate_event {
	uint32_t kind;
	uint32_t count;			/* TOTALS: denials that were not said one by one */
	uint8_t protocol;		/* DENIED: IPPROTO_* */
	struct want want;
	struct verdict verdict;
	struct gate_totals totals;
	char text[200];			/* FAILED: why it cannot begin */
};

struct dial_request {
	uint64_t id;			/* given back in the answer; never the same again */
	uint8_t inward;			/* enum dial_inward */
	uint8_t kinds[4];		/* INWARD_SOCKETS: of the descriptors that come with it */
	struct want want;		/* dial decides about it once more, with rules of its own; inward: its port counts */
};

enum dial_inward { INWARD_NOT, INWARD_PORT, INWARD_SOCKETS };

struct dial_answer {
	uint64_t id;
	int32_t error;			/* errno of the last attempt; 0: a socket comes with this */
	struct verdict verdict;		/* refused: why; else its ip is what is connected to */
};

#endif

/* Shared by the supervisor's files about the gateway: egress_start.c (its beginning), egress.c (its
 * life), egress_live.c (other rules, looking at it). */
#ifndef WARD_EGRESS_EGRESS_INTERNAL_H
#define WARD_EGRESS_EGRESS_INTERNAL_H

#include <sys/stat.h>

#include "egress/egress.h"
#include "protocol/gateway.h"

#define EGRESS_TEMPORARY_MAX 256

/* A rule that expires. */
struct egress_until {
	uint32_t rule;
	uint64_t at_ms;
};

/* What tells that a file is not the one it was. */
struct egress_file {
	dev_t device;
	ino_t inode;
	off_t bytes;
	struct timespec changed;
};

/* The rule that an event named last, as text. */
struct egress_named {
	int32_t rule;
	uint64_t generation;
	struct buf text; /* owned; empty: none yet */
};

#define EGRESS_GRANTS_MAX 64

/* A yes for once that dial was sent and front not yet. */
struct egress_grant {
	uint64_t tag; /* 0: the place is free */
	uint64_t serial;
	struct host host;
	uint16_t port;
};

struct egress {
	const struct plan *plan;
	const struct engine *engine;
	struct net_fd sockets[NET_FDS_MAX]; /* until it is started */
	size_t count;
	uint16_t unpublished; /* a port of the profile's that was taken already; 0: none */
	bool ports;           /* one socket a port */
	int program_fd, waf_program_fd;
	int waiting_fd; /* epoll over the sockets; -1: it was started */
	/* netlink of the sandbox's namespace, never given inside; -1: none */
	int rules_fd;
	pid_t pid, waf_pid; /* waf_pid 0: there is none */
	int fd;             /* -1: it is not there (any more) */
	/* not read before then: flow reports come in batches; 0: now */
	uint64_t rest_ms;
	int orders_fd; /* to dial; -1: as above */
	bool reported; /* its totals have come */
	bool ending;
	/* rules in force, or on their way: */
	const struct rules *rules; /* the plan's, or own */
	struct rules *own;         /* owned */
	struct plan_net bring;     /* of it only what the kernel brings */
	uint64_t asked, taken;     /* generation that front was given, and has taken */
	uint64_t taken_by_ms;      /* when it must have; 0: it has */
	uint32_t closed;           /* flows, by the last change */
	struct egress_until until[EGRESS_TEMPORARY_MAX];
	size_t until_count;
	struct egress_file files[DIAL_FILE_COUNT]; /* as dial has them */
	struct egress_named named;
	struct egress_grant grants[EGRESS_GRANTS_MAX];
	uint64_t last_tag;
	egress_asked asked_now;
	void *asked_context;
	egress_requested requested;
	void *requested_context;
	egress_shown shown;
	void *shown_context;
};

/* Starts it (egress_start.c); the sockets are not handed over yet. */
must_check int egress_start(struct egress *g, struct ward_err *e);
/* The configuration as it is now: a sealed memory file. */
must_check int egress_write_config(const struct egress *g, struct ward_err *e);
/* Events (egress_flows.c). False: not such a packet. */
bool egress_on_flow_report(struct egress *g, const uint8_t *bytes, size_t n, struct result *r);
void egress_report_denied(const struct egress *g, const struct want *w, const struct verdict *v,
			  uint8_t protocol, const char *remedy, const char *request,
			  struct result *r);
/* Tells what became of a recording (egress_tape.c). */
void egress_report_tape(const struct egress *g, struct result *r);
void egress_report_lost(struct result *r, uint64_t lost, const char *why);
/* Notes the host's files as they are; *ret_changed has a bit for each that was another one
 * before. */
void egress_look_at_files(struct egress *g, uint32_t *ret_changed);
/* A flow waits for a person, or does not any more (egress_ask.c); dial knows of a yes. */
void egress_on_ask(struct egress *g, const struct gate_event *event);
void egress_on_request(struct egress *g, const struct gate_request *said);
void egress_on_granted(struct egress *g, uint64_t tag);
/* Front has taken rules; dial has said something. */
void egress_on_taken(struct egress *g, const struct gate_event *event);
/* Ends the gateway for good, by force. */
void egress_cut(struct egress *g);

#endif

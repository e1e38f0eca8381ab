/* front's own types: one worker, its flows, and the parts that see to them. */
#ifndef WARD_GATEWAY_FRONT_H
#define WARD_GATEWAY_FRONT_H

#include "protocol/gateway.h"
#include "rules/budget.h"
#include "rules/dns.h"
#include "rules/ratelimit.h"
#include "rules/sniff.h"

enum side { CLIENT, SERVER, SIDES };
enum direction { UP, DOWN, DIRECTIONS }; /* client to server, server to client */

#define PIPES_MAX 32
#define SCRATCH_BYTES (64 * 1024)

struct pipe_pair {
	int fds[2];
	struct pipe_pair *next; /* in the pool */
};

/* Bytes in one direction that were read and not yet written. */
struct lane {
	uint8_t *kept;              /* owned; NULL: none */
	uint32_t kept_at, kept_len; /* of it, what is still to be written */
	uint32_t kept_cap;
	struct pipe_pair *pipe; /* of the pool, while there is much to move */
	uint32_t piped;
	uint64_t moved;
	uint64_t taken;   /* of the limits: what was read, or written beyond that */
	bool ended, shut; /* the end was read, and was passed on */
};

enum flow_state {
	FLOW_HEAD, /* a proxy's client says what it wants */
	FLOW_GATE, /* its first bytes are looked at; nothing is connected yet */
	FLOW_DIAL, /* dial was asked */
	FLOW_OPEN,
	FLOW_NAMES,   /* a DNS client over TCP */
	FLOW_INSPECT, /* it is looked into: inspect.h */
	FLOW_ASK,     /* it waits for a person's answer; nothing is connected */
	FLOW_DEAD
};

/* What a flow is not waited for for ever. All of a list wait equally long, so each is in the order
 * of ending. */
enum flow_wait {
	FLOW_WAIT_NONE,
	FLOW_WAIT_HEAD,
	FLOW_WAIT_HALF,
	FLOW_WAIT_DIAL,
	FLOW_WAIT_GONE,
	FLOW_WAITS
};

/* What of a socket wakes front up: nothing yet; what comes; also room to write. */
enum flow_watch { WATCH_NOT, WATCH_READ, WATCH_ALL };

struct flow {
	int fds[SIDES]; /* -1: none yet */
	bool can_read[SIDES], can_write[SIDES];
	uint8_t watched[SIDES]; /* enum flow_watch */
	bool prompt;            /* nothing for the server waits for what was sent before */
	/* bytes outside of the stream have come: they cut reads short */
	bool has_urgent[SIDES];
	bool has_ended[SIDES]; /* its end has come, behind whatever is still to be read */
	bool gone[SIDES];      /* its socket is closed for both directions */
	uint8_t state;         /* enum flow_state */
	uint8_t greeted;       /* SOCKS: the greeting is done */
	bool inward;           /* from the host to a published port */
	/* inspection: a connection to the outside, without a client's */
	bool server;
	bool tunnel; /* HTTP CONNECT: an answer is due when connected */
	/* ASK: the supervisor knows of it; a person has allowed it, though the rule asks */
	bool said, approved;
	bool ready, asked; /* in the ready list, in the list for dial */
	uint8_t timed;     /* enum flow_wait: in that list of timeouts */
	/* counts as open, has a limit on bytes, waits for its share */
	bool admitted, limited, asleep;
	int32_t rule; /* that it counts for */
	uint64_t id;
	uint64_t end_at_ms, began_ms;
	struct flow *ready_next, *timed_prev, *timed_next, *ask_next, *dead_next, *asleep_next;
	struct sniff *gate; /* owned; NULL: nothing is looked at (any more) */
	/* the client's bytes that the gate has not released; owned */
	uint8_t *held;
	uint32_t held_len, held_cap;
	size_t scanned;               /* of a head */
	void *inspect;                /* inspection: what inspect.h knows of it; owned */
	struct canary_stream *canary; /* where what leaves has come to; owned; NULL: nothing yet */
	bool canary_reported;
	struct lane lanes[DIRECTIONS];
	struct want want;
	struct verdict verdict;
};

/* A flow that waited and does not any more. */
struct flow_gone {
	uint64_t serial;
	uint16_t port;
	struct host host;
};

struct flow_list {
	struct flow *first, *last;
};

/* Records that are still to be sent (front_flow_report.c). */
struct front_flow_report {
	uint8_t *bytes; /* owned; NULL: nothing was yet */
	size_t len;
	uint64_t lost; /* there was no room for so many */
	/* not before then, unless there is much of it; 0: at once */
	uint64_t due_ms;
	char name[HOST_TEXT]; /* the last name, and when it was reported */
	uint64_t name_ms;
	bool name_address; /* its address was, too */
};

/* Data of the events that are no flow's; a flow's is flow_event(), which is more. */
enum { EVENT_CONTROL = 1, EVENT_DIAL, EVENT_LISTENING, EVENT_WAF = EVENT_LISTENING + NET_FDS_MAX };

struct front {
	struct front_flow_report report;
	const struct inspect_ops *inspect; /* NULL: this program has none */
	struct inspector *inspector;
	int epoll_fd, control_fd, dial_fd;
	int waf_fd; /* to ward-waf; -1: there is none */
	/* GATE_FD_TRUST was passed: else that descriptor is something else */
	bool has_trust;
	int record_fd;                  /* a recording (record.h); 0: none */
	bool record_failed, record_cut; /* cut: what was under way has been ended */
	uint32_t record_count;
	uint64_t record_began_ms;
	struct canary_finder *canaries; /* owned; NULL: there are none */
	char *keys_hosts;               /* whose servers are behind GATE_FD_KEYS; NULL: none */
	struct rules *rules;
	struct name_table *names;
	struct gate_config config;
	int listening[NET_FDS_MAX];
	enum net_socket kinds[NET_FDS_MAX];
	uint16_t inside[NET_FDS_MAX]; /* published ones: the port that each leads to */
	size_t listening_count;
	bool ports;  /* a listening socket a port, no TPROXY */
	bool paused; /* nothing is accepted */
	bool finish;
	bool dial_full;      /* it has no room for requests */
	unsigned rounds;     /* of being busy, since then */
	bool fat;            /* it was busy since it gave memory back, */
	uint64_t busy_ms;    /* and was so last then */
	struct flow **flows; /* by number; id is number | serial << 16 */
	uint32_t flow_max, flow_count, next_free;
	uint32_t *free_numbers;
	uint64_t serial;
	struct flow_list ready, ask, timed[FLOW_WAITS];
	struct flow *dead, *asleep;
	uint64_t wake_at_ms; /* when the first of the sleepers is due; 0: none */
	struct ratelimit shape;
	struct budget budget;
	struct pipe_pair pipes[PIPES_MAX], *pipes_free;
	size_t pipes_made;
	struct gate_totals totals;
	uint64_t said_second;
	uint32_t said, unsaid;
	uint32_t waiting; /* flows in FLOW_ASK, and requests that wait for a person */
	bool unasked;     /* the supervisor had no room for what some of them say */
	/* of those that are gone, what it has not been told; owned */
	struct flow_gone *gone;
	uint32_t gone_count;
	struct gate_event *later; /* denials that the supervisor had no room for yet */
	size_t later_count;
	uint32_t room_used; /* see backpressure.c */
	uint8_t scratch[SCRATCH_BYTES];
};

/* flow.c: the life of a connection. */
void flow_accepted(struct front *f, int fd, enum net_socket kind, uint16_t inside);
void flow_run(struct front *f, struct flow *w);
void flow_dialled(struct front *f, const struct dial_answer *said, int fd);
void flow_mark_ready(struct front *f, struct flow *w);
/* Ends it; what was refused is reset, so that the program sees an error and not an end. */
void flow_close(struct front *f, struct flow *w, bool reset);
void flow_expire(struct front *f, uint64_t now);
/* When the next one ends; 0: none does. */
uint64_t flow_next_end(const struct front *f);
void flow_free_dead(struct front *f);

/* flow_ask.c: a person's answer, and flows that could not ask yet. */
void flow_answered(struct front *f, const struct gate_order *order);
void flow_ask_later(struct front *f);

/* front_to_dial.c: sends what waits for dial; takes what dial has answered. */
void front_ask(struct front *f);
void front_read_dial(struct front *f);

/* pump.c: bytes. Each returns whether something moved; a broken flow is closed. */
bool pump_blind(struct front *f, struct flow *w, enum direction d);
bool pump_kept(struct front *f, struct flow *w, enum direction d);
/* Writes bytes, and keeps what does not go now (all, where nothing is connected yet). False:
 * broken. */
must_check bool pump_send(struct front *f, struct flow *w, enum direction d, const uint8_t *bytes,
			  size_t n);
/* From here on nothing for the server waits for what was sent before (TCP_NODELAY). */
void pump_hurry(struct flow *w);
void pump_release(struct front *f, struct lane *l);
void pump_drop_kept(struct front *f, struct lane *l);
/* Reads from a side: > 0 bytes; 0: nothing now; -1: the end; -2: broken. Notes what it learnt. */
ssize_t pump_read(struct front *f, struct flow *w, enum side s, uint8_t *bytes, size_t n);

/* front_ratelimit.c: the limits of the policy. flow_admit: false if the verdict (now) refuses it.
 */
must_check bool flow_admit(struct front *f, struct flow *w);
void flow_leave(struct front *f, struct flow *w);
/* Takes up to want bytes from the limits, before they are read. 0: the flow sleeps; or *ret_spent:
 * no more may be read, ever. What the read did not fill is given back. */
must_check size_t flow_take(struct front *f, struct flow *w, enum direction d, size_t want,
			    bool *ret_spent);
must_check bool flow_take_all(struct front *f, struct flow *w, enum direction d, uint64_t bytes);
void flow_give_back(struct front *f, struct flow *w, enum direction d, size_t n);
/* More has come than the limit allows: reports it and closes the flow. */
void flow_refuse_spent(struct front *f, struct flow *w, enum direction d);
void flow_wake(struct front *f);
void flow_sleep(struct front *f, struct flow *w, uint64_t wait_us);

/* backpressure.c: memory. A buffer grows from .. to bytes: false if there is no room for it. How
 * much may be read at once. */
must_check bool room_grow(struct front *f, uint32_t from, uint32_t to);
void room_give_back(struct front *f, uint32_t bytes);
must_check size_t room_for_reading(const struct front *f);
/* Both sockets are there: their buffers, as befits the number of flows. */
void room_fit_sockets(const struct front *f, const struct flow *w);

/* front_names.c and front_report.c: what is answered, what is reported. */
void front_datagrams(struct front *f, int fd);
bool front_name_stream(struct front *f, struct flow *w);
void front_audit(struct front *f, int fd, enum net_socket kind);
/* The same for a request: "POST /v1/files". */
void front_refused(struct front *f, const struct want *w, const struct verdict *v,
		   const char *request, const char *more);
void front_denied(struct front *f, const struct want *w, const struct verdict *v, uint8_t protocol);
/* front_flow_report.c: what passed. Kept until front_flow_report_send(), which waits only if it
 * shall. */
void front_flow_report_name(struct front *f, const struct want *w, const struct verdict *v,
			    const struct ip *given);
void front_flow_report_flow(struct front *f, const struct flow *w, enum flow_report_kind kind);
/* A request to a language model is over; a budget is nearly spent (rule -1: the whole's). */
void front_flow_report_spent(struct front *f, int32_t rule, const char *model, uint64_t sent,
			     uint64_t written, uint64_t cost);
/* A rule of the firewall matched (NULL: it denies, or could not be asked); blocked: the request was
 * refused. */
struct waf_match;
/* What looks like a secret is in a request; mode: what was done, SCAN_* of the policy. */
/* The value of a canary is in what goes out. */
void front_flow_report_canary(struct front *f, const struct flow *w, int value, const char *where);
void front_flow_report_secret(struct front *f, const struct flow *w, uint32_t mode,
			      const char *rule, const char *where);
void front_flow_report_waf(struct front *f, const struct flow *w, const struct waf_match *match,
			   enum verdict_reason reason, bool blocked);
void front_flow_report_budget(struct front *f, int32_t rule, uint64_t spent, uint64_t limit);
/* A request was answered: what is "POST /v1/files". */
void front_flow_report_http(struct front *f, const struct flow *w, int32_t rule, const char *what,
			    unsigned status, uint64_t sent, uint64_t received);
void front_flow_report_send(struct front *f, bool wait);
void front_totals(struct front *f);
/* Says what was kept. False: there is still no room. */
bool front_say_later(struct front *f, bool wait);
void front_failed(const struct ward_err *e);

/* front_rules.c: other rules from here on; closes the descriptor. What they no longer allow is
 * closed at once. Nothing may keep a pointer into f->rules over it. */
void front_take_rules(struct front *f, int fd);
/* front_show.c: answers what the operator asks. */
void front_show(struct front *f, const struct gate_order *order);

#endif

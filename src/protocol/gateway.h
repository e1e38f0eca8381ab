/*
 * The messages of the gateway's processes. All messages are fixed-size structs over SOCK_SEQPACKET
 * pairs between processes of one build; a reader believes no length, index or text in it.
 *
 *   supervisor -> front the configuration (a sealed memory file, by descriptor at exec), then
 *   GATE_SOCKETS with the
 *                         sandbox's sockets; GATE_RULES with another configuration; GATE_SHOW: tell
 *                         what there is; GATE_ANSWER, GATE_ANSWER_REQUEST: for flows and
 *                         requests that wait for a person's answer;
 *                         GATE_FINISH: say the totals and end. The end of the socket means the
 *                         same.
 *   front -> supervisor   struct gate_event; struct gate_shown as the answer to GATE_SHOW;
 *                         struct gate_request for a request that waits
 *   supervisor -> dial struct dial_order, over a socket that front passes on unread and does not
 *   keep: an attacker who takes over front cannot give dial other rules
 *   dial -> supervisor    struct dial_word
 *   front -> dial         up to DIAL_AT_ONCE of struct dial_request
 *   dial -> front up to DIAL_AT_ONCE of struct dial_answer; with a connected socket for each that
 *   has no error, in their order
 */
#ifndef WARD_PROTOCOL_GATEWAY_H
#define WARD_PROTOCOL_GATEWAY_H

#include "rules/decide.h"
#include "rules/flow_report.h"
#include "rules/net.h"

/* Descriptors that the programs are started with, beside 0-2 (/dev/null). */
enum {
	GATE_FD_CONTROL = 3,
	GATE_FD_CONFIG,
	GATE_FD_HOSTS,
	GATE_FD_ORDERS,
	GATE_FD_TRUST,
	GATE_FD_KEYS,
	GATE_FD_TAPE,
	GATE_FD_WAF,
	GATE_FDS_END
};

#define GATE_MAGIC 0x77677431
#define GATE_MATCHES_MAX 64
#define GATE_KEYS_MAX (128 * 1024)

enum gate_tape { GATE_TAPE_NONE, GATE_TAPE_RECORD, GATE_TAPE_REPLAY }; /* tape.h, replay.h */

/* The configuration: this, then rules_bytes of encoded rules, then proxy_bytes (struct upstream, or
 * nothing), which only dial reads: the credentials are not front's business; then keys_bytes: the
 * hosts (names, *.suffix, *) whose connections ward-keys makes of GATE_FD_KEYS, each ended by
 * NUL; then canary_bytes: values of canaries, one behind the other (rules/canary_find.h). */
struct gate_config {
	uint32_t magic;
	uint32_t rules_bytes, proxy_bytes, keys_bytes;
	uint32_t match_count;
	/* flows are reported, too (flow_report.h): a journal is kept */
	uint32_t tell;
	uint32_t tape; /* enum gate_tape: what GATE_FD_TAPE is for */
	/* what is done with secrets in requests: SCAN_* of the policy; whether personal data is
	 * looked for, too */
	uint32_t scan, scan_personal;
	uint32_t canary_bytes;
	uint32_t canary_passes; /* what has such a value is only reported */
	/* what the kernel brings; all else it has refused */
	struct net_match matches[GATE_MATCHES_MAX];
	struct net_classes classes; /* which block a name's address is of */
};

enum gate_word {
	GATE_SOCKETS = 1,
	GATE_FINISH,
	GATE_RULES,
	GATE_SHOW,
	GATE_ANSWER,
	GATE_ANSWER_REQUEST
};
enum gate_what { SHOW_METERS = 1, SHOW_FLOWS };

/* GATE_SOCKETS: the kind of each descriptor that comes with it. */
struct gate_order {
	uint32_t word;
	uint32_t count;
	uint8_t kinds[NET_FDS_MAX];   /* enum net_socket */
	uint16_t inside[NET_FDS_MAX]; /* of PUBLISHED ones: the port that each leads to */
	/* listening sockets are one a port: the kernel has no nf_tables */
	bool ports;
	uint8_t what;       /* SHOW: enum gate_what */
	uint32_t from, tag; /* SHOW: the first row; given back in the answer */
	/* ANSWER: for the flows to host and port that wait, were reported, and are not younger than
	 * serial. reason: REASON_ALLOWED is a yes, which dial knows of already */
	uint8_t reason;
	uint16_t port;
	uint64_t serial;
	struct host host;
	/* ANSWER_REQUEST: for the requests with this that wait and are not younger than serial */
	uint8_t exact[32];
};

enum gate_event_kind {
	GATE_DENIED = 1,
	GATE_TOTALS,
	GATE_FAILED,
	GATE_TAKEN,
	GATE_SHOWN,
	GATE_FLOW_REPORT,
	GATE_TRUST,
	GATE_ASK,         /* a flow waits for a person's answer; generation: its serial */
	GATE_UNASK,       /* it does not wait any more */
	GATE_REQUEST_ASK, /* the same for a request: struct gate_request */
	GATE_REQUEST_UNASK
};

/* GATE_TRUST comes first where a rule ends TLS, with a memory file: this, then the authority's
 * certificate as PEM, the trust store with it, and both for Java. */
struct gate_trust {
	uint32_t magic, hash; /* hash: of its name, as in HASH.0 */
	uint32_t own_bytes, bundle_bytes, java_bytes;
};

struct gate_totals {
	uint64_t connections, bytes_in, bytes_out, names, denied;
	uint64_t spent; /* on language models, millionths */
};

struct gate_event {
	uint32_t kind;
	/* TOTALS: denials that were not said one by one; TAKEN: flows that were closed */
	uint32_t count;
	uint8_t protocol; /* DENIED: IPPROTO_* */
	struct want want;
	struct verdict verdict;
	struct gate_totals totals;
	uint64_t generation; /* TAKEN: the rules that are in force now */
	/* FAILED: why it cannot begin; DENIED: a request, "": it was a connection */
	char text[384];
	/* DENIED: what the request asked for, for the remedy (struct asked) */
	char more[208];
};

#define GATE_CUT 120 /* of a text that is shown: a longer one is cut in the middle */

/* A request that waits. Texts are printable, and ended. */
struct gate_request {
	uint32_t kind; /* GATE_REQUEST_ASK, GATE_REQUEST_UNASK */
	int32_t rule;  /* that asks */
	uint64_t serial;
	struct want want;
	/* exact: of the bytes that are sent with a yes. like: of method, target and what is asked
	 * for; all zero: only this one can be allowed */
	uint8_t exact[32], like[32];
	char what[384]; /* "POST /v1/files json_rpc=tools/call:NAME" */
	char more[208]; /* as in struct gate_event */
	char query[GATE_CUT], body[GATE_CUT];
};

#define GATE_ROWS 32 /* in one answer */

/* What one rule, or the whole, has been used for. */
struct gate_meter {
	uint64_t opened, denied, open, bytes_in, bytes_out;
	uint64_t requests, spent, held; /* budget.h */
};

/* One connection. */
struct gate_flow {
	char host[HOST_TEXT];
	uint16_t port;
	uint8_t how, state; /* enum want_how, enum flow_state */
	bool inward;
	int32_t rule;
	uint64_t generation, bytes_in, bytes_out, age_ms;
};

/* Sent as long as its rows need. */
struct gate_shown {
	uint32_t kind; /* GATE_SHOWN */
	uint32_t tag, what, count;
	uint32_t next;  /* to ask for next; 0: that was all */
	uint32_t flows; /* open now */
	uint64_t generation;
	struct gate_totals totals;
	struct gate_meter whole;
	union {
		struct gate_meter meters[GATE_ROWS];
		struct gate_flow flows[GATE_ROWS];
	} rows;
};

/* RULES: with the configuration, as for front. FILES: the answer to LOOK, with those of the host's
 * files that have changed. GRANT: connections to host and port, count of them, that a rule asks
 * about and a person has allowed once. */
enum dial_order_word { DIAL_RULES = 1, DIAL_FILES, DIAL_GRANT };
enum dial_file { DIAL_HOSTS, DIAL_RESOLVER, DIAL_FILE_COUNT };

struct dial_order {
	uint32_t word;
	/* a bit for each enum dial_file; the descriptors come in that order */
	uint32_t files;
	uint32_t count;
	uint16_t port;
	uint64_t tag; /* GRANT: given back when it holds */
	struct host host;
};

enum dial_word_kind {
	DIAL_TAKEN = 1,
	DIAL_LOOK,
	DIAL_GRANTED
}; /* LOOK: have the host's files changed? */

struct dial_word {
	uint32_t kind;
	uint64_t generation; /* TAKEN; GRANTED: the tag */
};

#define DIAL_AT_ONCE 8 /* in one message */

struct dial_request {
	uint64_t id;      /* given back in the answer; never the same again */
	uint8_t inward;   /* enum dial_inward */
	uint8_t kinds[4]; /* INWARD_SOCKETS: of the descriptors that come with it */
	/* for an exchange that is looked into: replay answers those alone */
	uint8_t looked;
	/* dial decides about it once more, with rules of its own; inward: its port counts */
	struct want want;
};

enum dial_inward { INWARD_NOT, INWARD_PORT, INWARD_SOCKETS };

struct dial_answer {
	uint64_t id;
	int32_t error;          /* errno of the last attempt; 0: a socket comes with this */
	struct verdict verdict; /* refused: why; else its ip is what is connected to */
};

#endif

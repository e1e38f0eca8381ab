/* What the verbs and ward-box say to each other over a control socket: one packet a message. Pure
 * functions. */
#ifndef WARD_CONTROL_CONTROL_H
#define WARD_CONTROL_CONTROL_H

#include "limit/limits.h"
#include "model/question.h"

#define CONTROL_MAGIC 0x7764 /* "dw": and the protocol's first version */
#define CONTROL_MAX 131072   /* a message with what stands behind it */
#define CONTROL_FDS_MAX 4
/* an ERROR's texts are no longer than that */
#define CONTROL_ERROR_BYTES (sizeof(struct ward_err))

enum control_op {
	/* to ward-box */
	CONTROL_STATS = 1, /* -> CONTROL_USAGE */
	/* a words, b variables; behind it directory, words, variables, each ended by NUL. ->
	 * CONTROL_STARTED, later CONTROL_EXITED or CONTROL_FAILED; the end of the connection is a
	 * hang-up for the command */
	CONTROL_EXEC,
	/* a: signal, to the command of this connection, else to the sandbox's own -> CONTROL_OK */
	CONTROL_SIGNAL,
	CONTROL_KILL, /* every process at once -> CONTROL_OK */
	CONTROL_STOP, /* a: milliseconds between SIGTERM and force -> CONTROL_OK */
	/* -> CONTROL_OK when every process stands still. a 1: right before a kill, by the quickest
	 * means */
	CONTROL_PAUSE,
	CONTROL_RESUME, /* -> CONTROL_OK */
	/* -> CONTROL_OK; the connection ends when the sandbox has, and its result is kept */
	CONTROL_WAIT,
	/* flags -> CONTROL_STARTED with one descriptor: output out of it, input into it; a 1: the
	 * command has a terminal. Later CONTROL_TURN */
	CONTROL_ATTACH,
	CONTROL_SIZE,     /* of an attached terminal: a rows, b columns; no answer */
	CONTROL_NET_SHOW, /* a: enum control_net_what, b: the first row -> CONTROL_NET */
	/* a rules, b: seconds or 0; behind it the rules, each ended by NUL -> CONTROL_NET when they
	 * are in force */
	CONTROL_NET_ALLOW,
	CONTROL_NET_DENY,
	CONTROL_SECRET_LIST, /* -> CONTROL_SECRETS */
	/* behind it the grant's canonical line, ended by NUL; perhaps a descriptor with the secret
	 * -> CONTROL_SECRETS */
	CONTROL_SECRET_GRANT,
	CONTROL_SECRET_REVOKE, /* behind it a name, ended by NUL -> CONTROL_SECRETS */
	/* a: only questions with a higher id -> CONTROL_QUESTIONS */
	CONTROL_QUESTION_LIST,
	CONTROL_QUESTION_ANSWER, /* behind it struct control_answer -> CONTROL_OK when it counts */
	/* a: the state of the questions that was seen last, 0: none -> CONTROL_OK once there is
	 * another one: a is its number; -1: this sandbox asks nothing */
	CONTROL_QUESTION_WATCH,
	CONTROL_REQUESTS,
	/* from ward-box */
	CONTROL_OK = 128,
	CONTROL_ERROR, /* a: errno; behind it what, why, remedy, each ended by NUL */
	/* with descriptors: the outer ends of 0 (with CONTROL_INPUT), 1, 2; or both ends of the
	 * terminal */
	CONTROL_STARTED,
	CONTROL_EXITED,  /* a: exit code, b: signal or 0 */
	CONTROL_FAILED,  /* it could not be executed; a: errno, b: 125, 126 or 127 */
	CONTROL_USAGE,   /* behind it struct control_usage */
	CONTROL_STOPPED, /* the command of this connection was stopped on its terminal */
	/* to an attached client: a 1: its input counts; 0: another client has taken over */
	CONTROL_TURN,
	/* a: enum control_net_what, b: the row to ask for next or 0; behind it struct control_net,
	 * then the rows */
	CONTROL_NET,
	/* a rows: behind it struct secrets_row (protocol/secrets.h) each; a -1: behind it a
	 * placeholder or "", ended by NUL */
	CONTROL_SECRETS,
	/* a rows, b 1: there are more; behind it struct question (model/question.h) each */
	CONTROL_QUESTIONS
};

enum control_net_what {
	CONTROL_NET_SUMMARY,
	CONTROL_NET_RULES,
	CONTROL_NET_FLOWS,
	CONTROL_NET_WHATS
};
#define CONTROL_NET_ROWS 32  /* in one answer */
#define CONTROL_NET_LINES 64 /* in one change */

#define CONTROL_QUESTION_ROWS 32 /* in one answer */

struct control_answer {
	uint64_t id, seconds;
	uint32_t answer, via;           /* enum question_answer, enum question_via */
	char from[QUESTION_FROM_BYTES]; /* printable; "": not known */
};

enum control_flag {
	CONTROL_INPUT = 1,    /* EXEC: the command's standard input is wanted */
	CONTROL_TERMINAL = 2, /* EXEC: on a terminal of its own */
	/* EXEC: no command, a checkpoint is made, as plan/inner.h has it; one word. STARTED has a
	 * fourth descriptor: its record as far as it is known (state/checkpoint.h), and a: the most
	 * MiB that can come, 0: not known */
	CONTROL_CHECKPOINT = 32,
	/* EXEC: no command, files are copied: words "get" PATH, or "put" PATH NAME */
	CONTROL_COPY = 16,
	CONTROL_READ_ONLY = 4, /* ATTACH: look only */
	CONTROL_EXCLUSIVE = 8  /* ATTACH: no other client's input counts until this one leaves */
};

struct control_message {
	uint16_t magic, flags;
	uint32_t op;
	int32_t a, b;
};

struct control_usage {
	uint64_t memory_bytes, memory_peak_bytes, cpu_ms, pids, disk_bytes, uptime_ms, output_bytes,
		clients;
	uint64_t denials; /* what the sandbox was refused so far */
};

struct control_net_limits { /* UINT64_MAX: none */
	uint64_t connections, connection_rate, receive_bytes, send_bytes, bandwidth, request_rate,
		spend;
};

/* The network of a sandbox as it is now. */
struct control_net {
	uint64_t generation;
	uint64_t connections, bytes_in, bytes_out, names, denied; /* since the start */
	uint64_t open;                                            /* connections */
	/* looked into; on language models, in millionths: for good, and by requests under way */
	uint64_t requests, spent, held;
	struct control_net_limits limits;
	uint32_t rules, closed; /* in all; by the change that was asked for */
	uint8_t mode, state;    /* enum rules_network, enum egress_state */
	uint8_t by_port;        /* the kernel has no nf_tables */
	uint8_t unused[5];
	char workspace[256]; /* cut off when longer */
};

struct control_net_rule {
	char text[496]; /* "*.example.com:443,8443"; cut off when longer */
	uint32_t number;
	uint8_t deny, added, private, mode; /* mode: enum rule_mode + 1; 0: by port */
	/* one of network.host_services, behind the rules; deny: by a rule */
	uint8_t service, unused[7];
	uint64_t hits, open, bytes_in, bytes_out, remaining_ms, requests, spent, held;
	struct control_net_limits limits;
};

struct control_net_flow {
	char host[256];
	uint64_t generation, bytes_in, bytes_out, age_ms;
	int32_t rule; /* its number, -1: none */
	uint16_t port;
	uint8_t inward, how;     /* how: enum want_how */
	uint8_t open, unused[7]; /* open: connected; else it is on its way */
};

/* What an EXEC asks for. Strings are borrowed. */
struct control_exec {
	unsigned flags;    /* enum control_flag */
	const char *cwd;   /* "": the sandbox's own */
	char *const *argv; /* NULL-terminated */
	char *const *env;  /* NAME=VALUE, NULL-terminated; NULL: none */
};

/* Whether a packet of n bytes is a request, or an answer, of a form that is known. -EINVAL: not. */
must_check int control_check_request(const void *bytes, size_t n);
must_check int control_check_answer(const void *bytes, size_t n);

/* Appends an EXEC. -E2BIG: it does not fit into a message; -EINVAL: no command, or a variable that
 * is none. */
must_check int control_write_exec(const struct control_exec *x, struct buf *out);
/* Appends a NET_ALLOW or NET_DENY. */
must_check int control_write_net(enum control_op op, char *const *lines, size_t count,
				 unsigned seconds, struct buf *out);
/* How many rows stand in a NET that was checked. */
size_t control_net_rows(const void *bytes, size_t n);
/* Appends an ERROR. */
void control_write_error(const struct ward_err *e, struct buf *out);
/* Reads an ERROR that control_check_answer() has passed. */
void control_read_error(const void *bytes, size_t n, struct ward_err *ret_error);

#endif

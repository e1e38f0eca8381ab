/* A question for a person: what a sandbox waits for, and the answers. The types hold no pointer, so
 * that a question goes over the control socket as it is. Every text was escaped by the supervisor
 * (approve/show.h) and may be shown as it is; all are ended by NUL. */
#ifndef WARD_MODEL_QUESTION_H
#define WARD_MODEL_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#define QUESTION_DETAILS_MAX 8

enum question_kind {
	QUESTION_CONNECT,    /* a connection, which is not made before the answer */
	QUESTION_REQUEST,    /* a request; nothing of it is sent before */
	QUESTION_CREDENTIAL, /* a secret, which is not put into a request before */
	QUESTION_FILE,       /* a host file, whose open waits */
	/* a watch rule has fired, and the sandbox stands still; host: the rule's name, port: its
	 * number */
	QUESTION_WATCH,
	QUESTION_COMMAND, /* a command line, which is not started before */
	/* a rule that the sandbox proposes (ward-ask); host "": a port to publish; port 0, too: a
	 * path */
	QUESTION_PROPOSAL,
	/* a call of a tool, asked about by ward mcp serve; no sandbox asks it */
	QUESTION_TOOL,
	QUESTION_KINDS
};

enum question_answer {
	QUESTION_ONCE = 1, /* what waits now, and nothing that comes later */
	QUESTION_RUN,      /* and equal requests until the run ends */
	QUESTION_TIME,     /* and equal requests for some seconds */
	/* as RUN; who answers has written it into the policy file before */
	QUESTION_ALWAYS,
	QUESTION_DENY, /* what waits now; the next equal request is asked about again */
	QUESTION_ANSWERS
};

struct question {
	uint64_t id; /* from 1; never used again in this run */
	/* of the monotonic clock (io_now_ms()), which all processes of the machine share */
	uint64_t asked_ms, deadline_ms;
	/* the requests that wait, numbered by the gateway: for the supervisor */
	uint64_t serial_first, serial_last;
	uint32_t count; /* equal requests that wait for this answer */
	uint16_t port;  /* CONNECT, REQUEST, CREDENTIAL, PROPOSAL */
	uint8_t kind;   /* enum question_kind */
	/* CONNECT: approvals.never names a host of its group: there is no answer for the group */
	bool alone;
	/* CONNECT, REQUEST, CREDENTIAL, PROPOSAL: the canonical name or address; ASCII */
	char host[256];
	/* All but CONNECT. exact: of all that goes on with a yes; equal ones are one question.
	 * like: of what an answer for the run or for a time covers; all zero: only what waits can
	 * be allowed */
	uint8_t exact[32], like[32];
	/* "registry.npmjs.org:443"; long text is cut in the middle, with a hash of all of it */
	char subject[192];
	char details[QUESTION_DETAILS_MAX][128]; /* "": no more of them; warnings come first */
	char rule[160];                          /* that asks, as the policy has it */
	/* what the answer ALWAYS adds to question_field(); "": there is no such answer */
	char line[320];
	char process[192]; /* the process and its parents, "curl < make < bash"; "": unknown */
};

/* As --json and events name it. */
static inline const char *question_kind_name(unsigned kind)
{
	static const char *const names[QUESTION_KINDS] = {
		[QUESTION_CONNECT] = "connect",       [QUESTION_REQUEST] = "request",
		[QUESTION_CREDENTIAL] = "credential", [QUESTION_FILE] = "file",
		[QUESTION_WATCH] = "watch",           [QUESTION_COMMAND] = "command",
		[QUESTION_PROPOSAL] = "proposal",     [QUESTION_TOOL] = "tool",
	};

	return kind < QUESTION_KINDS ? names[kind] : "unknown";
}

/* The field of the policy that the answer ALWAYS adds to. */
static inline const char *question_field(const struct question *q)
{
	if (q->kind != QUESTION_PROPOSAL || *q->host)
		return "network.egress_allowlist";
	return q->port ? "network.ingress" : "filesystem.host_mounts";
}

/* How an answer came, as its sender says. */
enum question_via {
	QUESTION_VIA_CONTROL, /* ward approve ID */
	QUESTION_VIA_TERMINAL,
	QUESTION_VIA_WATCH,
	QUESTION_VIA_SOCKET,
	QUESTION_VIA_WEBHOOK,
	QUESTION_VIA_LIBRARY, /* a callback of libward */
	QUESTION_VIAS
};

#define QUESTION_FROM_BYTES 80

/* Who answers. */
struct question_who {
	uint32_t uid;
	int32_t pid;
	char via[16];                   /* "terminal", "control", ... */
	char from[QUESTION_FROM_BYTES]; /* a terminal, an address; "": not known */
};

#endif

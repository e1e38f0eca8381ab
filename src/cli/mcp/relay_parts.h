/* The relay's own: its state, and what relay_calls.c and relay_tools.c have of it. */
#ifndef WARD_CLI_MCP_RELAY_PARTS_H
#define WARD_CLI_MCP_RELAY_PARTS_H

#include <poll.h>

#include "cli/mcp/relay.h"

#define RELAY_SLOTS_MAX REMOTE_CALLS_MAX

/* A connection of a call. */
struct relay_slot {
	int fd; /* -1: free */
	struct buf in;
	bool whole;    /* the request is there */
	bool called;   /* the server was asked: call stands for that */
	bool answered; /* out is all that comes */
	size_t call;
	struct buf out;
	size_t sent;
};

struct relay {
	struct relay_start start;
	struct mcp_remote up;
	struct remote_sink sink;
	struct relay_slot slots[RELAY_SLOTS_MAX];
	struct relay_report report;
	bool listed; /* report is true */
	bool instructions_differ;
	struct buf instructions;     /* as JSON; with start.keep */
	struct strv tools, unusable; /* definitions, canonical; with start.keep */
	bool late;                   /* a call did not end in its time: it ends with the last one */
	bool said_refused, error_open;
	size_t shown;
	uint64_t awaited, begin_ms;
	bool ended;
	const char *why;
};

/* -- relay.c */

/* A line on standard error; text is escaped. */
void relay_say(const struct relay *r, const char *what, const char *text);
/* The loop ends behind this turn. */
void relay_end(struct relay *r, const char *why);

/* -- relay_tools.c: what the server says of itself */

/* Asks it, and compares what it says with what was accepted. */
void relay_begin(struct relay *r);
/* Appends {instructions, tools, unusable}. */
void relay_put_definitions(const struct relay *r, struct buf *out);

/* -- relay_calls.c: connections */

/* A connection that waits is taken; false: there is none. */
bool relay_take_slot(struct relay *r, int control_fd);
void relay_slot_ready(struct relay *r, struct relay_slot *s);
/* Asks the server what waits, and ends where it has to. */
void relay_on_turn(struct relay *r);
/* The server's answer to a call. */
void relay_answer_call(struct relay *r, size_t call, bool failed, struct mcp_span body);
void relay_fail_all(struct relay *r, const char *why);
/* Whether answers are not sent yet. */
bool relay_owes(const struct relay *r);

#endif

/*
 * The process that reads what a wrapped server says. It can open nothing, connect to nothing and
 * start nothing (row MCP_RELAY of tables/procs.def): it has the server's three streams, standard
 * error, and a socket on which ward-mcp hands it one connection for each call.
 *
 * On a connection: struct relay_ask and the arguments; then one byte if the call's time is over;
 * and the other way struct relay_answer with its texts. A connection that is closed cancels the
 * call.
 */
#ifndef WARD_CLI_MCP_RELAY_H
#define WARD_CLI_MCP_RELAY_H

#include "cli/mcp/pins.h"
#include "mcp/remote.h"

#define RELAY_DEFINITIONS UINT32_MAX /* in place of a tool: what the server says of itself */
#define RELAY_LATE 'T'

struct relay_ask {
	uint32_t tool, bytes; /* number of a pinned tool; bytes of arguments */
	uint64_t result_max;
};

enum relay_status {
	RELAY_RESULT,  /* members: of the result */
	RELAY_FAILED,  /* text: why there is none */
	RELAY_REFUSED, /* text: why the server was not asked */
	RELAY_AGAIN    /* the server ended before it was asked; text: why */
};

struct relay_answer {
	uint32_t status;
	uint32_t members, text; /* bytes that follow */
	uint32_t hidden;        /* texts that hid something */
	uint32_t failed;        /* it is an error of the tool's */
};

/* What a pinned tool is now. */
enum relay_drift { RELAY_SAME, RELAY_CHANGED, RELAY_GONE };

/* Sent over the control socket each time that the server has listed its tools. */
struct relay_report {
	uint32_t fresh;                  /* tools that are not pinned */
	uint32_t instructions;           /* RELAY_SAME or RELAY_CHANGED */
	uint8_t drift[REMOTE_TOOLS_MAX]; /* of each pinned tool */
};

struct relay_start {
	const char *name;        /* of the server, for standard error */
	const struct pins *pins; /* NULL: nothing is accepted yet */
	bool keep;               /* definitions will be asked for */
	bool mute;               /* what it writes to standard error is thrown away */
	int control_fd, to_fd, from_fd, error_fd;
	pid_t parent;
};

/* In a child of ward-mcp: becomes the relay. */
_Noreturn void relay_run(const struct relay_start *s);

#endif

/* The parts of ward-mcp: a server of MCP. One process with one loop; every call is a process of its
 * own (work.c). */
#ifndef WARD_CLI_MCP_PARTS_H
#define WARD_CLI_MCP_PARTS_H

#include "cli/cli.h"
#include "mcp/message.h"
#include "tools/invoke.h"

#define WORKS_MAX 1024       /* calls at one time, with those that wait */
#define WORKS_RUNNING_MAX 32 /* of those that run */
#define PAGE_TOOLS 100       /* tools of one page */
#define LIST_TTL_MS 300000   /* for how long a client may keep a list */

enum revision {
	REVISION_NONE,
	REVISION_2024_10_07,
	REVISION_2024_11_05,
	REVISION_2025_03_26,
	REVISION_2025_06_18,
	REVISION_2025_11_25,
	REVISION_2026_07_28 /* stateless: each request names it */
};

struct server;

/* Who messages come from and go to. */
struct peer {
	struct server *server;
	enum revision revision; /* that initialize agreed on */
	void (*send)(struct peer *p, const struct buf *message);
};

/* A request while it is answered. */
struct request {
	struct peer *peer;
	const struct mcp_message *message;
	struct mcp_span meta;
	bool modern; /* of the stateless revision */
};

/* A call that runs or waits to. */
struct work {
	struct work *next;
	struct peer *peer;
	char id[MCP_ID_MAX];
	char token[MCP_ID_MAX]; /* of progress; "": not wanted */
	bool modern, cancelled;
	const struct tool_tool *tool;
	char *arguments; /* a JSON object; owned */
	pid_t pid;       /* 0: it waits */
	int fd;          /* its answer comes from here; -1: it waits, or has ended */
	struct buf answer;
	uint64_t begin_ms, tell_ms; /* started; progress is due */
	uint64_t kill_ms;           /* by force then; 0: not asked to end */
};

struct server {
	const struct options *options;
	struct tools_source source;
	const struct tool_agent *agent; /* NULL: all tools */
	const struct tool_tool **tools; /* those that are offered, sorted by name; owned */
	size_t tool_count;
	struct strv shown; /* each as clients see it: JSON */
	struct work *works;
	size_t work_count, running;
};

/* -- dispatch.c: what a client says */

/* Reads one line, or the body of one request over HTTP, and answers what can be answered at
 * once. */
void dispatch(struct peer *p, struct mcp_span bytes);
/* Answers a message that was dropped unread. */
void dispatch_too_long(struct peer *p);
/* Sends a result: the members of a JSON object, without its braces. */
void reply(const struct request *r, const struct buf *members);
void reply_error(const struct request *r, int code, const char *message, const char *data);

/* -- list.c: what is offered */

/* Loads the tools that the options choose. 0, or the exit code. */
must_check int list_load(struct server *s);
void list_free(struct server *s);
const struct tool_tool *list_find(const struct server *s, const char *name);
void list_tools(const struct request *r);

/* -- work.c: calls */

/* Before the first one: what calls leave behind becomes this process's child. */
must_check int work_init(struct ward_err *e);
/* Starts a call, or lets it wait. arguments: an object, or none. */
void work_begin(const struct request *r, const struct tool_tool *tool, struct mcp_span arguments);
/* Ends the peer's call with that id, if there is one: its processes are killed, and it is not
 * answered. */
void work_cancel(struct peer *p, const char *id);
/* Whether the peer has a call with that id. */
bool work_has(const struct peer *p, const char *id);
/* What its process wrote can be read. */
void work_ready(struct work *w);
/* Starts what waits, tells progress, kills what was asked to end. Returns the milliseconds until
 * there is something to do; -1: nothing. */
int work_on_time(struct server *s, uint64_t now_ms);
/* Asks all to end (force: at once). */
void work_end_all(struct server *s, bool force);

/* -- call.c: one call, in its process */

/* Makes the call and appends the members of its result. */
void call_tool(const struct server *s, const struct work *w, struct buf *out);

int mcp_serve(struct options *o);

#endif

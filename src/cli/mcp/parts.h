/* The parts of ward-mcp: a server of MCP. One process with one loop; every call is a process of its
 * own (work.c). */
#ifndef WARD_CLI_MCP_PARTS_H
#define WARD_CLI_MCP_PARTS_H

#include "base/json.h"
#include "cli/cli.h"
#include "mcp/message.h"
#include "tools/invoke.h"

#define WORKS_MAX 1024       /* calls at one time, with those that wait */
#define WORKS_RUNNING_MAX 32 /* of those that run */
#define RUNS_MAX 100         /* calls whose journals can be read */
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
struct work;

/* A tool that every session sandbox has: builtin.c. */
struct builtin {
	const char *name, *description;
	const char *schema;      /* of its arguments: JSON */
	const char *annotations; /* JSON */
	/* Makes the call and appends the members of its result. */
	void (*call)(const struct server *s, struct mcp_span arguments, struct buf *out);
};

/* A tool as it is offered: one of a tools.yaml, or built in. */
struct offer {
	const char *name; /* borrowed */
	const struct tool_tool *tool;
	const struct builtin *builtin;
	char *shown; /* as clients see it: JSON; owned */
};

/* The sandbox of the built-in tools. */
struct session {
	char id[24];  /* "": none */
	int leash_fd; /* when all of its writers are gone, the sandbox is stopped */
	pid_t leash;
};

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
	const struct offer *offer;
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
	struct offer *offers;           /* sorted by name; owned */
	size_t offer_count;
	struct session session;
	char runs[RUNS_MAX][24]; /* of the latest calls, as a ring */
	size_t run_count;        /* in all */
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
const struct offer *list_find(const struct server *s, const char *name);
void list_tools(const struct request *r);

/* -- work.c: calls */

/* Before the first one: what calls leave behind becomes this process's child. */
must_check int work_init(struct ward_err *e);
/* Starts a call, or lets it wait. arguments: an object, or none. */
void work_begin(const struct request *r, const struct offer *offer, struct mcp_span arguments);
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

/* Makes the call: a line with the id of its run, which may be empty, and the members of its
 * result. */
void call_tool(const struct server *s, const struct work *w, struct buf *out);

/* One text of a result's content. */
void call_put_text(struct json *j, const char *text);
/* A result with isError. */
void call_put_refusal(const struct ward_err *e, const struct policy_errors *errors,
		      struct buf *out);

/* -- session.c: the sandbox of the built-in tools */

/* Starts it under review, with the options' policy, profile and workspace. Nothing of it outlives
 * this process. */
must_check int session_start(struct session *s, const struct options *o, struct ward_err *e);
/* Stops it and waits; its changes are kept for ward diff and ward apply. */
void session_stop(struct session *s);
/* In a worker: lets go of the leash. */
void session_leave(struct session *s);
/* Runs a command in it; output_max: bytes that are kept of its output. The caller frees *ret. */
must_check int session_run(const struct session *s, char *const *argv, const struct buf *input,
			   uint64_t output_max, struct call_result *ret, struct ward_err *e);

/* What it changed so far, as a unified diff; the journal of a run, one event a line. */
must_check int session_changes(const struct session *s, uint64_t output_max,
			       struct call_result *ret, struct ward_err *e);
must_check int session_journal(const char *run, uint64_t output_max, struct call_result *ret,
			       struct ward_err *e);

/* -- resource.c: logs and changes */

void resource_list(const struct request *r);
void resource_templates(const struct request *r);
void resource_read(const struct request *r);

/* -- builtin.c */

/* The tool number i; NULL behind the last. */
const struct builtin *builtin_at(size_t i);

/* -- edit.c: pure */

/* Replaces old (not empty) by new in text: all of it, or what must occur once. Appends the result
 * and returns how often; 0: it does not occur; -EEXIST: more than once, and not all were wanted. */
must_check int edit_replace(const struct buf *text, const char *old, const char *new, bool all,
			    struct buf *out);
/* Appends lines from (from 1) on, at most count of them (0: all). Returns how many. */
size_t edit_lines(const struct buf *text, uint64_t from, uint64_t count, struct buf *out);

int mcp_serve(struct options *o);
int mcp_install(struct options *o);
int mcp_uninstall(struct options *o);

#endif

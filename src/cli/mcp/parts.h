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
#define WORKS_ASKING_MAX 32  /* of those, and beyond them, that wait for a person */
#define WORKS_OPEN_MAX (WORKS_RUNNING_MAX + WORKS_ASKING_MAX)
#define RUNS_MAX 100       /* calls whose journals can be read */
#define PAGE_TOOLS 100     /* tools of one page */
#define LIST_TTL_MS 300000 /* for how long a client may keep a list */

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
struct wrap;
struct wrapped;

/* A tool that every session sandbox has: builtin.c. */
struct builtin {
	const char *name, *description;
	const char *schema;      /* of its arguments: JSON */
	const char *annotations; /* JSON */
	/* Makes the call and appends the members of its result. */
	void (*call)(const struct server *s, struct mcp_span arguments, struct buf *out);
};

/* A tool as it is offered: one of a tools.yaml, built in, or of a server that is wrapped. */
struct offer {
	const char *name; /* borrowed */
	const struct tool_tool *tool;
	const struct builtin *builtin;
	const struct wrapped *wrapped; /* of a server that is wrapped; tool: its entry, if any */
	char *shown;                   /* as clients see it: JSON; owned */
};

/* The sandbox of the built-in tools. */
struct session {
	char id[24];  /* "": none */
	int leash_fd; /* when all of its writers are gone, the sandbox is stopped */
	pid_t leash;
};

/* What is sent. */
enum sent {
	SENT_ANSWER,  /* to a request */
	SENT_MESSAGE, /* anything else */
	SENT_NOTHING  /* a request gets no answer; there is no message */
};

struct pollfd;
struct state;

/* Who messages come from and go to: a client on standard input and output, a session over HTTP, or
 * one request of the stateless revision over HTTP. */
struct peer {
	struct peer *next; /* of the server's */
	struct server *server;
	enum revision revision; /* that initialize agreed on */
	bool elicits;           /* its client asks a person for us, as it said then */
	/* stream: over HTTP, where the answer goes; 0: wherever the client listens. code: of the
	 * error that it is; 0: none */
	void (*send)(struct peer *p, uint32_t stream, enum sent what, int code,
		     const struct buf *message);
};

/* A request while it is answered. */
struct request {
	struct peer *peer;
	const struct mcp_message *message;
	struct mcp_span meta;
	uint32_t stream; /* it came with: of HTTP */
	bool modern;     /* of the stateless revision */
};

/* Where a call's question to a person is. */
enum asking {
	ASKING_NOT,
	ASKING_CLIENT, /* the client shows it */
	ASKING_QUEUE   /* it waits for ward approve */
};

enum retry { RETRY_NONE, RETRY_YES, RETRY_NO };

/* A call that runs or waits to. */
struct work {
	struct work *next;
	struct peer *peer;
	uint32_t stream;
	char id[MCP_ID_MAX];
	char token[MCP_ID_MAX]; /* of progress; "": not wanted */
	bool modern, cancelled;
	bool answered; /* and cancelled, because there is no more to it */
	bool elicits;  /* the client asks a person for us */
	struct catalog *catalog;
	const struct offer *offer;
	char *arguments; /* a JSON object; owned */
	pid_t pid;       /* 0: it waits */
	bool again;      /* its wrapped server ended before it was asked: this is the second try */
	int relay_fd;    /* while its process is started: to the wrapped server; else -1 */
	pid_t served_by; /* the run of the wrapped server */
	int fd; /* its question and its answer come from here; -1: it waits, or has ended */
	struct buf answer;
	enum asking asking;
	uint64_t question;                /* its number, where the client was asked */
	uint8_t asked[SHA256_BYTES];      /* what a person was asked about */
	enum retry said;                  /* a retry's: what a person has said about... */
	uint8_t said_about[SHA256_BYTES]; /* ...this */
	uint64_t ask_end_ms;              /* no answer by then is a no */
	uint64_t begin_ms, tell_ms;       /* started; progress is due */
	uint64_t kill_ms;                 /* by force then; 0: not asked to end */
};

/* What a tools.yaml offers, as it was when it was accepted. Calls keep theirs. */
struct catalog {
	unsigned users; /* the server, and calls */
	struct tools_source source;
	const struct tool_agent *agent; /* NULL: all tools */
	struct offer *offers;           /* sorted by name; owned */
	size_t offer_count;
	uint64_t ask_ms; /* no answer in this time is a no: its approvals.timeout_seconds */
};

/* Who waits for changes of the list, in the stateless revision. */
struct listener {
	struct listener *next;
	struct peer *peer;
	uint32_t stream;
	char id[MCP_ID_MAX];
};

struct queue;

struct server {
	const struct options *options;
	struct catalog *catalog;
	struct session session;
	struct wrap *wrap; /* NULL: no server is wrapped */
	int watch_fd;      /* says that the file has changed; -1: it is not watched */
	bool unaccepted;   /* its new content is not accepted yet */
	uint64_t look_ms;  /* when it is looked at again */
	struct listener *listeners;
	struct queue *queue;  /* of questions; NULL: none was asked yet */
	struct state *states; /* requestStates that are out; owned */
	uint64_t last_question;
	char runs[RUNS_MAX][24]; /* of the latest calls, as a ring */
	size_t run_count;        /* in all */
	struct peer *peers;
	struct work *works;
	size_t work_count, running;
	bool alarmed; /* a canary was called: nothing is, any more */
};

/* -- dispatch.c: what a client says */

/* Reads one line, or the body of one request over HTTP, and answers what can be answered at
 * once. stream: that it came with; 0: a line. */
void dispatch(struct peer *p, uint32_t stream, struct mcp_span bytes);
/* Whether the request's client shows questions of ours to a person. */
bool dispatch_elicits(const struct request *r);
/* Answers a message that was dropped unread. */
void dispatch_too_long(struct peer *p);
/* Sends a result: the members of a JSON object, without its braces. */
void reply(const struct request *r, const struct buf *members);
void reply_error(const struct request *r, int code, const char *message, const char *data);

/* -- list.c: what is offered */

/* Loads the tools that the options choose. 0, or the exit code. */
must_check int list_load(struct server *s);
/* The catalog of the file as it is now, if its content was accepted: -EACCES. */
must_check int list_reload(const struct server *s, struct catalog **ret, struct ward_err *e);
struct catalog *catalog_use(struct catalog *c);
void catalog_drop(struct catalog *c);
/* "annotations": of a tool's scope and nature. */
void list_put_annotations(const struct tool_tool *tool, struct json *j);
const struct offer *list_find(const struct server *s, const char *name);
void list_tools(const struct request *r);

/* -- listen.c: changes of the list */

/* Tells all clients that the list has changed. */
void listen_tell(struct server *s);
/* Watches the file from now on. */
void listen_begin(struct server *s);
void listen_end(struct server *s);
/* Something was said about the file; or (on_time) it may be time to look again. */
void listen_ready(struct server *s);
int listen_on_time(struct server *s, uint64_t now_ms);
/* subscriptions/listen of the stateless revision. */
void listen_take(const struct request *r);
/* Ends the peer's with that id (NULL: all). */
void listen_cancel(struct peer *p, const char *id);
bool listen_has(const struct peer *p);

/* -- ask.c: what a person must agree to */

/* In a call's process: asks the server, over fd. What invoke_request.approve has. */
struct asker {
	struct invoke_request r; /* first */
	int fd;
};
must_check int ask_server(const struct invoke_request *r, const struct tools_call *call,
			  struct ward_err *e);
/* Takes a question off what a call wrote, if it is one: asks, or answers at once. */
void ask_take(struct server *s, struct work *w);
/* Tells the call what was said; late: nothing was. */
void ask_tell(struct work *w, bool yes, bool late);
/* The client's answer to a question of ours. */
void ask_answered(struct peer *p, const struct mcp_message *m);
/* What a retry brings along: the state that it was given, and what a person has said. */
void ask_read_retry(const struct request *r, struct work *w);
/* The call does not wait any more. */
void ask_withdraw(struct server *s, struct work *w);
int ask_on_time(struct server *s, uint64_t now_ms);
void ask_end(struct server *s);

/* -- queue.c: questions that wait for ward approve */

/* Puts the call's question there. */
must_check int queue_ask(struct server *s, struct work *w, const char *text, struct ward_err *e);
void queue_withdraw(struct server *s, struct work *w);
#define QUEUE_CLIENTS_MAX 32
#define QUEUE_POLLS_MAX (1 + QUEUE_CLIENTS_MAX)
size_t queue_polls(struct server *s, struct pollfd *fds);
void queue_ready(struct server *s, const struct pollfd *fds, size_t count);
int queue_on_time(struct server *s, uint64_t now_ms);
void queue_end(struct server *s);

/* -- work.c: calls */

/* What a call's process writes in place of a result: it was not begun, and can be tried again. */
#define WORK_AGAIN "!"

/* Before the first one: what calls leave behind becomes this process's child. */
must_check int work_init(struct ward_err *e);
/* Starts a call, or lets it wait. arguments: an object, or none. */
void work_begin(const struct request *r, const struct offer *offer, struct mcp_span arguments);
/* Ends the peer's call with that id, if there is one: its processes are killed, and it is not
 * answered. */
void work_cancel(struct peer *p, const char *id);
/* The same for all of its calls. */
void work_cancel_all(struct peer *p);
/* Whether the peer has a call, also one that is about to end. */
bool work_is_of(const struct peer *p);
/* Whether the peer has a call with that id. */
bool work_has(const struct peer *p, const char *id);
/* Fills in what calls write to us, at most WORKS_OPEN_MAX; full: nothing is wanted now. Returns how
 * many. */
size_t work_polls(struct server *s, bool full, struct pollfd *fds, struct work **ret_works);
/* What its process wrote can be read. */
void work_ready(struct work *w);
/* Starts what waits, tells progress, kills what was asked to end. Returns the milliseconds until
 * there is something to do; -1: nothing. */
int work_on_time(struct server *s, uint64_t now_ms);
/* Sends the peer's client a result of its call, and ends the call. */
void work_answer(struct server *s, struct work *w, const struct buf *result);
/* Asks all to end (force: at once). */
void work_end_all(struct server *s, bool force);
/* The same at once; each is answered with an error. */
void work_refuse_all(struct server *s, const char *why);

/* -- canary.c: decoys */

/* Whether nothing is called: the tool is a canary, or one was called before. Then it has raised the
 * alarm, and answered. */
bool canary_holds(const struct request *r, const struct offer *offer);

/* -- call.c: one call, in its process */

/* Makes the call: a line with the id of its run, which may be empty, and the members of its
 * result. fd: where a person can be asked (ask_server()). */
void call_tool(const struct server *s, const struct work *w, int fd, struct buf *out);

/* One text of a result's content. */
void call_put_text(struct json *j, const char *text);
/* Checks arguments against the parameters of an entry; ret->input is them as JSON. The caller frees
 * *ret in any case. */
must_check int call_bind(const struct catalog *c, const struct tool_tool *tool,
			 struct mcp_span given, struct tools_call *ret, struct ward_err *e);
/* A result with isError. */
void call_put_refusal(const struct ward_err *e, const struct policy_errors *errors,
		      struct buf *out);

/* -- wrap.c: a server that is wrapped */

/* Fills in what its sandboxes say; at most WRAP_POLLS_MAX. Returns how many. */
#define WRAP_POLLS_MAX 16
size_t wrap_polls(const struct server *s, struct pollfd *fds);
void wrap_ready(struct server *s, const struct pollfd *fds, size_t count);
int wrap_on_time(struct server *s, uint64_t now_ms);
/* A connection to the tool's sandbox, which is the caller's. -EBUSY: try again later. */
must_check int wrap_connect(struct server *s, const struct offer *offer, int *ret_fd,
			    struct ward_err *e);
/* The run that serves the tool's calls now. */
pid_t wrap_serves(const struct server *s, const struct offer *offer);
/* That run has not answered, because it is ending: what comes next waits until it is gone. */
void wrap_end(struct server *s, const struct offer *offer, pid_t run);
/* Whether it is a process of one of them. */
bool wrap_owns(const struct server *s, pid_t pid);
/* Whether clients see the tool: one that has changed they do not. */
bool wrap_offers(const struct offer *offer);
void wrap_put_instructions(const struct server *s, struct json *j);

/* -- session.c: the sandbox of the built-in tools */

/* Starts it under review, with the options' policy, profile and workspace. Nothing of it outlives
 * this process. */
must_check int session_start(struct session *s, const struct options *o, struct ward_err *e);
/* Stops it and waits; its changes are kept for ward diff and ward apply. */
void session_stop(struct session *s);
/* Freezes it, and leaves it to the operator: it outlives this process. */
must_check int session_freeze(struct session *s, struct ward_err *e);
/* In a worker: gives up the leash. */
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

/* -- serve.c: the server on standard input and output, and what web.c shares with it */

/* Until every call is gone: their processes must not outlive the server. */
void serve_end_works(struct server *s);
/* Serves a client on standard input and output, until one of both ends. */
void serve_lines(struct server *s);
/* Signals that end the server, from now on read from a descriptor. */
int serve_open_signals(void);
/* All that is waited for beside the client: calls, changes of the file, ward approve. */
struct serve_polls {
	struct work *works[WORKS_OPEN_MAX];
	size_t work_count, queue_count, wrap_count;
};
#define SERVE_POLLS_MAX (WORKS_OPEN_MAX + QUEUE_POLLS_MAX + WRAP_POLLS_MAX + 1)
/* full: nothing more can be sent now. Returns how many. */
size_t serve_fill(struct server *s, bool full, struct serve_polls *p, struct pollfd *fds);
void serve_ready(struct server *s, const struct serve_polls *p, const struct pollfd *fds);
/* Milliseconds until there is something to do; -1: nothing. */
int serve_on_time(struct server *s);
/* The sooner one; -1: none. */
int serve_sooner(int a, int b);

/* -- web.c: the server over HTTP. The exit code. */

int serve_web(struct server *s);

int mcp_serve(struct options *o);
int mcp_install(struct options *o);
int mcp_uninstall(struct options *o);
int mcp_wrap(struct options *o);
int mcp_trust(struct options *o);
int mcp_forget(struct options *o);
int mcp_ls(struct options *o);
/* ward learn --mcp. */
int mcp_learn(struct options *o);

#endif

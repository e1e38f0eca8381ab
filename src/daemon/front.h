/*
 * The front: all that clients and sandboxes say to wardd is read here, in one thread of one process
 * that can neither start a program nor open a connection.
 *
 *   conn.c      a client's connection    conn_read.c  heads, bodies    conn_answer.c  answers
 *   control.c   the control plane    control_read.c  bodies    control_show.c  answers
 *               control_list.c  the list    control_metrics.c  numbers
 *   data.c      requests to a sandbox, to ward-envd or to a port    data_access.c  who may
 *               data_answer.c  what comes back
 *   link.c      the connection to the ward-envd of a sandbox
 *   sandbox.c   what is known of sandboxes; their end
 *   pool.c      sandboxes that are started ahead of their clients (pool.h)
 *   snapshot.c  what is known of snapshots    fork.c    control_snapshot.c  their calls
 *   jobs.c      requests to the keeper    templates.c  what it says of templates
 *   control_access.c  who a client is, and what it may (access.def)    control_token.c  tokens
 *   audit.c     who did what    events.c  server-sent events    stop.c  the emergency stop
 *   control_approve.c  questions    openapi.c  the document of the control plane
 *   upkeep.c    clocks that are set, rows that could not be written
 *   registry.c  SQLite    registry_snapshot.c    registry_access.c
 */
#ifndef WARD_DAEMON_FRONT_H
#define WARD_DAEMON_FRONT_H

#include <sqlite3.h>

#include "base/json.h"
#include "daemon/access.h"
#include "daemon/keeper.h"
#include "protocol/envd.h"
#include "rules/http_serve.h"

#define TOKEN_HEX 64
#define ENVD_TOKEN_MAX (CREDENTIAL_ID + 1 + TOKEN_HEX)
#define ENGINE_MAX 15
#define CONTROL_BODY_MAX (256 * 1024)
#define CONFIG_MAX (24 * 1024) /* a sandbox's variables */
#define JOBS_MAX 256           /* under way at one time */
#define SPARE_FDS 32           /* that clients leave to sandboxes, files and the registry */

struct front;
struct conn;
struct link;
struct sandbox;
struct snapshot;
struct fork;
struct credential;
struct bucket;
struct stop;
struct asking;
struct pool;

/* What epoll waits for. */
struct source {
	int fd;
	void (*ready)(struct source *s, uint32_t events);
};

/* -- sandboxes */

enum sandbox_state {
	SANDBOX_STARTING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,
	SANDBOX_ENDING,
	SANDBOX_POOLED
};

struct sandbox {
	struct sandbox *next;
	char id[SANDBOX_ID + 1];
	char owner[OWNER_MAX + 1];
	char template[TEMPLATE_MAX + 1];
	char token[TOKEN_HEX + 1], traffic_token[TOKEN_HEX + 1];
	enum sandbox_state state;
	int64_t started_ms, end_ms;
	bool auto_pause, auto_resume, no_network, private_traffic;
	bool networked;              /* its template grants a network */
	char engine[ENGINE_MAX + 1]; /* "": unknown yet */
	bool asks;                   /* its template lets a person answer */
	struct stop *stop;           /* that it is a part of */
	int stop_step;
	bool pause_files;              /* a pause of its own accord keeps no memory */
	unsigned memory_mib, disk_mib; /* that its policy grants; 0: no limit */
	int internet;                  /* as asked for: -1: not */
	char *mask_host;               /* Host for programs at its ports; NULL: the client's */
	char *metadata;                /* a JSON object; NULL: none */
	struct buf notes;              /* what happened to it (control_logs.c) */
	struct buf config;             /* NAME=VALUE with NULs */
	struct link *link;             /* NULL: not connected */
	bool busy;                     /* a request to the keeper is under way */
	bool missing;                  /* it was not in the keeper's last list */
	struct conn *waiting;          /* for the keeper's answer, by conn.next_waiting */
	struct conn *measuring;        /* for its numbers, likewise */
	uint64_t retry_ms;             /* an end that failed is tried again then */
	uint64_t cpu_ms, uptime_ms;    /* as the last metrics had them */
	char snapshot[SANDBOX_ID + 1]; /* whose files it begins with; "": none */
	struct fork *fork;             /* that it is started for */
	struct pool *pool;             /* in which it waits: no client has it, or knows of it */
	unsigned epoch;                /* of the pool's policy */
};

/* -- the keeper's answers */

struct job;
typedef void job_done(struct front *f, struct job *j, int result, const char *text, int fds[2]);

struct job {
	struct keeper_request q;
	job_done *done;
	uint64_t began_ms;
	bool used;
};

/* -- connections of clients */

enum conn_state {
	CONN_HEAD,    /* reads a head */
	CONN_COLLECT, /* reads a body whole */
	CONN_WAIT,    /* for the keeper */
	CONN_STREAM,  /* passes a request to a sandbox, and its answer back */
	CONN_TUNNEL,  /* an upgraded connection: bytes in both directions */
	CONN_EVENTS,  /* is sent what happens to sandboxes */
	CONN_DRAIN    /* the answer is written; the rest of the request is thrown away */
};

/* A stream of a link, with one connection at its other side. */
struct stream {
	struct stream *next;
	struct link *link;
	struct conn *conn; /* NULL: it has gone */
	uint32_t id;
	uint64_t credit; /* what may still be sent */
	uint64_t window; /* what may still come */
	uint32_t owed;   /* taken, and not given back as credit */
	bool head, in_end, out_end, dial;
};

struct conn {
	struct source source;
	struct front *front;
	struct conn *next, *prev, *next_waiting, *next_again;
	struct ip source_ip;              /* of the client */
	struct credential *who;           /* of the control plane; owned; NULL: unknown */
	bool asked;                       /* the control plane, and it is written down */
	enum access_check denied;         /* ACCESS_CHECKS: by having no credential */
	char token_id[CREDENTIAL_ID + 1]; /* whose envd token it shows; "": a sandbox's own */
	enum conn_state state;
	bool debug;             /* came to the port of the debug mode */
	struct http_serve http; /* what the client says */
	struct buf out, body;
	size_t out_at;
	size_t owed;   /* bytes in out that came from the stream */
	uint64_t left; /* of an answer with a length; UINT64_MAX: unknown */
	uint64_t drained;
	struct route_to to;
	bool close, closing, gone, answered, chunked, expects, websocket, raw;
	bool again; /* it is in the front's list of those who are looked at again */
	void (*resume)(struct conn *c, int result, const char *text); /* in CONN_WAIT */
	enum route_verb verb;
	char sandbox[NAMED_MAX + 1]; /* or what else the path names */
	char owner[OWNER_MAX + 1];   /* of the key; of the sandbox that the request goes to */
	bool sandbox_owner;          /* the latter */
	int64_t wanted_timeout_ms;   /* of connect */
	bool resumed;
	struct stream *stream;
	/* an answer from a port of a sandbox: its head in the reading, then its body */
	struct buf answer_head;
	struct http_body answer;
	bool answer_begun;
	uint32_t events; /* what epoll waits for */
	uint64_t since_ms;
	uint64_t began_us; /* of the request */
	unsigned status;
};

/* -- the front */

struct counters {
	uint64_t requests[6]; /* by the first digit of the status */
	uint64_t created, killed, expired, refused, resumed, paused, lost;
	uint64_t snapshots, forks;
	uint64_t start_us, starts;
};

/* What the keeper says of a template. */
struct template
{
	char name[TEMPLATE_MAX + 1];
	char engine[ENGINE_MAX + 1];
	unsigned memory_mib, disk_mib;
	bool networked, asks;
};

struct front {
	int epoll_fd, keeper_fd;
	int audit_fd, audit_dir_fd;
	uint64_t audit_size, audit_retry_ms, unknown_ms;
	unsigned unknown_count;
	bool audit_broken;
	struct bucket *buckets;
	struct stop *stops;
	struct asking *asking;
	uint64_t events_ms;
	unsigned rate; /* requests a second of one key; 0: any */
	uint64_t access_ms, templates_ms;
	struct template *templates;
	size_t template_count;
	struct source keeper;
	struct source listener, debug_listener, tls; /* the listener, or tls */
	char tag[TAG + 1];
	uint8_t secret[32];
	sqlite3 *db;
	struct sandbox *sandboxes;
	size_t sandbox_count;
	struct pool *pools;
	size_t pool_count;
	struct snapshot *snapshots;
	struct fork *forks;
	uint64_t snapshot_quota; /* bytes of one owner */
	uint64_t snapshot_list_ms;
	struct conn *conns, *gone, *again;
	size_t conn_count;
	struct link *dead_links;
	struct job jobs[JOBS_MAX];
	uint32_t next_seq;
	unsigned jobs_used;
	unsigned most, quota;  /* sandboxes of all, of one owner */
	uint64_t least_memory; /* bytes that must be available for a new one */
	const char *envd_version;
	unsigned descriptors; /* that this process may have */
	uint64_t list_ms, tick_ms;
	int64_t clock_offset_ms; /* of the calendar's clock to the one that is never set */
	bool unsaved;            /* rows of sandboxes could not be written */
	uint64_t save_ms;
	struct counters counters;
	uint64_t cpus;
	struct source signals;
	bool debug, dev, stopping;
	uint64_t stop_ms;
	char debug_id[SANDBOX_ID + 1];
	bool stop;
	bool deaf; /* no descriptor was left for a new connection */
};

int64_t front_now_ms(void); /* of the calendar's clock */
uint64_t front_now_us(void);
/* Adds a source to what is waited for; false: it cannot be. */
bool front_watch(struct front *f, struct source *s, uint32_t events);
void front_change(struct front *f, struct source *s, uint32_t events);
/* Waits for the source no more, and closes its descriptor. */
void front_close(struct front *f, struct source *s);
/* The loop; returns when the keeper has gone, or after a signal. */
void front_run(struct front *f);
/* One line of the log, JSON; fields is what stands behind the kind: ",\"a\":1". */
void front_log(const char *kind, const struct buf *fields);
void front_log_text(const char *kind, const char *key, const char *value);

/* -- jobs.c */

/* Asks the keeper. False: too much is under way. */
must_check bool jobs_ask(struct front *f, enum keeper_op op, const struct sandbox *s,
			 job_done *done);
/* The same for a pause or resume that keeps files only. */
must_check bool jobs_ask_files(struct front *f, enum keeper_op op, const struct sandbox *s,
			       job_done *done);
/* The same about a snapshot; s NULL: it is about nothing else. */
must_check bool jobs_ask_snapshot(struct front *f, enum keeper_op op, const struct sandbox *s,
				  const struct snapshot *n, job_done *done);
must_check bool jobs_ask_answer(struct front *f, const struct sandbox *s,
				const struct keeper_answer *a, job_done *done);
void jobs_ready(struct source *s, uint32_t events);

/* -- sandbox.c */

/* NULL also for one that waits in a pool. */
struct sandbox *sandbox_find(struct front *f, const char *id);
struct sandbox *sandbox_new(struct front *f);
/* Takes it out of the list and of the registry, ends its link, and answers all who wait. */
void sandbox_remove(struct front *f, struct sandbox *s, const char *why);
void sandbox_tokens(struct front *f, struct sandbox *s);
/* A token that is made of the server's secret. */
void sandbox_derive(const struct front *f, const char *what, const char *id,
		    char ret[TOKEN_HEX + 1]);
/* The same as sandbox_find() if the sandbox is the owner's, or of any for "*". It takes as long
 * whichever owner has the id, and if none has. */
struct sandbox *sandbox_find_of(struct front *f, const char *owner, const char *id);
/* Begins its end; it is gone for clients at once. */
void sandbox_end(struct front *f, struct sandbox *s, const char *why);
/* Says in the log, in its notes and to who listens what happened to it. */
void sandbox_happened(struct front *f, struct sandbox *s, const char *kind, const char *why);
/* Ends, pauses and finds again, what is due. */
void sandbox_tick(struct front *f);
/* Begins to pause or resume; 0, -EBUSY or -EAGAIN. */
must_check int sandbox_pause(struct front *f, struct sandbox *s, bool files_only);
must_check int sandbox_resume(struct front *f, struct sandbox *s, bool files_only);
must_check int sandbox_start(struct front *f, struct sandbox *s);
/* Counts and logs that one that waited in a pool is a client's now. */
void sandbox_handed_over(struct front *f, struct sandbox *s);
/* Begins to take its network away. */
must_check int sandbox_cut(struct front *f, struct sandbox *s);
/* Connects to its ward-envd. */
must_check int sandbox_attach(struct front *f, struct sandbox *s);
/* Lets the connection wait for what is under way with the sandbox; resume() is called then. */
void sandbox_wait(struct sandbox *s, struct conn *c,
		  void (*resume)(struct conn *c, int result, const char *text));
/* Calls all who wait. */
void sandbox_answer_waiting(struct sandbox *s, int result, const char *text);
/* An id that no sandbox and no snapshot has. */
must_check bool sandbox_make_id(const struct front *f, char ret[SANDBOX_ID + 1]);
void sandbox_forget_waiting(struct front *f, struct conn *c);
/* How many sandboxes the owner has, or those of them that are about to end. */
unsigned sandbox_count_of(const struct front *f, const char *owner, bool ending);

/* -- link.c */

/* Whether so much waits for the sandbox to read it that no client's bytes are taken for it. */
bool link_is_full(const struct link *l);
struct link *link_new(struct front *f, struct sandbox *s, int fds[2]);
/* Sends the sandbox's variables, which have changed. */
void link_configure(struct link *l);
void link_end(struct link *l);
/* Begins a stream; fields are those of a CALL, NULL: a DIAL. NULL: too many. */
struct stream *link_begin(struct link *l, struct conn *c, const struct buf *fields, uint16_t port);
/* Sends bytes, at most stream->credit. */
void stream_send(struct stream *s, const void *bytes, size_t n);
void stream_send_end(struct stream *s);
/* Ends the stream from this side; it must not be used afterwards. */
void stream_leave(struct stream *s);
/* The client has taken so many bytes of what came. */
void stream_taken(struct stream *s, size_t n);
void link_free_dead(struct front *f);

/* -- conn.c */

void conn_accept(struct source *s, uint32_t events);
void conn_accept_debug(struct source *s, uint32_t events);
void conn_accept_tls(struct source *s, uint32_t events);
/* Answers with a whole body, and ends the request. */
void conn_answer(struct conn *c, unsigned status, const char *type, const struct buf *body,
		 const char *more_fields);
/* Writes the fields that each answer of our own has. */
void conn_usual_fields(struct conn *c);
/* {"code":status,"message":why} */
void conn_refuse(struct conn *c, unsigned status, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* The answer is complete: what is left of the request is read, then the next one. */
void conn_finish(struct conn *c);
/* Ends the connection, without an end of what was under way. */
void conn_abort(struct conn *c);
/* Writes what is there, and says what is waited for. */
void conn_flush(struct conn *c);
/* Goes on reading, after a stop for want of credit. */
void conn_pump(struct conn *c);
void conn_free_gone(struct front *f);
void conn_tick(struct front *f);
/* Has it read on before the front waits again: its request was answered, and the next one may be
 * there already, or its link has room again. Never from within its own reading: what a client says
 * at once does not decide how deep the stack is. */
void conn_again(struct conn *c);
void conn_go_on(struct front *f);

/* -- data.c: requests to sandboxes */

void data_begin(struct conn *c);
/* Bytes of the request's body; returns how many were taken. */
size_t data_body(struct conn *c, const uint8_t *bytes, size_t n);
void data_body_end(struct conn *c);
/* From the link: */
void data_head(struct conn *c, const struct envd_head *h);
void data_bytes(struct conn *c, const uint8_t *bytes, size_t n);
void data_end(struct conn *c);
void data_reset(struct conn *c);

/* -- control.c: the control plane */

/* The head is there: answers, or asks for the body (CONN_COLLECT). */
void control_begin(struct conn *c);
/* The body is there, too. */
void control_run(struct conn *c);
/* The sandbox of the path, if it is the client's; NULL: it was answered. */
struct sandbox *control_find_mine(struct conn *c);
/* Whether the owner may have one more; *ret_status and *ret_why say why not. */
must_check bool control_admit(struct front *f, const char *owner, unsigned *ret_status,
			      char ret_why[128]);
/* Whether the machine has memory left for one more. */
bool control_has_memory(const struct front *f);
/* Snapshots and forks (control_snapshot.c). */
void control_snapshot(struct conn *c);
void control_snapshots(struct conn *c);
void control_drop_snapshot(struct conn *c);
void control_fork(struct conn *c);
/* The list of the client's sandboxes (control_list.c). */
void control_list(struct conn *c);
/* What happened to a sandbox (control_logs.c). */
void control_logs(struct conn *c);
void sandbox_note(struct sandbox *s, bool bad, const char *text);
/* Numbers of a sandbox, and of the server (control_metrics.c). */
void control_metrics(struct conn *c);
void control_server_metrics(struct conn *c);

/* -- control_read.c */

struct create {
	char template[TEMPLATE_MAX + 1]; /* or the name of a snapshot */
	int64_t timeout_s;               /* -1: not given */
	int internet;
	bool auto_pause, auto_resume, private_traffic, no_network, pause_files;
	struct buf metadata, config, mask_host;
	char wrong[256]; /* why it is refused, with status */
	unsigned status;
};

/* Reads the body of a create. False: wrong and status are set. */
must_check bool control_read_create(const uint8_t *bytes, size_t n, struct create *ret);
/* Reads the body of a change of the network: as of a create, but for these fields alone. */
must_check bool control_read_network(const uint8_t *bytes, size_t n, struct create *ret);
/* Writes the Host that a program at the port is shown. False: the text is none. */
must_check bool control_mask_host(const char *text, uint16_t port, struct host *ret_host,
				  uint16_t *ret_port);
void control_free_create(struct create *c);

/* Of connect, resume, pause, timeout, refreshes, snapshots and fork. */
struct small_request {
	int64_t timeout_s;           /* -1: not given */
	int64_t count;               /* -1: not given */
	int memory;                  /* -1: not given */
	char name[TEMPLATE_MAX + 1]; /* "": not given */
};
must_check bool control_read_small(const uint8_t *bytes, size_t n, struct small_request *ret);

/* -- control_show.c */

/* With the tokens that the connection's credential gets. */
void show_sandbox(struct conn *c, const struct sandbox *s, const char *key, struct json *j);
void show_detail(struct conn *c, const struct sandbox *s, bool listed, struct json *j);
void show_time(struct json *j, const char *key, int64_t ms);

/* -- registry.c: 0 or -errno; the error is logged */

must_check int registry_open(const char *file, sqlite3 **ret, struct ward_err *e);
must_check int registry_load(struct front *f, struct ward_err *e);
/* When it fails, f->unsaved says so: upkeep.c tries again. */
must_check int registry_put(struct front *f, const struct sandbox *s);
/* Many changes as one transaction, or none of them. */
must_check int registry_begin(struct front *f);
must_check int registry_commit(struct front *f);
void registry_roll_back(struct front *f);
void registry_drop(struct front *f, const char *id);

/* -- stop.c, events.c, control_approve.c */

/* Goes on with the stops that are under way. */
void stop_tick(struct front *f);
/* A sandbox of a stop is gone. */
void stop_ended(struct front *f, struct sandbox *s);
void stop_forget(struct front *f, const struct conn *c);
void approvals_forget(struct front *f, const struct conn *c);
void events_push(struct front *f, const char *kind, const struct sandbox *s, const char *why);
void events_tick(struct front *f);

/* -- templates.c */

/* Asks the keeper for templates, now and then. */
void templates_tick(struct front *f);
/* Its engine, or NULL: unknown. */
const char *templates_engine(const struct front *f, const char *name);

/* -- upkeep.c */

/* Follows a calendar that was set, and writes what could not be written. */
void upkeep_tick(struct front *f);

#endif

/*
 * The front of `ward mcp serve --http`: all that clients say in HTTP is read here, in one process
 * that can open nothing, connect to nothing and start nothing (row MCP_FRONT of tables/procs.def).
 * It has the digest of the token, connections, and a socket to the server, which calls the tools.
 *
 *   front.c         the process: its loop, its limits, records of the server's
 *   front_conn.c    a connection: requests in, answers out
 *   front_ask.c     what a request asks for: sessions, streams
 *   front_stream.c  streams of events, and resuming them
 */
#ifndef WARD_CLI_MCP_FRONT_H
#define WARD_CLI_MCP_FRONT_H

#include "mcp/link.h"
#include "rules/http_serve.h"

#define FRONT_LINK_FD 3
#define FRONT_LISTEN_FD 4
#define FRONT_NAME "ward-mcp-front"

#define CONNS_MAX 256
#define SESSIONS_MAX 128
#define STREAMS_MAX 256             /* of one session, with those that ended a moment ago */
#define EVENTS_BYTES_MAX (4u << 20) /* of one stream, kept for a client that comes back */

/* A message that was sent, for a client that missed it. */
struct event {
	struct event *next;
	uint64_t number;
	struct buf text;
};

struct web_session {
	struct web_session *next;
	char id[MCP_SESSION_DIGITS + 1];
	uint32_t number;
	bool open;    /* initialize was answered with a result */
	bool priming; /* its revision has events without a message */
	uint64_t used_ms;
	size_t stream_count;
};

/* What a client waits for: the answers to one POST, or, with GET, whatever the session sends. */
struct stream {
	struct stream *next;
	uint32_t id;
	struct web_session *session; /* NULL: of the stateless revision */
	struct conn *conn;           /* NULL: the client has gone, and may come back */
	size_t expected;             /* answers that are due */
	bool listens;                /* a GET's */
	bool opens;                  /* its answer opens the session */
	bool events;                 /* it has sent the head of a stream of events */
	bool over;
	uint64_t next_number, over_ms;
	struct event *first; /* that are kept; owned */
	size_t kept_bytes;
};

enum conn_state {
	CONN_HEAD,  /* reads a head */
	CONN_BODY,  /* reads a body */
	CONN_WAIT,  /* for answers of the server */
	CONN_DRAIN, /* the answer is written; the rest of the request is thrown away */
	CONN_LAST   /* what is in out, and then the end */
};

struct conn {
	struct conn *next;
	struct front *front;
	int fd;
	enum conn_state state;
	struct http_serve http;
	struct mcp_ask ask;
	struct buf body, out;
	size_t out_at, drained;
	struct stream *stream; /* in WAIT */
	bool close, gone, chunked;
	uint64_t since_ms; /* of the last byte that counts for its time */
	uint64_t said_ms;  /* of the last byte of a stream of events */
};

struct front {
	int listen_fd, link_fd;
	struct link link;
	uint8_t token[SHA256_BYTES];
	bool ready; /* it has the token */
	struct conn *conns;
	size_t conn_count;
	struct web_session *sessions;
	size_t session_count;
	struct stream *streams;
	uint32_t next_stream, next_session;
	bool deaf; /* no descriptor is left for a new connection */
};

int front_main(void);

/* -- front_conn.c */

/* Takes a descriptor; false: there is no room. */
bool conn_begin(struct front *f, int fd);
/* Reads what came, writes what there is room for. */
void conn_readable(struct conn *c);
void conn_flush(struct conn *c);
/* Its request was answered by what the server said: reads on. */
void conn_go_on(struct conn *c);
/* Whether bytes of the client are wanted now. */
bool conn_wants_bytes(const struct conn *c);
/* Answers, and goes on with the next request. more: fields, each with its line end; may be NULL. */
void conn_answer(struct conn *c, unsigned status, const char *type, const char *bytes, size_t n,
		 const char *more);
/* The same with an error of JSON-RPC; id: "" where it is not known. */
void conn_refuse(struct conn *c, const struct mcp_no *no, const char *id);
/* Begins a stream of events; puts bytes into it; ends it. */
void conn_begin_events(struct conn *c, const char *more);
void conn_put_events(struct conn *c, const struct buf *bytes);
void conn_end_events(struct conn *c);
void conn_end(struct conn *c);
void conn_on_time(struct conn *c, uint64_t now_ms);
void conn_free(struct conn *c);

/* -- front_ask.c */

/* The head was accepted, and there is no body to wait for (GET, DELETE). */
void ask_begin(struct conn *c);
/* The body of a POST is there. */
void ask_message(struct conn *c);
/* Ends a session and its streams; tell: the server does not know yet. */
void session_end(struct front *f, struct web_session *s, bool tell);
void sessions_on_time(struct front *f, uint64_t now_ms);

/* -- front_stream.c */

/* NULL: out of memory. */
struct stream *stream_new(struct front *f, struct web_session *s, struct conn *c, size_t expected);
struct stream *stream_find(struct front *f, uint32_t id);
/* What the server said. */
void stream_take(struct front *f, const struct link_head *head, struct mcp_span bytes);
/* Its connection has gone. */
void stream_leave(struct stream *t);
/* A client that has seen the event comes back. False: it cannot be gone on with. */
bool stream_resume(struct stream *t, struct conn *c, uint64_t seen);
/* Lets the client know that it is still there. */
void stream_keep(struct stream *t);
/* Removes it; its connection, if there is one, is ended. */
void stream_remove(struct front *f, struct stream *t);
void streams_on_time(struct front *f, uint64_t now_ms);

#endif

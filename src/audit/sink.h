/* Delivering the events of a run to others while it goes on: one process for each sink, which reads
 * the journal. */
#ifndef WARD_AUDIT_SINK_H
#define WARD_AUDIT_SINK_H

#include <sys/types.h>

#include "audit/export.h"
#include "audit/place.h"
#include "audit/tail.h"
#include "policy/policy_sink.h"

#define SINK_WHY 256

/* What the process of a sink tells the one that started it, in memory that both have. */
struct sink_shared {
	uint64_t confirmed; /* number of the last event that is delivered */
	uint64_t sent;      /* events that were delivered */
	uint64_t dropped;   /* events that the other side refused for good */
	/* since then (monotonic) something waits to be delivered; 0: nothing does */
	uint64_t stuck_ms;
	char why[SINK_WHY]; /* the last failure; "": none since something was delivered */
};

enum sink_end { SINK_ALL = 0, SINK_JOURNAL_LOST = 3, SINK_BROKEN = 4 };

struct ssl_st;
struct ssl_ctx_st;

/* Everything is borrowed but the connection. */
struct sink {
	const struct policy_sink *policy;
	struct sink_shared *shared;
	struct export_from from;
	const char *run;
	/* state: where the number of the last delivered event is kept (sink_state.h) */
	int audit_fd, state_fd;
	int wake_fd; /* readable, or at its end: the run has ended */
	bool ending;
	struct tail tail;
	/* what is read and not sent yet */
	struct buf batch;
	struct buf record;
	uint32_t ends[256]; /* of each record in the batch */
	unsigned count;
	/* number of the last event in the batch; of the last one before it */
	uint64_t last, position;
	/* what was sent and may not have been read: at such a time so much had been sent, up to
	 * this event */
	uint64_t bytes, mark_bytes, mark_seq, mark_ms;
	uint64_t unsure, mark_unsure; /* events that were sent, and may not have been read */
	/* the connection; owned */
	int fd;
	pid_t pid;
	struct ssl_ctx_st *tls;
	struct ssl_st *ssl;
	char *token;
	unsigned wait_more_ms; /* what the other side asked for */
};

/* How a kind of sink is spoken to. Returns 0 or -errno with *e. */
struct sink_ops {
	/* what was sent counts once the other side has read it: asked() says how much it has not */
	bool stream;
	int (*open)(struct sink *s, struct ward_err *e);
	int (*send)(struct sink *s, struct ward_err *e); /* the whole batch */
	int64_t (*unread)(struct sink *s);
	/* 0: everything that was sent has been read */
	int (*finish)(struct sink *s, struct ward_err *e);
	void (*close)(struct sink *s);
};

extern const struct sink_ops sink_file, sink_command, sink_datagram, sink_stream, sink_otlp;

/* What must be read before the process is locked up: certificates, the token. */
must_check int sink_prepare(struct sink *s, struct ward_err *e);
/* Locks the process up: no other program, no file but what the sink needs, no capability. */
must_check int sink_confine(const struct sink *s, struct ward_err *e);
/* The life of the process: until everything is delivered after the run's end. Returns enum
 * sink_end. */
int sink_run(struct sink *s);

/* Connections, for sink_stream and sink_otlp (sink_net.c). */
must_check int sink_connect(struct sink *s, struct ward_err *e);
must_check int sink_write(struct sink *s, const char *bytes, size_t n, struct ward_err *e);
/* What has come, at most n bytes, waiting at most so long: > 0, 0: the other side has closed,
 * -ETIMEDOUT, or another error. */
must_check ssize_t sink_read(struct sink *s, char *bytes, size_t n, int timeout_ms,
			     struct ward_err *e);
void sink_disconnect(struct sink *s);
/* TLS (sink_tls.c). Each as its name says; -EAGAIN: *ret_events is what to poll for. */
must_check int sink_tls_prepare(struct sink *s, struct ward_err *e);
must_check int sink_tls_open(struct sink *s, struct ward_err *e);
must_check ssize_t sink_tls_write(struct sink *s, const char *bytes, size_t n, short *ret_events,
				  struct ward_err *e);
must_check ssize_t sink_tls_read(struct sink *s, char *bytes, size_t n, short *ret_events,
				 struct ward_err *e);
void sink_tls_end(struct sink *s);
void sink_tls_close(struct sink *s);

/* The answer of an OTLP collector. */
struct sink_reply {
	unsigned status;
	unsigned retry_after; /* seconds; 0: not said */
	uint64_t rejected;    /* log records that it did not take */
};
/* Reads an answer of HTTP/1. False: it is none. Pure. */
bool sink_reply_read(const char *bytes, size_t n, struct sink_reply *ret);

#endif

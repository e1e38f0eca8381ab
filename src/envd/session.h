/*
 * The connection of ward-envd with one wardd: streams over two pipes (protocol/envd.h). One thread
 * reads frames; the threads that serve streams block in the functions here. A stream is counted: it
 * lives until the session and all who serve it have let go.
 */
#ifndef WARD_ENVD_SESSION_H
#define WARD_ENVD_SESSION_H

#include <sys/types.h>

#include "base/buf.h"
#include "protocol/envd.h"

struct session;
struct stream;

/* What a session does with a new stream, in a thread of its own; takes a count of it. For a DIAL
 * call is NULL, and port is set. call: NAME=VALUE, owned by the server. */
struct server {
	void (*serve)(struct stream *s, struct strv *call, unsigned port);
	/* The variables have changed; settings of wardd came with them, without their points. */
	void (*configured)(const struct strv *settings);
};

/* Runs a session in a new thread until wardd has closed its side; takes the descriptors. */
must_check int session_begin(int in_fd, int out_fd, const struct server *server);
/* The variables that wardd gave to the sandbox, as NAME=VALUE, appended. */
void session_config(struct strv *out);
/* How many sessions run. */
unsigned session_count(void);

struct stream *stream_hold(struct stream *s);
/* Lets go; the last one ends the stream. NULL is fine. */
void stream_drop(struct stream *s);
/* Waits for bytes. 0: the end; -1: the stream was reset. */
must_check ssize_t stream_read(struct stream *s, void *bytes, size_t n);
/* Appends the whole of what comes, at most max bytes. 0, -EFBIG or -EPIPE (reset). */
must_check int stream_read_all(struct stream *s, size_t max, struct buf *out);
/* Says what is answered; once, before everything else. */
void stream_head(struct stream *s, unsigned status, enum envd_kind kind, uint64_t length);
/* Writes all bytes together, waiting for credit. -1: the stream was reset, or ended. */
int stream_write(struct stream *s, const void *bytes, size_t n);
/* The same if there is credit for all of it at once; 0 also if there was none. */
int stream_write_now(struct stream *s, const void *bytes, size_t n);
/* No more is written. */
void stream_end(struct stream *s);
/* Ends both sides. */
void stream_reset(struct stream *s);
bool stream_is_reset(struct stream *s);
/* A descriptor that poll() finds readable when the stream was reset; the stream owns it. */
int stream_reset_fd(struct stream *s);
/* Milliseconds since something was written. */
uint64_t stream_silent_ms(struct stream *s);

#endif

/* A connection's bytes, with or without TLS, to a program inside or to a server: one face for what
 * speaks HTTP over it. */
#ifndef WARD_TRANSPORT_WIRE_H
#define WARD_TRANSPORT_WIRE_H

#include "transport/tls_down.h"
#include "transport/tls_up.h"

struct wire {
	int fd;                /* borrowed */
	struct tls_down *down; /* owned; at most one of both */
	struct tls_up *up;
};

void wire_free(struct wire *w);
must_check enum tls_say wire_read(struct wire *w, void *bytes, size_t n, size_t *ret_n);
must_check enum tls_say wire_write(struct wire *w, const void *bytes, size_t n, size_t *ret_n);
/* What wire_read() would say, without reading: TLS_DONE, there are bytes. */
must_check enum tls_say wire_peek(struct wire *w);
/* Says that nothing more comes. */
void wire_end(struct wire *w);

/* Bytes that wait to be written. */
struct queue {
	char *data; /* owned */
	size_t at, len, cap;
	bool failed; /* out of memory: the connection is over */
};

static inline size_t queue_size(const struct queue *q)
{
	return q->len - q->at;
}

void queue_add(struct queue *q, const void *bytes, size_t n);
void queue_free(struct queue *q);
/* Writes what goes. TLS_DONE: nothing is left; *ret_n: how much went. */
must_check enum tls_say queue_flush(struct queue *q, struct wire *w, size_t *ret_n);

#endif

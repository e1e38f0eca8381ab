/* What ward and the program that feeds the sinks of its run say to each other, in packets. */
#ifndef WARD_AUDIT_FORWARD_H
#define WARD_AUDIT_FORWARD_H

#include <stdint.h>
#include <string.h>

enum forward_op {
	FORWARD_END = 1, /* to it: the journal is complete */
	FORWARD_STOP,    /* from it: a sink that the run must not go on without is stuck */
	FORWARD_LEFT,    /* from it, at the end: what a sink has not delivered */
	FORWARD_DONE     /* from it: that was all */
};

/* Descriptors that it gets: the socket, the sinks as lines, STATE/audit. */
enum { FORWARD_SOCKET_FD = 3, FORWARD_SINKS_FD, FORWARD_AUDIT_FD };

struct forward_message {
	uint32_t op;
	uint32_t left_known;
	uint64_t left, dropped;
	char to[200], why[256];
};

/* Why, without the place in front, which the reader knows already. */
static inline const char *forward_why(const char *to, const char *why)
{
	size_t n = strlen(to);

	return strncmp(why, to, n) == 0 && strncmp(why + n, ": ", 2) == 0 ? why + n + 2 : why;
}

#endif

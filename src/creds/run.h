/* A program of the user's that gives a secret. */
#ifndef WARD_CREDS_RUN_H
#define WARD_CREDS_RUN_H

#include "base/buf.h"
#include "creds/safe.h"

/* What must not wait for a program: each time that there is something to be read from fd, ready is
 * called. */
struct run_meanwhile {
	int fd; /* -1: nothing more */
	void (*ready)(void *whose);
	void *whose;
};

/* Runs argv (without a shell, away from our descriptors, in a session of its own) with `in` on its
 * standard input and takes what it writes, at most room bytes, into out. meanwhile may be NULL. Its
 * standard error goes nowhere: it may hold a secret. */
must_check int run_program(const char *path, char *const *argv, const void *in, size_t in_bytes,
			   unsigned timeout_ms, struct run_meanwhile *meanwhile, uint8_t *out,
			   size_t room, size_t *ret_n, struct ward_err *e);

#endif

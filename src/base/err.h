/* An error is a value on the caller's stack: where, why and the remedy. Nothing to free, fits in
 * one message. */
#ifndef WARD_BASE_ERR_H
#define WARD_BASE_ERR_H

#include "base/own.h"

struct ward_err {
	int code;         /* positive errno, 0 while there is none */
	char what[512];   /* the place: what was being done, outermost first */
	char why[768];    /* the reason */
	char remedy[512]; /* what the user can do about it, "" if nothing is known */
};

/* Fills *e with a reason; returns -code. */
int ward_fail(struct ward_err *e, int code, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

/* Fills *e with a reason and errno's text behind it; returns -errno. */
int ward_fail_errno(struct ward_err *e, const char *why, ...) __attribute__((format(printf, 2, 3)));

/* Puts the outer place in front of what *e says already; returns -e->code. */
int ward_wrap(struct ward_err *e, const char *place, ...) __attribute__((format(printf, 2, 3)));

/* Sets the remedy; returns -e->code. */
int ward_remedy(struct ward_err *e, const char *remedy, ...) __attribute__((format(printf, 2, 3)));

#endif

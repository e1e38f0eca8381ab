/* Questions on the terminal. */
#ifndef WARD_CLI_QUESTION_H
#define WARD_CLI_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/own.h"

#define QUESTION_TRIES 3

/* Whether somebody is there to answer: standard input, output and error are terminals. */
bool question_possible(void);
/* Prints the question on standard error and reads one line, without spaces around it; a longer one
 * is cut. -ECANCELED: the input ended. */
must_check int question_line(const char *question, char *ret, size_t size, struct ward_err *e);
/* A question that y or n answers; Enter: fallback. -ECANCELED: neither came. */
must_check int question_yes(const char *question, bool fallback, bool *ret_yes, struct ward_err *e);
/* The error where no usable answer was given. */
int question_fail(struct ward_err *e);

#endif

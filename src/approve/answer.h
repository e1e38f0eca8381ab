/* Answers as programs write them: one JSON object. */
#ifndef WARD_APPROVE_ANSWER_H
#define WARD_APPROVE_ANSWER_H

#include <stddef.h>

#include "base/err.h"
#include "model/question.h"

#define ANSWER_NONCE 32 /* hexadecimal digits */

struct answer_said {
	char id[48]; /* "SANDBOX:NUMBER" */
	enum question_answer answer;
	uint64_t seconds;             /* of TIME */
	char by[40];                  /* who decided, printable; "": not said */
	char nonce[ANSWER_NONCE + 1]; /* of a webhook; "": none */
};

/* {"id": "SANDBOX:NUMBER", "answer": "once", "seconds": 60, "by": "name", "nonce": "..."}; the
 * first two are needed, seconds with "time" only. Any other key is an error, as is anything that
 * another reader could read differently. A pure function. */
must_check int answer_read(const uint8_t *bytes, size_t n, struct answer_said *ret,
			   struct ward_err *e);
/* The word of an answer: "once"; NULL: there is none. And the answer of a word, 0: none. */
const char *answer_word(enum question_answer answer);
enum question_answer answer_of(const char *word);

#endif

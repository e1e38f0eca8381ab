/* The questions of sandboxes that run, as `ward approve` sees them. */
#ifndef WARD_CONTROL_CLIENT_APPROVE_H
#define WARD_CONTROL_CLIENT_APPROVE_H

#include "control/client.h"
#include "model/question.h"

/* Questions, each with its sandbox. */
struct client_questions {
	struct client_question {
		char box[24]; /* the sandbox's id */
		struct question q;
	} * items; /* owned */
	size_t len;
};

/* All that wait, of every sandbox of this user that runs, the first asked first. A sandbox that
 * does not answer is left out; with *ret_silent they are counted. */
must_check int client_questions(struct client_questions *ret, size_t *ret_silent,
				struct ward_err *e);
void client_questions_clear(struct client_questions *q);
/* Those of one sandbox. */
must_check int client_box_questions(const struct box_info *info, struct client_questions *ret,
				    struct ward_err *e);

/* An answer, and how it came. */
struct client_said {
	enum question_answer answer;
	uint64_t seconds;
	enum question_via via;
	const char *from; /* NULL: not known */
};

/* Answers one; 0: the answer counts. */
must_check int client_answer_question(const char *box, uint64_t id, const struct client_said *said,
				      struct ward_err *e);

#endif

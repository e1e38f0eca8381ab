/* The keys that answer a question on a terminal whose keys belong to a program. A state machine,
 * pure: the time is an argument. Nothing that is typed or pasted for the program answers. */
#ifndef WARD_TERM_KEYS_H
#define WARD_TERM_KEYS_H

#include "base/buf.h"
#include "model/question.h"

#define KEYS_CHORD 0x1e /* Ctrl-^ */
/* when the chord counts: after the question became visible, and after the last key */
#define KEYS_VISIBLE_MS 500
#define KEYS_PAUSE_MS 150
#define KEYS_ARMING_MS 400 /* no key after the chord for so long: it was meant for ward */
#define KEYS_ANSWER_MS 30000
#define KEYS_SETTLE_MS 200 /* no key after the answer for so long: it was meant */
#define KEYS_MARKER_MS 50  /* a part of a paste's marker waits so long for the rest */

enum keys_state {
	KEYS_NONE,   /* no question: all keys are the program's */
	KEYS_NOTICE, /* a question is shown; all keys are the program's */
	KEYS_ARMING, /* the chord was typed */
	KEYS_ANSWER, /* keys are ward's */
	KEYS_SETTLE, /* an answer was typed */
	KEYS_LOOK,   /* ALWAYS was typed: the change of the policy is not known yet */
	KEYS_SURE    /* the change is shown: ALWAYS once more makes it */
};

struct keys {
	/* for the caller to set */
	char chord;
	bool program_marks; /* the program has asked for marks around pasted text */
	bool always;        /* there is an answer ALWAYS */
	bool seen_all;      /* the whole change of the policy was shown */

	enum keys_state state;
	char digits[2];       /* before every yes */
	unsigned digits_seen; /* of them */
	unsigned more;        /* how often more was asked for */
	enum question_answer answer;
	uint64_t visible_ms, last_ms, since_ms;
	bool pasting, paste_is_ours;
	char held[8]; /* the beginning of a marker */
	size_t held_len;
};

/* A question has become visible; two digits, '0' to '9'. And it is gone, answered or not. What was
 * held back for the program goes to *out. */
void keys_open(struct keys *k, uint64_t now_ms, const char digits[2]);
void keys_close(struct keys *k, struct buf *out);
/* In LOOK: the change of the policy has become visible, or there is none. */
void keys_sure(struct keys *k, uint64_t now_ms);
void keys_unsure(struct keys *k, uint64_t now_ms);
/* Keys from the operator's terminal, one read; what is the program's is appended to *out. True: the
 * state has changed. */
bool keys_take(struct keys *k, const char *bytes, size_t n, uint64_t now_ms, struct buf *out);
/* Time has passed. 0: no answer. The question is over with an answer; the caller closes. */
enum question_answer keys_on_time(struct keys *k, uint64_t now_ms, bool *ret_changed,
				  struct buf *out);
/* When keys_on_time() is to be called; 0: not before the next key. */
uint64_t keys_due_ms(const struct keys *k);

#endif

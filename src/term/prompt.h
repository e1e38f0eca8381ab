/* Questions on the terminal that a program uses: when the bar is shown, what it says, and what
 * becomes of the bytes of both sides meanwhile. A state machine, pure: the time is an argument, and
 * bytes are appended to what the caller writes. */
#ifndef WARD_TERM_PROMPT_H
#define WARD_TERM_PROMPT_H

#include "base/err.h"
#include "base/terminal.h"
#include "model/question.h"
#include "term/bar.h"
#include "term/keys.h"

#define PROMPT_FRAME_MS 33
#define PROMPT_REPLAY_MAX (1 << 20)
#define PROMPT_TIME_SECONDS 600 /* what the answer "for a time" means here */
#define PROMPT_WORD_MAX 32

struct prompt;

struct prompt_ops {
	/* The first question that waits, NULL: none; *ret_count: how many do. Borrowed until the
	 * next call. */
	const struct question *(*first)(void *context, size_t *ret_count);
	/* Answers. < 0: it does not count, *e says why. */
	int (*answer)(void *context, const struct question *q, enum question_answer answer,
		      uint64_t seconds, struct ward_err *e);
	/* Two random digits. */
	void (*digits)(void *context, char ret_digits[2]);
	/* Begins to find out what ALWAYS changes in the policy file, as a difference of its text;
	 * write: to change it, if that is still the difference. NULL: there is no ALWAYS here. */
	int (*change)(void *context, const struct question *q, bool write, struct ward_err *e);
	/* 1: it is done, *ret_text is that difference, escaped and borrowed; 0: not yet. */
	int (*changed)(void *context, const char **ret_text, struct ward_err *e);
};

/* ops, context and the filter of what the program shows are borrowed. word: shown in every bar, and
 * known to nobody inside. NULL: out of memory. */
must_check struct prompt *prompt_create(const struct prompt_ops *ops, void *context,
					const struct terminal *filter, const char *word);
/* NULL is fine. */
void prompt_destroy(struct prompt *p);

/* The terminal is ours: its size, and where its cursor stands, both from 0. -ENOMEM: no questions
 * can be shown. */
must_check int prompt_begin(struct prompt *p, unsigned rows, unsigned cols, unsigned row,
			    unsigned col, struct ward_err *e);
/* It is not: the bar goes, and none is shown before prompt_begin(). */
void prompt_end(struct prompt *p, struct buf *out, struct buf *in);
/* Its size has changed. */
void prompt_resize(struct prompt *p, unsigned rows, unsigned cols);
/* Another program has used it: all is to be painted again. */
void prompt_repaint(struct prompt *p);

/* What the program shows, which has passed the filter; what the terminal is to get is appended. */
void prompt_show(struct prompt *p, const char *bytes, size_t n, uint64_t now_ms, struct buf *out);
/* No more of it can be taken before the question is over, or before prompt_on_time(). */
bool prompt_is_full(const struct prompt *p);
/* Keys of the operator; what is the program's is appended. */
void prompt_keys(struct prompt *p, const char *bytes, size_t n, uint64_t now_ms, struct buf *in);
/* All that was appended to out is written. */
void prompt_written(struct prompt *p, uint64_t now_ms);
/* The questions may have changed: prompt_on_time() is due. */
void prompt_changed(struct prompt *p);
/* Time has passed. out NULL: nothing can be written now. */
void prompt_on_time(struct prompt *p, uint64_t now_ms, struct buf *out, struct buf *in);
/* When it is to be called; 0: not before something happens. can_write: it can be called with an
 * out. */
uint64_t prompt_due_ms(const struct prompt *p, bool can_write);
/* A bar is on the terminal, and over which of its screens. */
bool prompt_is_shown(const struct prompt *p, bool *ret_alternate);

#endif

/* What the files of the prompt share: prompt.c (when the bar is shown, keys, answers), prompt_bar.c
 * (what it says), prompt_change.c (the answer ALWAYS). */
#ifndef WARD_TERM_PROMPT_INTERNAL_H
#define WARD_TERM_PROMPT_INTERNAL_H

#include "term/prompt.h"

#define PROMPT_LINE 320

enum change_state {
	CHANGE_NONE,
	CHANGE_READING, /* what ALWAYS would change */
	CHANGE_KNOWN,
	CHANGE_WRITING
};

/* What the answer ALWAYS changes in the policy file. */
struct prompt_change {
	enum change_state state;
	struct question question; /* that it is about */
	struct strv lines;        /* that go or come, escaped */
	char file[PROMPT_LINE];   /* the policy file; "": not known */
	uint64_t look_ms;         /* when to look again */
	bool composed;            /* it is in the bar that is being written */
};

struct prompt {
	const struct prompt_ops *ops;
	void *context;
	const struct terminal *filter;
	char word[PROMPT_WORD_MAX];
	struct screen *screen; /* NULL: before the first prompt_begin() */
	bool begun, shown, visible, dirty, all;
	bool moved;               /* the size has changed since it is shown */
	struct question question; /* that is shown */
	size_t waiting;
	struct bar_before before;
	struct keys keys;
	struct prompt_change change;
	uint64_t frame_ms, switch_ms; /* of the last ones */
	struct buf replay;            /* written to the normal screen meanwhile */
	struct buf rest;              /* behind a switch that has to wait */
	char message[PROMPT_LINE];
	char lines[BAR_ROWS][PROMPT_LINE], one[PROMPT_LINE];
};

/* The bar of now; points into p. */
struct bar prompt_bar(struct prompt *p, uint64_t now_ms);

/* Pages of the change, PROMPT_CHANGE_ROWS lines each; at least one. */
#define PROMPT_CHANGE_ROWS 2
size_t prompt_change_pages(const struct prompt *p);
/* Whether ALWAYS can be answered to what is shown. */
bool prompt_change_possible(const struct prompt *p);
/* ALWAYS was typed: finds out what it changes. And was typed again: changes it. */
void prompt_change_read(struct prompt *p, uint64_t now_ms);
void prompt_change_write(struct prompt *p, uint64_t now_ms);
/* Looks whether that has come about. True: it was written, and the question of the change is to be
 * answered. */
bool prompt_change_look(struct prompt *p, uint64_t now_ms);
/* What is read only is forgotten. */
void prompt_change_drop(struct prompt *p);

#endif

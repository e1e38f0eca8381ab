/* What is added to a result, and how it is shown. */
#ifndef WARD_EVENT_RESULT_H
#define WARD_EVENT_RESULT_H

#include "model/plan.h"
#include "model/result.h"

/* Adds a denial, or counts it when it is there already, for the same reason. */
void result_deny(struct result *r, const char *what, const char *why, const char *remedy);
/* The same for what explains an error that a program has printed. */
void result_explain(struct result *r, const char *what, const char *why, const char *remedy);
void result_layer_note(struct result *r, enum layer l, enum layer_state s, const char *note);
void result_clear(struct result *r);
/* What was refused, for a standard error that nobody watches: a line each, or one for all where the
 * command succeeded; nothing if there is none. */
void result_denials_text(const struct result *r, struct buf *out);
/* A note about a secret that was found: once, a number of them at most, for everybody to read. */
void result_secret(struct result *r, const char *text);
/* The notes that everybody shall read, likewise. */
void result_notes_text(const struct result *r, struct buf *out);
/* One line about what was moved to the quarantine, for a standard error that nobody watches;
 * nothing if there is none. */
void result_quarantine_text(const struct result *r, struct buf *out);

/* The report of DESIGN 2: one JSON object on one line. plan is NULL when there is none. */
void result_json(const struct result *r, const struct plan *p, struct buf *out);
/* What is said whatever standard error is: that a limit was reached, ward ended the run, or why a
 * program complained; one line and its remedy each. */
void result_stopped_text(const struct result *r, const struct plan *p, struct buf *out);
/* The summary for a person; colour escapes when colour is set. */
void result_text(const struct result *r, const struct plan *p, bool verbose, bool colour,
		 struct buf *out);

#endif

/* What a run came to: the one thing that the summary, --json and --report are made from. */
#ifndef WARD_LIB_RESULT_H
#define WARD_LIB_RESULT_H

#include "lib/event.h"
#include "lib/guard_sweep.h"
#include "lib/limits.h"
#include "lib/timing.h"

struct denial {
	char *what, *why, *remedy;	/* owned */
	uint64_t count;
	bool explains;			/* something that a program complained of: said whatever standard error is */
};

enum layer_state { LAYER_ABSENT, LAYER_IN_FORCE };

/* What went over the network, by the gateway's count. */
struct result_network {
	uint64_t connections, bytes_in, bytes_out, names, denied;
	uint64_t spent;		/* on language models, millionths */
	uint64_t generation;	/* of the rules at the end; 1: they were never changed */
};

struct result {
	char run_id[24];
	const char *engine;
	const char *wall;		/* what stands inside it, NULL: nothing */
	int exit_code;			/* what ward exits with */
	int exit_signal;		/* of the command, 0: none */
	uint64_t duration_ms;
	struct usage usage;
	enum layer_state layers[LAYERS];
	char *layer_notes[LAYERS];	/* why it is absent or weaker; owned */
	struct denial *denials;
	size_t denial_count;
	struct strv quarantine;		/* "path: reason" */
	struct guard_news news;		/* what the sweep found and left there */
	struct strv notes;
	struct strv loud;		/* those of the notes that the short form has, too */
	struct result_changes {
		bool reviewed;		/* the run was under review: */
		bool counted;		/* ... and its changes could be counted */
		size_t added, changed, deleted;
		size_t applied, left;	/* with --apply-on-exit */
		bool apply;
	} changes;
	struct result_network network;
	struct event_sink *events;	/* borrowed; where everything that happens is reported; NULL: nobody listens */
	struct provenance *provenance;	/* borrowed; who changes files, at audit.level: full; NULL: nobody asked */
	struct timing *timing;		/* borrowed; NULL or off: nobody asked */
	bool refused;			/* nothing was started; see error */
	struct ward_err error;
};

/* Adds a denial, or counts it when it is there already, for the same reason. */
void result_deny(struct result *r, const char *what, const char *why, const char *remedy);
/* The same for what explains an error that a program has printed. */
void result_explain(struct result *r, const char *what, const char *why, const char *remedy);
void result_layer_note(struct result *r, enum layer l, enum layer_state s, const char *note);
void result_clear(struct result *r);
/* One line about what was moved to the quarantine, for a standard error that nobody watches; nothing if there is none. */
void result_quarantine_text(const struct result *r, struct buf *out);

/* The report of DESIGN 2: one JSON object on one line. plan is NULL when there is none. */
void result_json(const struct result *r, const struct plan *p, struct buf *out);
/* The same for an error before there is a result: {"refused": {what, why, remedy}}. */
void result_refusal_json(const struct ward_err *e, struct buf *out);
/* An error as people are told it, or programs (json). It may quote untrusted bytes, so all of it is escaped. */
void result_error_text(const struct ward_err *e, bool json, struct buf *out);
/* What is said whatever standard error is: that a limit was reached, ward ended the run, or why a program complained; one line and its remedy each. */
void result_stopped_text(const struct result *r, const struct plan *p, struct buf *out);
/* The summary for a person; colour escapes when colour is set. */
void result_text(const struct result *r, const struct plan *p, bool verbose, bool colour, struct buf *out);

#endif

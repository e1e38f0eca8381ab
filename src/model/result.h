/* What a run came to: the one thing that the summary, --json and --report are made from. */
#ifndef WARD_MODEL_RESULT_H
#define WARD_MODEL_RESULT_H

#include "base/timing.h"
#include "model/event.h"
#include "model/guard.h"
#include "model/limits.h"

struct plan;
struct provenance;

struct denial {
	char *what, *why, *remedy; /* owned */
	/* the remedy as options of ward run, to be pasted; owned, NULL: none */
	char *option;
	uint64_t count;
	/* something that a program complained of: said whatever standard error is */
	bool explains;
};

enum layer_state { LAYER_ABSENT, LAYER_IN_FORCE };

/* What went over the network, by the gateway's count. */
struct result_network {
	uint64_t connections, bytes_in, bytes_out, names, denied;
	uint64_t spent;      /* on language models, millionths */
	uint64_t generation; /* of the rules at the end; 1: they were never changed */
};

struct result {
	char run_id[24];
	const char *engine;
	const char *inner; /* what stands inside it, NULL: nothing */
	int exit_code;     /* what ward exits with */
	int exit_signal;   /* of the command, 0: none */
	uint64_t duration_ms;
	struct usage usage;
	enum layer_state layers[LAYERS];
	char *layer_notes[LAYERS]; /* why it is absent or weaker; owned */
	struct denial *denials;
	size_t denial_count;
	struct strv quarantine; /* "path: reason" */
	struct guard_news news; /* what the sweep found and left there */
	struct strv notes;
	struct strv approved; /* rules that a person's answers made */
	struct strv loud;     /* those of the notes that the short form has, too */
	struct result_changes {
		bool reviewed; /* the run was under review: */
		bool counted;  /* ... and its changes could be counted */
		size_t added, changed, deleted;
		size_t applied, left; /* with --apply-on-exit */
		bool apply;
	} changes;
	struct result_network network;
	/* borrowed; where everything that happens is reported; NULL: nowhere */
	struct event_sink *events;
	/* borrowed; who changes files, at audit.level: full; NULL: not wanted */
	struct provenance *provenance;
	struct timing *timing; /* borrowed; NULL or off: not wanted */
	bool midline;          /* the last line of standard error has no end */
	bool refused;          /* nothing was started; see error */
	struct ward_err error;
};

#endif

/* Why something was refused, and the smallest change of the policy that would allow it: the one
 * text of `ward explain`, `ward policy add --from-event` and --hints. */
#ifndef WARD_OBSERVE_EXPLAIN_H
#define WARD_OBSERVE_EXPLAIN_H

#include "model/event.h"
#include "model/limits.h"
#include "policy/policy.h"

#define EXPLAIN_CHANGES_MAX 2

/* What is known about the run. Texts are borrowed, NULL: unknown. */
struct explain_run {
	const char *workspace;
	const char *policy_file;
	const char *home; /* the user's own directory */
	/* the policy file gives no network by itself: a rule alone would open nothing */
	bool network_off;
};

/* One field of the policy and what is added to it (or what it is set to). */
struct explain_change {
	char field[32];
	char *value; /* owned */
};

struct explanation {
	/* one line each, harmless on a terminal; "" where there is nothing to say */
	struct buf what, why, rule, advice;
	const char *layer;                                  /* static */
	struct explain_change changes[EXPLAIN_CHANGES_MAX]; /* all of them are needed */
	size_t change_count;
	bool failed;      /* out of memory */
	const char *home; /* of explain_run; borrowed */
};

/* Whether the event says that something was refused to a program inside, or to the run as a whole.
 * Pure. */
bool explain_is_denial(const struct ward_event *v);
/* Explains a denial; the caller frees with explain_clear(). Every change was tried on an empty
 * policy: it is valid. Pure. */
void explain_event(const struct ward_event *v, const struct explain_run *run,
		   struct explanation *ret);
void explain_clear(struct explanation *x);

/* Appends "ward policy add FIELD VALUE", quoted for a shell; nothing where there is no change. */
void explain_command(const struct explanation *x, const struct explain_run *run, struct buf *out);
/* Appends the same as a piece of a policy in YAML, whose lines begin with indent spaces. */
void explain_yaml(const struct explanation *x, unsigned indent, struct buf *out);

/* Whether a kind has a row in tables/explain.def at all. */
bool explain_knows(enum event_kind kind);

/* What else can be done about a reason of tables/egress.def; "": nothing is known. Static. */
const char *explain_reason_advice(size_t reason);

/* Appends the line of the policy that doubles a limit: "resources.memory_limit: 200Mi". Pure. */
void explain_limit_line(enum limit l, uint64_t value, struct buf *out);

/* Reads "FIELD: VALUE" of a remedy as a change. False: it is none. Pure. */
bool explain_read_line(const char *line, struct explain_change *ret);

#define auto_explanation __attribute__((cleanup(explain_clear))) struct explanation

#endif

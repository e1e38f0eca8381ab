/* What the verbs of ward-explain share: explain, policy, check --replay and --unused. */
#ifndef WARD_CLI_EXPLAIN_PARTS_H
#define WARD_CLI_EXPLAIN_PARTS_H

#include "audit/lines.h"
#include "cli/audit/parts.h"
#include "event/table_names.h"
#include "observe/explain.h"

/* What a run's first event says about it. */
struct explain_source {
	char *run; /* its id; owned */
	struct explain_run about;
	char *workspace, *policy_file; /* owned; about points here */
	const struct unseen *unseen;   /* of its engine; NULL: nothing. Static */
};

/* The run that a word means (NULL: the last one of this directory), and what is known about it. */
must_check int explain_open(int audit_fd, const char *word, struct explain_source *ret,
			    struct ward_err *e);
void explain_close(struct explain_source *s);
/* Calls see for each event of the run until it returns false. */
void explain_events(int audit_fd, const char *run,
		    bool (*see)(void *ctx, const struct ward_event *v), void *ctx);
/* The changes that would allow event number seq of the run: into *ret, which the caller clears.
 * -ENOENT and the like with *e. */
must_check int explain_number(int audit_fd, const struct explain_source *s, const char *number,
			      struct explanation *ret, struct ward_err *e);

int explain_show(struct options *o);
int policy_add(struct options *o);
int policy_show(struct options *o);
int check_replay(struct options *o);
int check_unused(struct options *o);
int watch_suggest(struct options *o);
int evidence_collect(struct options *o);

#endif

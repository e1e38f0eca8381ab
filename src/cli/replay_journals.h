/* Events of past runs, verified. */
#ifndef WARD_CLI_REPLAY_JOURNALS_H
#define WARD_CLI_REPLAY_JOURNALS_H

#include "base/buf.h"
#include "model/event.h"

struct replay_source {
	/* A run, or the file of a journal, begins. The name is borrowed until the next one does. */
	void (*begin)(void *context, const char *run);
	/* One event of it. */
	bool (*see)(void *context, const struct ward_event *v);
	/* Without words: whether this run is wanted; NULL: those of this workspace are. */
	bool (*wants)(void *context, int audit_fd, const char *run);
	void *context;
	bool all;                /* without words: the runs of all workspaces */
	uint64_t runs;           /* how many there were */
	struct strv *notes;      /* borrowed */
	struct verify *verified; /* what was verified so far; replay_journals() frees it */
};

/* The runs and files that the words name, without words all runs. -EBADMSG: one was changed. */
must_check int replay_journals(struct replay_source *s, int audit_fd, char *const *words,
			       size_t count, struct ward_err *e);

#endif

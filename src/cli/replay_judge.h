/* What another policy would have said to one event of the past. */
#ifndef WARD_CLI_REPLAY_JUDGE_H
#define WARD_CLI_REPLAY_JUDGE_H

#include "model/event.h"
#include "plan/path_view.h"
#include "rules/decide.h"

/* The policy that is tried. */
struct replay {
	const struct policy *policy;
	const struct rules *rules; /* compiled of it */
	/* of its plan for the run's workspace; NULL: files are not judged */
	const struct path_view *view;
	/* of its plan, by enum limit, POLICY_NONE: off; NULL: they are not judged */
	const uint64_t *limits;
	const char *workspace; /* of the run, NULL: unknown */
};

enum replay_verdict {
	REPLAY_SAME,   /* it would be as it was, or the event is not one that a policy decides */
	REPLAY_LOST,   /* it was done, and would be refused */
	REPLAY_GAINED, /* it was refused, and would be allowed */
	REPLAY_UNSURE  /* it was done, and the record is not enough to tell */
};

/* The verdict, and why it is not SAME (appended to *why, one line for people). Pure. */
enum replay_verdict replay_judge(const struct replay *r, const struct ward_event *v,
				 struct buf *why);

#endif

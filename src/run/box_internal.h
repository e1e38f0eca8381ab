/* Shared by the supervisor's own files: box.c (the life in order), box_loop.c (what can happen),
 * box_end.c (the end). */
#ifndef WARD_RUN_BOX_INTERNAL_H
#define WARD_RUN_BOX_INTERNAL_H

#include "approve/approve.h"
#include "egress/egress.h"
#include "model/running.h"
#include "observe/listeners.h"
#include "observe/names.h"
#include "observe/notify.h"
#include "policy/policy_watch.h"
#include "protocol/guest.h"
#include "review/review.h"
#include "run/always.h"
#include "run/guardian.h"
#include "run/streams.h"
#include "state/boxes.h"
#include "state/store.h"

#define BOX_DISK_ROOTS_MAX 64

struct box {
	const struct engine *engine;
	const struct plan *plan;
	struct result *result;
	struct running run;
	struct streams streams;
	struct store_run *record;
	struct review_run *review;
	struct watch *watch;
	struct notify *notify;
	struct listeners listeners; /* servers inside */
	struct names *names;        /* lookups without a network; NULL: none */
	struct egress *egress;      /* NULL: no network */
	/* questions that wait for a person; NULL: nobody is asked */
	struct approve *approve;
	struct box_commands *commands;   /* NULL: no program is guarded */
	struct box_proposals *proposals; /* NULL: ward-ask is not inside */
	struct box_canary *canary;       /* NULL: there are no canaries */
	struct box_alarm *alarm;         /* NULL: there are no watch rules */
	struct always always;            /* the answer ALWAYS on the terminal */
	uint64_t said_question;          /* the last one that was said on standard error */
	struct guard_watch *guard_watch;
	struct sidecar guardian;
	int signal_fd;
	int disk_fds[BOX_DISK_ROOTS_MAX];
	bool disk_own[BOX_DISK_ROOTS_MAX]; /* which of them are ward's own */
	size_t disk_count;
	uint64_t usage_at_ms;      /* when to ask the cgroup next */
	uint64_t guardian_from_ms; /* the command runs since */
	uint64_t started_ms, deadline_ms, kill_at_ms, tick_at_ms, notify_at_ms, trim_at_ms,
		sample_at_ms;
	bool tried_guardian, tried_git, dead, exited, failed;
	bool gone; /* ward-init is, and everything with it: only to be collected */
	/* ward-init was asked whether the command was started: it has dealt with it */
	bool answered;
	bool paused;          /* by the cpu limit */
	bool stopped_by_init; /* box_stop_all() had to ask ward-init */
	bool asked_count;     /* ward-init passes on how many are in the inner runtime */
	bool held_to_look;    /* by an inner runtime's runner, until the look is over */
	bool stopped;         /* the command was, on its terminal */
	bool held;            /* by the operator, a watch rule or a canary */
	/* held by ward pause, a rule that freezes or a canary: no answer to a question ends that */
	bool kept;
	bool suspect;  /* held by a rule or a canary: it gets no grace at its end */
	bool frozen;   /* by the cgroup, for that */
	bool ending;   /* it was asked to */
	bool confined; /* it has given up what it does not need */
	bool trim;     /* nothing will happen for long: sleep with little memory */
	/* what was read of /etc is to be kept, when there is nothing else to do */
	bool keeps_etc;
	/* takes over what the sandbox does with git; NULL: none yet */
	struct git_run *git;
	struct progress *progress; /* borrowed; NULL: not shown */
	struct detached *detached; /* borrowed; NULL: an ordinary run */
	uint64_t tick_ms;          /* of a detached run, between two looks */
	struct usage seen;         /* at the last one */
	struct serve *serve;       /* of a detached run; NULL: none */
	/* of one in the foreground that has a network; NULL: none */
	struct serve *net_serve;
	struct box_entry net_entry;
	int status;                    /* of the command, when exited */
	int failed_errno, failed_code; /* when exec failed */
	int forwarded;                 /* last signal passed on */
	bool unrecorded;               /* ended because it could not be put on record */
	bool limited;                  /* ended by a limit */
	bool alarmed;                  /* ended by a watch rule */
	char uncalled[64];             /* a program that neither it nor the host has */
	size_t told;                   /* lines that were said before its failure was looked at */
	bool unnamed;                  /* its last words miss a file that they do not name */
	enum limit limit;
};

/* Sends a message to ward-init; a full or closed socket is seen elsewhere. */
void box_tell_init(struct box *b, enum guest_op op, int argument);
/* Every process of the sandbox at once; the pid namespace dies with its first process. */
void box_kill(struct box *b);
/* Stops or continues every process. */
void box_stop_all(struct box *b, bool stop);
/* Whether an inner runtime's runner stops what is behind it, so that no process is stopped by
 * signals. */
bool box_runner_holds(const struct box *b);
/* Asks ward-init to stop or continue them. */
void box_tell_stop(struct box *b, bool stop);
/* Whether the signal asks for the end of the run. */
bool box_ends_run(uint32_t signal);
/* Reads one message of ward-init; false: none was there, b->dead when there is nothing more
 * to come. */
bool box_on_control(struct box *b);
/* Waits for something to happen, and sees to it. */
void box_watch_once(struct box *b);

/* Questions (box_approve.c): where the policy wants a person to be asked, a queue for them. */
must_check int box_approve_begin(struct box *b, struct ward_err *e);
/* A question of this run waits (waits), or its process is gone. -EACCES: approvals.never names
 * it; -ENOBUFS: too many wait. */
must_check int box_ask(struct box *b, bool waits, const struct question *q);
/* Whether approvals.never names what a question is about. */
bool box_is_never(const struct box *b, const struct question *q);
/* In the foreground they are asked on the terminal (box_prompt.c). */
must_check int box_prompt_begin(struct box *b, struct ward_err *e);
/* The run is over: all end, and what was answered is offered for the policy. */
void box_approve_files(struct box *b); /* the listener is there */
void box_approve_end(struct box *b);

/* Watch rules (box_alarm.c): begins to count, before anything is reported. */
must_check int box_alarm_begin(struct box *b, struct ward_err *e);
/* Does what canaries and rules say that were touched or have fired. */
void box_alarm_act(struct box *b);
/* An answer to a QUESTION_WATCH; DENY or 0: the run ends. */
void box_alarm_answer(struct box *b, const struct question *q, enum question_answer answer,
		      uint64_t seconds);
/* How often samples are wanted; 0: as usual. */
uint64_t box_alarm_sample_ms(const struct box *b);
/* The run is over; events go where they went before. */
void box_alarm_end(struct box *b);
/* A process inside and its parents, and all that live there, as "PROGRAM (PID)", each ended by a
 * NUL. */
void box_alarm_chain(const struct box *b, uint64_t pid, struct buf *out);
void box_alarm_running(const struct box *b, struct buf *out);
/* Freezes or kills the sandbox, which stands still already; what and name: "watch rule", its
 * name. */
void box_alarm_stop(struct box *b, enum watch_do done, const char *what, const char *name,
		    const char *why);

/* Canaries (box_canary.c): begins to look at events, before anything is reported. */
must_check int box_canary_begin(struct box *b, struct ward_err *e);
/* Watches the files; right before the command may run. */
must_check int box_canary_arm(struct box *b, struct ward_err *e);
int box_canary_fd(const struct box *b); /* -1: nothing to poll */
/* Does what canary.do says for those that were touched. */
void box_canary_act(struct box *b);
void box_canary_end(struct box *b);

/* Detached runs (box_control.c). Whether there is no command of the sandbox's own: */
bool box_is_idle(const struct box *b);
/* A signal for the command of that tag, 0 for the sandbox's own. */
void box_signal(struct box *b, int signal, uint32_t tag);
/* Stops or continues every process at the operator's word. quick: what follows is their end. */
void box_hold(struct box *b, bool hold, bool quick);
/* Asks the commands to end; after grace_ms they are killed. */
void box_stop(struct box *b, uint64_t grace_ms);
/* A command that a client started has ended. */
void box_ended_one(struct box *b);
/* Something was started: limits are looked at again. */
void box_look_again(struct box *b);
/* Counts what the sandbox uses now. */
void box_look_now(struct box *b);
/* How long until limits are looked at again. */
uint64_t box_tick_ms(struct box *b);
/* Whether a supervisor that has the caller's streams is looked at so rarely that it pays to give
 * memory back each time. */
bool box_is_quiet(const struct box *b);
/* Whether nothing lives inside but ward-init: nothing can begin there without our knowing. */
bool box_is_empty(const struct box *b);

/* Events of the run itself (box_events.c). */
void box_report_start(struct box *b);
void box_report_end(struct box *b);
/* What it uses now, and when that is reported again. */
void box_report_sample(struct box *b, uint64_t now);
/* What was reported is on record now, or the run ends if the policy says so. */
void box_keep_record(struct box *b);

/* The end: what the sandbox used is counted, */
void box_reap(struct box *b);
/* its exit code decided, */
void box_judge(struct box *b);
/* a program that a script called and only the host has is named (box_called.c), */
void box_explain_called(struct box *b);
/* what else the words of a command that failed tell (box_guess.c), */
void box_guess(struct box *b);
/* and what its own last words do (box_words.c), */
void box_hear(struct box *b);
/* with variables that they name (box_variable.c). */
void box_hear_variables(struct box *b);
/* and everything released, swept and closed. */
void box_finish(struct box *b);

/* Denials that were not seen but guessed. The file does not exist inside; host is the host's name
 * of it. */
void box_report_missing(struct result *r, const char *path, const char *host, const char *why);
/* The same for one that may be shown whatever is in it. */
void box_report_mount(struct result *r, const char *path, const char *host, const char *why);
void box_report_unwritable(struct box *b, const char *path);
/* Neither the host nor the sandbox has it; the command may have wanted to make it. */
void box_report_absent(struct box *b, const char *path);
/* A file of /proc or /sys. */
void box_report_kernels(struct box *b, const char *path);
/* A program that the host's PATH has and the sandbox does not. False: it is none. */
bool box_report_called(struct box *b, const char *name);
/* A login that it misses, a library of the user's home (box_missed.c). */
struct complaint;
void box_report_login(struct box *b, const struct complaint *c);
void box_report_library(struct box *b, const char *name);
/* The repository that the workspace is a directory of. */
void box_report_repository(struct box *b);
/* Whether a denial names the path already. */
bool box_is_reported(const struct result *r, const char *path);
/* Looks at names alone (walk_names.h). */
bool box_is_on_host(const char *path);
/* A directory of the system, which no sandbox can write to. Pure. */
bool box_is_systems(const char *path);
/* What to do instead of a program that cannot do its work in a sandbox; NULL: it is none of
 * tables/known.def. */
const char *box_known_program(const char *word);

/* Whether word i of a command is a text that a shell runs: `sh -c TEXT`. A pure function. */
bool box_is_script(char *const *argv, size_t i);

#endif

/* One call of one tool, in a fresh sandbox cut to its scope. */
#ifndef WARD_TOOLS_CALL_H
#define WARD_TOOLS_CALL_H

#include "tools/bind.h"
#include "tools/load.h"
#include "tools/output.h"

#define CALL_ERRORS_MAX 65536 /* bytes of standard error that are kept */

/* What a sandbox was started with. */
struct call_request {
	const struct policy *policy; /* scope_policy()'s */
	char *const *argv;
	const struct buf *input; /* NULL: none */
	uint64_t output_max;
};

struct call_result {
	int exit_code;     /* as ward run's */
	bool refused;      /* ward itself: nothing was started; error says why */
	bool output_limit; /* it wrote more than it may and was ended */
	struct buf out, error;
	char run_id[24];
	uint64_t duration_ms;
	struct strv denials; /* "what: why" */
	struct strv limits;  /* those that were hit */
};

/* A place of one call under the runtime directory: its policy, its report, an empty directory. */
struct call_place {
	char *path; /* owned */
	char *empty;
	int lock_fd;
};
must_check int call_place_open(struct call_place *ret, struct ward_err *e);
void call_place_close(struct call_place *p);
/* Removes the places of processes that were killed; the next call does it, too. */
void call_place_sweep(void);
#define auto_place __attribute__((cleanup(call_place_close))) struct call_place

/* Runs it and waits. The caller frees with call_result_free() in any case. */
must_check int call_run(const struct call_place *at, const struct call_request *r,
			struct call_result *ret, struct ward_err *e);
/* Fills in what the report of a run that has ended says. */
void call_read_report(const struct call_place *at, struct call_result *ret);
/* The same for a whole command line of ward's; r->policy and r->argv are not used, and no report is
 * read. */
must_check int call_run_words(const struct strv *words, const struct call_request *r,
			      struct call_result *ret, struct ward_err *e);
void call_result_free(struct call_result *r);
#define auto_result __attribute__((cleanup(call_result_free))) struct call_result

/* Writes the policy where `ward run -p` finds it, and puts the words of that command line together:
 * for callers that keep a command running. */
must_check int call_words(const struct call_place *at, const struct policy *p, char *const *argv,
			  struct strv *ret_words, struct ward_err *e);
/* The same with a policy as text, and in another directory inside. */
must_check int call_words_in(const struct call_place *at, const struct buf *document,
			     const char *cwd, char *const *argv, struct strv *ret_words,
			     struct ward_err *e);
/* Says which call of which tool the next run is, for its journal: agent and policy (the file that
 * it may not exceed) may be NULL. A name with a line end is left out. */
must_check int call_name(const char *tool, const char *agent, const char *file, const char *policy,
			 struct ward_err *e);
/* Starts those words with these descriptors as 0-2; it dies with this process. */
must_check int call_start(const struct strv *words, const int fds[3], pid_t *ret_pid,
			  struct ward_err *e);

#endif

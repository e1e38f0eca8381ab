/* What the verbs share: the options as read, and how a verb speaks and ends. */
#ifndef WARD_CLI_CLI_H
#define WARD_CLI_CLI_H

#include "base/say.h"
#include "model/spec.h"

enum verb {
#define VERB(id, ...) VERB_##id,
#include "verbs.def"
	VERBS
};

/* Sets of verbs, as tables/options.def names them. */
enum verb_set {
#define VERB(id, ...) V_##id = 1ull << VERB_##id,
#include "verbs.def"
	V_ALL = (1ull << VERBS) - 1
};

struct run_outcome;  /* run.h */
struct learn_driver; /* learn_round.h */

/* The command line of one verb, read. Strings are argv's own unless `made` holds them. */
#define OPTIONS_MAX 256

struct options {
	enum verb verb;
	const char *profile, *policy_file, *workspace, *cwd, *report_file, *to, *name, *signal,
		*grace, *tail, *max_size, *max_files, *temporary, *vm_from, *vm_image, *vm_memory,
		*vm_cpus, *vm_accel;
	bool image_command; /* a run without CMD: the image's own */
	bool full;          /* plan: everything; init: the reference */
	bool widen, tty, verbose, json, force, help, detach, input, forensic, all, follow,
		no_stream, quiet, exclusive, read_only, from_stdin, vm_network;
	const char *continue_run, *from_event, *expect_digest, *scanner, *restore;
	const struct checkpoint *restored; /* run --restore: opened; borrowed, NULL: none */
	const char *continued;             /* run --continue: its id; borrowed, NULL: none */
	bool stop;                         /* checkpoint */
	/* audit */
	const char *kinds, *actions, *host, *since, *until, *key, *head, *older, *keep, *format,
		*output;
	const char *merge, *expect; /* learn */
	bool allow_public, keep_changes, learn_mcp;
	const struct learn_driver *driver; /* learn --mcp: borrowed, NULL: none */
	bool who, trailer, no_pager;       /* diff */
	const char *web;                   /* and: "" for a place of its own */
	bool markers;                      /* apply */
	bool once;                         /* top, approve */
	bool clear;                        /* panic */
	const char *dead_man, *dead_after; /* panic: the file, and its time */
	const char *for_time;              /* approve */
	const char *approve_socket, *webhook;
	const char *answer_from; /* approve: where an answer came from; NULL: this terminal */
	bool for_run, deny, watch, group;
	/* scan */
	const char *scan_severity, *scan_allow, *scan_baseline, *scan_write;
	bool scan_pii, scan_redact, scan_sarif, scan_tracked;
	const char *block_on; /* diff, apply */
	bool no_look;
	/* tool, and check of tools */
	const char *tools_file, *tools_agent, *tools_openapi, *check_base;
	bool tools_mcp, tools_check, check_score, check_unused;
	const char *check_days, *check_write; /* check --unused */
	bool mcp_session, mcp_project;        /* mcp */
	const char *http, *token_file, *approvals, *call_timeout;
	bool serve_dev, serve_debug, serve_tls_clients;
	const char *serve_listen, *serve_templates, *serve_state, *serve_max, *serve_quota,
		*serve_snapshot_quota, *serve_add_key, *serve_role, *serve_limits, *serve_rate,
		*serve_pool, *serve_warm, *serve_tls_dir, *serve_ttl;
	bool patch, stat, list, verify, exit_code, with_protected, dry_run, apply_on_exit, always,
		html;
	bool yes, secrets, hints, notify, replay;
	/* a bit for each row of tables/options.def that was used */
	uint64_t given[OPTIONS_MAX / 64];
	struct spec_option *fields; /* owned */
	size_t field_count, field_cap;
	struct run_outcome *outcome; /* run: what it came to; borrowed, NULL: not wanted */
	unsigned observe; /* what the verb itself wants to see of the sandbox, OBSERVE_* */
	/* what the verb itself sets inside, NAME=VALUE, NULL-terminated; NULL: nothing */
	const char *const *own_env;
	char **line; /* all of it, as it was given (run and plan: unchanged) */
	/* what is not an option, NULL-terminated; points into argv */
	char **words;
	size_t word_count;
	struct strv made; /* values that had to be put together */
};

/* Reads argv behind the verb (argv[0] is the first word after it); words may be moved within
 * argv. */
must_check int options_read(enum verb verb, char **argv, struct options *o, struct ward_err *e);
void options_clear(struct options *o);
/* Adds what --secret VALUE means; option is its name for messages. */
must_check int options_add_secret(struct options *o, const char *value, const char *option,
				  struct ward_err *e);
/* Whose options a verb takes, as a set: shell and agent are run with a command of their own. */
uint64_t options_of(enum verb verb);

/* Whether the root may be an image, which has a command and a shell of its own. */
bool options_name_image(const struct options *o);

/* Each verb: a word of main()'s table. Returns the exit code. */
#define VERB(id, name, ...) int verb_##name(struct options *o);
#include "verbs.def"

const char *verb_name(enum verb v);
/* The verb's number, or -1. */
int verb_find(const char *name);

/* Appends the help of a verb, or of ward when v is VERBS. */
void help_text(enum verb v, struct buf *out);

/* say_error() for a usage error of a verb: 2, or 125 for run. */
int say_usage(const struct ward_err *e, const struct options *o);

#endif

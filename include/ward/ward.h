/*
 * libward: run untrusted commands in sandboxes. The one public header.
 *
 * A spec describes a command and its policy. ward_plan() shows what would happen; ward_start()
 * makes a box from it: a sandbox with a supervisor process outside (ward-box). You can run more
 * commands in a box, stream their input and output, and wait for them; when the box ends, it has a
 * result.
 *
 * A function that can fail returns 0 or more, or a negative errno with *e filled (place, reason,
 * remedy); e may be NULL. The library never prints, never exits, installs no signal handler,
 * changes no signal mask, environment, umask or current directory, raises no SIGPIPE, and creates
 * no child that a SIGCHLD, waitpid(-1) or an ignored SIGCHLD of the host program would affect.
 * Handles are opaque. Threads may use different handles, or the same handle, at the same time, with
 * two exceptions: several threads may only read a spec, and freeing a handle must be its last use.
 * A thread must not be cancelled (pthread_cancel) within a call.
 *
 * Strings are UTF-8 where they become part of a policy, else bytes; all are copied. Descriptors
 * that a function returns are close-on-exec. Writing to a pipe whose command has closed it raises
 * SIGPIPE as any pipe does: a host program that writes to streams should ignore it, as most do. A
 * child that the host program forks must not use the parent's handles; if the host program dies,
 * its box lives until that child has exited or executed a program.
 *
 * The program `ward`, installed with this library, reads policies and supervises sandboxes. It is
 * started as a new process, never as a fork of the host program. It inherits the host program's
 * environment and current directory, so relative paths mean what they mean for the host program at
 * the time of ward_plan() and ward_start().
 */
#ifndef WARD_WARD_H
#define WARD_WARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARD_API __attribute__((visibility("default")))

struct ward_spec;    /* what shall run */
struct ward_box;     /* one sandbox */
struct ward_process; /* one more command in it */

struct ward_error {
	int code;         /* positive errno; 0: none */
	char what[512];   /* the place: what was being done; may be "" */
	char why[768];    /* the reason */
	char remedy[512]; /* what can be done about it, "" if nothing is known */
};

/* The version of the library, "1.2.3". Static text. */
WARD_API const char *ward_version(void);
/* Frees a text that a function returned; NULL is fine. */
WARD_API void ward_free(void *text);

/* ---- what to run ---- */

/* A spec with the built-in defaults: NULL when out of memory. The caller frees it. */
WARD_API struct ward_spec *ward_spec_new(void);
/* Frees the spec; NULL is fine. A box started from it is not affected. */
WARD_API void ward_spec_free(struct ward_spec *s);
/* The path of the program `ward`, if it is neither at ../bin/ward from the library nor in PATH. */
WARD_API int ward_spec_program(struct ward_spec *s, const char *path, struct ward_error *e);
/* The policy file; default: ward.yaml in the workspace, if there is one. */
WARD_API int ward_spec_policy(struct ward_spec *s, const char *file, struct ward_error *e);
/* The profile that the policy builds on. */
WARD_API int ward_spec_profile(struct ward_spec *s, const char *name, struct ward_error *e);
/* The project directory; default: the one in the policy, or the current directory. */
WARD_API int ward_spec_workspace(struct ward_spec *s, const char *dir, struct ward_error *e);
/* The working directory of the command; default: the workspace. */
WARD_API int ward_spec_directory(struct ward_spec *s, const char *dir, struct ward_error *e);
/* Sets a field of the policy: "resources.memory_limit", "2Gi". See ward.yaml(5). ward_plan()
 * and ward_start() refuse invalid values. */
WARD_API int ward_spec_set(struct ward_spec *s, const char *field, const char *value,
			   struct ward_error *e);
/* Adds an entry to a field that is a list: "process.env", "LANG=C". */
WARD_API int ward_spec_add(struct ward_spec *s, const char *field, const char *value,
			   struct ward_error *e);
/* Mounts one more file or directory of the host. at: the path inside; NULL: the same path. A
 * relative path is resolved now. */
WARD_API int ward_spec_mount(struct ward_spec *s, const char *path, const char *at, int writable,
			     struct ward_error *e);
/* Whether the fields may allow more than the policy file does; without it they can only narrow. */
WARD_API int ward_spec_widen(struct ward_spec *s, int widen);
/* A name for the box: letters, digits, _ . -; unique among the running boxes of a user. */
WARD_API int ward_spec_name(struct ward_spec *s, const char *name, struct ward_error *e);
/* The command, NULL-terminated. Without one the box is idle and lives until it is stopped. */
WARD_API int ward_spec_command(struct ward_spec *s, const char *const argv[], struct ward_error *e);
/* The command gets a terminal of that size instead of pipes; 0, 0: pipes again. */
WARD_API int ward_spec_terminal(struct ward_spec *s, unsigned rows, unsigned columns,
				struct ward_error *e);

/* What would happen, as one JSON object (that of `ward plan --json`); nothing is started. The
 * caller frees *ret_json with ward_free(). */
WARD_API int ward_plan(const struct ward_spec *s, char **ret_json, struct ward_error *e);

/* ---- a sandbox ---- */

enum ward_start_flags {
	/* The box outlives the handle and the host program; the command reads /dev/null, what it
	 * writes goes to the box's log (ward_log()), and its result is kept until ward_remove().
	 * Without it, freeing the handle or the end of the host program ends the box, and nothing
	 * of it is kept. */
	WARD_DETACHED = 1
};

/* Starts the spec's command in a new box and returns once it runs. The caller frees *ret_box. */
WARD_API int ward_start(const struct ward_spec *s, unsigned flags, struct ward_box **ret_box,
			struct ward_error *e);
/* Opens an existing box of this user by its name, its id, or an unambiguous prefix of the id. The
 * caller frees *ret_box. */
WARD_API int ward_open(const char *name_or_id, struct ward_box **ret_box, struct ward_error *e);
/* Frees the handle; a box that was started without WARD_DETACHED is ended first, and is gone
 * when this returns. NULL is fine. */
WARD_API void ward_box_free(struct ward_box *b);
/* The box's id; valid as long as the handle. */
WARD_API const char *ward_box_id(const struct ward_box *b);
/* The box's name, "" if it has none; valid as long as the handle. */
WARD_API const char *ward_box_name(const struct ward_box *b);
/* Returns a stream of the command: 0 is what it reads (write to it; close it for the end of
 * input), 1 and 2 what it writes. The caller owns the descriptor from then on. On a terminal 0
 * and 1 are both that terminal, may be had several times, and reading gives EIO at the end.
 * -EBADF: it was already taken, or the box has none: detached, opened, idle. */
WARD_API int ward_box_stream(struct ward_box *b, int which, struct ward_error *e);
/* A descriptor that poll() finds readable when the box has ended; the box owns it, and it
 * is only for poll(). */
WARD_API int ward_box_fd(struct ward_box *b, struct ward_error *e);
/* Waits for the end at most timeout_ms (-1: for ever). 1: it has ended, and *ret_code is what
 * `ward run` would have exited with; 0: not yet. */
WARD_API int ward_wait(struct ward_box *b, int timeout_ms, int *ret_code, struct ward_error *e);
/* The report of a box that has ended, as JSON (that of `ward run --report`); -EAGAIN before. The
 * caller frees *ret_json with ward_free(). */
WARD_API int ward_result(struct ward_box *b, char **ret_json, struct ward_error *e);
/* What the command of a detached box has written, both outputs in order: the last megabytes of
 * it. *ret_bytes (may be NULL) is its length; a NUL stands behind it. The caller frees *ret_text
 * with ward_free(). */
WARD_API int ward_log(struct ward_box *b, char **ret_text, size_t *ret_bytes, struct ward_error *e);
/* What the box uses now, as one JSON object (an entry of `ward stats --json`). The caller frees
 * *ret_json with ward_free(). */
WARD_API int ward_stats(struct ward_box *b, char **ret_json, struct ward_error *e);
/* What the box may reach and what it does with that now, as one JSON object (that of `ward net show
 * BOX --json`): mode, rules with their use, open connections, limits. The caller frees *ret_json
 * with ward_free(). */
WARD_API int ward_net_show(struct ward_box *b, char **ret_json, struct ward_error *e);
/* Changes what the box may reach while it runs. rules: NULL-terminated, each as in
 * network.egress_allowlist; all take effect together, or none. seconds: they expire after this
 * time; 0: never. When it returns, they are in force, and connections that they do not allow are
 * closed. ward_net_deny() overrides every rule that allows. */
WARD_API int ward_net_allow(struct ward_box *b, const char *const rules[], unsigned seconds,
			    struct ward_error *e);
WARD_API int ward_net_deny(struct ward_box *b, const char *const rules[], unsigned seconds,
			   struct ward_error *e);
/* Sends a signal to the box's own command. */
WARD_API int ward_signal(struct ward_box *b, int signal_number, struct ward_error *e);
/* The size of the command's terminal. */
WARD_API int ward_resize(struct ward_box *b, unsigned rows, unsigned columns, struct ward_error *e);
/* Stop every process of the box, and continue them. */
WARD_API int ward_pause(struct ward_box *b, struct ward_error *e);
WARD_API int ward_resume(struct ward_box *b, struct ward_error *e);
/* Sends SIGTERM to the command, and kills every process after grace_ms. Does not wait: see
 * ward_wait(). */
WARD_API int ward_stop(struct ward_box *b, unsigned grace_ms, struct ward_error *e);
/* Kills every process now. */
WARD_API int ward_kill(struct ward_box *b, struct ward_error *e);
/* Removes the log and report of a detached box that has ended. */
WARD_API int ward_remove(struct ward_box *b, struct ward_error *e);
/* All boxes of this user, including ended ones, as JSON (that of `ward ps -a --json`). The
 * caller frees *ret_json with ward_free(). */
WARD_API int ward_list(char **ret_json, struct ward_error *e);

/* ---- questions: approvals.mode ask ---- */

/* What a box waits for. Texts are escaped, and valid during the call alone. */
struct ward_question {
	size_t size;                /* of what the library knows: later versions add fields */
	uint64_t number;            /* of the question, from 1, in its box */
	const char *kind;           /* "connect", "request", "credential", "file", "command", ... */
	const char *subject;        /* "registry.npmjs.org:443" */
	const char *host;           /* "" if it is about none */
	const char *rule;           /* that asks */
	const char *process;        /* who asks, "" if that is not known */
	const char *const *details; /* NULL-terminated; warnings come first */
	unsigned port, count;       /* equal requests that wait for the answer */
	unsigned left_ms;           /* until it is a no */
};

enum ward_answer {
	WARD_ANSWER_NONE, /* none: others may answer, until its time is up */
	WARD_ANSWER_ONCE, /* what waits now */
	WARD_ANSWER_RUN,  /* and what is like it, until the box ends */
	WARD_ANSWER_TIME, /* and what is like it, for *ret_seconds */
	WARD_ANSWER_DENY  /* so does any other value */
};

typedef enum ward_answer ward_decide_fn(void *context, const struct ward_question *q,
					unsigned *ret_seconds);

/* Decides in place of a person: waits at most timeout_ms (-1: until the box ends) for questions,
 * hands each one that no call had yet to the function, and gives its answer. Returns how many
 * answers counted, 0 when the time is up; an answer that comes later than left_ms, or after another
 * one, does not count. -ESRCH: the box has ended; -ENOTSUP: it asks nothing. */
WARD_API int ward_decide(struct ward_box *b, ward_decide_fn *decide, void *context, int timeout_ms,
			 struct ward_error *e);

/* ---- more commands in a sandbox ---- */

struct ward_command {
	size_t size;             /* sizeof(struct ward_command): later versions add fields */
	const char *const *argv; /* NULL-terminated */
	/* NAME=VALUE on top of the box's, NULL-terminated; NULL: none */
	const char *const *env;
	const char *directory;  /* NULL: the box's */
	unsigned rows, columns; /* a terminal of that size; 0: pipes */
};

/* Starts one more command in the box, under the same policy; at most 64 run at one time
 * (-EAGAIN). The caller frees *ret_process. */
WARD_API int ward_exec(struct ward_box *b, const struct ward_command *c,
		       struct ward_process **ret_process, struct ward_error *e);
/* Returns a stream of the command, like ward_box_stream(). */
WARD_API int ward_process_stream(struct ward_process *p, int which, struct ward_error *e);
/* A descriptor that poll() finds readable when the command has ended; the process owns
 * it, and it is only for poll(). */
WARD_API int ward_process_fd(const struct ward_process *p);
/* Waits for the end of the command at most timeout_ms (-1: for ever). 1: it has ended with
 * *ret_code (128+N: by signal N; 126, 127: it could not be executed); 0: not yet. */
WARD_API int ward_process_wait(struct ward_process *p, int timeout_ms, int *ret_code,
			       struct ward_error *e);
/* Sends a signal to the command and what it started in its process group. */
WARD_API int ward_process_signal(struct ward_process *p, int signal_number, struct ward_error *e);
/* The size of the command's terminal. */
WARD_API int ward_process_resize(struct ward_process *p, unsigned rows, unsigned columns,
				 struct ward_error *e);
/* Frees the handle; a command that still runs is killed, with its process group. NULL is fine.
 * It may be called after the box was freed. */
WARD_API void ward_process_free(struct ward_process *p);

#ifdef __cplusplus
}
#endif
#endif

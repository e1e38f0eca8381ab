/*
 * The code interpreter of a sandbox: what E2B's code interpreter SDKs talk to, on port 49999
 * inside. A process of its own (ward-envd --interpreter), started when it is first asked for; its
 * kernels are processes of Python and node.
 */
#ifndef WARD_ENVD_INTERPRETER_H
#define WARD_ENVD_INTERPRETER_H

#include <pthread.h>
#include <sys/types.h>

#include "envd/interpreter_read.h"
#include "rules/http_message.h"

#define INTERPRETER_PORT 49999
#define INTERPRETER_OPTION "--interpreter"
#define INTERPRETER_BODY_MAX (8 * 1024 * 1024)

/* -- interpreter_start.c: in the resident ward-envd */

/* Starts it where none runs; arguments: what it shall have ready, LANGUAGE or LANGUAGE:MODULE,...
 * NULL: nothing. False: it cannot be started, or another program has the port. */
bool interpreter_start(const struct strv *ready);
/* Passes on the sandbox's variables, which have changed. */
void interpreter_set_config(void);

/* -- interpreter.c: the process; listens on descriptor 3, reads variables from 0 */

int interpreter_main(char **ready);

/* -- interpreter_http.c: one request a connection */

struct asked {
	int fd;
	struct buf bytes, body;
	struct http_head head;
	struct http_request request;
};

/* Reads a request whole. False: there is none that can be answered; a client that is to get an
 * error has got it. */
must_check bool asked_read(struct asked *a);
void asked_free(struct asked *a);
/* Answers with a text, or with JSON. */
void asked_answer(struct asked *a, unsigned status, const char *type, const char *body);
void asked_refuse(struct asked *a, unsigned status, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* Begins an answer whose end is the connection's. -1: the client has gone. */
must_check int asked_begin(struct asked *a, unsigned status, const char *type);
/* Whether the client has gone. */
bool asked_is_gone(const struct asked *a);

/* -- interpreter_config.c: the sandbox's variables */

/* Takes what has come from the resident. */
void variables_refresh(void);
/* Their number of version, and the object of JSON that they are, appended. */
unsigned variables_get(struct buf *out);

/* -- contexts */

struct language {
	const char *name, *alias, *program;
	bool forks; /* its kernels are forks of one process */
};

struct context {
	struct context *next;
	char id[37];
	const struct language *language;
	char *cwd;
	unsigned count; /* who uses it; under the lock of all */
	bool usual;     /* the one of its language */
	pid_t pid;      /* of its kernel; 0: none; under the lock of all */
	pthread_mutex_t run;
	/* under run: */
	int fd;        /* to its kernel; -1: none */
	unsigned seen; /* the version of the variables that the kernel has */
};

/* The language of that name, or NULL. */
const struct language *context_language(const char *name);
/* A new context, held; NULL: out of memory, or too many. */
struct context *context_new(const struct language *l, const char *cwd, bool usual);
/* The context, held; NULL: there is none. */
struct context *context_find(const char *id);
struct context *context_usual(const struct language *l);
void context_drop(struct context *c);
/* Takes it off the list, and ends its kernel. */
void context_remove(struct context *c);
/* Ends its kernel; the next execution has a new one. */
void context_end_kernel(struct context *c);
void context_interrupt(struct context *c);
/* All of them as JSON. */
void context_list(struct buf *out);
void context_show(const struct context *c, struct json *j);

/* -- interpreter_kernel.c; c->run is held */

/* Sees to it that there is a kernel; -errno with a reason. */
must_check int kernel_ready(struct context *c, char *why, size_t n);
void kernel_close(struct context *c);
/* What the first process of a language that forks shall import. */
void kernel_preload(const struct language *l, const char *modules);
/* -1: the kernel has gone. */
must_check int kernel_send(struct context *c, const struct buf *message);

/* -- interpreter_run.c */

/* Runs code for a client, and answers. */
void interpreter_run(struct asked *a, struct context *c, const struct execution *e);

#endif

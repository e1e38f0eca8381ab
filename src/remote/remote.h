/*
 * ward-remote: `ward --host URL VERB`. Verbs of ward at a server (ward serve), over HTTP.
 *
 * Nothing that the server says reaches a terminal as it is: texts are escaped, output of commands
 * passes the filter of base/terminal.h. The program opens what files it needs, then gives up the
 * rest (row REMOTE of tables/procs.def), then connects.
 */
#ifndef WARD_REMOTE_REMOTE_H
#define WARD_REMOTE_REMOTE_H

#include "base/say.h"
#include "remote/value.h"

enum remote_verb {
#define VERB(id, ...) REMOTE_##id,
#include "remote/verbs.def"
	REMOTE_VERBS
};

#define REMOTE_ID 20 /* characters of a sandbox's id */

struct remote {
	enum remote_verb verb;
	bool all, quiet, json, follow, input, tty, once, for_run, deny, unused;
	const char *tail, *cwd, *grace, *for_time, *role, *ttl, *name, *sandbox, *limits, *env;
	struct strv envs; /* --env may stand there more than once */
	char **words;     /* NULL-terminated; borrowed */
	size_t word_count;

	const char *host;       /* URL, without a slash at its end */
	const char *token_file; /* NULL: WARD_TOKEN, or the usual file */
	const char *ca_file;    /* NULL: those of the system */
	char token[512];
	struct http *http; /* owned by main() */
};

/* Each verb. Returns the exit code. */
#define VERB(id, name, ...) int remote_##name(struct remote *r);
#include "remote/verbs.def"

/* Reads argv behind the program's name. */
must_check int remote_read(struct remote *r, int argc, char **argv, struct ward_err *e);
/* The key or token: of the file, WARD_TOKEN, or ward/token in the user's configuration. */
must_check int remote_read_token(struct remote *r, struct ward_err *e);

/* Gives up what the process does not need, but for the directory (-1: none), where it may write,
 * and gets ready to connect. */
must_check int remote_confine(struct remote *r, int dir_fd, struct ward_err *e);

/* Prints the error; 125. */
int remote_fail(const struct remote *r, const struct ward_err *e);

/* -- sandboxes: list.c */

struct remote_box {
	char id[REMOTE_ID + 1];
	bool paused;
	const struct value *row; /* of the list */
};

struct remote_boxes {
	struct values *pages; /* owned */
	size_t page_count;
	struct remote_box *items; /* owned */
	size_t *of;               /* the page of each; owned */
	size_t len;
};

/* All of them, the youngest first. */
must_check int remote_list(struct remote *r, struct remote_boxes *ret, struct ward_err *e);
void remote_boxes_free(struct remote_boxes *b);
/* What the row of number i is in. */
const struct values *remote_page(const struct remote_boxes *b, size_t i);
/* The one whose id begins with the word. */
must_check int remote_find(struct remote *r, const char *word, char ret[REMOTE_ID + 1],
			   struct ward_err *e);
/* The ids that the words name, or all with --all. The caller frees. */
must_check int remote_choose(struct remote *r, struct strv *ret, struct ward_err *e);

#endif

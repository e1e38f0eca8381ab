/*
 * The keeper: the one process of wardd that starts and ends sandboxes. It reads no byte of a client
 * and none of a sandbox: only messages of the front, of a fixed form, each value checked against
 * what the front may ask for.
 */
#ifndef WARD_DAEMON_KEEPER_H
#define WARD_DAEMON_KEEPER_H

#include <limits.h>

#include "base/err.h"
#include "daemon/route.h"
#include "ward/ward.h"

#define TAG 4 /* characters at the start of the ids of all sandboxes of one server */

enum keeper_op {
	KEEPER_START = 1, /* answers with the pipes of ward-envd; text: keeper_facts.h */
	KEEPER_ATTACH,    /* the same for one that runs */
	KEEPER_KILL,      /* fine also if there is none */
	KEEPER_PAUSE,
	KEEPER_RESUME,
	KEEPER_CUT,       /* takes its network away */
	KEEPER_STATS,     /* text: JSON */
	KEEPER_LIST,      /* text: ids of this server's sandboxes, each with a line end */
	KEEPER_SAVE,      /* keeps its files as a snapshot; text: bytes */
	KEEPER_DROP,      /* removes a snapshot; fine also if there is none */
	KEEPER_QUESTIONS, /* text: JSON objects with commas between: what it asks */
	KEEPER_ANSWER,    /* answers a question; -ENOENT: it is not there any more */
	KEEPER_TEMPLATES, /* text: a line for each template, its name and keeper_facts.h */
	KEEPER_VERSION,   /* text: a digest of what the template's policy is now */
	KEEPER_SNAPSHOTS, /* text: ids of snapshots, each with a line end */
	KEEPER_OPS
};

struct keeper_answer {
	uint64_t number; /* of the question */
	uint32_t seconds;
	uint8_t answer; /* enum ward_answer */
};

struct keeper_request {
	uint32_t seq;
	uint8_t op;
	uint8_t no_network; /* START: narrower than the template */
	uint8_t files_only; /* PAUSE, RESUME: its programs are ended */
	uint8_t passing;    /* SAVE: it need not outlive the machine */
	char id[SANDBOX_ID + 1];
	char template[TEMPLATE_MAX + 1];
	char snapshot[SANDBOX_ID + 1]; /* SAVE, DROP; START: with its files; "": none */
	uint64_t most;                 /* SAVE: bytes that the snapshot may have */
	struct keeper_answer answer;
};

struct keeper_reply {
	uint32_t seq;
	int32_t result; /* 0 or -errno; the text says why */
	uint32_t bytes;
};

#define KEEPER_TEXT_MAX (256 * 1024) /* more than a line for each of the most sandboxes */

/* What the keeper knows from its start. */
struct keeper {
	const char *ward;      /* the program */
	const char *envd;      /* the path of ward-envd */
	const char *templates; /* directory of policies, NAME.yaml; may be NULL */
	const char *base;      /* the policy of a built-in template where the directory has none */
	const char *workspace; /* an empty directory */
	int snapshots_fd;      /* the directory of snapshots */
	char tag[TAG + 1];
	int fd; /* the front's other end */
};

/* A request that is worked on. */
struct work {
	const struct keeper *k;
	struct keeper_request q;
	struct ward_error e;
	struct buf text;
	int fds[2];
};

/* Answers the front's messages in so many threads until the front has gone. */
void keeper_run(const struct keeper *k, unsigned threads);

/* Fills w->e; returns -error. */
int keeper_bad(struct work *w, int error, const char *why);

/* The policy of the request's template. */
must_check int keeper_find_policy(struct work *w, char ret[PATH_MAX]);
must_check int keeper_fill_spec(struct work *w, struct ward_spec *s, const char *policy);

/* -- keeper_approve.c */

must_check int keeper_questions(struct work *w, struct ward_box *b);
must_check int keeper_give_answer(struct work *w, struct ward_box *b);

/* -- keeper_templates.c */

must_check int keeper_list_templates(struct work *w);

/* -- keeper_snapshot.c: each returns 0 or -errno with w->e */

/* Keeps the files of a running sandbox. */
must_check int keeper_save(struct work *w, struct ward_box *b);
/* Makes the files of the snapshot in a sandbox in which nothing has run yet. */
must_check int keeper_load(struct work *w, struct ward_box *b);
must_check int keeper_drop(struct work *w);
must_check int keeper_list_snapshots(struct work *w);
/* Removes what a server that was killed has begun to write. */
void keeper_sweep_snapshots(int dir_fd);

#endif

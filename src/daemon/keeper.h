/*
 * The keeper: the one process of wardd that starts and ends sandboxes. It reads no byte of a client
 * and none of a sandbox: only messages of the front, of a fixed form, each value checked against
 * what the front may ask for.
 */
#ifndef WARD_DAEMON_KEEPER_H
#define WARD_DAEMON_KEEPER_H

#include "base/err.h"
#include "daemon/route.h"

#define TAG 4 /* characters at the start of the ids of all sandboxes of one server */

enum keeper_op {
	KEEPER_START = 1, /* answers with the pipes of ward-envd; text: keeper_facts.h */
	KEEPER_ATTACH,    /* the same for one that runs */
	KEEPER_KILL,      /* fine also if there is none */
	KEEPER_PAUSE,
	KEEPER_RESUME,
	KEEPER_CUT,   /* takes its network away */
	KEEPER_STATS, /* text: JSON */
	KEEPER_LIST,  /* text: ids of this server's sandboxes, each with a line end */
	KEEPER_OPS
};

struct keeper_request {
	uint32_t seq;
	uint8_t op;
	uint8_t no_network; /* START: narrower than the template */
	uint8_t files_only; /* PAUSE, RESUME: its programs are ended */
	char id[SANDBOX_ID + 1];
	char template[TEMPLATE_MAX + 1];
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
	const char *base;      /* the policy of the template "base" where the directory has none */
	const char *workspace; /* an empty directory */
	char tag[TAG + 1];
	int fd; /* the front's other end */
};

/* Answers the front's messages in so many threads until the front has gone. */
void keeper_run(const struct keeper *k, unsigned threads);

#endif

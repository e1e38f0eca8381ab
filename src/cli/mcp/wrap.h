/*
 * Wrapping an MCP server: ward mcp wrap, trust, ls. The server runs in sandboxes, one for each
 * distinct scope of its tools; a relay (relay.h) reads what it says; a call of a client is a
 * process of work.c, which asks the relay of the tool's sandbox.
 *
 *   wrap.c       the verb: what is offered, and in which sandbox each tool runs
 *   source.c     which command, under which policy: of the options, or as it was accepted
 *   instance.c   one sandbox with its relay
 *   wrap_call.c  one call, in its process
 *   trust.c      accepting definitions
 *   wrapped_ls.c what accepted servers can do
 */
#ifndef WARD_CLI_MCP_WRAP_H
#define WARD_CLI_MCP_WRAP_H

#include "cli/mcp/parts.h"
#include "cli/mcp/relay.h"
#include "tools/call.h"

#define INSTANCES_MAX 16
#define WRAP_CALL_MS 60000
#define WRAP_RESULT_MAX (1u << 20)

/* What a policy lets a server do, as far as annotations speak of it. */
struct walls {
	bool writes; /* files that last */
	bool world;  /* any host */
};

/* -- source.c */

/* A command and its policy. */
struct source {
	char name[PINS_NAME_MAX + 1];
	struct strv command;
	struct buf document; /* the policy: every field of it */
	char *cwd;
	struct walls walls;
	uint64_t ask_ms; /* approvals.timeout_seconds */
	struct pins pins;
	bool known; /* pins is what was accepted before */
};
/* Of the options; without a command among them that of what was accepted under --name, with its
 * policy. The caller frees *ret in any case. */
must_check int source_read(struct options *o, char *const *words, struct source *ret,
			   struct ward_err *e);
void source_free(struct source *s);
/* The walls of a policy; NULL: its text cannot be read. */
must_check int source_walls(const char *document, struct walls *ret, struct policy *ret_policy,
			    struct ward_err *e);
/* "reads DIR; writes nothing; reaches nothing" of a policy, one fact a line behind the indent. */
void source_put_walls(const struct policy *p, const char *indent, struct buf *out);

/* -- instance.c */

struct instance {
	char *document, *cwd; /* its policy; owned */
	struct call_place place;
	pid_t run, relay; /* 0: it does not run */
	int control_fd;
	unsigned starts;           /* within a minute */
	uint64_t first_ms, end_ms; /* the first of them; when it was asked to end, 0: it was not */
	bool signalled;
};

/* What all instances of a server have in common. */
struct instance_kind {
	const char *name;
	char *const *command;
	const struct pins *pins; /* NULL: nothing is accepted */
	bool keep, mute;
};

/* Connects a call; starts the server where it does not run. *ret_fd is the caller's. -EBUSY: it is
 * about to end, and can be started again when it has. */
must_check int instance_connect(struct instance *i, const struct instance_kind *kind, int *ret_fd,
				struct ward_err *e);
must_check int instance_start(struct instance *i, const struct instance_kind *kind,
			      struct ward_err *e);
/* It ended by itself, or shall. */
void instance_end(struct instance *i);
/* Goes on with that. Milliseconds until there is something to do; -1: nothing. */
int instance_on_time(struct instance *i, uint64_t now_ms);
/* Until it is gone. */
void instance_stop(struct instance *i);
void instance_free(struct instance *i);

/* -- wrap.c */

/* A tool of the server. */
struct wrapped {
	const struct pinned_tool *pin;
	const struct tool_tool *entry; /* of the tools.yaml; NULL: none */
	uint32_t number;               /* of the pin */
	size_t instance;
	uint64_t timeout_ms, result_max;
	enum relay_drift drift;
};

struct wrap {
	struct source source;
	struct instance_kind kind;
	struct wrapped *tools; /* one for each pin; owned */
	struct instance instances[INSTANCES_MAX];
	size_t instance_count;
	struct call_place
		place;    /* for its empty directory: the workspace of scopes without files */
	uint64_t call_ms; /* of a call; 0: as long as it takes */
	bool instructions_differ, said_fresh;
};

/* -- wrap_call.c: in a call's process */

void wrap_call(const struct server *s, const struct work *w, int fd, struct buf *out);

#endif

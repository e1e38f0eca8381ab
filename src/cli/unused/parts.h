/* Parts of `ward check --unused`. */
#ifndef WARD_CLI_UNUSED_PARTS_H
#define WARD_CLI_UNUSED_PARTS_H

#include "cli/explain_parts.h"
#include "policy/node.h"
#include "rules/decide.h"
#include "tools/check.h"
#include "tools/load.h"

#define UNUSED_LEVELS 4 /* AUDIT_FULL .. AUDIT_BASIC */
#define UNUSED_WHOLE SIZE_MAX

/* What a grant gives. */
enum unused_kind {
	UNUSED_NETWORK, /* network.mode: open */
	UNUSED_EGRESS,  /* a rule, and its */
	UNUSED_PORT,    /* ... ports */
	UNUSED_METHOD,  /* ... HTTP methods */
	UNUSED_SERVICE, /* network.host_services */
	UNUSED_INGRESS, /* a published port */
	UNUSED_MOUNT,   /* filesystem.host_mounts, and */
	UNUSED_WRITING, /* ... that it is writable */
	UNUSED_CHANGES, /* filesystem.mode: read_write */
	UNUSED_GRANT,   /* credentials.grants */
	UNUSED_SSH,
	UNUSED_GPG,
	UNUSED_COMMAND,  /* process.commands.allow */
	UNUSED_CHILDREN, /* process.children */
	UNUSED_CHANNEL,
	UNUSED_TOOL,    /* a tool of a tools.yaml, and */
	UNUSED_HOLDING, /* ... that an agent holds it */
	UNUSED_READ,    /* ... paths, hosts, methods and credentials of its scope */
	UNUSED_WRITE,
	UNUSED_HOST,
	UNUSED_VERB,
	UNUSED_SECRET
};

enum unused_verdict { UNUSED_IS_USED, UNUSED_NEVER, UNUSED_UNKNOWN, UNUSED_IMPLIED };

/* What is on record of the runs that could have used a grant. */
struct unused_record {
	uint64_t runs, by_level[UNUSED_LEVELS];
	uint64_t lost;     /* events that could not be written */
	uint64_t nameless; /* calls of a tool that named no agent */
};

struct unused_grant {
	uint8_t kind;  /* enum unused_kind */
	uint8_t level; /* AUDIT_*: its use is on record from this one on */
	size_t index;  /* in its list */
	size_t whole;  /* the grant that it is a part of, UNUSED_WHOLE: none */
	size_t record; /* number of its record */
	unsigned port;
	char *text;  /* what is compared; owned, may be NULL */
	char *shown; /* for people, harmless; owned */
	char *way;   /* for document_cut(); owned, NULL: it is not taken out */
	char *kept;  /* why it stays although it was not used; owned */
	struct place at;
	uint64_t uses;
	bool exempt; /* it is there not to be used */
};

struct unused {
	const struct options *o;
	const char *file; /* as it was named */
	char *path;       /* absolute, links resolved; owned */
	uint64_t since_us, first_us;
	unsigned days;
	struct buf bytes;
	struct node *root; /* of the file; owned */
	struct unused_grant *grants;
	size_t count, cap;
	struct unused_record *records;
	size_t record_count;
	struct strv notes;
	bool failed; /* out of memory */
	uint64_t runs;
	/* the run at hand */
	char *workspace; /* owned; NULL: unknown */
	unsigned level;
	bool counted;
	size_t record;      /* its record; UNUSED_WHOLE: none */
	struct strv family; /* runs under the policy, for their children */
	/* what the file is */
	bool is_tools;
	struct policy policy;
	struct rules *rules;
	struct tools_source source;
	struct rules **tool_rules; /* of each tool's hosts; owned */
	size_t tool;               /* that is called */
	/* the narrowed file */
	struct buf narrowed;
	struct strv done; /* "FIELD: VALUE" that is set */
};

/* One more grant; text and way are taken, NULL where they are not needed. Returns its number. */
size_t unused_add(struct unused *u, enum unused_kind kind, size_t index, char *text, char *way,
		  const char *format, ...) __attribute__((format(printf, 6, 7)));
/* A use of a grant. */
void unused_count(struct unused *u, enum unused_kind kind, size_t index);
/* The node that a way leads to, NULL: none. */
const struct node *unused_node(const struct unused *u, const char *way);
enum unused_verdict unused_judge(const struct unused *u, const struct unused_grant *g);
/* Whether it is taken out. */
bool unused_goes(const struct unused *u, const struct unused_grant *g);
/* The text of a field; NULL: there is none. The caller frees. */
char *unused_text(const struct ward_event *v, enum event_field f);
/* The rule that decides for a connection or request, -1: none; *ret_service: the service. */
int32_t unused_rule(const struct rules *r, const struct ward_event *v, int32_t *ret_service);
/* Rules for finding which one is meant: as if there were a network and a person. */
must_check int unused_compile(const struct policy *p, struct rules **ret, struct ward_err *e);
/* The path of an event, absolute and clean; NULL: it has none. The caller frees. */
char *unused_path(const struct ward_event *v);

/* Each for policies and for tools: reads the file and adds its grants; looks at one event. */
must_check int unused_read_policy(struct unused *u, struct ward_err *e);
void unused_see_policy(struct unused *u, const struct ward_event *v);
must_check int unused_read_tools(struct unused *u, struct ward_err *e);
void unused_see_tools(struct unused *u, const struct ward_event *v);

/* What restricts others stays: marks those grants. */
void unused_keep(struct unused *u);
/* Makes u->narrowed, the file without what goes; empty where nothing does. It allows nothing more
 * than the file, or there is none. */
must_check int unused_narrow(struct unused *u, struct ward_err *e);
/* Writes it to a new file. */
must_check int unused_write(const struct unused *u, const char *file, struct ward_err *e);
/* Prints the report; the exit code, or -errno with *e. */
must_check int unused_report(struct unused *u, struct ward_err *e);

#endif

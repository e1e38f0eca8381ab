/* What a program inside asks of ward (process.children): the words of its command line. */
#ifndef WARD_CLI_CHILDREN_REQUEST_H
#define WARD_CLI_CHILDREN_REQUEST_H

#include "base/err.h"
#include "rules/command_rule.h"

#define CHILD_OPTIONS_MAX 64

enum child_kind {
	CHILD_FIELD,  /* sets a field of the policy */
	CHILD_APPEND, /* one more entry of a list */
	CHILD_PAIR,   /* FIELD=VALUE */
	CHILD_RULE,   /* HOST[:PORT] */
	CHILD_READ,   /* a mount of the parent's, read-only */
	CHILD_WRITE,  /* the same, as it is there */
	CHILD_CWD,
	CHILD_NAME
};

enum child_verb { CHILD_RUN, CHILD_SEND, CHILD_RECEIVE };

struct child_option {
	enum child_kind kind;
	const char *name;  /* as it is written, static */
	const char *field; /* static */
	const char *value;
};

/* Everything points into the words that were read, or is static. */
struct child_request {
	enum child_verb verb;
	const char *name; /* of the child; of the channel; NULL: none */
	const char *to;   /* CHILD_SEND: who receives it; NULL: the only one */
	const char *text; /* CHILD_SEND */
	unsigned wait_s;  /* CHILD_RECEIVE; 0: until there is a message */
	struct child_option options[CHILD_OPTIONS_MAX];
	size_t option_count;
	const char *cwd;     /* NULL: the workspace */
	const char *command; /* its words, each ended by NUL */
	size_t word_count;
};

/* Whether a child may be called so. Pure. */
bool child_is_name(const char *name);
/* Reads `ward run [options] [--] CMD...`, `ward send` and `ward receive`. A pure function over
 * untrusted bytes; what is not that is -EINVAL with the reason. */
must_check int child_request_read(const struct command_said *said, struct child_request *ret,
				  struct ward_err *e);

#endif

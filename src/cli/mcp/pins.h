/* What a person has accepted of an MCP server: its command, its tools, and the policy that it had
 * then. A file in the state directory for each server. */
#ifndef WARD_CLI_MCP_PINS_H
#define WARD_CLI_MCP_PINS_H

#include "base/sha256.h"
#include "policy/node.h"

#define PINS_NAME_MAX 64

struct pinned_tool {
	const char *name;                  /* borrowed from the tree */
	char hex[SHA256_HEX];              /* of the definition */
	const struct node *node;           /* the definition */
	const struct node *input, *output; /* its schemas; output: NULL: none, or not enforceable */
};

struct pins {
	char *name;        /* owned */
	struct node *root; /* owned */
	struct strv command;
	const char *accepted;      /* when: RFC 3339 */
	const char *policy, *cwd;  /* that the server had then: a document, and where it started */
	const char *instructions;  /* NULL: none */
	struct pinned_tool *tools; /* sorted by name; owned */
	size_t count;
};

/* What a server says, for a new record. */
struct pins_draft {
	const char *name;
	char *const *command;
	const char *policy, *cwd;
	const struct node *said; /* {instructions, tools, unusable} of a relay */
};

/* Whether it can be a server's name. */
bool pins_is_name(const char *name);
/* A name for a command that was given none: of its program, or of the script that runs in it. */
void pins_default_name(char *const *command, char ret[PINS_NAME_MAX + 1]);

/* Reads what was accepted; -ENOENT: nothing was. The caller frees *ret in any case. */
must_check int pins_load(const char *name, struct pins *ret, struct ward_err *e);
void pins_free(struct pins *p);
const struct pinned_tool *pins_find(const struct pins *p, const char *tool);
/* Refuses where the record is of another command. */
must_check int pins_check_command(const struct pins *p, char *const *command, struct ward_err *e);
/* Accepts what the draft says from now on. */
must_check int pins_save(const struct pins_draft *d, struct ward_err *e);
/* Forgets it; -ENOENT: nothing was accepted. */
must_check int pins_remove(const char *name, struct ward_err *e);
/* The names of all, sorted. */
must_check int pins_list(struct strv *ret, struct ward_err *e);

/* What a person reads of a server: its instructions, and each tool with all that its definition
 * says, a fact a line. Two such texts differ where the definitions do. */
void pins_show(const char *instructions, const struct node *tools, struct buf *out);

#endif

/* What a tools.yaml says, typed: one struct per OBJECT and one member per KEY of tables/tools.def.
 * The texts lie in the document's tree, which the file owns. */
#ifndef WARD_TOOLS_TOOLS_H
#define WARD_TOOLS_TOOLS_H

#include "policy/node.h"
#include "policy/policy.h"

#define TOOLS_FILE_NAME "tools.yaml"
#define TOOLS_BYTES_MAX NODE_BYTES_MAX
#define TOOLS_NAME_MAX 64
#define TOOLS_LIST_VALUES_MAX 64 /* values of one parameter */

/* A list of objects of one kind. */
struct tools_list {
	void *items; /* owned */
	size_t len;
};

/* First in every object: its place. */
struct tool_head {
	const struct node *node; /* NULL: it is not written there */
	const char *name;        /* its key, "" where it has none */
};

struct tool_pair {
	struct tool_head head;
	const char *text;
};

enum tools_said { SAID_NOTHING, SAID_FALSE, SAID_TRUE };

/* How each TYPE of the table is held. */
#define TOOLS_C_TEXT const char *
#define TOOLS_C_ENUM unsigned
#define TOOLS_C_BOOL bool
#define TOOLS_C_SAID enum tools_said
#define TOOLS_C_UINT uint64_t
#define TOOLS_C_SIZE uint64_t
#define TOOLS_C_CPUS uint64_t
#define TOOLS_C_SECONDS uint64_t
#define TOOLS_C_STRINGS struct strv
#define TOOLS_C_RULES struct strv /* each as one line of canonical JSON */
#define TOOLS_C_JSON char *       /* owned, NULL: none */
#define TOOLS_C_SCALAR const char *
#define TOOLS_C_PAIRS struct tools_list
#define TOOLS_C_MAP struct tools_list
#define TOOLS_C_LIST struct tools_list

#include "tools_structs.h"

/* Values of ENUM keys, in the order of the table. */
enum { RESULT_BLOCK, RESULT_REPORT };
enum { METHOD_GET, METHOD_HEAD };
enum {
	PARAM_STRING,
	PARAM_INTEGER,
	PARAM_NUMBER,
	PARAM_BOOLEAN,
	PARAM_ENUM,
	PARAM_PATH,
	PARAM_URL,
	PARAM_HOST
};
enum { ACCESS_READ, ACCESS_WRITE };
enum { ENGINE_VM, ENGINE_GVISOR, ENGINE_OCI, ENGINE_WASM, ENGINE_NATIVE };
enum { APPROVAL_ALWAYS, APPROVAL_NEVER };

struct tools {
	struct node *root; /* owned */
	struct tool_file file;
};

/* The object number i of a list of struct tool_KIND. */
#define tools_at(kind, list, i) (&((struct tool_##kind *)(list)->items)[i])

/* Reads a YAML or JSON document into *ret, which tools_free() frees in any case. All errors at once
 * in *errors, as the policy's reader has them; 0, -EINVAL when there is any, -ENOMEM. Pure. */
must_check int tools_read(struct tools *ret, const char *name, const uint8_t *bytes, size_t n,
			  struct policy_errors *errors);
void tools_free(struct tools *t);
#define auto_tools __attribute__((cleanup(tools_free))) struct tools

/* NULL: there is none of that name. */
const struct tool_tool *tools_find(const struct tools *t, const char *name);
const struct tool_agent *tools_find_agent(const struct tools *t, const char *name);
const struct tool_server *tools_find_server(const struct tools *t, const char *name);
const struct tool_param *tools_find_param(const struct tool_tool *tool, const char *name);

/* Where a key of an object stands; where the object begins if it has no such key. */
struct place tools_place(const struct tool_head *head, const char *key);
/* The word of an ENUM key; static text. */
const char *tools_word(const char *object, const char *key, unsigned index, char ret[32]);

/* A JSON value of a document of either syntax, on one line: words that are numbers become numbers.
 * Keys keep their order. */
void tools_json(const struct node *n, struct buf *out);

#endif

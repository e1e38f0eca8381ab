/* JSON Schema 2020-12: the subset that docs/tools.md states. */
#ifndef WARD_TOOLS_JSON_SCHEMA_H
#define WARD_TOOLS_JSON_SCHEMA_H

#include "policy/node.h"

/* A schema that is refused, or a value that does not match. */
struct schema_error {
	char path[256];    /* JSON Pointer into the schema or the value */
	char message[256]; /* one line, harmless for a terminal */
	unsigned line, column;
};

/* Whether every keyword of the schema is one that is enforced, and well-formed; strict: unknown
 * ones are errors, too, with the nearest known name. A keyword that would narrow and is not
 * enforced is refused in any case. 0, or -EINVAL with *ret. A pure function. */
must_check int json_schema_check(const struct node *schema, bool strict, struct schema_error *ret);

/* Whether the value matches a schema that was checked. 0, -EINVAL with *ret, or -ERANGE with *ret:
 * it would take too long, or a number is too long to compare. A pure function. */
must_check int json_schema_validate(const struct node *schema, const struct node *value,
				    struct schema_error *ret);

/* Whether two values are equal, as JSON Schema has it: 1 is 1.0, the order of keys does not count.
 * A pure function. */
bool json_equal(const struct node *a, const struct node *b);
/* What $ref leads to; NULL: nothing. */
const struct node *json_schema_ref(const struct node *root, const char *ref);

#endif

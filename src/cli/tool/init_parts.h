/* Parts of `ward tool init`. */
#ifndef WARD_CLI_TOOL_INIT_PARTS_H
#define WARD_CLI_TOOL_INIT_PARTS_H

#include "cli/tool/parts.h"

/* A draft from an OpenAPI 3 document. */
must_check int init_openapi(const char *file, struct buf *out, struct ward_err *e);

/* A member of a map, or NULL; its text, or NULL. */
const struct node *init_member(const struct node *n, const char *key);
const char *init_text(const struct node *n, const char *key);
/* A text in quotes. */
void init_quote(struct buf *out, const char *text);
bool init_is_name(const char *s);
/* A line of `parameters:`; false, and nothing is appended: it is no simple value. */
bool init_param(const struct node *schema, const char *name, bool required, struct buf *out);

#endif

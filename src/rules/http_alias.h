/*
 * Names that servers take for one another, and requests that are not what their first line says. A
 * gateway that decides about one name must know the others: many servers read X_Name as X-Name
 * (CGI, WSGI), the name of a parameter without its escapes, and the method from a header or a
 * parameter. Pure functions, fuzzed with fuzz/http_rule.c and fuzz/inject.c.
 */
#ifndef WARD_RULES_HTTP_ALIAS_H
#define WARD_RULES_HTTP_ALIAS_H

#include "rules/http_message.h"

/* Whether some server takes a field's name for this one: whatever the case, "_" for "-". */
bool http_name_like(const char *name, size_t n, const char *word);

/* The only field that any server would take for this one; .s is NULL: none, several, or one of
 * another spelling (*ret_count: how many). */
struct http_text http_field_only(const struct http_fields *f, const char *name,
				 unsigned *ret_count);

/* Whether some server takes a parameter's name for this one: without escapes, whatever the case. */
bool http_parameter_like(const char *name, size_t n, const char *word);

/* Whether some header or parameter says another method, and which: 0, 1, 2 ... until .s is NULL. */
struct http_text http_override(const struct http_request *r, unsigned which);

/* Whether a header says another path, for servers that take it from there. */
bool http_moves_path(const struct http_request *r);

#endif

/*
 * What a request is about, from its Host, its headers and its target. Pure functions, fuzzed
 * (fuzz/serve_route.c): nothing here knows which sandboxes exist.
 */
#ifndef WARD_DAEMON_ROUTE_H
#define WARD_DAEMON_ROUTE_H

#include "base/sha256.h"
#include "rules/http_message.h"

#define SANDBOX_ID 20 /* characters: lower-case letters and digits */
#define ENVD_PORT 49983
#define INTERPRETER_PORT 49999 /* the code interpreter of ward-envd listens there */
#define TEMPLATE_MAX 63
#define NAMED_MAX 80 /* of what a path of the control plane names: "NAME:TAG" */

struct route_to {
	char id[SANDBOX_ID + 1]; /* "": none is named */
	uint16_t port;
};

/* Whether n bytes can be the id of a sandbox. */
bool route_is_id(const char *s, size_t n);

/* Reads to which sandbox and port a request goes: E2b-Sandbox-Id and E2b-Sandbox-Port on a host
 * that names none, or "PORT-ID" as the host's first label. 1: *ret is filled; 0: neither is there:
 * the control plane; -1: there is one that cannot be read. */
must_check int route_host(const struct host *host, const struct http_fields *fields,
			  struct route_to *ret);

/* Whether it is a name that a template may have. */
bool route_is_template(const char *name);
/* Templates that the server has without a file; no snapshot may be called so. NULL behind the last
 * one. */
const char *route_built_in(size_t i);
bool route_is_built_in(const char *name);
/* Reads what a request calls a template: NAME or NAME:TAG; the tag is "latest" or as in
 * "default". False: it cannot be one. */
must_check bool route_read_template(const char *text, char ret[TEMPLATE_MAX + 1]);

enum route_verb {
	ROUTE_NONE,
#define ROUTE(id, ...) ROUTE_##id,
#include "daemon/routes.def"
	ROUTES
};

/* Finds the row of a method and a path of the control plane. ret_id: what stands for {id}, decoded;
 * at most n bytes with its NUL. *ret_status is 404 or 405 where there is none. */
must_check enum route_verb route_find(struct http_text method, struct http_text path, char *ret_id,
				      size_t n, unsigned *ret_status);
/* What a credential must have (enum access_right). */
unsigned route_right(enum route_verb verb);
const char *route_method(enum route_verb verb);
const char *route_path(enum route_verb verb);
/* The row's ID, as the log calls it. */
const char *route_name(enum route_verb verb);

/* The signature of a file URL, "v1_" and the base64 of a digest, in two steps: what all sandboxes
 * have in common is read once, and tried with the token of each. expires NULL: none. Appended. */
void route_sign_begin(const char *path, const char *operation, const char *user,
		      struct sha256 *ret);
void route_sign_end(const struct sha256 *begun, const char *token, const char *expires,
		    struct buf *out);
/* Compares without saying by its time where they differ. */
bool route_equal(const char *a, const char *b);

#endif

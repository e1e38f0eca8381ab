/*
 * Who a client is, and what follows from that: the front's side of access.h. Each call of the
 * control plane is decided twice, by the role before its body is read, and by what it is about in
 * its handler; each is written down (audit.c).
 */
#ifndef WARD_DAEMON_CONTROL_ACCESS_H
#define WARD_DAEMON_CONTROL_ACCESS_H

#include "daemon/access.h"
#include "daemon/front.h"

#define TOKENS_OF_OWNER 256 /* with its keys */
#define SECRET_MAX 44

/* A key; or a token, and the key that made it. */
struct credential {
	struct access_who own, parent;
	bool derived;
};

/* Finds who asks, by X-API-KEY or Authorization: Bearer. False: it was answered. */
must_check bool access_identify(struct conn *c);
/* Whether the credential of the connection has the right to that; says in c->denied why not. */
must_check bool access_may(struct conn *c, enum access_right right, const struct access_what *what);
/* The same; answers if not. */
must_check bool access_require(struct conn *c, enum access_right right,
			       const struct access_what *what);
/* The same for a sandbox, without an answer and without c->denied: whether it exists for it. */
must_check bool access_sees(struct conn *c, const struct sandbox *s);
must_check bool access_sees_snapshot(struct conn *c, const struct snapshot *n);
/* Whether sandboxes of this template are any that it is for. */
must_check bool access_sees_template(struct conn *c, const char *name, const char *engine);
struct access_what access_of_sandbox(const struct sandbox *s);
/* What opens the sandbox, or its private ports, for the connection's credential: the sandbox's own
 * token for a key; for a token "ID.DIGEST", which ends with the token. */
void access_sandbox_token(struct conn *c, const struct sandbox *s, bool traffic,
			  char ret[ENVD_TOKEN_MAX + 1]);
/* Whether the text is one of these; the connection ends with the token then. */
must_check bool access_is_sandbox_token(struct conn *c, const struct sandbox *s, bool traffic,
					const char *text);
/* Ends connections to sandboxes whose token has ended: once a second, or at once. */
void access_tick(struct front *f, bool now_already);

/* -- registry_access.c */

must_check bool registry_find_secret(sqlite3 *db, const char *secret, struct credential *ret);
must_check bool registry_find_credential(sqlite3 *db, const char *id, struct credential *ret);
/* 0 or -EIO. A secret that is there already stays as it is. */
must_check int registry_add_credential(sqlite3 *db, const char *secret, const struct access_who *w);
/* How many there are, at most; or -EIO. Of all owners for "*". */
must_check int registry_list_credentials(sqlite3 *db, const char *owner, struct access_who *ret,
					 size_t most);
/* Removes it, and the tokens that were made with it. How many, or -EIO. */
must_check int registry_drop_credential(sqlite3 *db, const char *id);
must_check int registry_drop_expired(sqlite3 *db, const char *owner, int64_t now_ms);

/* -- calls of /ward/v1: control_approve.c, events.c, openapi.c, stop.c, templates.c */

void control_approvals(struct conn *c);
void control_approve(struct conn *c);
void control_events(struct conn *c);
void control_openapi(struct conn *c);
void control_stop(struct conn *c);
void control_templates(struct conn *c);
void control_template_alias(struct conn *c);

/* -- control_token.c */

must_check bool access_make_secret(char ret_secret[SECRET_MAX + 1], char ret_id[CREDENTIAL_ID + 1]);
void control_token_create(struct conn *c);
void control_tokens(struct conn *c);
void control_token_revoke(struct conn *c);

/* -- audit.c */

/* Opens the file; it is written on after a restart. */
must_check int audit_open(struct front *f, const char *dir, struct ward_err *e);
/* Writes down a call of the control plane that was answered, or a request to a sandbox. */
void audit_call(struct conn *c);
void audit_sandbox_request(struct conn *c, const struct sandbox *s);
/* Whether what is done now would be written down. */
bool audit_works(struct front *f);
void control_audit(struct conn *c);

#endif

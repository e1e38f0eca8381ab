/* The secrets of a sandbox that runs, as the verbs see them: never a secret itself. */
#ifndef WARD_CONTROL_CLIENT_SECRET_H
#define WARD_CONTROL_CLIENT_SECRET_H

#include "control/client.h"
#include "protocol/secrets.h"

/* What the sandbox has; rows are the caller's to free. */
must_check int client_secret_list(struct client *c, struct secrets_row **ret, size_t *ret_count,
				  struct ward_err *e);
/* One more grant. line: canonical; value_fd: where the secret can be read from (borrowed), -1: its
 * source is asked. *ret_shown is the placeholder, the caller's to free. */
must_check int client_secret_grant(struct client *c, const char *line, int value_fd,
				   char **ret_shown, struct ward_err *e);
must_check int client_secret_revoke(struct client *c, const char *name, struct ward_err *e);

#endif

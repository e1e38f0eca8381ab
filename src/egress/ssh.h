/* The supervisor's side of ward-ssh-agent. */
#ifndef WARD_EGRESS_SSH_H
#define WARD_EGRESS_SSH_H

#include "base/buf.h"
#include "model/result.h"
#include "policy/policy.h"

struct ssh_link;

/* Starts ward-ssh-agent with the policy's entries; its socket is *ret_path (the caller frees). *ret
 * is for ssh_end() in any case. *ret_known is text for the sandbox's known_hosts, *ret_signs the
 * public key that signs commits, "" for none; both are the caller's. */
must_check int ssh_start(const struct policy *p, struct ssh_link **ret, char **ret_path,
			 char **ret_known, char **ret_signs, struct ward_err *e);
/* What to poll; -1: nothing. */
int ssh_fd(const struct ssh_link *s);
/* Reads what it reports into the result and the journal. */
void ssh_handle(struct ssh_link *s, struct result *r);
/* Ends it and removes its directory. NULL is fine. */
void ssh_end(struct ssh_link *s);

#endif

/* The secrets of a run, as the supervisor sees them: it knows grants and placeholders and never has
 * a secret. */
#ifndef WARD_EGRESS_SECRETS_H
#define WARD_EGRESS_SECRETS_H

#include "base/buf.h"
#include "policy/policy.h"
#include "protocol/secrets.h"

struct plan;
struct result;
struct secrets;

/* Starts ward-secrets and has every grant of the policy fetched, or says why not. *shown gets
 * NAME=PLACEHOLDER for inside. seen are the host's paths that exist inside, words the environment
 * and command there. */
must_check int secrets_start(const struct policy *p, const struct strv *seen,
			     const struct strv *words, struct secrets **ret, struct strv *shown,
			     struct ward_err *e);
/* The gateway is started: a link for its front to ward-keys, which is started with the trust store
 * (borrowed). The caller's; -1: none. */
int secrets_link(struct secrets *s, int trust_fd);
/* What to poll; -1: nothing. NULL is fine. */
int secrets_fd(const struct secrets *s);

/* An answer to a request that was sent with this tag. text is borrowed. */
typedef void secrets_answered(void *whose, const struct secrets_message *m, const char *text,
			      size_t n);
/* Hears what ward-secrets says: events go into the result, answers to answered (NULL: not wanted).
 */
void secrets_handle(struct secrets *s, struct result *r, secrets_answered *answered, void *whose);
/* Asks: SECRETS_LIST, SECRETS_REVOKE with a name, SECRETS_GRANT with a line and perhaps a
 * descriptor (borrowed; -1: none). */
must_check int secrets_ask(struct secrets *s, enum secrets_op op, uint64_t tag, const char *text,
			   int fd, struct ward_err *e);
/* A request waits for its secret (waits), or does not any more. host: as said->host, read again.
 * < 0: nobody can be asked: -EPERM, approvals.mode is deny. said has its texts ended. */
struct host;
typedef int secrets_asked(void *whose, bool waits, const struct host *host,
			  const struct keys_asked *said);
void secrets_on_asked(struct secrets *s, secrets_asked *asked, void *whose);
/* Answers for the requests with that digest; reason: enum verdict_reason. */
must_check int secrets_answer(struct secrets *s, const uint8_t exact[32], uint64_t serial,
			      unsigned reason, struct ward_err *e);
/* Ends it, and ward-keys with it. NULL is fine. */
void secrets_end(struct secrets *s);

#endif

/* Where secrets come from. */
#ifndef WARD_CREDS_SOURCE_H
#define WARD_CREDS_SOURCE_H

#include "creds/run.h"
#include "creds/safe.h"
#include "policy/policy_grant.h"
#include "protocol/secrets.h"

/* The values of one grant: one, or ID, secret and perhaps a token. They lie in the safe. */
struct secret {
	uint8_t *values[GRANT_VALUES];
	size_t bytes[GRANT_VALUES];
	size_t count;
	uint64_t lease_ms; /* for which its source granted it; 0: not known */
};

struct source_place {
	struct safe *safe;
	const struct strv *seen;         /* paths of the host's that exist inside */
	int program_dir_fd;              /* where ward's own programs lie */
	struct run_meanwhile *meanwhile; /* what does not wait for a source; NULL: nothing */
};

/* Fetches the values of a grant. Whatever goes wrong, no part of a value stands in *e. */
must_check int source_fetch(const struct source_place *p, const struct policy_grant *g,
			    struct secret *ret, struct ward_err *e);
/* The same from a descriptor that the caller passed; borrowed. */
must_check int source_read(const struct source_place *p, const struct policy_grant *g, int fd,
			   struct secret *ret, struct ward_err *e);
void secret_forget(struct safe *s, struct secret *x);
bool secret_equal(const struct secret *a, const struct secret *b);

#endif

/* Putting what a person has allowed into a policy file. */
#ifndef WARD_CLI_POLICY_WRITE_H
#define WARD_CLI_POLICY_WRITE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/buf.h"

struct policy_write {
	const char *file; /* NULL: the policy of the directory */
	const char *dir;  /* where that is looked for; NULL: here */
	bool yes;         /* nobody is asked */
	bool silent;      /* standard output is for something else */
};

/* Adds the rules to a field that is a list, as `ward policy add` does: the same program, which
 * shows the difference and asks, with the same checks. 0: written; -ECANCELED: not. */
must_check int policy_write_rules(const struct policy_write *w, const char *field,
				  const struct strv *rules, struct ward_err *e);

#endif

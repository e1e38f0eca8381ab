/* From options to a plan: what run and plan share. */
#ifndef WARD_CLI_ASK_H
#define WARD_CLI_ASK_H

#include "cli/cli.h"
#include "model/plan.h"

/* Builds the spec and compiles its plan; progress (NULL: not shown) is borrowed by both. The caller
 * frees both: plan_free(), then spec_clear(). */
must_check int ask_plan(const struct options *o, const struct plan_system *system,
			struct spec *ret_spec, struct plan **ret_plan, struct progress *progress,
			struct ward_err *e);
/* Prints the errors of a policy file on standard error, one a line. */
void ask_print_errors(const struct policy_errors *errors);

#endif

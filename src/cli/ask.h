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
/* The spec alone: what the policy would be. The caller frees with spec_clear(). */
must_check int ask_spec(const struct options *o, struct spec *ret_spec, struct ward_err *e);
/* The policy file of a verb that names none: the project's, here or in a directory above, as ward
 * run finds it; else "ward.yaml". Says on standard error why one above does not count. The caller
 * frees *ret_path. */
must_check int ask_policy_file(char **ret_path, struct ward_err *e);
/* Asks a person a question that yes answers. -EACCES without a terminal, -ECANCELED for anything
 * but yes; both say that nothing was `otherwise` (written, accepted). */
must_check int ask_person(const char *question, const char *otherwise, struct ward_err *e);
/* Prints the errors of a policy file on standard error, one a line. */
void ask_print_errors(const struct policy_errors *errors);

#endif

/*
 * ward explain, policy, watch and evidence where ward-explain is missing: main() starts that
 * program (explain_program.c), and comes here only if there is none.
 */
#include <errno.h>

#include "cli/cli.h"

static int missing(const struct options *o)
{
	struct ward_err e = { 0 };

	ward_fail(&e, ENOENT,
		  "this needs ward-explain, which is neither next to ward nor in ../libexec/ward");
	ward_remedy(&e, "install all files of ward (make install)");
	return say_error(&e, o->json, EXIT_REFUSED);
}

int verb_explain(struct options *o)
{
	return missing(o);
}

int verb_policy(struct options *o)
{
	return missing(o);
}

int verb_watch(struct options *o)
{
	return missing(o);
}

int verb_evidence(struct options *o)
{
	return missing(o);
}

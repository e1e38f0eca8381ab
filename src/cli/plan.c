/*
 * ward plan: what a run would do. In: the options of ward run. Out: a dozen lines; with --full or
 * --verbose the compiled plan and the engine's stages; with --json the same for programs.
 * Nothing is started and nothing on the host is changed; what
 * ward run would refuse is refused here in the same words.
 */
#include "base/progress.h"
#include "cli/ask.h"
#include "engine/engines.h"
#include "model/running.h"
#include "plan/plan.h"
#include "plan/spec.h"

int verb_plan(struct options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct plan *plan = NULL;
	struct progress progress;
	struct spec spec;

	if (ask_plan(o, NULL, &spec, &plan, progress_for_terminal(&progress, true), &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json || o->full || o->verbose)
		plan_print(plan, engine_choose(plan)->stages(), o->json, &out);
	else
		plan_print_brief(plan, &out);
	if (o->verbose && !o->json)
		plan_print_steps(&out);
	plan_free(plan);
	spec_clear(&spec);
	return say_out(&out, EXIT_FINE);
}

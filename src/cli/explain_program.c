/*
 * ward-explain: why something was refused (ward explain), the change that would allow it (ward
 * policy add), what a new policy would do to past runs (ward check --replay), and what of a policy
 * no run used (ward check --unused). In: the command line of ward, its verb first. Out: text, JSON,
 * an exit code. A program of its own because it reads and verifies journals, which the start of a
 * sandbox must not pay for. Runs with the user's rights; what it reads of journals may have been
 * changed by any process that has them.
 */
#include "cli/explain_parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static int run_verb(struct options *o)
{
	if (o->verb == VERB_EXPLAIN)
		return explain_show(o);
	if (o->verb == VERB_EVIDENCE)
		return evidence_collect(o);
	if (o->verb == VERB_WATCH)
		return watch_suggest(o);
	if (o->verb == VERB_POLICY)
		return policy_add(o);
	return o->check_unused ? check_unused(o) : check_replay(o);
}

static void reader_gone(unused_arg int signal_number)
{
}

int main(int argc, char **argv)
{
	const struct sigaction gone = { .sa_handler = reader_gone };
	int verb = argc > 1 ? verb_find(argv[1]) : -1, code;
	struct ward_err e = { 0 };
	struct options o;

	if (verb != VERB_EXPLAIN && verb != VERB_POLICY && verb != VERB_CHECK &&
	    verb != VERB_WATCH && verb != VERB_EVIDENCE)
		return EXIT_USAGE;
	sigaction(SIGPIPE, &gone, NULL);
	if (options_read((enum verb)verb, argv + 2, &o, &e) < 0) {
		code = say_usage(&e, &o);
	} else if (o.help) {
		auto_buf out = { 0 };

		help_text(o.verb, &out);
		code = say_out(&out, EXIT_FINE);
	} else {
		code = run_verb(&o);
	}
	options_clear(&o);
	return code;
}

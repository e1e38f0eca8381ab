/* Agents by name: what ward agent and its parts share. */
#ifndef WARD_CLI_AGENT_H
#define WARD_CLI_AGENT_H

#include "cli/cli.h"
#include "policy/policy.h"

/* An agent that was asked for. */
struct agent {
	const char *name;      /* of the profile; borrowed */
	char *program;         /* the profile's first; NULL: it names none */
	char *file;            /* the host's program, as PATH has it; NULL: it is not there */
	struct policy profile; /* the defaults with the profile over them */
};

/* Whether the name is a row of tables/agents.def, which main() takes as a verb. */
bool agent_is_known(const char *name);
/* The command that installs a known agent; NULL: not known. Static. */
const char *agent_install(const char *name);

/* Reads the profile and looks for its program. The caller closes. */
must_check int agent_open(const char *name, struct agent *ret, struct ward_err *e);
void agent_close(struct agent *a);

/* Appends to the words of a command line of ward run what is to be put beside the profile: keys of
 * the caller's as grants, a spend limit. asks: somebody is there whom unanswered questions can be
 * put to; the answers are kept. */
must_check int agent_add_wishes(const struct agent *a, bool asks, struct strv *words,
				struct ward_err *e);
/* ward agent set NAME WHAT=VALUE...: keeps answers without asking. Returns the exit code. */
int agent_set(const struct options *o);
/* ward agent ls. Returns the exit code. */
int agent_list(bool json);

/* Main's way in for `ward NAME ARGS...` of a known agent: its argv from NAME on as words of
 * ward agent; options of ward count only in front of a "--". The caller frees. NULL: out of
 * memory. */
must_check char **agent_words(char **argv);

#endif

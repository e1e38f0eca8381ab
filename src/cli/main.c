/*
 * ward: the command line. In: argv. Out: an exit code. Runs with the user's rights and refuses to
 * have more (set-uid). In order: make descriptors 0-2 exist, find the verb, read its options, run
 * it. The name of an agent is one, too: tables/agents.def. Any other is looked for as ward-NAME
 * beside this program and in its libexec directory, never in PATH, where another program could have
 * put one. With --host, or WARD_HOST in the environment, ward-remote does the verbs that a server
 * has.
 */
#include "cli/agent.h"
#include "cli/box_program.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/text.h"
#include "host/program.h"

/* A closed 0, 1 or 2 would be taken by the next file that is opened. */
static bool open_stdio(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (open("/dev/null", O_RDWR) != fd)
			return false;
	}
	return true;
}

static int run_verb(struct options *o)
{
	switch (o->verb) {
#define VERB(id, name, ...)                                                                        \
	case VERB_##id:                                                                            \
		return verb_##name(o);
#include "verbs.def"
	case VERBS:
		break;
	}
	return EXIT_REFUSED;
}

/* Whether an option stands there, before it is read. */
static bool has_word(char *const *argv, const char *word)
{
	for (; *argv && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, word) == 0)
			return true;
	return false;
}

/* Whether `ward check` is about tools: what ward-tool does. */
static bool is_about_tools(char *const *argv)
{
	static const char *const words[] = { "--tools", "--score", "--base" };
	static const char name[] = "tools.yaml";

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		for (char *const *at = argv; *at; at++)
			if (strncmp(*at, words[i], strlen(words[i])) == 0)
				return true;
	for (; *argv; argv++) {
		size_t n = strlen(*argv), m = strlen(name);

		if (n >= m && strcmp(*argv + n - m, name) == 0 &&
		    (n == m || (*argv)[n - m - 1] == '/'))
			return true;
	}
	return false;
}

/* A reader that goes away is an error like any other. A handler and not SIG_IGN, which a command
 * would inherit. */
static void reader_gone(unused_arg int signal_number)
{
}

static int start_verb(enum verb verb, char **argv)
{
	struct ward_err e = { 0 };
	const struct sigaction gone = { .sa_handler = reader_gone, .sa_flags = SA_RESTART };
	struct options o;
	int code;

	sigaction(SIGPIPE, &gone, NULL);
	/* a caller that ignores it would have our processes vanish before they are waited for */
	signal(SIGCHLD, SIG_DFL);
	if (options_read(verb, argv, &o, &e) < 0) {
		/* an error before it was reached must be readable too */
		o.json = o.json || has_word(argv, "--json");
		code = say_usage(&e, &o);
	} else if (o.help) {
		auto_buf out = { 0 };

		help_text(verb, &out);
		code = say_out(&out, EXIT_FINE);
	} else {
		code = run_verb(&o);
	}
	options_clear(&o);
	return code;
}

/* ward claude ARGS... */
static int start_agent(char **argv)
{
	auto_free char **words = agent_words(argv);
	struct ward_err e = { 0 };

	if (words)
		return start_verb(VERB_AGENT, words);
	ward_fail(&e, ENOMEM, "out of memory");
	return say_error(&e, false, EXIT_REFUSED);
}

/* Whether the name is one that a program of ours could have: no slash, no dot, nothing to
 * resolve. */
static bool is_plain(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name) &&
	       strlen(name) < 32 && *name != '-';
}

/* Becomes ward-NAME if it stands beside this program or in ../libexec/ward; comes back if there is
 * none. */
static void try_program(const char *name, char **argv)
{
	static const char *const places[] = { "", "../libexec/ward/" };
	char self[PATH_MAX], path[PATH_MAX + 128], called[64], *word = argv[0];
	struct ward_err ignored = { 0 };

	if (!is_plain(name) || program_own_dir(self, &ignored) < 0)
		return;
	snprintf(called, sizeof(called), "ward-%s", name);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s%s%s", self, places[i], called);
		argv[0] = called;
		execv(path, argv);
	}
	argv[0] = word;
}

/* Whether PATH has a program of that name: `ward make test`. */
static bool is_on_path(const char *name)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	for (; dirs && *dirs && !strchr(name, '/'); dirs += *dirs == ':') {
		size_t n = strcspn(dirs, ":");

		if (*dirs == '/' &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)n, dirs, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
		dirs += n;
	}
	return false;
}

/* The verbs that WARD_HOST sends to a server. */
static const uint64_t at_a_server = V_PS | V_STATS | V_LOGS | V_EXEC | V_CP | V_WAIT | V_KILL |
				    V_STOP | V_PAUSE | V_RESUME | V_APPROVE | V_TOKEN;

/* Whether the words are for a server; what is asked of one is never done here instead. */
static bool is_remote(const char *word, int verb)
{
	const char *host = getenv("WARD_HOST");

	return strcmp(word, "--host") == 0 || strncmp(word, "--host=", 7) == 0 ||
	       (host && *host && verb >= 0 && at_a_server & 1ull << verb);
}

/* Becomes ward-remote. */
static int start_remote(char **argv)
{
	static char name[] = "ward-remote";
	struct ward_err e = { 0 };

	argv[0] = name;
	if (program_become(argv, &e) == -ENOENT)
		ward_remedy(&e, "install all files of ward; building ward-remote needs libcurl; "
				"without WARD_HOST and --host ward uses this machine's sandboxes");
	return say_error(&e, false, EXIT_REFUSED);
}

static int unknown_verb(const char *name)
{
	static const char later[][12] = {
#define LATER(name, help) name,
#include "verbs.def"
	};
	static const char agents[][16] = {
#define AGENT(name, install) name,
#include "agents.def"
	};
	unsigned distance = UINT_MAX;
	const char *best = NULL;
	struct ward_err e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		if (strcmp(later[i], name) == 0) {
			ward_fail(&e, ENOTSUP, "ward %s is not yet supported by this build", name);
			return say_error(&e, false, EXIT_REFUSED);
		}
	}
	for (int v = 0; v < VERBS; v++)
		text_nearest(name, verb_name((enum verb)v), &best, &distance);
	for (size_t i = 0; i < ARRAY_LEN(agents); i++)
		text_nearest(name, agents[i], &best, &distance);
	ward_fail(&e, EINVAL, "unknown verb: %.200s", name);
	if (is_on_path(name))
		ward_remedy(&e, "%s%s%sto run the program in a sandbox: ward run -- %.200s ...",
			    best ? "did you mean ward " : "", best ? best : "", best ? "? Or " : "",
			    name);
	else if (best)
		ward_remedy(&e, "did you mean ward %s?", best);
	else
		ward_remedy(&e, "ward help lists the verbs; to run a command: ward run -- CMD");
	return say_error(&e, false, EXIT_USAGE);
}

int main(int argc, char **argv)
{
	static char *nothing[] = { NULL };
	auto_buf out = { 0 };
	int verb;

	if (!open_stdio())
		return EXIT_REFUSED;
	if (getauxval(AT_SECURE)) {
		buf_puts(&out, "ward: ward must not be set-uid or have file capabilities\n  "
			       "remedy: chmod u-s,g-s on the program, setcap -r\n");
		say_err(&out);
		return EXIT_REFUSED;
	}
	if (argc == 1 && strcmp(argv[0], BOX_PROGRAM) == 0)
		return box_program();
	if (argc < 2 || !argv[1]) {
		help_text(VERBS, &out);
		say_err(&out);
		return EXIT_USAGE;
	}
	verb = verb_find(argv[1]);
	if (is_remote(argv[1], verb))
		return start_remote(argv);
	/* reads its own words, and comes back only where it is missing */
	if (verb == VERB_AUDIT || verb == VERB_TOOL || verb == VERB_MCP)
		try_program(argv[1], argv + 1);
	if (verb == VERB_LEARN && has_word(argv + 2, "--mcp"))
		try_program("mcp", argv);
	if (verb == VERB_CHECK && !has_word(argv + 2, "--unused") && is_about_tools(argv + 2))
		try_program("tool", argv);
	if (verb == VERB_EXPLAIN || verb == VERB_POLICY || verb == VERB_WATCH ||
	    verb == VERB_EVIDENCE ||
	    (verb == VERB_CHECK &&
	     (has_word(argv + 2, "--replay") || has_word(argv + 2, "--unused"))))
		try_program("explain", argv);
	if (verb >= 0)
		return start_verb((enum verb)verb, argv + 2);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return start_verb(VERB_HELP, nothing);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return start_verb(VERB_VERSION, nothing);
	if (agent_is_known(argv[1]))
		return start_agent(argv + 1);
	try_program(argv[1], argv + 1);
	return unknown_verb(argv[1]);
}

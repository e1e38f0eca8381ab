/*
 * ward-mcp: MCP on both sides. In: the words of `ward mcp`, as main() hands them over. A program of
 * its own because it links PCRE2 and runs for as long as its client. Runs with the user's rights;
 * under the name ward-mcp-front it is the process that reads HTTP, which gives them up (front.c).
 */
#include "cli/mcp/front.h"
#include "cli/mcp/parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static const struct {
	const char *word;
	size_t min, max; /* words behind it */
	bool wraps;      /* it starts a server, and takes options of its sandbox */
	int (*run)(struct options *o);
} words[] = {
	{ "serve", 0, 0, false, mcp_serve },
	{ "wrap", 0, SIZE_MAX, true, mcp_wrap },
	{ "trust", 0, SIZE_MAX, true, mcp_trust },
	{ "forget", 1, 1, false, mcp_forget },
	{ "ls", 0, 0, false, mcp_ls },
	{ "install", 1, 1, false, mcp_install },
	{ "uninstall", 1, 1, false, mcp_uninstall },
};

static int usage(const struct options *o, struct ward_err *e)
{
	ward_remedy(e, "known are serve, wrap, trust, forget, ls, install and uninstall; see ward "
		       "mcp --help");
	return say_error(e, o->json, EXIT_USAGE);
}

/* No option is ignored. */
static int check_options(const struct options *o, const char *word, bool wraps, struct ward_err *e)
{
	const char *odd = NULL;

	if (!wraps && (o->field_count || o->cwd || o->widen))
		odd = o->field_count ? o->fields[0].option : o->cwd ? "--chdir" : "--widen";
	else if (wraps && (o->mcp_session || o->http || o->token_file || o->mcp_project))
		odd = o->mcp_session ? "--session" : o->mcp_project ? "--project" : "--http";
	else if (o->call_timeout && strcmp(word, "wrap") != 0)
		odd = "--call-timeout";
	else if (strcmp(word, "trust") == 0 && (o->tools_file || o->tools_agent || o->approvals))
		odd = o->tools_file ? "--file" : o->tools_agent ? "--agent" : "--approvals";
	else if (strcmp(word, "wrap") == 0 && o->tools_file && o->field_count)
		return ward_fail(e, EINVAL, "%s and -f exclude each other: the file names scopes",
				 o->fields[0].option);
	return odd ? ward_fail(e, EINVAL, "ward mcp %s has no option %s", word, odd) : 0;
}

static int run_word(struct options *o)
{
	const char *word = o->word_count ? o->words[0] : "";
	struct ward_err e = { 0 };
	size_t i = 0;

	while (i < ARRAY_LEN(words) && strcmp(words[i].word, word) != 0)
		i++;
	if (i == ARRAY_LEN(words)) {
		ward_fail(&e, EINVAL,
			  *word ? "unknown command: ward mcp %.100s" : "a command is missing%s",
			  word);
		return usage(o, &e);
	}
	o->words++;
	o->word_count--;
	if (o->word_count < words[i].min || o->word_count > words[i].max) {
		ward_fail(&e, EINVAL, "ward mcp %s: %s", word,
			  o->word_count < words[i].min ? "an argument is missing"
						       : "too many arguments");
		return usage(o, &e);
	}
	return check_options(o, word, words[i].wraps, &e) < 0 ? usage(o, &e) : words[i].run(o);
}

static void reader_gone(unused_arg int signal_number)
{
}

int main(int argc, char **argv)
{
	const struct sigaction gone = { .sa_handler = reader_gone, .sa_flags = SA_RESTART };
	struct ward_err e = { 0 };
	struct options o;
	bool learns;
	int code;

	if (argc == 1 && strcmp(argv[0], FRONT_NAME) == 0)
		return front_main();
	if (argc < 2)
		return EXIT_USAGE;
	sigaction(SIGPIPE, &gone, NULL); /* not ignored: calls would inherit that */
	signal(SIGCHLD, SIG_DFL);
	learns = strcmp(argv[1], "learn") == 0; /* ward learn --mcp */
	if (options_read(learns ? VERB_LEARN : VERB_MCP, argv + 1 + learns, &o, &e) < 0) {
		code = say_usage(&e, &o);
	} else if (o.help) {
		auto_buf out = { 0 };

		help_text(learns ? VERB_LEARN : VERB_MCP, &out);
		code = say_out(&out, EXIT_FINE);
	} else {
		code = learns ? mcp_learn(&o) : run_word(&o);
	}
	options_clear(&o);
	return code;
}

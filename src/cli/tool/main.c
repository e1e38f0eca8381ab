/*
 * ward-tool: annotated tools. In: the words of `ward tool`, or of `ward check` where it is about
 * tools, as main() hands them over. Out: text, JSON, an exit code. A program of its own because it
 * links PCRE2 and runs for a call only. Runs with the user's rights; what tools write is read by
 * processes without any.
 */
#include "cli/tool/parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/ask.h"

static const struct {
	const char *word;
	size_t min, max; /* words behind it */
	int (*run)(struct options *o);
} words[] = {
	{ "ls", 0, 0, tool_ls },
	{ "show", 1, 1, tool_show },
	{ "run", 1, SIZE_MAX - 1, tool_run },
	{ "pipe", 1, 1, tool_pipe },
	{ "init", 0, SIZE_MAX - 1, tool_init },
	{ "trust", 0, 0, tool_trust },
};

int tool_load(const struct options *o, struct tools_source *ret)
{
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	int r = tools_load(o->tools_file, ret, &errors, &e);

	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : 0;
}

const struct tool_tool *tool_find(const struct tools_source *s, const char *name,
				  struct ward_err *e)
{
	const struct tool_tool *tool = tools_find(&s->t, name);
	unsigned distance = (unsigned)-1;
	const char *best = NULL;
	auto_buf shown = { 0 };

	if (tool)
		return tool;
	for (size_t i = 0; i < s->t.file.tools.len; i++)
		text_nearest(name, tools_at(tool, &s->t.file.tools, i)->head.name, &best,
			     &distance);
	text_escape(&shown, name);
	ward_fail(e, ENOENT, "%.200s has no tool \"%.80s\"", s->shown, buf_text(&shown));
	if (best)
		ward_remedy(e, "did you mean %s?", best);
	else
		ward_remedy(e, "ward tool ls lists them");
	return NULL;
}

void tool_join(const struct strv *list, struct buf *out)
{
	for (size_t i = 0; i < list->len; i++) {
		buf_puts(out, i ? ", " : "");
		text_escape(out, list->items[i]);
	}
	if (!list->len)
		buf_puts(out, "-");
}

static int usage(const struct options *o, struct ward_err *e)
{
	ward_remedy(e, "known are ls, show NAME, run NAME --PARAM VALUE..., pipe 'A | B', init and "
		       "trust; see ward tool --help");
	return say_error(e, o->json, EXIT_USAGE);
}

static int run_word(const char *word, struct options *o)
{
	struct ward_err e = { 0 };
	size_t i = 0;

	while (i < ARRAY_LEN(words) && strcmp(words[i].word, word) != 0)
		i++;
	if (i == ARRAY_LEN(words)) {
		ward_fail(&e, EINVAL,
			  *word ? "unknown command: ward tool %.100s" : "a command is missing%s",
			  word);
		return usage(o, &e);
	}
	if (o->word_count < words[i].min || o->word_count > words[i].max) {
		ward_fail(&e, EINVAL, "ward tool %s: %s", word,
			  o->word_count < words[i].min ? "an argument is missing"
						       : "too many arguments");
		return usage(o, &e);
	}
	return words[i].run(o);
}

static void reader_gone(unused_arg int signal_number)
{
}

/* Options may stand before the command, too: it is moved to the front. */
static char *take_word(char **argv)
{
	static char none[] = "";
	size_t at = 0;

	for (; argv[at] && strcmp(argv[at], "--") != 0; at++)
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			if (strcmp(words[i].word, argv[at]) == 0) {
				char *word = argv[at];

				memmove(argv + 1, argv, at * sizeof(*argv));
				argv[0] = word;
				return word;
			}
	return argv[0] && argv[0][0] != '-' ? argv[0] : none;
}

/* What stands behind the tool's name is the tool's own. */
static int run_tool(char **argv)
{
	char *word = take_word(argv);
	struct ward_err e = { 0 };
	struct options o;
	int code;

	argv += *word != '\0';
	if (options_read(VERB_TOOL, argv, &o, &e) < 0) {
		code = say_usage(&e, &o);
	} else if (o.help) {
		auto_buf out = { 0 };

		help_text(VERB_TOOL, &out);
		code = say_out(&out, EXIT_FINE);
	} else {
		code = run_word(word, &o);
	}
	options_clear(&o);
	return code;
}

static int run_check(char **argv)
{
	struct ward_err e = { 0 };
	struct options o;
	int code = options_read(VERB_CHECK, argv, &o, &e) < 0 ? say_usage(&e, &o) : tool_check(&o);

	options_clear(&o);
	return code;
}

int main(int argc, char **argv)
{
	const struct sigaction gone = { .sa_handler = reader_gone };

	if (argc < 2)
		return EXIT_USAGE;
	sigaction(SIGPIPE, &gone, NULL);
	signal(SIGCHLD, SIG_DFL);
	return strcmp(argv[1], "check") == 0 ? run_check(argv + 2) : run_tool(argv + 1);
}

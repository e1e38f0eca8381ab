/*
 * ward tool run: one call. In: a tool's name and its parameters, as --NAME VALUE or --NAME=VALUE.
 * Out: the tool's output on standard output if it may be shown, what is wrong on standard error;
 * with --json one object with all of it. The exit code is the command's own, or 125 where ward
 * refused the call or its output.
 */
#include "cli/tool/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/ask.h"
#include "tools/question.h"

#define INPUT_MAX (64u << 20)

/* --NAME VALUE and --NAME=VALUE into pairs; the name is cut off in argv's own memory. */
static int read_arguments(char **words, size_t count, struct tools_argument *ret, size_t *ret_count,
			  struct ward_err *e)
{
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		char *equals = strchr(words[i], '=');

		if (strncmp(words[i], "--", 2) != 0 || !words[i][2]) {
			ward_fail(e, EINVAL, "expected --NAME VALUE, found \"%.100s\"", words[i]);
			return ward_remedy(e, "ward tool show NAME lists the parameters");
		}
		if (equals) {
			*equals = '\0';
			ret[(*ret_count)++] = (struct tools_argument){ words[i] + 2, equals + 1 };
			continue;
		}
		if (i + 1 == count)
			return ward_fail(e, EINVAL, "%.100s needs a value", words[i]);
		ret[(*ret_count)++] = (struct tools_argument){ words[i] + 2, words[i + 1] };
		i++;
	}
	return 0;
}

/* A person sees the command as it will run, and all that it is given. */
static int ask_terminal(const struct invoke_request *r, const struct tools_call *call,
			struct ward_err *e)
{
	auto_buf question = { 0 };
	int result;

	tools_question(r, call, &question);
	if (question.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	buf_puts(&question, "\nallow it? [y/N] ");
	result = ask_person(buf_text(&question), "run", e);
	return result == -EACCES ? ward_remedy(e, "--yes agrees to this call") : result;
}

int tool_invoke(const struct options *o, struct tools_source *s, const struct tool_tool *tool,
		const struct tools_argument *arguments, size_t count, const struct buf *input,
		struct invoke_result *ret, struct ward_err *e)
{
	struct invoke_request r = { .source = s,
				    .tool = tool,
				    .arguments = arguments,
				    .count = count,
				    .input = input,
				    .approve = ask_terminal,
				    .approved = o->yes };
	struct policy_errors errors = { 0 };
	int result;

	if (o->tools_agent) {
		r.agent = tools_find_agent(&s->t, o->tools_agent);
		if (!r.agent)
			return ward_fail(e, ENOENT, "%.200s has no agent %.80s", s->shown,
					 o->tools_agent);
	}
	result = tools_invoke(&r, ret, &errors, e);
	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	return result;
}

int tool_exit_code(const struct invoke_result *r)
{
	return r->blocked ? EXIT_REFUSED : r->call.exit_code;
}

static void print_lines(const char *what, const struct strv *lines, struct buf *out)
{
	for (size_t i = 0; i < lines->len; i++) {
		buf_printf(out, "ward: %s: ", what);
		text_escape(out, lines->items[i]);
		buf_puts(out, "\n");
	}
}

static int print_text(const struct tool_tool *tool, const struct invoke_result *r)
{
	auto_buf out = { 0 }, err = { 0 };

	if (isatty(STDOUT_FILENO) && r->call.out.len)
		text_escape_lines(&out, r->call.out.data, r->call.out.len);
	else
		buf_add(&out, buf_text(&r->call.out), r->call.out.len);
	if (r->call.error.len)
		text_escape_lines(&err, r->call.error.data, r->call.error.len);
	print_lines("found", &r->findings, &err);
	if (r->blocked)
		buf_printf(&err, "ward: %s: %s\n", tool->head.name, r->why);
	say_err(&err);
	return say_out(&out, tool_exit_code(r));
}

static int read_input(const struct tool_tool *tool, struct buf *ret, struct ward_err *e)
{
	int r = tool->takes_stdin ? io_read_all(STDIN_FILENO, INPUT_MAX, ret) : 0;

	return r < 0 ? ward_fail(e, -r, "cannot read standard input: %s", strerror(-r)) : 0;
}

static int run(struct options *o, struct tools_source *s, struct ward_err *e)
{
	struct tools_argument *arguments = calloc(o->word_count, sizeof(*arguments));
	const struct tool_tool *tool = tool_find(s, o->words[0], e);
	struct invoke_result result = { 0 };
	auto_buf input = { 0 }, out = { 0 };
	size_t count = 0;
	int r = !arguments ? ward_fail(e, ENOMEM, "out of memory") : tool ? 0 : -e->code;

	if (r == 0)
		r = read_arguments(o->words + 1, o->word_count - 1, arguments, &count, e);
	if (r == 0)
		r = read_input(tool, &input, e);
	if (r == 0)
		r = tool_invoke(o, s, tool, arguments, count, tool->takes_stdin ? &input : NULL,
				&result, e);
	free(arguments);
	if (r == 0 && o->json) {
		invoke_json(tool, &result, &out);
		buf_puts(&out, "\n");
		r = say_out(&out, tool_exit_code(&result));
	} else if (r == 0) {
		r = print_text(tool, &result);
	}
	invoke_free(&result);
	return r;
}

int tool_run(struct options *o)
{
	auto_source s = { 0 };
	struct ward_err e = { 0 };
	int r = tool_load(o, &s);

	if (r != 0)
		return r;
	r = tools_check_trust(&s, &e);
	if (r == 0)
		r = run(o, &s, &e);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : r;
}

/*
 * ward tool pipe: stages with rights of their own. In: 'fetch URL | extract | store'. Out: the last
 * stage's output. Each stage is one call in a fresh sandbox; what it writes is judged as any
 * output and then becomes the next one's standard input: only bytes pass. So a stage with a
 * network has no files, and one with files no network, if their scopes say so. Words are split by
 * ward, at spaces, with '...' and "..."; there is no shell. A word is --NAME=VALUE, or the value of
 * the next parameter in order. A stage that fails ends the pipe: what stands behind it never runs.
 */
#include "cli/tool/parts.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/policy_grant.h"

#define STAGES_MAX 16
#define WORDS_MAX 256

struct stage {
	const struct tool_tool *tool;
	struct strv words; /* of its command line */
	struct tools_argument arguments[WORDS_MAX];
	size_t count;
};

/* Cuts at | outside of quotes; the words of each part are split as a command line is. */
static int split(const char *text, struct strv *ret_parts, struct ward_err *e)
{
	auto_buf part = { 0 };
	char quote = 0;

	for (const char *at = text;; at++) {
		if (!*at || (*at == '|' && !quote)) {
			strv_add(ret_parts, buf_text(&part));
			buf_free(&part);
			if (!*at)
				break;
			continue;
		}
		if (*at == '\\' && quote != '\'' && at[1])
			buf_add(&part, at++, 1);
		else if (quote ? *at == quote : *at == '\'' || *at == '"')
			quote = quote ? 0 : *at;
		buf_add(&part, at, 1);
	}
	if (quote)
		return ward_fail(e, EINVAL, "a quote is not closed");
	if (ret_parts->len > STAGES_MAX)
		return ward_fail(e, EINVAL, "at most %d stages", STAGES_MAX);
	return ret_parts->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* The name of a parameter that a word gives, in place; NULL: it is a value in order. */
static char *named(char *word, char **ret_value)
{
	char *equals = strncmp(word, "--", 2) == 0 && word[2] ? strchr(word, '=') : NULL;

	if (!equals)
		return NULL;
	*equals = '\0';
	*ret_value = equals + 1;
	return word + 2;
}

static int read_stage(const struct tools_source *s, const char *text, struct stage *ret,
		      struct ward_err *e)
{
	size_t next = 0;

	if (grant_command_words(text, &ret->words) < 0)
		return ward_fail(
			e, EINVAL,
			"a stage of the pipe is empty, or a quotation mark in it is not closed");
	if (ret->words.len > WORDS_MAX)
		return ward_fail(e, EINVAL, "a stage has at most %d words", WORDS_MAX);
	ret->tool = tool_find(s, ret->words.items[0], e);
	if (!ret->tool)
		return -e->code;
	for (size_t i = 1; i < ret->words.len; i++) {
		char *value = ret->words.items[i], *name = named(ret->words.items[i], &value);

		if (!name) {
			const struct tool_param *p;

			if (next == ret->tool->parameters.len)
				return ward_fail(e, EINVAL,
						 "too many arguments: %s has %zu parameters",
						 ret->tool->head.name, next);
			p = tools_at(param, &ret->tool->parameters, next);
			name = ret->words.items[i];
			ret->arguments[ret->count++] =
				(struct tools_argument){ p->head.name, value };
			next += !p->list;
			continue;
		}
		ret->arguments[ret->count++] = (struct tools_argument){ name, value };
	}
	return 0;
}

static int read_stages(const struct tools_source *s, const char *text, struct stage *stages,
		       size_t *ret_count, struct ward_err *e)
{
	auto_strv parts = { 0 };
	int r = split(text, &parts, e);

	for (size_t i = 0; r == 0 && i < parts.len; i++) {
		r = read_stage(s, parts.items[i], &stages[i], e);
		*ret_count = i + 1;
		if (r == 0 && i && !stages[i].tool->takes_stdin) {
			ward_fail(e, EINVAL,
				  "%s reads no standard input, so nothing can be piped "
				  "into it",
				  stages[i].tool->head.name);
			r = ward_remedy(e, "stdin: true in its entry of tools.yaml");
		}
	}
	return r;
}

/* Runs one stage; *input becomes its output. */
static int run_stage(struct options *o, struct tools_source *s, const struct stage *stage,
		     bool first, bool last, struct buf *input, struct buf *report,
		     struct ward_err *e)
{
	struct invoke_result result;
	int code, r = tool_invoke(o, s, stage->tool, stage->arguments, stage->count,
				  first ? NULL : input, &result, e);

	if (r < 0) {
		invoke_free(&result);
		return ward_wrap(e, "stage %s", stage->tool->head.name);
	}
	code = tool_exit_code(&result);
	if (o->json) {
		buf_puts(report, first ? "" : ",");
		invoke_json(stage->tool, &result, report);
	} else if (result.call.error.len || !result.ok) {
		auto_buf err = { 0 };

		text_escape_lines(&err, buf_text(&result.call.error), result.call.error.len);
		if (!result.ok)
			buf_printf(&err, "ward: stage %s: %s\n", stage->tool->head.name,
				   result.why);
		say_err(&err);
	}
	buf_free(input);
	*input = result.call.out;
	result.call.out = (struct buf){ 0 };
	(void)last;
	code = result.ok ? 0 : code ? code : EXIT_REFUSED;
	invoke_free(&result);
	return code;
}

static int run_stages(struct options *o, struct tools_source *s, struct stage *stages, size_t count,
		      struct ward_err *e)
{
	auto_buf bytes = { 0 }, report = { 0 };
	int r = 0;

	buf_puts(&report, "{\"stages\":[");
	for (size_t i = 0; r == 0 && i < count; i++)
		r = run_stage(o, s, &stages[i], i == 0, i + 1 == count, &bytes, &report, e);
	if (r < 0)
		return r;
	if (o->json) {
		buf_printf(&report, "],\"ok\":%s}\n", r == 0 ? "true" : "false");
		return say_out(&report, r);
	}
	return r == 0 ? say_out(&bytes, 0) : r;
}

int tool_pipe(struct options *o)
{
	struct stage *stages = calloc(STAGES_MAX, sizeof(*stages));
	struct ward_err e = { 0 };
	auto_source s = { 0 };
	size_t count = 0;
	int r = tool_load(o, &s);

	if (r == 0)
		r = stages ? tools_check_trust(&s, &e) : ward_fail(&e, ENOMEM, "out of memory");
	if (r == 0)
		r = read_stages(&s, o->words[0], stages, &count, &e);
	if (r == 0)
		r = run_stages(o, &s, stages, count, &e);
	for (size_t i = 0; stages && i < STAGES_MAX; i++)
		strv_free(&stages[i].words);
	free(stages);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : r;
}

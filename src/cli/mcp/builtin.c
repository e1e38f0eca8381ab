/*
 * The built-in tools. In: arguments as a client sent them, untrusted. Out: the members of an MCP
 * result. Each is a command in the session's sandbox with the arguments as words of its own: what a
 * path leads to, and whether it may be read or written, is decided by that sandbox's walls. No
 * argument is text of a shell but the command of run_command, which is the sandbox's own. Output is
 * bounded, and characters that act or hide are shown as escapes.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define OUTPUT_MAX (1u << 20)
#define FILE_MAX (4u << 20) /* of a file that is edited */
#define SECONDS_MAX 3600
#define SECONDS "120"

/* -- arguments */

enum { TEXT, NUMBER, FLAG };

struct wanted {
	const char *name;
	int type;
	bool required;
	struct buf *text; /* of a TEXT */
	uint64_t *number;
	bool *flag;
	bool given;
};

struct reading {
	struct wanted *list;
	size_t count;
	struct ward_err *e;
};

static bool take_value(struct wanted *w, struct mcp_span v)
{
	char type = mcp_type(v);

	w->given = true;
	if (w->type == TEXT)
		return mcp_text(v, w->text);
	if (w->type == NUMBER)
		return mcp_uint(v, UINT32_MAX, w->number);
	*w->flag = type == 't';
	return type == 't' || type == 'f';
}

static bool take_member(void *state, const char *key, struct mcp_span v)
{
	struct reading *r = state;
	auto_buf shown = { 0 };
	size_t i = 0;

	while (i < r->count && strcmp(r->list[i].name, key) != 0)
		i++;
	if (i < r->count && take_value(&r->list[i], v))
		return true;
	text_escape(&shown, key);
	ward_fail(r->e, EINVAL, "%.100s: %s", buf_text(&shown),
		  i < r->count ? "the value has another type than the schema says"
			       : "there is no such argument");
	return false;
}

static int read_arguments(struct mcp_span given, struct wanted *list, size_t count,
			  struct ward_err *e)
{
	struct reading r = { list, count, e };

	if (!mcp_each(given, take_member, &r))
		return e->code ? -e->code : ward_fail(e, EINVAL, "the arguments cannot be read");
	for (size_t i = 0; i < count; i++)
		if (list[i].required && !list[i].given)
			return ward_fail(e, EINVAL, "%s is missing", list[i].name);
	return 0;
}

/* -- results */

static void put_result(const char *text, bool error, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_array(&j, "content");
	call_put_text(&j, text);
	json_end_array(&j);
	json_bool(&j, "isError", error);
}

static void put_streams(const struct call_result *r, struct buf *out)
{
	text_escape_lines(out, buf_text(&r->out), r->out.len);
	if (r->output_limit)
		buf_printf(out, "\nward: the output has more than %u bytes; the rest is left out\n",
			   OUTPUT_MAX);
	if (r->error.len) {
		if (out->len && out->data[out->len - 1] != '\n')
			buf_puts(out, "\n");
		text_escape_lines(out, r->error.data, r->error.len);
	}
}

static void put_call(const struct call_result *r, struct buf *out)
{
	auto_buf text = { 0 };

	put_streams(r, &text);
	if (r->exit_code)
		buf_printf(&text, "%sexit code %d\n",
			   text.len && text.data[text.len - 1] != '\n' ? "\n" : "", r->exit_code);
	put_result(buf_text(&text), r->exit_code != 0, out);
	out->failed |= text.failed;
}

/* -- the tools */

static void run_command(const struct server *s, struct mcp_span given, struct buf *out)
{
	auto_buf command = { 0 }, cwd = { 0 };
	uint64_t seconds = 0;
	struct wanted list[] = { { "command", TEXT, true, &command, NULL, NULL, false },
				 { "directory", TEXT, false, &cwd, NULL, NULL, false },
				 { "timeout_seconds", NUMBER, false, NULL, &seconds, NULL,
				   false } };
	char limit[16] = SECONDS, timeout[] = "timeout", k[] = "-k", one[] = "1", sh[] = "sh",
	     c[] = "-c", script[] = "cd -- \"${2:-.}\" && eval \"$1\"";
	char empty[] = "";
	struct ward_err e = { 0 };
	auto_result result = { 0 };
	int r = read_arguments(given, list, ARRAY_LEN(list), &e);

	if (r == 0 && list[2].given && (seconds < 1 || seconds > SECONDS_MAX))
		r = ward_fail(&e, EINVAL, "timeout_seconds is 1 to %d", SECONDS_MAX);
	if (r == 0 && list[2].given)
		snprintf(limit, sizeof(limit), "%u", (unsigned)seconds);
	if (r == 0) {
		char *const argv[] = { timeout,
				       k,
				       one,
				       limit,
				       sh,
				       c,
				       script,
				       sh,
				       command.data ? command.data : empty,
				       cwd.data ? cwd.data : empty,
				       NULL };

		r = session_run(&s->session, argv, NULL, OUTPUT_MAX, &result, &e);
	}
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	else
		put_call(&result, out);
}

/* A whole file; what its command wrote instead is the result where it fails. */
static int read_whole(const struct server *s, struct buf *path, struct call_result *ret,
		      struct ward_err *e)
{
	char cat[] = "cat", end[] = "--";
	char *const argv[] = { cat, end, path->data, NULL };
	int r = path->len ? session_run(&s->session, argv, NULL, FILE_MAX, ret, e)
			  : ward_fail(e, EINVAL, "path is empty");

	if (r == 0 && ret->output_limit)
		return ward_fail(e, EFBIG, "the file has more than %u bytes", FILE_MAX);
	return r;
}

static void read_file(const struct server *s, struct mcp_span given, struct buf *out)
{
	auto_buf path = { 0 }, lines = { 0 }, text = { 0 };
	uint64_t from = 1, count = 0;
	struct wanted list[] = { { "path", TEXT, true, &path, NULL, NULL, false },
				 { "first_line", NUMBER, false, NULL, &from, NULL, false },
				 { "lines", NUMBER, false, NULL, &count, NULL, false } };
	struct ward_err e = { 0 };
	auto_result result = { 0 };
	int r = read_arguments(given, list, ARRAY_LEN(list), &e);

	if (r == 0)
		r = read_whole(s, &path, &result, &e);
	if (r == 0 && result.exit_code) {
		put_call(&result, out);
		return;
	}
	if (r == 0) {
		edit_lines(&result.out, from, count, &lines);
		if (lines.len > OUTPUT_MAX)
			r = ward_fail(&e, EFBIG, "that is more than %u bytes: ask for fewer lines",
				      OUTPUT_MAX);
	}
	if (r < 0) {
		call_put_refusal(&e, NULL, out);
		return;
	}
	text_escape_lines(&text, buf_text(&lines), lines.len);
	put_result(buf_text(&text), false, out);
	out->failed |= text.failed || lines.failed;
}

/* Writes a file and its directories. */
static int write_whole(const struct server *s, struct buf *path, const struct buf *content,
		       struct call_result *ret, struct ward_err *e)
{
	char sh[] = "sh", c[] = "-c",
	     script[] = "mkdir -p -- \"$(dirname -- \"$1\")\" && cat > \"$1\"";
	char *const argv[] = { sh, c, script, sh, path->data, NULL };

	if (!path->len)
		return ward_fail(e, EINVAL, "path is empty");
	return session_run(&s->session, argv, content, OUTPUT_MAX, ret, e);
}

static void put_written(const struct call_result *r, const char *done, size_t n, struct buf *out)
{
	auto_buf text = { 0 };

	if (r->exit_code) {
		put_call(r, out);
		return;
	}
	buf_printf(&text, "%s, %zu bytes\n", done, n);
	put_result(buf_text(&text), false, out);
}

static void write_file(const struct server *s, struct mcp_span given, struct buf *out)
{
	auto_buf path = { 0 }, content = { 0 };
	struct wanted list[] = { { "path", TEXT, true, &path, NULL, NULL, false },
				 { "content", TEXT, true, &content, NULL, NULL, false } };
	struct ward_err e = { 0 };
	auto_result result = { 0 };
	int r = read_arguments(given, list, ARRAY_LEN(list), &e);

	if (r == 0)
		r = write_whole(s, &path, &content, &result, &e);
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	else
		put_written(&result, "written", content.len, out);
}

static int replace(const struct buf *text, const struct buf *old, const struct buf *new, bool all,
		   struct buf *ret, struct ward_err *e)
{
	int n = edit_replace(text, buf_text(old), buf_text(new), all, ret);

	if (n == -EEXIST) {
		ward_fail(e, EEXIST, "old_text occurs more than once");
		return ward_remedy(e, "give more of the text around it, or replace_all");
	}
	return n ? 0 : ward_fail(e, ENOENT, "old_text does not occur in the file");
}

static void edit_file(const struct server *s, struct mcp_span given, struct buf *out)
{
	auto_buf path = { 0 }, old = { 0 }, new = { 0 }, text = { 0 };
	bool all = false;
	struct wanted list[] = { { "path", TEXT, true, &path, NULL, NULL, false },
				 { "old_text", TEXT, true, &old, NULL, NULL, false },
				 { "new_text", TEXT, true, &new, NULL, NULL, false },
				 { "replace_all", FLAG, false, NULL, NULL, &all, false } };
	struct ward_err e = { 0 };
	auto_result before = { 0 }, after = { 0 };
	int r = read_arguments(given, list, ARRAY_LEN(list), &e);

	if (r == 0)
		r = read_whole(s, &path, &before, &e);
	if (r == 0 && before.exit_code) {
		put_call(&before, out);
		return;
	}
	if (r == 0)
		r = replace(&before.out, &old, &new, all, &text, &e);
	if (r == 0)
		r = text.failed ? ward_fail(&e, ENOMEM, "out of memory")
				: write_whole(s, &path, &text, &after, &e);
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	else
		put_written(&after, "edited", text.len, out);
}

static void list_files(const struct server *s, struct mcp_span given, struct buf *out)
{
	auto_buf path = { 0 };
	struct wanted list[] = { { "path", TEXT, false, &path, NULL, NULL, false } };
	char ls[] = "ls", one[] = "-1Ap", end[] = "--", dot[] = ".";
	struct ward_err e = { 0 };
	auto_result result = { 0 };
	int r = read_arguments(given, list, ARRAY_LEN(list), &e);

	if (r == 0) {
		char *const argv[] = { ls, one, end, path.len ? path.data : dot, NULL };

		r = session_run(&s->session, argv, NULL, OUTPUT_MAX, &result, &e);
	}
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	else
		put_call(&result, out);
}

static void search_files(const struct server *s, struct mcp_span given, struct buf *out)
{
	auto_buf path = { 0 }, pattern = { 0 };
	struct wanted list[] = { { "pattern", TEXT, true, &pattern, NULL, NULL, false },
				 { "path", TEXT, false, &path, NULL, NULL, false } };
	char grep[] = "grep", how[] = "-rnIE", git[] = "--exclude-dir=.git", e_[] = "-e",
	     end[] = "--", dot[] = ".", empty[] = "";
	struct ward_err e = { 0 };
	auto_result result = { 0 };
	int r = read_arguments(given, list, ARRAY_LEN(list), &e);

	if (r == 0) {
		char *const argv[] = { grep,
				       how,
				       git,
				       e_,
				       pattern.data ? pattern.data : empty,
				       end,
				       path.len ? path.data : dot,
				       NULL };

		r = session_run(&s->session, argv, NULL, OUTPUT_MAX, &result, &e);
	}
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	else if (result.exit_code == 1 && !result.error.len)
		put_result("no line matches\n", false, out);
	else
		put_call(&result, out);
}

static void show_changes(const struct server *s, struct mcp_span given, struct buf *out)
{
	struct ward_err e = { 0 };
	auto_result result = { 0 };
	int r = read_arguments(given, NULL, 0, &e);

	if (r == 0)
		r = session_changes(&s->session, OUTPUT_MAX, &result, &e);
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	else if (!result.exit_code && !result.out.len)
		put_result("nothing has changed\n", false, out);
	else
		put_call(&result, out);
}

#define OBJECT(properties, required)                                                               \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "],"        \
	"\"additionalProperties\":false}"
#define PATH                                                                                       \
	"\"path\":{\"type\":\"string\",\"description\":\"relative to the workspace, or absolute "  \
	"inside the sandbox\"}"
#define HINTS(reads, destroys, again, outside)                                                     \
	"{\"readOnlyHint\":" reads ",\"destructiveHint\":" destroys ",\"idempotentHint\":" again   \
	",\"openWorldHint\":" outside "}"
#define READS HINTS("true", "false", "true", "false")
/* changes wait for a review: nothing is lost before a person applies them */
#define WRITES(again) HINTS("false", "false", again, "false")
#define ACTS HINTS("false", "true", "false", "true")

static const struct builtin builtins[] = {
	{ "edit_file", "Replaces a text in a file of the session's sandbox.",
	  OBJECT(PATH ",\"old_text\":{\"type\":\"string\"},\"new_text\":{\"type\":\"string\"},"
		      "\"replace_all\":{\"type\":\"boolean\",\"description\":\"otherwise old_text "
		      "must occur once\"}",
		 "\"path\",\"old_text\",\"new_text\""),
	  WRITES("false"), edit_file },
	{ "list_files", "Lists a directory of the session's sandbox; directories end with a slash.",
	  OBJECT(PATH, ""), READS, list_files },
	{ "read_file", "Reads a text file of the session's sandbox.",
	  OBJECT(PATH ",\"first_line\":{\"type\":\"integer\",\"minimum\":1},"
		      "\"lines\":{\"type\":\"integer\",\"minimum\":0}",
		 "\"path\""),
	  READS, read_file },
	{ "run_command",
	  "Runs a command line with sh in the session's sandbox. Changes to the workspace wait for "
	  "a review by the user.",
	  OBJECT("\"command\":{\"type\":\"string\"},\"directory\":{\"type\":\"string\"},"
		 "\"timeout_seconds\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":3600,"
		 "\"default\":" SECONDS "}",
		 "\"command\""),
	  ACTS, run_command },
	{ "search_files",
	  "Lists the lines that match an extended regular expression, in a file or beneath a "
	  "directory of the session's sandbox.",
	  OBJECT("\"pattern\":{\"type\":\"string\"}," PATH, "\"pattern\""), READS, search_files },
	{ "show_changes", "Shows what the session changed in the workspace, as a unified diff.",
	  OBJECT("", ""), READS, show_changes },
	{ "write_file", "Writes a file of the session's sandbox, and its directories.",
	  OBJECT(PATH ",\"content\":{\"type\":\"string\"}", "\"path\",\"content\""), WRITES("true"),
	  write_file },
};

const struct builtin *builtin_at(size_t i)
{
	return i < ARRAY_LEN(builtins) ? &builtins[i] : NULL;
}

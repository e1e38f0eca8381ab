/*
 * Binding. In: a tool and the arguments of a call, untrusted. Out: the argv of the command, each
 * entry of `run` one element whatever the values hold; or a refusal. A value that stands at the
 * beginning of an element and behind no "--" must not begin with "-", whatever its type says: there
 * the program would take it for an option. The program itself is never a parameter (sound.c).
 * Pure functions, fuzzed (fuzz/bind.c).
 */
#include "tools/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "tools/json_schema.h"
#include "tools/value.h"

#define ARGUMENTS_MAX 1024

void tools_call_free(struct tools_call *c)
{
	strv_free(&c->argv);
	strv_free(&c->names);
	strv_free(&c->values);
	buf_free(&c->body);
	free(c->input);
	*c = (struct tools_call){ 0 };
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

bool bind_next_piece(const char **at, struct bind_piece *ret, const char **ret_wrong)
{
	const char *p = *at;
	size_t n = 0;

	*ret_wrong = NULL;
	*ret = (struct bind_piece){ .text = p };
	if (!*p)
		return false;
	if (p[0] == '{' && p[1] == '{') { /* one brace */
		ret->len = 1;
		*at = p + 2;
		return true;
	}
	if (*p != '{') {
		ret->len = strcspn(p, "{");
		*at = p + ret->len;
		return true;
	}
	while (is_name_char(p[1 + n]))
		n++;
	ret->all = n && strncmp(p + 1 + n, "...", 3) == 0;
	if (!n || p[1 + n + (ret->all ? 3 : 0)] != '}') {
		*ret_wrong = "after { expected the name of a parameter and }";
		return false;
	}
	ret->text = p + 1;
	ret->len = n;
	ret->parameter = true;
	*at = p + 1 + n + (ret->all ? 3 : 0) + 1;
	return true;
}

bool bind_piece_is(const struct bind_piece *p, const char *name)
{
	return p->parameter && strlen(name) == p->len && memcmp(p->text, name, p->len) == 0;
}

bool bind_can_be_option(const struct tool_tool *tool, size_t entry)
{
	for (size_t i = 0; i < entry; i++)
		if (strcmp(tool->run.items[i], "--") == 0)
			return false;
	return tool->run.items[entry][0] == '{' && tool->run.items[entry][1] != '{';
}

char *bind_scope_path(const char *dir, const char *home, const char *path)
{
	if (*path == '~' && (!path[1] || path[1] == '/'))
		return home ? path_join(home, path[1] ? path + 2 : ".") : NULL;
	return path_join(dir, path);
}

static bool any_covers(const struct strv *paths, const char *dir, const char *home,
		       const char *path)
{
	for (size_t i = 0; i < paths->len; i++) {
		auto_free char *whole = bind_scope_path(dir, home, paths->items[i]);

		if (whole && path_is_beneath(path, whole))
			return true;
	}
	return false;
}

bool bind_path_in_scope(const struct tool_tool *tool, const char *dir, const char *home,
			const char *path, bool write)
{
	return any_covers(&tool->scope.write, dir, home, path) ||
	       (!write && any_covers(&tool->scope.read, dir, home, path));
}

/* The checked values of one parameter. */
static int bind_param(const struct value_place *at, const struct tool_param *p,
		      const struct tools_argument *arguments, size_t count, struct tools_call *ret,
		      struct ward_err *e)
{
	size_t given = 0;

	for (size_t i = 0; i <= count; i++) {
		const char *value = i < count ? arguments[i].value : p->fallback;
		auto_buf text = { 0 };
		int r;

		if (i < count ? strcmp(arguments[i].name, p->head.name) != 0 : given || !value)
			continue;
		if (given++ && !p->list)
			return ward_fail(e, EINVAL, "--%s: given twice", p->head.name);
		if (given > TOOLS_LIST_VALUES_MAX)
			return ward_fail(e, EINVAL, "--%s: at most %d values", p->head.name,
					 TOOLS_LIST_VALUES_MAX);
		r = value_check(at, p, value, &text, e);
		if (r < 0)
			return r;
		strv_add(&ret->names, p->head.name);
		strv_add(&ret->values, buf_text(&text));
	}
	if (given || !p->required)
		return 0;
	ward_fail(e, EINVAL, "--%s is missing", p->head.name);
	return ward_remedy(e, "ward tool show %s explains it", at->tool->head.name);
}

static int check_known(const struct tool_tool *tool, const struct tools_argument *arguments,
		       size_t count, struct ward_err *e)
{
	for (size_t i = 0; i < count; i++) {
		unsigned distance = (unsigned)-1;
		const char *best = NULL;
		auto_buf shown = { 0 };
		char cut[81];

		if (tools_find_param(tool, arguments[i].name))
			continue;
		snprintf(cut, sizeof(cut), "%s", arguments[i].name);
		text_escape(&shown, cut);
		for (size_t k = 0; k < tool->parameters.len; k++)
			text_nearest(arguments[i].name,
				     tools_at(param, &tool->parameters, k)->head.name, &best,
				     &distance);
		ward_fail(e, EINVAL, "%s has no parameter \"%s\"", tool->head.name,
			  buf_text(&shown));
		return best ? ward_remedy(e, "did you mean --%s?", best)
			    : ward_remedy(e, "ward tool show %s lists them", tool->head.name);
	}
	return 0;
}

/* The values as one JSON object, typed. */
static void put_input(const struct tool_tool *tool, const struct tools_call *call, struct buf *out)
{
	bool comma = false;

	buf_puts(out, "{");
	for (size_t i = 0; i < tool->parameters.len; i++) {
		const struct tool_param *p = tools_at(param, &tool->parameters, i);
		bool some = false;

		for (size_t k = 0; k < call->names.len; k++) {
			if (strcmp(call->names.items[k], p->head.name) != 0)
				continue;
			if (!some) {
				buf_puts(out, comma ? "," : "");
				json_quote(out, p->head.name);
				buf_puts(out, p->list ? ":[" : ":");
			} else {
				buf_puts(out, ",");
			}
			if (p->type == PARAM_INTEGER || p->type == PARAM_NUMBER ||
			    p->type == PARAM_BOOLEAN)
				buf_puts(out, call->values.items[k]);
			else
				json_quote(out, call->values.items[k]);
			some = comma = true;
		}
		if (some && p->list)
			buf_puts(out, "]");
	}
	buf_puts(out, "}");
}

static int check_input(const struct tool_tool *tool, const char *input, struct ward_err *e)
{
	struct ward_err why = { 0 };
	struct reader r = { .name = "", .e = &why };
	struct schema_error wrong;
	auto_node schema = NULL;
	auto_node value = NULL;

	if (!tool->input)
		return 0;
	schema = json_read(&r, (const uint8_t *)tool->input, strlen(tool->input));
	value = json_read(&r, (const uint8_t *)input, strlen(input));
	if (!schema || !value || r.count)
		return ward_fail(e, EINVAL, "the arguments cannot be checked: %.300s", why.why);
	if (json_schema_validate(schema, value, &wrong) == 0)
		return 0;
	return ward_fail(e, EINVAL, "the arguments do not match the input schema: %s%s%s",
			 wrong.path, *wrong.path ? ": " : "", wrong.message);
}

static const char *value_of(const struct tools_call *call, const struct bind_piece *p, size_t *at)
{
	for (; *at < call->names.len; ++*at)
		if (bind_piece_is(p, call->names.items[*at]))
			return call->values.items[(*at)++];
	return NULL;
}

static int take_option(const struct bind_piece *p, struct ward_err *e)
{
	ward_fail(e, EINVAL, "--%.*s: a value that begins with - would be taken for an option here",
		  (int)p->len, p->text);
	return ward_remedy(e, "in tools.yaml: put \"--\" before it, or text such as --name= in "
			      "front");
}

/* {name...} alone: one element for each value. */
static int put_all(const struct tools_call *call, const struct bind_piece *p, bool first,
		   struct strv *argv, struct ward_err *e)
{
	const char *value;
	size_t at = 0;

	while ((value = value_of(call, p, &at))) {
		if (first && *value == '-')
			return take_option(p, e);
		strv_add(argv, value);
	}
	return 0;
}

/* One entry of run: one element, or none where it names a parameter that was not given. */
static int put_entry(const struct tool_tool *tool, size_t entry, struct tools_call *call,
		     struct ward_err *e)
{
	const char *at = tool->run.items[entry], *wrong;
	bool first = bind_can_be_option(tool, entry), leave_out = false;
	struct bind_piece piece;
	auto_buf text = { 0 };

	while (bind_next_piece(&at, &piece, &wrong)) {
		size_t from = 0;
		const char *value;

		if (piece.all)
			return put_all(call, &piece, first, &call->argv, e);
		if (!piece.parameter) {
			buf_add(&text, piece.text, piece.len);
			continue;
		}
		value = value_of(call, &piece, &from);
		if (!value)
			leave_out = true;
		else if (first && !text.len && *value == '-')
			return take_option(&piece, e);
		else
			buf_puts(&text, value);
	}
	if (wrong)
		return ward_fail(e, EINVAL, "run: %s", wrong);
	/* pieces that are empty must not let the next one begin with - unnoticed */
	if (first && text.len && *text.data == '-')
		return ward_fail(e, EINVAL, "the values would make an option of an argument");
	if (!leave_out)
		strv_take(&call->argv, strdup(buf_text(&text)));
	return 0;
}

int tools_bind(const struct tools *t, const struct tool_tool *tool, const char *dir,
	       const char *home, const struct tools_argument *arguments, size_t count,
	       struct tools_call *ret, struct ward_err *e)
{
	const struct value_place at = { tool, dir, home };
	auto_buf input = { 0 };
	int r;

	(void)t;
	*ret = (struct tools_call){ 0 };
	if (count > ARGUMENTS_MAX)
		return ward_fail(e, E2BIG, "at most %d arguments", ARGUMENTS_MAX);
	r = check_known(tool, arguments, count, e);
	for (size_t i = 0; r == 0 && i < tool->parameters.len; i++)
		r = bind_param(&at, tools_at(param, &tool->parameters, i), arguments, count, ret,
			       e);
	if (r < 0)
		return r;
	put_input(tool, ret, &input);
	ret->input = buf_take(&input);
	if (!ret->input)
		return ward_fail(e, ENOMEM, "out of memory");
	r = check_input(tool, ret->input, e);
	for (size_t i = 0; r == 0 && i < tool->run.len; i++)
		r = put_entry(tool, i, ret, e);
	if (r == 0 && (ret->argv.failed || ret->names.failed || ret->values.failed))
		r = ward_fail(e, ENOMEM, "out of memory");
	return r;
}

/*
 * One value of one parameter. In: text from a model or a user, untrusted. Out: the text that the
 * command gets, or which rule it breaks. Known good, not known bad: each type has one form. No
 * value has a NUL, control characters, characters that turn or hide text, or bytes that are not
 * UTF-8; a path has no "..", lies in the tool's scope and becomes absolute, so that it can never
 * begin with "-"; a host or URL is ASCII in canonical form and covered by the scope's hosts.
 * Whether a path's links lead out of the scope is not asked here: in the sandbox nothing else
 * exists. Pure functions, fuzzed (fuzz/bind.c).
 */
#include "tools/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "policy/policy_grant.h"
#include "policy/policy_rule.h"
#include "policy/policy_value.h"
#include "tools/bind.h"
#include "tools/decimal.h"
#include "tools/regex.h"

static int refuse(const struct tool_param *p, const char *value, struct ward_err *e,
		  const char *expected)
{
	auto_buf shown = { 0 };
	char cut[81];

	snprintf(cut, sizeof(cut), "%s", value);
	text_escape(&shown, cut);
	return ward_fail(e, EINVAL, "--%s: expected %s, found \"%.200s\"", p->head.name, expected,
			 buf_text(&shown));
}

/* What no value may have. */
static int check_text(const struct tool_param *p, const char *value, struct ward_err *e)
{
	for (const char *at = value; *at;) {
		unsigned point = 0;
		size_t n = text_utf8((const unsigned char *)at, &point);

		if (!n)
			return refuse(p, value, e, "UTF-8 text");
		if ((point == '\n' || point == '\t') && p->lines && p->type == PARAM_STRING)
			point = ' ';
		if (point < 0x20 || point == 0x7f || text_acts(point))
			return refuse(p, value, e,
				      p->lines ? "text without control or hidden characters"
					       : "one line without control or hidden characters");
		at += n;
	}
	return 0;
}

static int check_number(const struct tool_param *p, const char *value, struct buf *out,
			struct ward_err *e)
{
	struct decimal d, bound;
	const char *digits = value + (*value == '-');
	auto_buf expected = { 0 };
	bool led = digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
	bool sound = *digits >= '0' && *digits <= '9' && !led && decimal_read(value, &d);

	buf_puts(&expected, p->type == PARAM_INTEGER ? "a whole number" : "a number");
	if (p->min)
		buf_printf(&expected, " from %.40s", p->min);
	if (p->max)
		buf_printf(&expected, " up to %.40s", p->max);
	if (!sound || (p->type == PARAM_INTEGER && strspn(digits, "0123456789") != strlen(digits)))
		return refuse(p, value, e, buf_text(&expected));
	if ((p->min && (!decimal_read(p->min, &bound) || decimal_compare(&d, &bound) < 0)) ||
	    (p->max && (!decimal_read(p->max, &bound) || decimal_compare(&d, &bound) > 0)))
		return refuse(p, value, e, buf_text(&expected));
	buf_puts(out, value);
	return 0;
}

static bool has_dots(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (!at[2] || at[2] == '/'))
			return true;
	}
	return false;
}

static int check_path(const struct value_place *at, const struct tool_param *p, const char *value,
		      struct buf *out, struct ward_err *e)
{
	auto_free char *path = NULL;
	bool write = p->access == ACCESS_WRITE;

	if (has_dots(value))
		return refuse(p, value, e, "a path without ..");
	if (*value == '-' || *value == '~')
		return refuse(p, value, e,
			      "a path that begins with neither - nor ~ (write ./-...)");
	path = path_join(at->dir, value);
	if (!path)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!bind_path_in_scope(at->tool, at->dir, at->home, path, write)) {
		refuse(p, value, e,
		       write ? "a path in scope.write" : "a path in scope.read or scope.write");
		return ward_remedy(e, "ward tool show %s lists the paths of its scope",
				   at->tool->head.name);
	}
	buf_puts(out, path);
	return 0;
}

/* Whether the scope has a rule for the host at the port. */
static bool host_in_scope(const struct tool_tool *tool, const char *host, unsigned port)
{
	for (size_t i = 0; i < tool->scope.hosts.len; i++) {
		struct policy_rule rule;
		struct ward_err ignored;
		bool port_fits;

		if (policy_rule_read(tool->scope.hosts.items[i], &rule, &ignored) < 0)
			continue;
		port_fits = !rule.n_ports || !port;
		for (unsigned k = 0; k < rule.n_ports; k++)
			port_fits |= rule.ports[k] == port;
		if (port_fits && grant_host_covers(rule.host, host))
			return true;
	}
	return false;
}

static int check_host(const struct value_place *at, const struct tool_param *p, const char *value,
		      struct buf *out, struct ward_err *e)
{
	char host[256];
	unsigned port;

	if (host_parse(value, true, host, &port) || strchr(host, '*') || strchr(host, '/'))
		return refuse(p, value, e, "a host such as api.example.com");
	if (!host_in_scope(at->tool, host, port))
		return refuse(p, value, e, "a host in scope.hosts");
	buf_puts(out, host);
	if (port)
		buf_printf(out, ":%u", port);
	return 0;
}

/* https://HOST[:PORT][/...], nothing that two readers might take apart differently. */
static int check_url(const struct value_place *at, const struct tool_param *p, const char *value,
		     struct buf *out, struct ward_err *e)
{
	static const char scheme[] = "https://";
	char name[256], host[256];
	const char *begin, *end;
	unsigned port = 0;

	for (const char *c = value; *c; c++)
		if (*c <= ' ' || *c >= 0x7f || strchr("\\\"<>^`{|}@", *c))
			return refuse(p, value, e,
				      "a URL of plain ASCII, percent-encoded, without a user");
	if (strncmp(value, scheme, strlen(scheme)) != 0)
		return refuse(p, value, e, "a URL that begins with https://");
	begin = value + strlen(scheme);
	end = begin + strcspn(begin, "/?#");
	if (end == begin || (size_t)(end - begin) >= sizeof(name))
		return refuse(p, value, e, "a URL with a host");
	snprintf(name, sizeof(name), "%.*s", (int)(end - begin), begin);
	if (host_parse(name, true, host, &port) || strchr(host, '*') || strchr(host, '/'))
		return refuse(p, value, e, "a URL with a host");
	if (!host_in_scope(at->tool, host, port ? port : 443))
		return refuse(p, value, e, "a URL of a host in scope.hosts");
	buf_puts(out, scheme);
	buf_puts(out, host);
	if (port)
		buf_printf(out, ":%u", port);
	buf_puts(out, *end ? end : "/");
	return 0;
}

static int check_string(const struct tool_param *p, const char *value, struct buf *out,
			struct ward_err *e)
{
	int r = p->pattern ? regex_match(p->pattern, REGEX_WHOLE, value, NULL) : 1;
	auto_buf expected = { 0 };

	if (r <= 0) {
		buf_puts(&expected, "text that matches ");
		text_escape(&expected, p->pattern);
		return refuse(p, value, e, buf_text(&expected));
	}
	buf_puts(out, value);
	return 0;
}

static int check_enum(const struct tool_param *p, const char *value, struct buf *out,
		      struct ward_err *e)
{
	auto_buf expected = { 0 };

	if (strv_has(&p->values, value)) {
		buf_puts(out, value);
		return 0;
	}
	buf_puts(&expected, "one of");
	for (size_t i = 0; i < p->values.len && expected.len < 200; i++) {
		buf_puts(&expected, i ? ", " : " ");
		text_escape(&expected, p->values.items[i]);
	}
	return refuse(p, value, e, buf_text(&expected));
}

int value_check(const struct value_place *at, const struct tool_param *p, const char *value,
		struct buf *out, struct ward_err *e)
{
	int r;

	if (strlen(value) > p->max_length)
		return ward_fail(e, EINVAL, "--%s: at most %llu bytes, this has %zu", p->head.name,
				 (unsigned long long)p->max_length, strlen(value));
	r = check_text(p, value, e);
	if (r < 0)
		return r;
	if (!*value && p->type != PARAM_STRING)
		return refuse(p, value, e, "a value");
	switch (p->type) {
	case PARAM_INTEGER:
	case PARAM_NUMBER:
		return check_number(p, value, out, e);
	case PARAM_BOOLEAN:
		if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
			return refuse(p, value, e, "true or false");
		buf_puts(out, value);
		return 0;
	case PARAM_ENUM:
		return check_enum(p, value, out, e);
	case PARAM_PATH:
		return check_path(at, p, value, out, e);
	case PARAM_URL:
		return check_url(at, p, value, out, e);
	case PARAM_HOST:
		return check_host(at, p, value, out, e);
	default:
		return check_string(p, value, out, e);
	}
}

/* A pattern is asked by examples: options are short, long, and with a value. */
bool value_may_begin_with_dash(const struct tool_param *p)
{
	static const char *const options[] = { "-",      "-x",       "-xx",      "-x1",  "-1",
					       "--x",    "--xx",     "--x=y",    "-x=y", "--xx-yy",
					       "--xx=y", "--output", "--exec=x", "-o/x", "-rf" };
	struct decimal d;

	if (p->type == PARAM_PATH || p->type == PARAM_URL || p->type == PARAM_HOST ||
	    p->type == PARAM_BOOLEAN)
		return false;
	if (p->type == PARAM_INTEGER || p->type == PARAM_NUMBER)
		return !p->min || !decimal_read(p->min, &d) || d.negative;
	if (p->type == PARAM_ENUM) {
		for (size_t i = 0; i < p->values.len; i++)
			if (*p->values.items[i] == '-')
				return true;
		return false;
	}
	for (size_t i = 0; p->pattern && i < ARRAY_LEN(options); i++)
		if (regex_match(p->pattern, REGEX_WHOLE, options[i], NULL) != 0)
			return true;
	return !p->pattern;
}

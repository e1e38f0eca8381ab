/*
 * A tool that is an HTTP request. In: its template and bound values. Out: the argv of curl, which
 * runs in the tool's sandbox: no configuration file, https only, no redirects, no globbing; the
 * body comes over standard input. A value in the URL is percent-encoded but for letters, digits and
 * - . _ ~, so it stays one segment or one value; a segment that would be . or .. is refused. The
 * values have no line ends (value.c), so a header stays one header. Pure functions.
 */
#include <errno.h>
#include <string.h>

#include "tools/bind.h"
#include "tools/bind_http.h"

static const char *value_of(const struct tools_call *call, const struct bind_piece *p)
{
	for (size_t i = 0; i < call->names.len; i++)
		if (bind_piece_is(p, call->names.items[i]))
			return call->values.items[i];
	return NULL;
}

static void percent_encode(const char *s, struct buf *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (; *s; s++)
		if (strchr(plain, *s))
			buf_add(out, s, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)*s);
}

static int fill(const struct tools_call *call, const char *template, bool url, struct buf *out,
		struct ward_err *e)
{
	struct bind_piece piece;
	const char *wrong;

	while (bind_next_piece(&template, &piece, &wrong)) {
		const char *value = piece.parameter ? value_of(call, &piece) : NULL;

		if (!piece.parameter)
			buf_add(out, piece.text, piece.len);
		else if (value && url)
			percent_encode(value, out);
		else if (value)
			buf_puts(out, value);
	}
	return wrong ? ward_fail(e, EINVAL, "http: %s", wrong) : 0;
}

/* Servers and proxies take dots away, and so leave the path that the tool is for. */
static bool has_dot_segment(const char *url)
{
	const char *end = url + strcspn(url, "?");

	for (const char *at = strchr(url + 8, '/'); at && at < end; at = strchr(at + 1, '/')) {
		size_t n = strcspn(at + 1, "/?");

		if ((n == 1 && at[1] == '.') || (n == 2 && at[1] == '.' && at[2] == '.'))
			return true;
	}
	return false;
}

static int put_headers(const struct tool_http *h, const struct tools_call *call, struct strv *argv,
		       struct ward_err *e)
{
	for (size_t i = 0; i < h->headers.len; i++) {
		const struct tool_pair *pair = &((struct tool_pair *)h->headers.items)[i];
		auto_buf line = { 0 };
		int r;

		buf_printf(&line, "%s: ", pair->head.name);
		r = fill(call, pair->text, false, &line, e);
		if (r < 0)
			return r;
		strv_add(argv, "--header");
		strv_add(argv, buf_text(&line));
	}
	return 0;
}

int bind_http(const struct tool_tool *tool, struct tools_call *call, struct ward_err *e)
{
	static const char *const first[] = { "curl",         "-q",      "--silent",
					     "--show-error", "--fail",  "--globoff",
					     "--path-as-is", "--proto", "=https",
					     "--max-redirs", "0",       "--request" };
	const struct tool_http *h = &tool->http;
	const struct bind_piece body = { .text = h->body,
					 .len = h->body ? strlen(h->body) : 0,
					 .parameter = h->body != NULL };
	const char *value = h->body ? value_of(call, &body) : NULL;
	auto_buf url = { 0 };
	char word[32];
	int r = fill(call, h->url, true, &url, e);

	if (r < 0)
		return r;
	if (has_dot_segment(buf_text(&url)))
		return ward_fail(e, EINVAL, "a value would be the segment . or .. of the URL");
	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		strv_add(&call->argv, first[i]);
	strv_add(&call->argv, tools_word("http", "method", h->method, word));
	if (h->method == METHOD_HEAD)
		strv_add(&call->argv, "--head");
	r = put_headers(h, call, &call->argv, e);
	if (r < 0)
		return r;
	if (value) {
		buf_puts(&call->body, value);
		strv_add(&call->argv, "--data-binary");
		strv_add(&call->argv, "@-");
	}
	strv_add(&call->argv, "--url");
	strv_add(&call->argv, buf_text(&url));
	return call->argv.failed || call->body.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

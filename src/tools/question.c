/*
 * What a person sees of a call (question.h). In: a call that was bound. Out: its text; what the
 * model chose in it is quoted and escaped. Pure.
 */
#include "tools/question.h"

#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

#define SHOWN_MAX 2000  /* bytes of a body or an input that a person is shown */
#define SHOWN_DIGITS 64 /* all of them: an answer is for what was shown */

/* In quotes and on one line, so that no text reads as two or as another's end. */
static void put_quoted(struct buf *out, const char *text, size_t n)
{
	auto_buf piece = { 0 };

	buf_puts(out, "\"");
	for (size_t at = 0; at < n;) {
		size_t len = 0;

		while (at + len < n && text[at + len] && !strchr("\"\\", text[at + len]))
			len++;
		piece.len = 0;
		buf_add(&piece, text + at, len);
		text_escape(out, buf_text(&piece));
		at += len;
		if (at < n) {
			buf_puts(out, text[at] ? "\\" : "\\x00");
			buf_add(out, text + at, text[at] ? 1 : 0);
			at++;
		}
	}
	buf_puts(out, "\"");
	out->failed |= piece.failed;
}

/* What a tool is given beside its words; a long one by its digest, too. */
static void put_given(struct buf *out, const char *what, const char *bytes, size_t n)
{
	char hex[SHA256_HEX];

	if (!n)
		return;
	sha256_hex(bytes, n, hex);
	buf_printf(out, "\n  %s, %zu bytes (sha256 %.*s): ", what, n, SHOWN_DIGITS, hex);
	put_quoted(out, bytes, n < SHOWN_MAX ? n : SHOWN_MAX);
	if (n > SHOWN_MAX)
		buf_printf(out, " and %zu bytes more", n - SHOWN_MAX);
}

void tools_question(const struct invoke_request *r, const struct tools_call *call, struct buf *out)
{
	buf_printf(out, "%s wants to run", r->tool->head.name);
	for (size_t i = 0; i < call->argv.len; i++) {
		buf_puts(out, " ");
		put_quoted(out, call->argv.items[i], strlen(call->argv.items[i]));
	}
	if (!call->argv.len && call->input)
		put_given(out, "arguments", call->input, strlen(call->input));
	put_given(out, "body", buf_text(&call->body), call->body.len);
	if (r->input)
		put_given(out, "standard input", buf_text(r->input), r->input->len);
}

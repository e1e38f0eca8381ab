/*
 * How ward and the programs of its verbs speak: errors on standard error as "ward: WHAT: WHY" with
 * the remedy below, answers on standard output. In: errors and finished text. Everything in an
 * error may quote untrusted bytes; err_text() escapes all of it. No stdio: one write, nothing
 * buffered across a fork.
 */
#include "base/say.h"

#include <errno.h>
#include <string.h>

#include "base/err_text.h"
#include "base/io.h"
#include "base/text.h"

void say_err(const struct buf *out)
{
	if (out->data && io_write_all(STDERR_FILENO, out->data, out->len) < 0)
		return; /* there is no reader */
}

void say_notes(const struct strv *notes)
{
	auto_buf out = { 0 };

	for (size_t i = 0; i < notes->len; i++) {
		buf_puts(&out, "ward: note: ");
		text_escape(&out, notes->items[i]);
		buf_puts(&out, "\n");
	}
	say_err(&out);
}

int say_error(const struct ward_err *e, bool json, int code)
{
	auto_buf out = { 0 };

	err_text(e, json, &out);
	say_err(&out);
	return code;
}

int say_out(const struct buf *out, int code)
{
	struct ward_err e = { 0 };
	int r = out->failed ? -ENOMEM : io_write_all(STDOUT_FILENO, buf_text(out), out->len);

	if (r == 0 || r == -EPIPE)
		return code; /* EPIPE: the reader has seen enough */
	errno = -r;
	ward_fail_errno(&e, "cannot write to standard output");
	return say_error(&e, false, EXIT_REFUSED);
}

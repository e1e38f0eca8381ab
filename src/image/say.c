/*
 * How ward-image speaks: as ward does. Everything in an error may quote an archive, so all of it is escaped here.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/io.h"
#include "base/text.h"
#include "image/image.h"
#include "lib/result.h"

static void put_err(const struct buf *out)
{
	if (out->data && io_write_all(STDERR_FILENO, out->data, out->len) < 0)
		return;		/* nobody is there to be told */
}

int image_error(const struct ward_err *e, bool json, int code)
{
	auto_buf out = { 0 };

	if (json) {
		result_refusal_json(e, &out);
		buf_puts(&out, "\n");
	} else {
		buf_puts(&out, "ward: ");
		text_escape(&out, e->what);
		buf_puts(&out, e->what[0] ? ": " : "");
		text_escape(&out, e->why);
		buf_puts(&out, e->remedy[0] ? "\n  remedy: " : "");
		text_escape(&out, e->remedy);
		buf_puts(&out, "\n");
	}
	put_err(&out);
	return code;
}

int image_out(const struct buf *out, int code)
{
	struct ward_err e = { 0 };
	int r = out->failed ? -ENOMEM : io_write_all(STDOUT_FILENO, buf_text(out), out->len);

	if (r == 0 || r == -EPIPE)
		return code;
	errno = -r;
	ward_fail_errno(&e, "cannot write to standard output");
	return image_error(&e, false, IMAGE_REFUSED);
}

static void show(unused_arg struct progress *p, const char *what, uint64_t done, unused_arg uint64_t total)
{
	auto_buf out = { 0 };

	buf_printf(&out, "\r\033[Kward: %s: %" PRIu64, what, done);
	put_err(&out);
}

struct progress *image_progress(struct progress *p, const struct image_options *o)
{
	*p = (struct progress){ .show = show };
	return !o->json && isatty(STDERR_FILENO) ? p : NULL;
}

void image_progress_end(struct progress *p)
{
	auto_buf out = { 0 };

	if (!p || !p->shown)
		return;
	p->shown = false;
	buf_puts(&out, "\r\033[K");
	put_err(&out);
}

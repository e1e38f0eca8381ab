/*
 * How ward-image speaks: as ward does, in the words of result_error_text(), which escapes what an error quotes of an archive.
 */
#include <errno.h>

#include "base/io.h"
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

	result_error_text(e, json, &out);
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

struct progress *image_progress(struct progress *p, const struct image_options *o)
{
	return progress_for_terminal(p, !o->json);
}

/*
 * Talking QMP. In: a connected socket to QEMU. Out: answers. Runs in ward-vm inside the sandbox.
 * Events are passed over; a line that is too long, or no JSON, ends the talk.
 */
#include "vm/qmp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/io.h"

/* Takes the first line off *heard. False: there is none yet. */
static bool take_line(struct buf *heard, struct qmp_line *ret, bool *ret_bad)
{
	const char *end = heard->len ? memchr(heard->data, '\n', heard->len) : NULL;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - heard->data);
	*ret_bad = !qmp_read((const uint8_t *)heard->data,
			     n && heard->data[n - 1] == '\r' ? n - 1 : n, ret);
	memmove(heard->data, end + 1, heard->len - n - 1);
	heard->len -= n + 1;
	return true;
}

static int hear(int fd, struct buf *heard, uint64_t until_ms, struct ward_err *e)
{
	uint64_t now = io_now_ms();
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n;

	if (now >= until_ms || poll(&p, 1, (int)(until_ms - now)) == 0)
		return ward_fail(e, ETIMEDOUT, "QEMU did not answer");
	n = read(fd, bytes, sizeof(bytes));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN
			       ? 0
			       : ward_fail_errno(e, "cannot read from QEMU");
	if (n == 0)
		return ward_fail(e, EPIPE, "QEMU exited");
	buf_add(heard, bytes, (size_t)n);
	if (heard->failed || heard->len > QMP_LINE_MAX)
		return ward_fail(e, EMSGSIZE, "QEMU sent too much data");
	return 0;
}

/* The next line that is no event. */
static int next(int fd, struct buf *heard, int timeout_ms, struct qmp_line *ret, struct ward_err *e)
{
	uint64_t until_ms = io_now_ms() + (uint64_t)timeout_ms;
	int r = 0;

	while (r == 0) {
		bool bad = false;

		if (!take_line(heard, ret, &bad))
			r = hear(fd, heard, until_ms, e);
		else if (bad)
			r = ward_fail(e, EPROTO, "QEMU's answer cannot be read");
		else if (ret->kind != QMP_EVENT)
			return 0;
	}
	return r;
}

int qmp_call(int fd, struct buf *heard, const char *command, int pass_fd, int timeout_ms,
	     struct qmp_line *ret, struct ward_err *e)
{
	auto_buf line = { 0 };
	int r;

	buf_printf(&line, "%s\n", command);
	if (line.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = io_send_fds(fd, line.data, line.len, &pass_fd, pass_fd >= 0);
	if (r < 0)
		return ward_fail(e, -r, "cannot talk to QEMU: %s", strerror(-r));
	r = next(fd, heard, timeout_ms, ret, e);
	if (r < 0)
		return r;
	if (ret->kind != QMP_RETURN)
		return ward_fail(e, EPROTO, "QEMU refused: %s",
				 ret->kind == QMP_ERROR ? ret->text : "its answer is none");
	return 0;
}

int qmp_greet(int fd, struct buf *heard, int timeout_ms, struct ward_err *e)
{
	struct qmp_line line = { 0 };
	int r = next(fd, heard, timeout_ms, &line, e);

	if (r < 0)
		return r;
	if (line.kind != QMP_GREETING)
		return ward_fail(e, EPROTO, "QEMU sent no greeting");
	return qmp_call(fd, heard, "{\"execute\":\"qmp_capabilities\"}", -1, timeout_ms, &line, e);
}

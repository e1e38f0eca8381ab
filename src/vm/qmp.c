/*
 * Talking QMP. In: a connected socket to QEMU. Out: answers. Runs in ward-vm inside the sandbox.
 * Events are passed over; a line that is too long, or no JSON, ends the talk.
 */
#include "vm/qmp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/io.h"

/* Takes the first line off *received. False: there is none yet. */
static bool take_line(struct buf *received, struct qmp_line *ret, bool *ret_bad)
{
	const char *end = received->len ? memchr(received->data, '\n', received->len) : NULL;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - received->data);
	*ret_bad = !qmp_read((const uint8_t *)received->data,
			     n && received->data[n - 1] == '\r' ? n - 1 : n, ret);
	memmove(received->data, end + 1, received->len - n - 1);
	received->len -= n + 1;
	return true;
}

static int receive(int fd, struct buf *received, uint64_t until_ms, struct ward_err *e)
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
	buf_add(received, bytes, (size_t)n);
	if (received->failed || received->len > QMP_LINE_MAX)
		return ward_fail(e, EMSGSIZE, "QEMU sent too much data");
	return 0;
}

/* The next line that is no event. */
static int next(int fd, struct buf *received, int timeout_ms, struct qmp_line *ret,
		struct ward_err *e)
{
	uint64_t until_ms = io_now_ms() + (uint64_t)timeout_ms;
	int r = 0;

	while (r == 0) {
		bool bad = false;

		if (!take_line(received, ret, &bad))
			r = receive(fd, received, until_ms, e);
		else if (bad)
			r = ward_fail(e, EPROTO, "QEMU sent an answer that is no QMP message");
		else if (ret->kind != QMP_EVENT)
			return 0;
	}
	return r;
}

int qmp_call(int fd, struct buf *received, const char *command, int pass_fd, int timeout_ms,
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
	r = next(fd, received, timeout_ms, ret, e);
	if (r < 0)
		return r;
	if (ret->kind != QMP_RETURN)
		return ward_fail(e, EPROTO, "QEMU refused: %s",
				 ret->kind == QMP_ERROR ? ret->text : "its answer is none");
	return 0;
}

int qmp_greet(int fd, struct buf *received, int timeout_ms, struct ward_err *e)
{
	struct qmp_line line = { 0 };
	int r = next(fd, received, timeout_ms, &line, e);

	if (r < 0)
		return r;
	if (line.kind != QMP_GREETING)
		return ward_fail(e, EPROTO, "QEMU sent no greeting");
	return qmp_call(fd, received, "{\"execute\":\"qmp_capabilities\"}", -1, timeout_ms, &line,
			e);
}

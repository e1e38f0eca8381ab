/*
 * The end of a box. In: a handle. Out: whether it has ended, and how. Who waits holds no lock while
 * waiting, so other threads can stop the box meanwhile; what came is taken under the lock, by the
 * first one that comes.
 */
#include "api/box.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "api/launch.h"
#include "base/io.h"

#define REPORT_BYTES_MAX (64U << 20)

/* There is no result; `ward wait` says the same. */
static int lose(struct ward_box *b, const char *why)
{
	b->ended = true;
	b->code = 128 + SIGKILL;
	ward_fail(&b->lost, ESRCH, "the sandbox %s has no result: %s", b->id, why);
	return 1;
}

/* Of a box whose life is our socket. 1: it has ended; 0: not yet. Under the lock. */
static int look_at_socket(struct ward_box *b, struct ward_err *e)
{
	struct detach_answer answer;
	struct ward_err inner = { 0 };
	auto_buf text = { 0 };
	auto_fd fd = -1;
	size_t count;
	int r = api_poll(b->sock_fd, 0, e);

	if (r <= 0)
		return r;
	if (launch_answer(b->sock_fd, DETACH_ENDED, &answer, &fd, 1, &count, &inner) < 0 ||
	    count != 1)
		return lose(b, "its supervisor was killed, and the sandbox with it");
	b->ended = true;
	b->code = answer.code;
	if (io_read_all(fd, REPORT_BYTES_MAX, &text) == 0)
		b->report = buf_take(&text);
	return 1;
}

/* Of any other box: what the register says once its connection has ended. Under the lock. */
static int look_at_register(struct ward_box *b, struct ward_err *e)
{
	struct box_info info = { 0 };
	int r = boxes_look(b->id, &info, e);

	if (r == -ENOENT)
		return lose(b, "it was removed");
	if (r < 0)
		return r;
	if (info.state == BOX_ENDED) {
		b->ended = true;
		b->code = info.exit_code;
	} else if (!info.alive) {
		lose(b, "its supervisor was killed, and the sandbox with it");
	}
	box_info_clear(&info);
	return b->ended;
}

/* 1: it has ended; 0: not yet, and *ret_fd (-1: none within timeout_ms) is readable when it has.
 * Under the lock. */
static int look(struct ward_box *b, int timeout_ms, int *ret_fd, struct ward_err *e)
{
	int r;

	if (b->ended)
		return 1;
	if (b->sock_fd >= 0) {
		*ret_fd = b->sock_fd;
		return look_at_socket(b, e);
	}
	if (b->waiter.fd >= 0) {
		r = api_poll(b->waiter.fd, 0, e);
		*ret_fd = b->waiter.fd;
		return r <= 0 ? r : look_at_register(b, e);
	}
	r = client_connect_end(b->id, timeout_ms, &b->waiter, e);
	*ret_fd = b->waiter.fd;
	return r == 1 || r == -ENOENT ? look_at_register(b, e) : r == -ETIMEDOUT ? 0 : r;
}

static int look_locked(struct ward_box *b, int timeout_ms, int *ret_fd, struct ward_err *e)
{
	int r;

	pthread_mutex_lock(&b->lock);
	r = look(b, timeout_ms, ret_fd, e);
	pthread_mutex_unlock(&b->lock);
	return r;
}

int ward_wait(struct ward_box *b, int timeout_ms, int *ret_code, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	uint64_t began = io_now_ms();
	int fd = -1, r;

	for (;;) {
		int left = api_time_left(timeout_ms, began, io_now_ms());

		r = look_locked(b, left, &fd, &inner);
		if (r != 0 || left == 0 || fd < 0)
			break;
		r = api_poll(fd, left, &inner);
		if (r < 0)
			break;
	}
	if (r == 1 && ret_code)
		*ret_code = b->code; /* it does not change any more */
	return r < 0 ? api_fail(e, &inner) : r;
}

/* A descriptor for poll(): where there is no connection to one that has ended, one that is readable
 * for ever. Under the lock. */
static int end_fd(struct ward_box *b, struct ward_err *e)
{
	int fd = -1, r = look(b, -1, &fd, e);

	if (r < 0 || fd >= 0)
		return r < 0 ? r : fd;
	if (b->sock_fd >= 0)
		return b->sock_fd;
	if (b->waiter.fd < 0)
		b->waiter.fd = eventfd(1, EFD_CLOEXEC);
	return b->waiter.fd < 0 ? ward_fail_errno(e, "no file descriptors left") : b->waiter.fd;
}

int ward_box_fd(struct ward_box *b, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int r;

	pthread_mutex_lock(&b->lock);
	r = end_fd(b, &inner);
	pthread_mutex_unlock(&b->lock);
	return r < 0 ? api_fail(e, &inner) : r;
}

static int read_report(struct ward_box *b, char **ret_json, struct ward_err *e)
{
	auto_fd dir = -1;
	auto_buf text = { 0 };
	int r;

	if (b->lost.code) {
		*e = b->lost;
		return -e->code;
	}
	if (b->sock_fd >= 0) {
		*ret_json = b->report ? strdup(b->report) : NULL;
		return *ret_json ? 0 : ward_fail(e, ENOMEM, "out of memory");
	}
	dir = boxes_open_dir(b->id, e);
	if (dir < 0)
		return dir;
	r = io_read_file(dir, "result.json", REPORT_BYTES_MAX, &text);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the report of %s: %s", b->id, strerror(-r));
	*ret_json = buf_take(&text);
	return *ret_json ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int ward_result(struct ward_box *b, char **ret_json, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int fd = -1, r = look_locked(b, 0, &fd, &inner);

	if (r == 0)
		r = ward_fail(&inner, EAGAIN, "the sandbox %s is still running", b->id);
	else if (r == 1)
		r = read_report(b, ret_json, &inner);
	return r < 0 ? api_fail(e, &inner) : 0;
}

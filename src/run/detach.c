/*
 * ward-box's words to the process that asked for it (src/api/launch.c is that side). In: what
 * became of the sandbox. Out: one message each, over a socket that no other process has. A detached
 * sandbox needs it no longer when it runs; an attached one lives as long as the other end is open
 * (serve.c looks), and its result goes over it instead of into the register.
 */
#include "run/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "event/result.h"
#include "run/serve.h"

void detach_tell(int asker_fd, enum detach_kind kind, const struct detach_answer *a, const int *fds,
		 size_t count)
{
	struct detach_answer message = { 0 };

	if (asker_fd < 0)
		return;
	if (a)
		message = *a;
	message.magic = DETACH_MAGIC;
	message.kind = kind;
	(void)!io_send_fds(asker_fd, &message, sizeof(message), fds, count);
}

int detach_text_fd(const struct buf *text, struct ward_err *e)
{
	auto_fd fd = memfd_create("ward-answer", MFD_CLOEXEC);

	if (text->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (fd < 0 || io_write_all(fd, buf_text(text), text->len) < 0 ||
	    lseek(fd, 0, SEEK_SET) != 0)
		return ward_fail_errno(e, "cannot encode the answer");
	return take_fd(&fd);
}

static void discard(struct detached *d)
{
	serve_destroy(d->serve);
	d->serve = NULL;
	boxes_discard(&d->entry);
}

void detach_refuse(struct detached *d, const struct ward_err *why, int code)
{
	struct detach_answer a = { .error = *why, .code = code };

	discard(d); /* first: a process that learns of it finds nothing */
	detach_tell(d->asker_fd, DETACH_REFUSED, &a, NULL, 0);
}

void detach_leave(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	own_close_fd(&null);
	(void)!chdir("/");
}

void detach_ready(struct detached *d)
{
	struct detach_answer a = { 0 };
	size_t count = 0;

	memcpy(a.id, d->entry.id, sizeof(a.id));
	while (count < 3 && d->outer_fds[count] >= 0)
		count++;
	a.code = (int32_t)count;
	d->started = true;
	detach_tell(d->asker_fd, DETACH_READY, &a, d->outer_fds, count);
	for (size_t i = 0; i < 3; i++) {
		own_close_fd(&d->outer_fds[i]);
		d->outer_fds[i] = -1;
	}
	if (!d->attached) {
		own_close_fd(&d->asker_fd);
		d->asker_fd = -1;
	}
}

/* Attached: the result is for one reader, and nothing of the sandbox stays. */
static int hand_over(struct detached *d, const struct result *r, const struct buf *report,
		     struct ward_err *e)
{
	struct detach_answer a = { .code = r->exit_code };
	auto_fd fd = detach_text_fd(report, e);

	boxes_discard(&d->entry);
	serve_destroy(d->serve);
	if (fd < 0)
		return fd;
	detach_tell(d->asker_fd, DETACH_ENDED, &a, &fd, 1);
	return 0;
}

int detach_end(struct detached *d, const struct plan *p, const struct result *r, struct ward_err *e)
{
	auto_buf report = { 0 };
	int status = 0;

	if (!d->started) {
		discard(d);
	} else {
		result_json(r, p, &report);
		if (d->attached) {
			status = hand_over(d, r, &report, e);
		} else {
			status = boxes_ended(&d->entry, r, &report, e);
			box_entry_close(&d->entry); /* first: a waiting client may remove it */
			serve_destroy(d->serve);
			boxes_prune();
		}
	}
	d->serve = NULL;
	for (size_t i = 0; i < 3; i++)
		own_close_fd(&d->outer_fds[i]);
	return status;
}

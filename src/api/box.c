/*
 * Boxes: the handle, its beginning and its end. In: a spec, or the name of a box that is there.
 * Out: a handle. A box that was started here and not detached is held by a socket to its ward-box:
 * closing it ends the box, its end comes over it with the report, and nothing of it is on record
 * afterwards. Of any other box the register (state/boxes.h) tells how it ended, and a connection on
 * which nothing is asked tells when.
 */
#include "api/box.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "api/launch.h"
#include "base/io.h"

#define END_MS 10000 /* longer than any end takes */

struct ward_box *box_new(const char *id, const char *name)
{
	struct ward_box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	snprintf(b->id, sizeof(b->id), "%s", id);
	snprintf(b->name, sizeof(b->name), "%s", name);
	b->sock_fd = -1;
	b->waiter = NO_CLIENT;
	b->streams = NO_STREAMS;
	return b;
}

/* Lets an attached box go and waits until all of it has gone: a caller that frees the handle may
 * remove the workspace next. */
static void end_attached(struct ward_box *b)
{
	struct ward_err ignored = { 0 };
	uint64_t began = io_now_ms();
	char bytes[64];

	if (b->sock_fd < 0 || shutdown(b->sock_fd, SHUT_WR) < 0)
		return;
	while (api_poll(b->sock_fd, api_time_left(END_MS, began, io_now_ms()), &ignored) == 1 &&
	       recv(b->sock_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		; /* its last words, and then their end */
}

void ward_box_free(struct ward_box *b)
{
	if (!b)
		return;
	end_attached(b);
	own_close_fd(&b->sock_fd);
	client_close(&b->waiter);
	streams_close(&b->streams);
	pthread_mutex_destroy(&b->lock);
	free(b->report);
	free(b);
}

/* The handle of a box that runs; fds are its streams, and are taken. */
static int make_handle(const struct box_start *how, const char *id, const int *fds, size_t count,
		       struct ward_box **ret_box, struct ward_err *e)
{
	struct ward_box *b = box_new(id, how->name ? how->name : "");
	int r;

	if (!b) {
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	r = count ? streams_take(&b->streams, how->rows > 0, fds, count, e) : 0;
	if (r == 0 && count && how->rows)
		r = streams_resize(&b->streams, how->rows, how->columns, e);
	if (r < 0)
		ward_box_free(b);
	else
		*ret_box = b;
	return r;
}

int box_start(const struct box_start *how, struct ward_box **ret_box, struct ward_err *e)
{
	struct detach_answer answer = { 0 };
	auto_fd sock_fd = -1;
	int fds[3];
	size_t count;
	int r = launch(how->program, how->detached ? REQUEST_DETACHED : 0, how->words,
		       how->keep_stdio, &sock_fd, e);

	if (r == 0)
		r = launch_answer(sock_fd, DETACH_READY, &answer, fds, 3, &count, e);
	if (r < 0 && how->ret_code && answer.code)
		*how->ret_code = answer.code;
	if (r == 0 && count != (size_t)answer.code) {
		while (count)
			close(fds[--count]);
		r = ward_fail(e, EMFILE,
			      "too few file descriptors for the command's streams (ulimit -n)");
	}
	if (r == 0)
		r = make_handle(how, answer.id, fds, count, ret_box, e);
	if (r == 0 && !how->detached)
		(*ret_box)->sock_fd = take_fd(&sock_fd);
	return r;
}

int ward_start(const struct ward_spec *s, unsigned flags, struct ward_box **ret_box,
	       struct ward_error *e)
{
	struct ward_err inner = { 0 };
	auto_strv words = { 0 };
	const struct box_start how = { .program = s->program,
				       .words = &words,
				       .detached = flags & WARD_DETACHED,
				       .rows = s->rows,
				       .columns = s->columns,
				       .name = s->name };
	int r;

	spec_words(s, 0, &words);
	r = flags & ~(unsigned)WARD_DETACHED ? ward_fail(&inner, EINVAL, "unknown flag %u", flags)
					     : box_start(&how, ret_box, &inner);
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_open(const char *name_or_id, struct ward_box **ret_box, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	struct box_info info = { 0 };
	struct ward_box *b = NULL;
	int r = name_or_id ? boxes_find(name_or_id, &info, &inner)
			   : ward_fail(&inner, EINVAL, "the name is NULL");

	if (r == 0) {
		b = box_new(info.id, info.name);
		r = b ? 0 : ward_fail(&inner, ENOMEM, "out of memory");
	}
	box_info_clear(&info);
	if (r < 0)
		return api_fail(e, &inner);
	*ret_box = b;
	return 0;
}

const char *ward_box_id(const struct ward_box *b)
{
	return b->id;
}

const char *ward_box_name(const struct ward_box *b)
{
	return b->name;
}

int ward_box_stream(struct ward_box *b, int which, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int r;

	pthread_mutex_lock(&b->lock);
	r = streams_hand(&b->streams, which, &inner);
	pthread_mutex_unlock(&b->lock);
	return r < 0 ? api_fail(e, &inner) : r;
}

int ward_resize(struct ward_box *b, unsigned rows, unsigned columns, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int r;

	pthread_mutex_lock(&b->lock);
	r = streams_resize(&b->streams, rows, columns, &inner);
	pthread_mutex_unlock(&b->lock);
	return r < 0 ? api_fail(e, &inner) : 0;
}

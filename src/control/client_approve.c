/*
 * Questions of sandboxes that run: listing and answering. In: the register of sandboxes, their
 * control sockets. Out: rows that were checked (control.h). Between two answers the world may have
 * moved on: a list is what was seen, and whether an answer counts the supervisor says.
 */
#include "control/client_approve.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LIST_MS 1000 /* a sandbox that is stuck shall not hide the others */
#define PAGES_MAX 64
#define ANSWER_BYTES                                                                               \
	(sizeof(struct control_message) + CONTROL_QUESTION_ROWS * sizeof(struct question))

/* One page of questions, whose length is returned. */
static ssize_t receive(struct client *c, char *bytes, struct ward_err *e)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	struct control_message m;
	ssize_t n;
	int r;

	do
		r = poll(&p, 1, LIST_MS);
	while (r < 0 && errno == EINTR);
	n = r > 0 ? recv(c->fd, bytes, ANSWER_BYTES, MSG_TRUNC) : -1;
	if (n <= 0)
		return ward_fail(e, ETIMEDOUT, "the sandbox %s does not answer", c->id);
	if ((size_t)n > ANSWER_BYTES || control_check_answer(bytes, (size_t)n) < 0)
		return ward_fail(e, EPROTO, "the sandbox %s sent a malformed answer", c->id);
	memcpy(&m, bytes, sizeof(m));
	return m.op == CONTROL_QUESTIONS
		       ? n
		       : ward_fail(e, EPROTO, "the sandbox %s does not know questions", c->id);
}

static void add_rows(const struct client *c, const struct control_message *m, const char *rows,
		     struct buf *out, int32_t *ret_last)
{
	for (int32_t i = 0; i < m->a; i++) {
		struct client_question row = { 0 };

		memcpy(&row.q, rows + (size_t)i * sizeof(row.q), sizeof(row.q));
		snprintf(row.box, sizeof(row.box), "%s", c->id);
		buf_add(out, &row, sizeof(row));
		*ret_last = (int32_t)(row.q.id & INT32_MAX);
	}
}

static int gather(const struct box_info *info, struct buf *out, struct ward_err *e)
{
	auto_free char *bytes = malloc(ANSWER_BYTES);
	struct control_message m = { .b = 1 };
	struct client c = NO_CLIENT;
	int32_t last = 0;
	int r = bytes ? client_connect(info, &c, e) : ward_fail(e, ENOMEM, "out of memory");

	for (int page = 0; r == 0 && m.b && page < PAGES_MAX; page++) {
		ssize_t n;

		r = client_send(&c, CONTROL_QUESTION_LIST, 0, last, 0, e);
		n = r == 0 ? receive(&c, bytes, e) : -1;
		if (n < 0) {
			r = -e->code;
			break;
		}
		memcpy(&m, bytes, sizeof(m));
		add_rows(&c, &m, bytes + sizeof(m), out, &last);
	}
	client_close(&c);
	return r;
}

static int by_time(const void *a, const void *b)
{
	uint64_t first = ((const struct client_question *)a)->q.asked_ms,
		 second = ((const struct client_question *)b)->q.asked_ms;

	return first < second ? -1 : first > second;
}

static int take_rows(struct buf *rows, struct client_questions *ret, struct ward_err *e)
{
	if (rows->failed) {
		buf_free(rows);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	ret->len = rows->len / sizeof(*ret->items);
	ret->items = (struct client_question *)(void *)rows->data;
	return 0;
}

int client_box_questions(const struct box_info *info, struct client_questions *ret,
			 struct ward_err *e)
{
	struct buf rows = { 0 };
	int r = gather(info, &rows, e);

	if (r == 0)
		return take_rows(&rows, ret, e);
	buf_free(&rows);
	return r;
}

int client_questions(struct client_questions *ret, size_t *ret_silent, struct ward_err *e)
{
	struct buf rows = { 0 };
	struct boxes all;
	int r = client_list(&all, e);

	*ret_silent = 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.len; i++) {
		struct ward_err one = { 0 };

		if (all.items[i].alive && gather(&all.items[i], &rows, &one) < 0 &&
		    one.code != ESRCH && one.code != ENOENT)
			++*ret_silent;
	}
	boxes_clear(&all);
	if (take_rows(&rows, ret, e) < 0)
		return -e->code;
	if (ret->len)
		qsort(ret->items, ret->len, sizeof(*ret->items), by_time);
	return 0;
}

void client_questions_clear(struct client_questions *q)
{
	free(q->items);
	*q = (struct client_questions){ 0 };
}

int client_answer_question(const char *box, uint64_t id, const struct client_said *said_so,
			   struct ward_err *e)
{
	struct {
		struct control_message m;
		struct control_answer a;
	} request = { .m = { .magic = CONTROL_MAGIC, .op = CONTROL_QUESTION_ANSWER },
		      .a = { .id = id,
			     .seconds = said_so->seconds,
			     .answer = said_so->answer,
			     .via = said_so->via } };
	struct client_answer said = { 0 };
	struct client c = NO_CLIENT;
	struct box_info info = { 0 };
	int r = client_find_alive(box, &info, e);

	snprintf(request.a.from, sizeof(request.a.from), "%s", said_so->from ? said_so->from : "");
	if (r == 0)
		r = client_connect(&info, &c, e);
	if (r == 0)
		r = client_send_packet(&c, &request, sizeof(request), e);
	if (r == 0)
		r = client_receive(&c, &said, CLIENT_ANSWER_MS, e);
	if (r == 0 && said.message.op != CONTROL_OK)
		r = ward_fail(
			e, EPROTO,
			"the supervisor of %s sent an answer that this ward does not know: it "
			"was started by another version",
			box);
	client_close(&c);
	box_info_clear(&info);
	return r;
}

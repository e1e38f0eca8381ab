/*
 * The secrets of a sandbox that runs: asking for them, granting, revoking. In: a connection to its
 * supervisor. Out: rows and placeholders. A secret that is granted goes along as a descriptor; no
 * message has one.
 */
#include "control/client_secret.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"

#define ANSWER_MS 30000 /* a source may be a program that takes its time */

static int ask(struct client *c, enum control_op op, const char *text, int fd, struct buf *answer,
	       struct ward_err *e)
{
	struct control_message m = { .magic = CONTROL_MAGIC, .op = op };
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	auto_free char *bytes = malloc(CONTROL_MAX);
	auto_buf out = { 0 };
	ssize_t n;
	int r;

	buf_add(&out, &m, sizeof(m));
	if (text)
		buf_add(&out, text, strlen(text) + 1);
	if (out.failed || !bytes)
		return ward_fail(e, ENOMEM, "out of memory");
	r = io_send_fds(c->fd, out.data, out.len, &fd, fd >= 0);
	if (r < 0)
		return ward_fail(e, ESRCH, "the sandbox %s has ended", c->id);
	do
		r = poll(&p, 1, ANSWER_MS);
	while (r < 0 && errno == EINTR);
	if (r == 0) {
		ward_fail(e, ETIMEDOUT, "the supervisor of %s does not answer", c->id);
		return ward_remedy(e, "try again; if it stays so: ward kill %s", c->id);
	}
	n = recv(c->fd, bytes, CONTROL_MAX, 0);
	if (n <= 0)
		return ward_fail(e, ESRCH, "the sandbox %s has ended", c->id);
	if (control_check_answer(bytes, (size_t)n) < 0)
		return ward_fail(e, EPROTO, "the sandbox %s sent a malformed answer", c->id);
	memcpy(&m, bytes, sizeof(m));
	if (m.op == CONTROL_ERROR) {
		control_read_error(bytes, (size_t)n, e);
		return -e->code;
	}
	if (m.op != CONTROL_SECRETS)
		return ward_fail(e, EPROTO, "the sandbox %s sent an unexpected answer", c->id);
	buf_add(answer, bytes + sizeof(m), (size_t)n - sizeof(m));
	return answer->failed ? ward_fail(e, ENOMEM, "out of memory") : m.a;
}

int client_secret_list(struct client *c, struct secrets_row **ret, size_t *ret_count,
		       struct ward_err *e)
{
	auto_buf answer = { 0 };
	int r = ask(c, CONTROL_SECRET_LIST, NULL, -1, &answer, e);

	if (r < -1)
		return r;
	*ret_count = answer.len / sizeof(**ret);
	*ret = calloc(*ret_count + 1, sizeof(**ret));
	if (!*ret)
		return ward_fail(e, ENOMEM, "out of memory");
	if (answer.len)
		memcpy(*ret, answer.data, *ret_count * sizeof(**ret));
	return 0;
}

int client_secret_grant(struct client *c, const char *line, int value_fd, char **ret_shown,
			struct ward_err *e)
{
	auto_buf answer = { 0 };
	int r = ask(c, CONTROL_SECRET_GRANT, line, value_fd, &answer, e);

	if (r < -1)
		return r;
	*ret_shown = strdup(buf_text(&answer));
	return *ret_shown ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int client_secret_revoke(struct client *c, const char *name, struct ward_err *e)
{
	auto_buf answer = { 0 };
	int r = ask(c, CONTROL_SECRET_REVOKE, name, -1, &answer, e);

	return r < -1 ? r : 0;
}

/*
 * The verbs' side of the control socket. In: a sandbox of the user's own. Out: answers, checked
 * (control.h). Runs with the user's rights outside of every sandbox. ward-box may be dead, killed
 * or stopped at any moment: every wait has an end, and what a killed one left is finished by the
 * process that notices first.
 */
#include "control/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/io.h"
#include "state/boxes_internal.h"
#include "state/runs.h"

#define CONNECT_MS 2000
#define ENDING_MS 300000 /* the sweep of a huge workspace */

int client_fail_not_alive(const struct box_info *i, struct ward_err *e)
{
	if (i->state == BOX_ENDED)
		ward_fail(e, ESRCH, "the sandbox %s has ended with exit code %d", i->id,
			  i->exit_code);
	else
		ward_fail(e, ESRCH, "the sandbox %s is dead: its supervisor was killed", i->id);
	return ward_remedy(e, "ward logs %s shows what it wrote, ward rm %s removes it", i->id,
			   i->id);
}

/* It is on record as living; between that and now it may have ended. */
static int explain_connect(const struct box_info *i, int error, struct ward_err *e)
{
	struct box_info now = { 0 };
	struct ward_err own = { 0 };
	int r = 0;

	if (i->foreground && (error == ECONNREFUSED || error == ENOENT))
		return ward_fail(e, ESRCH, "the run %s has ended", i->id);
	if (!i->foreground && boxes_look(i->id, &now, &own) == 0 && !now.alive)
		r = client_fail_not_alive(&now, e);
	box_info_clear(&now);
	if (r < 0)
		return r;
	ward_fail(e, error, "cannot reach the sandbox %s: %s", i->id, strerror(error));
	return ward_remedy(
		e, "its supervisor is process %d; ward rm --force %s kills and removes the sandbox",
		i->pid, i->id);
}

int client_connect(const struct box_info *i, struct client *ret_client, struct ward_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_fd runtime = i->foreground ? runs_open(e) : boxes_open_runtime(e);
	auto_fd fd = -1;
	uint64_t until = io_now_ms() + CONNECT_MS;

	if (runtime < 0)
		return runtime;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ward_fail_errno(e, "cannot create a socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s/control", runtime,
		 i->id);
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		const struct timespec moment = { .tv_nsec = 5000000 };

		if (errno != EAGAIN && errno != EINTR) /* EAGAIN: many ask at once */
			return explain_connect(i, errno, e);
		if (io_now_ms() >= until)
			return explain_connect(i, ETIMEDOUT, e);
		nanosleep(&moment, NULL);
	}
	*ret_client = (struct client){ .fd = take_fd(&fd) };
	memcpy(ret_client->id, i->id, sizeof(ret_client->id));
	return 0;
}

void client_close(struct client *c)
{
	own_close_fd(&c->fd);
	c->fd = -1;
}

int client_send_packet(struct client *c, const void *bytes, size_t n, struct ward_err *e)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };

	while (send(c->fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n) {
		if (errno == EAGAIN && poll(&p, 1, CLIENT_ANSWER_MS) > 0)
			continue;
		if (errno == EPIPE || errno == ECONNRESET)
			return ward_fail(e, ESRCH, "the sandbox %s closed the connection", c->id);
		return ward_fail_errno(e, "cannot send a request to the sandbox %s", c->id);
	}
	return 0;
}

int client_send(struct client *c, enum control_op op, unsigned flags, int32_t a, int32_t b,
		struct ward_err *e)
{
	struct control_message m = {
		.magic = CONTROL_MAGIC, .flags = (uint16_t)flags, .op = op, .a = a, .b = b
	};

	return client_send_packet(c, &m, sizeof(m), e);
}

int client_send_exec(struct client *c, const struct control_exec *x, struct ward_err *e)
{
	auto_buf packet = { 0 };
	int r = control_write_exec(x, &packet);

	if (r == -E2BIG) {
		ward_fail(e, E2BIG, "the command line and its variables are longer than %d bytes",
			  CONTROL_MAX);
		return ward_remedy(e, "put it into a file in the workspace");
	}
	if (r < 0)
		return ward_fail(e, -r, "the command or one of its variables is malformed");
	return client_send_packet(c, packet.data, packet.len, e);
}

static int read_answer(const struct client *c, const char *bytes, size_t n,
		       struct client_answer *ret_answer, struct ward_err *e)
{
	if (control_check_answer(bytes, n) < 0)
		return ward_fail(e, EPROTO, "the sandbox %s sent a malformed answer", c->id);
	memcpy(&ret_answer->message, bytes, sizeof(ret_answer->message));
	if (ret_answer->message.op == CONTROL_USAGE)
		memcpy(&ret_answer->usage, bytes + sizeof(ret_answer->message),
		       sizeof(ret_answer->usage));
	if (ret_answer->message.op != CONTROL_ERROR)
		return 0;
	control_read_error(bytes, n, e);
	return -e->code;
}

int client_receive(struct client *c, struct client_answer *ret_answer, int timeout_ms,
		   struct ward_err *e)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n;
	int r;

	*ret_answer = (struct client_answer){ 0 };
	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0) {
		ward_fail(e, ETIMEDOUT, "the sandbox %s does not answer", c->id);
		return ward_remedy(e, "ward rm --force %s kills and removes it", c->id);
	}
	n = io_recv_fds(c->fd, bytes, sizeof(bytes), ret_answer->fds, CONTROL_FDS_MAX,
			&ret_answer->fd_count);
	if (n <= 0)
		return ward_fail(e, ESRCH, "the sandbox %s has ended", c->id);
	r = read_answer(c, bytes, (size_t)n, ret_answer, e);
	if (r < 0)
		for (size_t i = 0; i < ret_answer->fd_count; i++)
			close(ret_answer->fds[i]);
	return r;
}

int client_ask(struct client *c, enum control_op op, unsigned flags, int32_t a, int32_t b,
	       struct ward_err *e)
{
	struct client_answer answer;
	int r = client_send(c, op, flags, a, b, e);

	if (r == 0)
		r = client_receive(c, &answer, CLIENT_ANSWER_MS, e);
	if (r == 0 && answer.message.op != CONTROL_OK)
		return ward_fail(e, EPROTO, "the sandbox %s sent an unexpected answer", c->id);
	return r;
}

/* One try: 0: connected; 1: it has ended; -EAGAIN: it is ending and accepts no requests any more.
 */
static int try_connect_end(const char *id, struct client *ret_client, struct ward_err *e)
{
	struct box_info info = { 0 };
	int r = boxes_look(id, &info, e);
	bool alive = info.alive, ending = info.state == BOX_ENDING;

	if (r == 0 && alive)
		r = client_connect(&info, ret_client, e);
	box_info_clear(&info);
	if (r == 0 && !alive)
		return 1;
	if (r < 0) /* -ESRCH: it has ended since we looked */
		return alive && (ending || r == -ENOENT || r == -ECONNREFUSED || r == -ESRCH)
			       ? -EAGAIN
			       : r;
	r = client_ask(ret_client, CONTROL_WAIT, 0, 0, 0, e);
	if (r < 0)
		client_close(ret_client);
	return r == -ESRCH ? -EAGAIN : r;
}

int client_connect_end(const char *id, int timeout_ms, struct client *ret_client,
		       struct ward_err *e)
{
	const struct timespec moment = { .tv_nsec = 5000000 };
	uint64_t until = io_now_ms() + (timeout_ms < 0 ? ENDING_MS : (uint64_t)timeout_ms);
	int r;

	while ((r = try_connect_end(id, ret_client, e)) == -EAGAIN && io_now_ms() < until)
		nanosleep(&moment, NULL);
	return r == -EAGAIN ? ward_fail(e, ETIMEDOUT, "the sandbox %s does not end", id) : r;
}

int client_wait_end(struct client *c, int timeout_ms, struct ward_err *e)
{
	uint64_t until = io_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	for (;;) {
		uint64_t now = io_now_ms();
		char bytes[64];
		ssize_t n;
		int r;

		if (timeout_ms >= 0 && now >= until)
			return ward_fail(e, ETIMEDOUT, "the sandbox %s does not end", c->id);
		r = poll(&p, 1, timeout_ms < 0 ? -1 : (int)(until - now));
		n = r > 0 ? recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT) : 1;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return 0;
		if (r < 0 && errno != EINTR)
			return ward_fail_errno(e, "cannot wait for the sandbox %s", c->id);
	}
}

bool client_is_ending(const char *id)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	uint64_t until = io_now_ms() + ENDING_MS;
	bool ending = true, was = false;

	while (ending && io_now_ms() < until) {
		struct box_info now = { 0 };
		struct ward_err ignored = { 0 };

		ending =
			boxes_look(id, &now, &ignored) == 0 && now.alive && now.state == BOX_ENDING;
		was |= ending;
		box_info_clear(&now);
		if (ending)
			nanosleep(&moment, NULL);
	}
	return was && !ending;
}

/*
 * Making a checkpoint. In: a sandbox that runs, a name. Out: a checkpoint in the store, and the
 * sandbox going on, or ended at the very moment that was kept. Runs with the user's rights.
 * ward-box has the sandbox stand still and hands over pipes; the bytes that come are the sandbox's,
 * so they are counted, summed and written, and never interpreted here. While this process holds its
 * end of the pipes everything inside stands still; when it is killed the sandbox goes on, and
 * nothing is left (state/checkpoint_store.c).
 */
#include "cli/checkpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/io.h"
#include "base/text.h"
#include "control/client.h"

/* a sandbox that has less than SILENT_BYTES to say for so long never will */
#define SILENT_MS 60000
#define SILENT_BYTES (1 << 20)
#define WORDS_MAX 2000 /* of what it says on standard error */
#define END_MS 30000

struct making {
	struct client client;
	int in_fd, out_fd, err_fd;
	struct checkpoint_file file;
	char said[WORDS_MAX + 1]; /* by the sandbox: never trusted, only shown */
	size_t said_len;
};

/* Asks ward-box; the record, as far as it knows it, is in *c. */
static int ask(struct making *m, struct checkpoint *c, struct ward_err *e)
{
	char word[] = "checkpoint", *argv[] = { word, NULL };
	const struct control_exec x = { .flags = CONTROL_INPUT | CONTROL_CHECKPOINT,
					.cwd = "",
					.argv = argv };
	struct client_answer a = { 0 };
	auto_buf text = { 0 };
	struct sysinfo host;
	int r = client_send_exec(&m->client, &x, e);

	if (r == 0)
		r = client_receive(&m->client, &a, CLIENT_ANSWER_MS, e);
	if (r < 0)
		return r;
	if (a.message.op != CONTROL_STARTED || a.fd_count != 4)
		return ward_fail(e, EPROTO, "the sandbox sent an unexpected answer");
	m->in_fd = a.fds[0];
	m->out_fd = a.fds[1];
	m->err_fd = a.fds[2];
	r = io_read_all(a.fds[3], CHECKPOINT_RECORD_MAX, &text);
	close(a.fds[3]);
	if (r == 0)
		r = checkpoint_parse(buf_text(&text), text.len, c);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the sandbox's description");
	m->file.bytes_max = (uint64_t)a.message.a << 20;
	if (a.message.a <= 0 && sysinfo(&host) == 0)
		m->file.bytes_max = 2 * (uint64_t)host.totalram * host.mem_unit;
	return 0;
}

static void read_errors(struct making *m)
{
	char bytes[512];
	ssize_t n = read(m->err_fd, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EINTR)) {
		close(m->err_fd);
		m->err_fd = -1;
		return;
	}
	if (n > (ssize_t)(WORDS_MAX - m->said_len))
		n = (ssize_t)(WORDS_MAX - m->said_len);
	if (n > 0) {
		memcpy(m->said + m->said_len, bytes, (size_t)n);
		m->said_len += (size_t)n;
	}
}

/* Until the sandbox has no more. Only bytes of the checkpoint, and many of them, count as a sign of
 * life. */
static int take_bytes(struct making *m, struct ward_err *e)
{
	auto_free char *bytes = malloc(65536);
	uint64_t until = io_now_ms() + SILENT_MS, since = 0;

	if (!bytes)
		return ward_fail(e, ENOMEM, "out of memory");
	for (;;) {
		struct pollfd p[] = { { .fd = m->out_fd, .events = POLLIN },
				      { .fd = m->err_fd, .events = POLLIN } };
		uint64_t now = io_now_ms();
		int r = now < until ? poll(p, ARRAY_LEN(p), (int)(until - now)) : 0;
		ssize_t n;

		if (r == 0)
			return ward_fail(e, ETIMEDOUT, "the sandbox sends no checkpoint");
		if (r < 0)
			continue;
		if (p[1].revents)
			read_errors(m);
		if (!p[0].revents)
			continue;
		n = read(m->out_fd, bytes, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? ward_fail_errno(e, "cannot read from the sandbox") : 0;
		r = checkpoint_add(&m->file, bytes, (size_t)n, e);
		if (r < 0)
			return r;
		since += (uint64_t)n;
		if (since >= SILENT_BYTES) {
			until = io_now_ms() + SILENT_MS;
			since = 0;
		}
	}
}

/* The reason is what the command printed inside, if anything. */
static int explain(struct making *m, struct ward_err *e)
{
	static const char prefix[] = "ward: gvisor: ";
	char *line = m->said, *end;
	uint64_t until = io_now_ms() + CLIENT_ANSWER_MS;
	auto_buf shown = { 0 };

	while (m->err_fd >= 0 && m->said_len < WORDS_MAX) {
		struct pollfd p = { .fd = m->err_fd, .events = POLLIN };

		uint64_t now = io_now_ms();

		if (now >= until || poll(&p, 1, (int)(until - now)) <= 0)
			break;
		read_errors(m);
	}
	m->said[m->said_len] = '\0';
	if (e->code != EPROTO || !m->said_len)
		return -e->code;
	if (strncmp(line, prefix, strlen(prefix)) == 0)
		line += strlen(prefix);
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	text_escape(&shown, line);
	return ward_fail(e, EIO, "cannot make a checkpoint: %s", buf_text(&shown));
}

/* It goes on; how what made the checkpoint ended does not matter any more. */
static void resume(struct making *m)
{
	struct client_answer a;
	struct ward_err ignored = { 0 };

	if (io_write_all(m->in_fd, "g", 1) == 0)
		(void)!client_receive(&m->client, &a, CLIENT_ANSWER_MS, &ignored);
}

/* It stands still until it is dead: it was never further than what is kept. */
static int end_box(struct making *m, const struct box_info *box, struct ward_err *e)
{
	struct ward_err ignored = { 0 };
	struct client c = NO_CLIENT;
	int r = client_connect(box, &c, e);

	if (r == 0)
		r = client_ask(&c, CONTROL_WAIT, 0, 0, 0, e);
	/* for the process that has the checkpoint made it is the end, too */
	if (r == 0 && client_ask(&m->client, CONTROL_KILL, 0, 0, 0, &ignored) < 0)
		r = client_ask(&c, CONTROL_KILL, 0, 0, 0, e);
	if (r == 0)
		r = client_wait_end(&c, END_MS, e);
	client_close(&c);
	return r < 0 ? ward_wrap(e, "the checkpoint is saved; ending the sandbox") : 0;
}

static int make(struct making *m, const struct box_info *box, bool stop, struct checkpoint *c,
		struct ward_err *e)
{
	char name[CHECKPOINT_NAME_MAX + 1];
	int r = client_connect(box, &m->client, e);

	memcpy(name, c->name, sizeof(name));
	if (r == 0)
		r = ask(m, c, e);
	memcpy(c->name, name, sizeof(name));
	if (r < 0)
		return r;
	r = take_bytes(m, e);
	if (r == 0)
		r = checkpoint_keep(&m->file, c, e);
	if (r < 0) {
		/* no more is read: a process that still writes gets an error */
		own_close_fd(&m->out_fd);
		own_close_fd(&m->in_fd);
		m->out_fd = m->in_fd = -1;
		return explain(m, e);
	}
	if (stop)
		return end_box(m, box, e);
	resume(m);
	return 0;
}

int checkpoint_make(const char *box, const char *name, bool stop, struct checkpoint *ret,
		    struct ward_err *e)
{
	struct making m = { .client = NO_CLIENT,
			    .in_fd = -1,
			    .out_fd = -1,
			    .err_fd = -1,
			    .file = { .dir_fd = -1, .fd = -1 } };
	struct box_info info = { 0 };
	int r = client_find_alive(box, &info, e);

	*ret = (struct checkpoint){ 0 };
	signal(SIGPIPE, SIG_IGN);
	if (r == 0)
		r = checkpoint_begin(name, 0, &m.file, e);
	if (r == 0) {
		/* which checkpoint_begin() has looked at */
		memcpy(ret->name, name, strlen(name) + 1);
		r = make(&m, &info, stop, ret, e);
	}
	checkpoint_end(&m.file);
	own_close_fd(&m.in_fd);
	own_close_fd(&m.out_fd);
	own_close_fd(&m.err_fd);
	client_close(&m.client);
	box_info_clear(&info);
	return r;
}

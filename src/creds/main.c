/*
 * ward-secrets: fetches the secrets of one sandbox, renews them, and hands them to ward-keys, which
 * alone uses them. Started by the supervisor of a run whose policy has grants; found beside ward,
 * never in PATH. It has the user's rights, because that is what reading a secret needs: files,
 * programs, the keyring. It sees no byte from inside a sandbox. The supervisor itself never has a
 * secret. When the supervisor's end of the socket is closed, it ends, and ward-keys with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/trim_memory.h"
#include "confine/confine.h"
#include "creds/keeper.h"

/* messages that are kept while a source is asked; the others stay in the socket */
#define LATER_MAX 32
#define LOST_AGAIN_MS 50 /* until it is tried again to tell that events were lost */

static bool send_message(const struct keeper *k, uint32_t op, int32_t code, uint64_t tag,
			 const void *bytes, size_t n, int flags)
{
	struct secrets_message m = { .op = op, .code = code, .tag = tag };
	union {
		const void *in;
		void *out;
	} data = { .in = bytes };
	struct iovec parts[] = { { .iov_base = &m, .iov_len = sizeof(m) },
				 { .iov_base = data.out, .iov_len = n } };
	struct msghdr h = { .msg_iov = parts, .msg_iovlen = 2 };

	return sendmsg(k->control_fd, &h, MSG_NOSIGNAL | flags) >= 0;
}

void control_say(struct keeper *k, uint32_t op, int32_t code, uint64_t tag, const void *bytes,
		 size_t n)
{
	(void)!send_message(k, op, code, tag, bytes, n, 0);
}

static bool send_event(const struct keeper *k, const struct keys_event *event)
{
	return send_message(k, SECRETS_EVENT, 0, 0, event, sizeof(*event), MSG_DONTWAIT);
}

static void tell_lost(struct keeper *k)
{
	struct keys_event gap = { .kind = KEYS_EVENT_LOST, .count = k->lost };

	if (k->lost && send_event(k, &gap))
		k->lost = 0;
}

void control_event(struct keeper *k, const struct keys_event *event)
{
	tell_lost(k);
	if (!k->lost && send_event(k, event))
		return;
	k->lost += event->kind == KEYS_EVENT_LOST ? event->count : 1;
}

void control_asked(struct keeper *k, bool waits, const struct keys_asked *asked)
{
	struct keys_answer full = { .serial = asked->serial, .reason = KEYS_ASKED_FULL };

	if (send_message(k, SECRETS_ASKED, waits, 0, asked, sizeof(*asked), MSG_DONTWAIT) || !waits)
		return; /* what could not be taken back ends at its deadline */
	memcpy(full.exact, asked->exact, sizeof(full.exact));
	keys_tell_answer(k, &full);
}

static void answer(struct keeper *k, const char *bytes, size_t n)
{
	struct keys_answer said;

	if (n != sizeof(said))
		return;
	memcpy(&said, bytes, sizeof(said));
	keys_tell_answer(k, &said);
}

void control_change(struct keeper *k, uint32_t kind, const char *name)
{
	struct keys_event event = { .kind = kind, .count = 1 };

	snprintf(event.grant, sizeof(event.grant), "%s", name);
	control_say(k, SECRETS_EVENT, 0, 0, &event, sizeof(event));
}

static void say_error(struct keeper *k, uint64_t tag, const struct ward_err *e)
{
	auto_buf text = { 0 };

	buf_add(&text, e->what, strlen(e->what) + 1);
	buf_add(&text, e->why, strlen(e->why) + 1);
	buf_add(&text, e->remedy, strlen(e->remedy) + 1);
	control_say(k, SECRETS_ERROR, e->code, tag, text.data, text.failed ? 0 : text.len);
}

static void say_shown(struct keeper *k, const struct kept *g, uint64_t tag)
{
	for (size_t i = 0; i < g->secret.count && i < g->grant.variables.len; i++) {
		auto_buf line = { 0 };

		buf_printf(&line, "%s=%s", g->grant.variables.items[i], (const char *)g->shown[i]);
		control_say(k, SECRETS_SHOWN, 0, tag, buf_text(&line), line.len + 1);
	}
}

/* The policy's grants are all there: what was asked for at the start. */
static void finish_start(struct keeper *k, uint64_t tag)
{
	struct ward_err e = { 0 };

	if (keeper_check_words(k, &e) < 0) {
		say_error(k, tag, &e);
		return;
	}
	for (size_t i = 0; i < k->count; i++)
		say_shown(k, k->kept[i], tag);
	control_say(k, SECRETS_READY, 0, tag, NULL, 0);
}

static void list(struct keeper *k, uint64_t tag)
{
	struct secrets_row rows[GRANTS_MAX];
	uint64_t now = io_now_ms();

	while (k->keys_fd >= 0) { /* its last counts */
		struct pollfd ready = { .fd = k->keys_fd, .events = POLLIN };

		if (poll(&ready, 1, 0) <= 0 || !keys_read(k))
			break;
	}
	for (size_t i = 0; i < k->count; i++)
		keeper_row(k->kept[i], now, &rows[i]);
	control_say(k, SECRETS_ROWS, 0, tag, rows, k->count * sizeof(*rows));
}

/* A grant of the policy (tag 0), or one more while the sandbox runs. */
static void grant(struct keeper *k, const char *line, int fd, uint64_t tag)
{
	struct ward_err e = { 0 };

	if (keeper_add(k, line, fd, &e) < 0) {
		say_error(k, tag, &e);
		return;
	}
	if (!tag)
		return;
	if (keys_tell_scanner(k, &e) < 0) {
		keeper_undo(k);
		say_error(k, tag, &e);
		return;
	}
	keys_tell_grant(k, k->count - 1);
	control_change(k, KEYS_EVENT_GRANTED, k->kept[k->count - 1]->grant.name);
	control_say(k, SECRETS_OK, 0, tag, k->kept[k->count - 1]->shown[0],
		    k->kept[k->count - 1]->shown_bytes[0]);
}

static void say_not_started(struct keeper *k, const struct ward_err *why)
{
	static const char room[] = "cannot build the scanner (too many or too long secrets?): no "
				   "secret is used any more";
	struct keys_event event = { .kind = KEYS_EVENT_REFUSED };

	snprintf(event.detail, sizeof(event.detail), "%s",
		 why->code == ENOSPC || why->code == ENOMEM
			 ? room
			 : "cannot start ward-keys: no secret is used");
	control_event(k, &event);
}

static void dispatch(struct keeper *k, const struct secrets_message *m, const char *text, size_t n,
		     const int *fds, size_t fd_count)
{
	struct ward_err e = { 0 };

	switch ((enum secrets_op)m->op) {
	case SECRETS_SEEN:
		strv_add(&k->seen, text);
		break;
	case SECRETS_GRANT:
		k->leaks = m->tag ? k->leaks : (uint32_t)m->code;
		grant(k, text, fd_count ? fds[0] : -1, m->tag);
		break;
	case SECRETS_WORDS:
		for (size_t at = 0; at < n; at += strlen(text + at) + 1)
			strv_add(&k->words, text + at);
		break;
	case SECRETS_FETCH:
		finish_start(k, m->tag);
		break;
	case SECRETS_KEYS:
		if (fd_count == 2 && keys_start(k, fds[0], fds[1], &e) < 0)
			say_not_started(k, &e);
		trim_memory_now(); /* the compiler of scanners, for one, has done its work */
		break;
	case SECRETS_LIST:
		list(k, m->tag);
		break;
	case SECRETS_REVOKE:
		if (keeper_revoke(k, text, &e) < 0) {
			say_error(k, m->tag, &e);
		} else {
			control_change(k, KEYS_EVENT_REVOKED, text);
			control_say(k, SECRETS_OK, 0, m->tag, NULL, 0);
		}
		break;
	case SECRETS_ANSWER:
		answer(k, text, n);
		break;
	case SECRETS_OPS:
	case SECRETS_SHOWN:
	case SECRETS_READY:
	case SECRETS_OK:
	case SECRETS_ERROR:
	case SECRETS_ROWS:
	case SECRETS_EVENT:
	case SECRETS_ASKED:
		break;
	}
}

/* One message of the supervisor's. */
struct later {
	struct later *next;
	struct secrets_message m;
	int fds[4];
	size_t fd_count, n; /* n: bytes of text, a NUL behind them */
	char text[];
};

static struct later *receive(struct keeper *k, bool *gone)
{
	static char bytes[SECRETS_MESSAGE_MAX + 1];
	struct later got = { 0 }, *l;
	ssize_t n =
		io_recv_fds(k->control_fd, bytes, SECRETS_MESSAGE_MAX, got.fds, 4, &got.fd_count);

	*gone = n < (ssize_t)sizeof(got.m) && n != -EINTR;
	if (n < (ssize_t)sizeof(got.m))
		return NULL;
	memcpy(&got.m, bytes, sizeof(got.m));
	got.n = (size_t)n - sizeof(got.m);
	l = malloc(sizeof(*l) + got.n + 1);
	*gone = !l;
	if (!l)
		return NULL;
	*l = got;
	memcpy(l->text, bytes + sizeof(got.m), got.n);
	l->text[got.n] = '\0';
	return l;
}

static void done_with(struct keeper *k, struct later *l)
{
	dispatch(k, &l->m, l->text, l->n, l->fds, l->fd_count);
	for (size_t i = 0; i < l->fd_count; i++)
		close(l->fds[i]);
	free(l);
}

/* A source is being asked, which may take half a minute: a revocation and an answer are carried out
 * at once, the rest in its order afterwards. */
static void read_meanwhile(void *whose)
{
	struct keeper *k = whose;
	bool gone;
	struct later *l = receive(k, &gone);

	if (l && (l->m.op == SECRETS_REVOKE || l->m.op == SECRETS_ANSWER)) {
		done_with(k, l);
	} else if (l) {
		*(k->later_last ? &k->later_last->next : &k->later) = l;
		k->later_last = l;
		k->later_count++;
	}
	if (gone || k->later_count >= LATER_MAX)
		k->meanwhile.fd = -1;
}

/* What was received before, or one message. False: the supervisor is gone. */
static bool read_message(struct keeper *k)
{
	struct later *l = k->later;
	bool gone = false;

	if (l) {
		k->later = l->next;
		k->later_last = k->later ? k->later_last : NULL;
		k->later_count--;
	} else {
		l = receive(k, &gone);
	}
	k->meanwhile.fd = k->later_count < LATER_MAX ? k->control_fd : -1;
	if (l)
		done_with(k, l);
	return !gone;
}

static int timeout(const struct keeper *k, uint64_t now)
{
	uint64_t due = keeper_due(k), soon = now + LOST_AGAIN_MS;

	if (k->later)
		return 0;
	if (k->lost && (!due || due > soon))
		due = soon;
	return !due ? -1 : due <= now ? 0 : due - now > 3600000 ? 3600000 : (int)(due - now);
}

static int prepare(struct keeper *k, struct ward_err *e)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward-secrets' own file");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	k->program_dir_fd = open(self, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->program_dir_fd < 0)
		return ward_fail_errno(e, "cannot open ward-secrets' own directory");
	if (confine_enter(PROC_SECRETS, NULL, e) < 0)
		return -e->code;
	return safe_open(&k->safe, SAFE_BYTES, e);
}

int main(void)
{
	static struct keeper k = { .control_fd = SECRETS_FD_CONTROL,
				   .keys_fd = -1,
				   .program_dir_fd = -1 };
	struct ward_err e = { 0 };

	if (fcntl(SECRETS_FD_CONTROL, F_GETFD) < 0) {
		fprintf(stderr, "ward-secrets: started by ward run if the policy has grants; does "
				"nothing on its own\n");
		return 2;
	}
	fcntl(SECRETS_FD_CONTROL, F_SETFD, FD_CLOEXEC);
	k.meanwhile = (struct run_meanwhile){ SECRETS_FD_CONTROL, read_meanwhile, &k };
	signal(SIGPIPE, SIG_IGN);
	if (prepare(&k, &e) < 0) {
		say_error(&k, 0, &e);
		return 125;
	}
	for (;;) {
		struct pollfd polled[] = { { .fd = k.control_fd, .events = POLLIN },
					   { .fd = k.keys_fd, .events = POLLIN } };

		if (poll(polled, 2, timeout(&k, io_now_ms())) < 0)
			continue;
		if (polled[1].revents && k.keys_fd >= 0)
			keys_read(&k);
		if ((polled[0].revents || k.later) && !read_message(&k))
			break;
		tell_lost(&k);
		keeper_renew(&k, io_now_ms());
	}
	own_close_fd(&k.keys_fd);
	safe_close(&k.safe);
	if (k.keys_pid > 0) {
		kill(k.keys_pid, SIGKILL);
		while (waitpid(k.keys_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return 0;
}

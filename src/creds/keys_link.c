/*
 * ward-keys, from the outside. In: what ward-secrets keeps. Out: frames over a stream that only the
 * two hold. Started once, when the gateway first is; if it ends, no secret is put in any more. What
 * it says back is counted and passed on, never believed further.
 */
#include "creds/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/io.h"

_Static_assert(sizeof(struct keys_asked) >= sizeof(struct keys_event), "the largest frame");

static void lost(struct keeper *k)
{
	own_close_fd(&k->keys_fd);
	k->keys_fd = -1;
	buf_free(&k->received);
}

static bool send_all(struct keeper *k, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n && k->keys_fd >= 0) {
		ssize_t sent = send(k->keys_fd, at, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			lost(k);
		else
			at += sent, n -= (size_t)sent;
	}
	return k->keys_fd >= 0;
}

static bool send_frame(struct keeper *k, enum keys_op op, uint64_t number, size_t n)
{
	struct keys_frame f = { .op = op, .bytes = (uint32_t)n, .number = number };

	return k->keys_fd >= 0 && send_all(k, &f, sizeof(f));
}

void keys_tell_grant(struct keeper *k, size_t number)
{
	struct kept *g = k->kept[number];
	struct keys_grant said = { .expires_at_ms = g->expires_at_ms,
				   .line_bytes = (uint32_t)strlen(g->line),
				   .values = (uint32_t)g->secret.count,
				   .state = keeper_state(g, io_now_ms()) };
	size_t n = sizeof(said) + said.line_bytes;

	said.uses_left =
		g->grant.max_uses == POLICY_NONE
			? UINT64_MAX
			: g->grant.max_uses -
				  (g->uses < g->grant.max_uses ? g->uses : g->grant.max_uses);
	for (size_t i = 0; i < g->secret.count; i++) {
		said.value_bytes[i] = (uint32_t)g->secret.bytes[i];
		n += 2 * g->secret.bytes[i];
	}
	if (!send_frame(k, KEYS_GRANT, number, n) || !send_all(k, &said, sizeof(said)) ||
	    !send_all(k, g->line, said.line_bytes))
		return;
	for (size_t i = 0; i < g->secret.count; i++)
		send_all(k, g->secret.values[i], g->secret.bytes[i]);
	/* a renewed value may have another length than its placeholder: that is cut or filled, and
	 * still stands for it */
	for (size_t i = 0; i < g->secret.count; i++) {
		size_t same = g->shown_bytes[i] < g->secret.bytes[i] ? g->shown_bytes[i]
								     : g->secret.bytes[i];

		send_all(k, g->shown[i], same);
		for (size_t fill = same; fill < g->secret.bytes[i]; fill++)
			send_all(k, "x", 1);
	}
}

void keys_tell_answer(struct keeper *k, const struct keys_answer *answer)
{
	if (send_frame(k, KEYS_ANSWER, 0, sizeof(*answer)))
		send_all(k, answer, sizeof(*answer));
}

void keys_tell_revoked(struct keeper *k, size_t number)
{
	send_frame(k, KEYS_REVOKE, number, 0);
}

static bool count_bytes(void *to, const void *bytes, size_t n)
{
	(void)bytes;
	*(size_t *)to += n;
	return true;
}

static bool send_bytes(void *to, const void *bytes, size_t n)
{
	return send_all(to, bytes, n);
}

int keys_tell_scanner(struct keeper *k, struct ward_err *e)
{
	uint8_t *db = NULL;
	size_t n = 0, texts = 0;
	uint64_t db_bytes;
	int r;

	if (k->keys_fd < 0)
		return 0;
	r = scanner_compile(k, &db, &n, e);
	if (r < 0)
		return r;
	if (!scanner_texts(k, count_bytes, &texts) ||
	    sizeof(db_bytes) + n + texts > KEYS_FRAME_MAX) {
		safe_give(&k->safe, db);
		ward_fail(e, ENOSPC, "the secrets are too many or too long for the locked memory");
		return ward_remedy(e, "use fewer or shorter secrets in one run, or start a new "
				      "run; see also ulimit -l");
	}
	db_bytes = n;
	if (!send_frame(k, KEYS_SCANNER, 0, sizeof(db_bytes) + n + texts) ||
	    !send_all(k, &db_bytes, sizeof(db_bytes)) || !send_all(k, db, n) ||
	    !scanner_texts(k, send_bytes, k))
		lost(k);
	safe_give(&k->safe, db);
	return 0;
}

static void become_keys(struct keeper *k, int secrets_fd, int link_fd, int trust_fd)
{
	static char *const argv[] = { (char *)(uintptr_t) "ward-keys", NULL };
	static char *const none[] = { NULL };
	int beside = openat(k->program_dir_fd, "ward-gateway-tls", O_PATH | O_CLOEXEC);
	int program = fcntl(beside >= 0 ? beside
					: openat(k->program_dir_fd, "../inspect/ward-gateway-tls",
						 O_PATH | O_CLOEXEC),
			    F_DUPFD_CLOEXEC, 20);
	int fds[KEYS_FDS_END] = { -1,
				  -1,
				  -1,
				  fcntl(secrets_fd, F_DUPFD_CLOEXEC, 20),
				  fcntl(link_fd, F_DUPFD_CLOEXEC, 20),
				  fcntl(trust_fd, F_DUPFD_CLOEXEC, 20) };
	sigset_t set;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	fds[0] = fds[1] = fds[2] =
		fcntl(open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, 20);
	for (int i = 0; i < KEYS_FDS_END; i++)
		if (fds[i] < 0 || dup2(fds[i], i) < 0)
			_exit(125);
	if (program < 0 || close_range(KEYS_FDS_END, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(125);
	execveat(program, "", argv, none, AT_EMPTY_PATH);
	_exit(125);
}

int keys_start(struct keeper *k, int link_fd, int trust_fd, struct ward_err *e)
{
	struct keys_settings settings = { .leaks = k->leaks };
	struct timeval patience = { .tv_sec = 10 };
	int pair[2];

	if (k->keys_fd >= 0 || k->keys_pid > 0)
		return ward_fail(e, EALREADY, "ward-keys is already running");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the socket of ward-keys");
	k->keys_pid = fork();
	if (k->keys_pid == 0)
		become_keys(k, pair[1], link_fd, trust_fd);
	close(pair[1]);
	k->keys_fd = pair[0];
	if (k->keys_pid < 0) {
		lost(k);
		return ward_fail_errno(e, "cannot start ward-keys");
	}
	setsockopt(k->keys_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (send_frame(k, KEYS_SETTINGS, 0, sizeof(settings)))
		send_all(k, &settings, sizeof(settings));
	if (keys_tell_scanner(k, e) < 0) {
		lost(k); /* nothing is put in that cannot be looked for */
		return -e->code;
	}
	for (size_t i = 0; i < k->count && k->keys_fd >= 0; i++)
		keys_tell_grant(k, i);
	send_frame(k, KEYS_READY, 0, 0);
	return k->keys_fd < 0 ? ward_fail(e, EIO, "cannot pass the secrets to ward-keys") : 0;
}

/* One whole frame of what was received. */
static void take_frame(struct keeper *k, const struct keys_frame *f, const char *bytes)
{
	uint64_t number = f->number >> 32;

	if (f->op == KEYS_USED && number < k->count)
		k->kept[number]->uses = f->number & UINT32_MAX;
	if (f->op == KEYS_EVENT && f->bytes == sizeof(struct keys_event)) {
		struct keys_event event;

		memcpy(&event, bytes, sizeof(event));
		control_event(k, &event);
	}
	if ((f->op == KEYS_ASK || f->op == KEYS_UNASK) && f->bytes == sizeof(struct keys_asked)) {
		struct keys_asked asked;

		memcpy(&asked, bytes, sizeof(asked));
		control_asked(k, f->op == KEYS_ASK, &asked);
	}
}

bool keys_read(struct keeper *k)
{
	char bytes[8192];
	struct keys_frame f;
	ssize_t n = recv(k->keys_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	size_t at = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		lost(k);
		return false;
	}
	buf_add(&k->received, bytes, (size_t)n);
	while (!k->received.failed && k->received.len - at >= sizeof(f)) {
		memcpy(&f, k->received.data + at, sizeof(f));
		if (f.bytes > sizeof(struct keys_asked)) {
			lost(k);
			return false;
		}
		if (k->received.len - at - sizeof(f) < f.bytes)
			break;
		take_frame(k, &f, k->received.data + at + sizeof(f));
		at += sizeof(f) + f.bytes;
	}
	memmove(k->received.data, k->received.data + at, k->received.len - at);
	k->received.len -= at;
	return true;
}

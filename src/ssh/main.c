/*
 * ward-ssh-agent: the ssh-agent of one sandbox, which also gets commits signed by gpg. In: entries
 * of credentials.ssh and credentials.gpg from the supervisor (SSH_FD_CONTROL), a listening socket
 * that programs inside see (SSH_FD_LISTEN), the user's environment. Out: signatures that the policy
 * grants (serve.c), and events. Keys stay in the user's ssh-agent, in one of ward's own, or in the
 * user's gpg-agent.
 *
 * This process has the user's rights: it finds keys and hosts before anything is served, and then
 * waits; where there are gpg keys, it runs gpg for what the other process has judged. That one,
 * confined to the rows of tables/procs.def, reads what programs inside send. When the supervisor
 * ends, however that is, both end, and with them an agent of ward's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "confine/confine.h"
#include "protocol/ssh.h"
#include "ssh/ssh.h"

static void say(enum ssh_op op, int code, const void *bytes, size_t n)
{
	struct ssh_said head = { .op = op, .code = code };
	auto_buf out = { 0 };

	buf_add(&out, &head, sizeof(head));
	buf_add(&out, bytes, n);
	if (!out.failed)
		(void)!send(SSH_FD_CONTROL, out.data, out.len, MSG_NOSIGNAL);
}

static int say_error(const struct ward_err *e)
{
	auto_buf text = { 0 };

	buf_add(&text, e->what, strlen(e->what) + 1);
	buf_add(&text, e->why, strlen(e->why) + 1);
	buf_add(&text, e->remedy, strlen(e->remedy) + 1);
	say(SSH_ERROR, e->code, text.data, text.failed ? 0 : text.len);
	return 1;
}

static int add_entry(struct agent *a, const char *line, struct ward_err *e)
{
	struct policy_ssh *s = &a->entries[a->entry_count];
	int r;

	if (a->entry_count == SSH_ENTRIES_MAX)
		return ward_fail(e, E2BIG, "credentials.ssh: more than %d entries",
				 SSH_ENTRIES_MAX);
	r = policy_ssh_read(line, s, e);
	for (size_t i = 0; r == 0 && i < s->hosts.len; i++) {
		struct agent_host *h = &a->hosts[a->host_count];

		if (a->host_count == SSH_HOSTS_MAX) {
			ward_fail(e, E2BIG, "credentials.ssh: more than %d hosts", SSH_HOSTS_MAX);
			return ward_remedy(e, "name only the hosts that this sandbox logs in to");
		}
		if (!ssh_host_split(s->hosts.items[i], &h->host))
			return ward_fail(e, EINVAL, "credentials.ssh: not a host");
		h->entry = (unsigned)a->entry_count;
		a->host_count++;
	}
	a->entry_count++;
	return r;
}

static int read_entries(struct agent *a, struct ward_err *e)
{
	auto_free char *bytes = malloc(SSH_SAID_MAX + 1);

	while (bytes) {
		struct ssh_said head;
		ssize_t n = recv(SSH_FD_CONTROL, bytes, SSH_SAID_MAX, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)sizeof(head))
			return ward_fail(e, EPIPE, "ward has exited");
		memcpy(&head, bytes, sizeof(head));
		bytes[n] = '\0';
		if (head.op == SSH_BEGIN)
			return 0;
		if (head.op == SSH_GPG)
			strv_add(&a->gpg_wanted, bytes + sizeof(head));
		if (head.op == SSH_ENTRY && add_entry(a, bytes + sizeof(head), e) < 0)
			return -e->code;
	}
	return ward_fail(e, ENOMEM, "out of memory");
}

static int find_all(struct agent *a, struct ward_err *e)
{
	int r = read_entries(a, e);

	if (r == 0)
		r = agent_find_hosts(a, e);
	if (r == 0)
		r = agent_find_keys(a, e);
	for (size_t i = 0; i < a->gpg_wanted.len && r == 0; i++)
		r = agent_find_gpg(a, a->gpg_wanted.items[i], e);
	if (r == 0 && a->gpg_wanted.failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	return r < 0 || !a->gpg_count ? r : agent_export_gpg(a, e);
}

static void say_ready(const struct agent *a)
{
	auto_buf text = { 0 };

	buf_add(&text, buf_text(&a->known), a->known.len + 1);
	buf_add(&text, buf_text(&a->signs_as), a->signs_as.len + 1);
	say(SSH_READY, 0, text.data, text.failed ? 0 : text.len);
}

static __attribute__((noreturn)) void serve(struct agent *a, int gpg_fd)
{
	struct ward_err e = { 0 };

	a->gpg_fd = gpg_fd;
	for (size_t i = 0; i < a->hold_count; i++)
		close(a->hold_fds[i]);
	close(SSH_FD_DIR);
	/* no configuration is read: files are out of reach from here on */
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	if (confine_enter(PROC_SSH_AGENT, NULL, &e) < 0)
		_exit(say_error(&e));
	say_ready(a);
	agent_serve(a);
	_exit(0);
}

/* The supervisor may have been killed: its directory goes with this process. */
static void remove_dir(void)
{
	char here[64], path[4096];
	ssize_t n;

	snprintf(here, sizeof(here), "/proc/self/fd/%d", SSH_FD_DIR);
	n = readlink(here, path, sizeof(path) - 1);
	(void)unlinkat(SSH_FD_DIR, "agent", 0);
	(void)unlinkat(SSH_FD_DIR, "gpg_keys", 0);
	if (n > 0) {
		path[n] = '\0';
		(void)rmdir(path);
	}
}

/* Until the supervisor is gone, or the other process, which then says nothing more. */
static void wait_for_end(const struct agent *a, int gpg_fd)
{
	struct pollfd polled[] = { { .fd = SSH_FD_CONTROL }, { .fd = gpg_fd, .events = POLLIN } };

	for (;;) {
		if (poll(polled, 2, -1) < 0)
			continue;
		if (polled[0].revents || (polled[1].revents && agent_run_gpg(a, gpg_fd) < 0))
			return;
	}
}

int main(int argc, char **argv)
{
	static struct agent a = { .user_fd = -1 };
	struct ward_err e = { 0 };
	int pair[2];
	pid_t pid;

	if (argc == 3 && strcmp(argv[1], "hold") == 0)
		agent_hold(argv[2]);
	if (fcntl(SSH_FD_CONTROL, F_GETFD) < 0 || fcntl(SSH_FD_DIR, F_GETFD) < 0)
		return 125; /* started by hand */
	for (int fd = SSH_FD_CONTROL; fd <= SSH_FD_DIR; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (find_all(&a, &e) < 0)
		return say_error(&e);
	if (confine_enter(PROC_SSH_KEYS, NULL, &e) < 0)
		return say_error(&e);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		ward_fail_errno(&e, "cannot make a socket");
		return say_error(&e);
	}
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		serve(&a, pair[1]);
	}
	close(SSH_FD_LISTEN);
	close(pair[1]);
	if (pid < 0)
		return 1;
	wait_for_end(&a, pair[0]);
	kill(pid, SIGKILL);
	remove_dir();
	return 0;
}

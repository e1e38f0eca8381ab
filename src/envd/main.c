/*
 * ward-envd: serves files, processes and ports of a sandbox to wardd. In: two pipes, on which wardd
 * speaks (protocol/envd.h). Out: what the methods do. It runs in the sandbox as its user, with
 * nothing but the sandbox's rights; a path or a link means here what it means to any program
 * inside, and so nothing of the host can be meant.
 *
 * wardd starts it with ward_exec() each time it connects. The first one becomes the resident: it
 * leaves its session, listens on an abstract socket of the sandbox's network namespace, and keeps
 * what clients start. Later ones, after wardd was started anew, hand their pipes to the resident
 * and end. Any program inside could pretend to be the resident: it would serve its own sandbox's
 * client, who trusts the sandbox in any case. If the resident is killed, the next one takes over.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"
#include "envd/archive_run.h"
#include "envd/call.h"
#include "envd/interpreter.h"
#include "envd/sudo.h"

/* What E2B's own sandboxes say of themselves in files, where the template has a writable /run. */
static void write_marks(void)
{
	static const char *const names[] = { "E2B_SANDBOX=", "E2B_SANDBOX_ID=",
					     "E2B_TEMPLATE_ID=" };
	auto_strv config = { 0 };

	session_config(&config);
	if (mkdir("/run/e2b", 0755) < 0 && errno != EEXIST)
		return;
	for (size_t i = 0; i < config.len * ARRAY_LEN(names); i++) {
		const char *name = names[i % ARRAY_LEN(names)];
		const char *line = config.items[i / ARRAY_LEN(names)];
		size_t n = strlen(name);
		auto_fd fd = -1;
		char path[64];

		if (strncmp(line, name, n) != 0)
			continue;
		snprintf(path, sizeof(path), "/run/e2b/.%.*s", (int)n - 1, name);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd >= 0)
			(void)!io_write_all(fd, line + n, strlen(line + n));
	}
}

/* A setting READY=WHAT is something for the code interpreter to have ready. */
static void configured(const struct strv *settings)
{
	static const char name[] = ENVD_READY "=";
	auto_strv ready = { 0 };

	for (size_t i = 0; i < settings->len; i++)
		if (strncmp(settings->items[i], name, sizeof(name) - 1) == 0)
			strv_add(&ready, settings->items[i] + sizeof(name) - 1);
	if (ready.len && !ready.failed)
		(void)interpreter_start(&ready);
	interpreter_set_config();
	write_marks();
}

static const struct server server = { call_serve, configured };

static socklen_t address(struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(a->sun_path + 1, ENVD_SOCKET, sizeof(ENVD_SOCKET) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(ENVD_SOCKET));
}

/* Hands standard input and output to the resident; -ECONNREFUSED: there is none. */
static int hand_over(void)
{
	struct sockaddr_un a;
	socklen_t n = address(&a);
	auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, n) < 0)
		return -errno;
	return io_send_fds(fd, "", 1, (int[]){ 0, 1 }, 2);
}

static int listen_here(void)
{
	struct sockaddr_un a;
	socklen_t n = address(&a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 8) == 0)
		return fd;
	own_close_fd(&fd);
	return -1;
}

/* Leaves wardd's command: a child in a session of its own goes on. */
static bool become_resident(void)
{
	pid_t pid = fork();

	if (pid > 0)
		_exit(0);
	return pid == 0 && setsid() > 0;
}

static void accept_sessions(int listen_fd)
{
	for (;;) {
		auto_fd fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		int fds[2] = { -1, -1 };
		size_t count = 0;
		char byte;

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return;
		if (io_recv_fds(fd, &byte, 1, fds, 2, &count) > 0 && count == 2) {
			(void)!session_begin(fds[0], fds[1], &server);
			continue;
		}
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
	}
}

/* SIGKILL to all but the first process, which is ward's and holds the sandbox open, until nobody is
 * left: who forks meanwhile is met the next time. */
static int end_all(void)
{
	for (int tries = 0; tries < 1000; tries++) {
		if (kill(-1, SIGKILL) < 0 && errno == ESRCH)
			return 0;
		usleep(1000);
	}
	return 1;
}

/* What the keeper starts beside the resident. */
static int run_command(const char *name)
{
	if (strcmp(name, ENVD_END_ALL) == 0)
		return end_all();
	if (strcmp(name, ENVD_SAVE) == 0)
		return archive_save(1);
	return strcmp(name, ENVD_LOAD) == 0 ? archive_load(0) : 2;
}

static bool is_sudo(const char *name)
{
	const char *slash = strrchr(name, '/');

	return strcmp(slash ? slash + 1 : name, SUDO_NAME) == 0;
}

/* Programs that clients start find the one in ENVD_BIN first. */
static void extend_path(void)
{
	const char *path = getenv("PATH");
	char all[4096];

	snprintf(all, sizeof(all), ENVD_BIN ":%.4000s",
		 path ? path : "/usr/local/bin:/usr/bin:/bin");
	setenv("PATH", all, 1);
}

int main(int argc, char **argv)
{
	auto_fd listen_fd = -1;
	int in_fd, out_fd, null_fd;

	if (argc && is_sudo(argv[0]))
		return sudo_main(argc, argv);
	if (argc > 1 && strcmp(argv[1], INTERPRETER_OPTION) == 0)
		return interpreter_main(argv + 2);
	if (argc > 1)
		return run_command(argv[1]);
	extend_path();
	signal(SIGPIPE, SIG_IGN);
	for (int tries = 0; listen_fd < 0; tries++) {
		if (hand_over() == 0)
			return 0;
		listen_fd = listen_here();
		if (listen_fd < 0 && tries > 50)
			return 1;
		if (listen_fd < 0)
			usleep(2000); /* another one is becoming the resident */
	}
	in_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	out_fd = fcntl(1, F_DUPFD_CLOEXEC, 3);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (in_fd < 0 || out_fd < 0 || null_fd < 0 || !become_resident())
		return 1;
	for (int i = 0; i < 3; i++)
		if (dup2(null_fd, i) < 0)
			return 1;
	own_close_fd(&null_fd);
	if (session_begin(in_fd, out_fd, &server) < 0)
		return 1;
	accept_sessions(listen_fd);
	return 0;
}

/*
 * Starts the code interpreter beside the resident ward-envd. In: a client that wants the port 49999
 * where nothing listens, or wardd, which wants it ready. Out: a process that has the listening
 * socket as descriptor 3 and gets the sandbox's variables on descriptor 0. So it is there from the
 * first connection on, costs nothing before, and is started again if it was killed; a program of
 * the sandbox that has the port keeps it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "envd/interpreter.h"
#include "envd/session.h"
#include "envd/launch.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int config_fd = -1, pid_fd = -1;

static int listen_here(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(INTERPRETER_PORT),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 128) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool runs(void)
{
	siginfo_t info = { 0 };

	return pid_fd >= 0 && waitid(P_PIDFD, (id_t)pid_fd, &info, WEXITED | WNOHANG) == 0 &&
	       info.si_pid == 0;
}

static int spawn(const struct strv *ready, int listen_fd, int in_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	auto_strv argv = { 0 };
	int r;

	strv_add(&argv, "ward-envd");
	strv_add(&argv, INTERPRETER_OPTION);
	for (size_t i = 0; ready && i < ready->len; i++)
		strv_add(&argv, ready->items[i]);
	if (argv.failed)
		return -ENOMEM;
	posix_spawn_file_actions_init(&files);
	r = posix_spawn_file_actions_adddup2(&files, in_fd, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&files, listen_fd, 3);
	r = r == 0 ? launch("/proc/self/exe", &files, &argv, environ, ret_pid) : -r;
	posix_spawn_file_actions_destroy(&files);
	return r;
}

/* The variables as they are now, in one message. */
static void send_config(void)
{
	auto_strv config = { 0 };
	auto_buf message = { 0 };
	uint32_t n = 0;

	session_config(&config);
	buf_add(&message, &n, sizeof(n));
	for (size_t i = 0; i < config.len; i++)
		buf_add(&message, config.items[i], strlen(config.items[i]) + 1);
	if (message.failed || config.failed)
		return;
	n = (uint32_t)(message.len - sizeof(n));
	memcpy(message.data, &n, sizeof(n));
	if (io_write_all(config_fd, message.data, message.len) < 0) {
		close(config_fd); /* it has gone */
		config_fd = -1;
	}
}

static bool start(const struct strv *ready)
{
	auto_fd listen_fd = listen_here(), in_fd = -1;
	int pair[2];
	pid_t pid;

	/* above what the process has them as */
	if (listen_fd < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return false;
	in_fd = pair[0];
	own_close_fd(&config_fd);
	own_close_fd(&pid_fd);
	config_fd = pair[1];
	pid_fd = -1;
	if (listen_fd <= 3 || spawn(ready, listen_fd, in_fd, &pid) < 0)
		return false;
	pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	send_config();
	return true;
}

bool interpreter_start(const struct strv *ready)
{
	bool fine;

	pthread_mutex_lock(&lock);
	fine = runs() || start(ready);
	pthread_mutex_unlock(&lock);
	return fine;
}

void interpreter_set_config(void)
{
	pthread_mutex_lock(&lock);
	if (config_fd >= 0 && runs())
		send_config();
	pthread_mutex_unlock(&lock);
}

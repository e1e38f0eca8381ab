/*
 * Kernels of the code interpreter. In: a context. Out: a process of its language, in a session of
 * its own, and a socket to it: frames of a length and JSON (kernel.py, kernel.js). Python has one
 * process more, which has imported what shall be there at once and forks the kernels. The sources
 * are in this program and are handed over in a pipe, so that nothing of the sandbox is read in
 * their place. Runs in the sandbox, with its rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "envd/interpreter.h"
#include "envd/launch.h"
#include "kernels-made.h"

#define FORK_WAIT_S 60 /* the first fork waits for what is imported */

static const char python_begin[] =
	"s = open(4).read().split('\\0')\n"
	"n = {'__name__': 'ward_kernel', 'KERNEL_CHARTS': s[1], 'KERNEL_MODULES': s[2]}\n"
	"exec(compile(s[0], '<ward-kernel>', 'exec'), n)\n"
	"n['begin']()";
static const char node_begin[] = "const s = require('fs').readFileSync(4, 'utf8').split('\\0');"
				 "new Function('require', 'KERNEL_MODULES', s[0])(require, s[1])";

static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static int fork_fd = -1; /* to Python's first process; -1: none */
static char *python_modules, *node_modules;

void kernel_preload(const struct language *l, const char *modules)
{
	char **at = l->forks ? &python_modules : &node_modules;

	free(*at);
	*at = strdup(modules);
}

/* The sources and the modules, a NUL between them. */
static int write_source(const struct language *l, int fd)
{
	const char *modules = l->forks ? python_modules : node_modules;
	int r;

	if (l->forks) /* with their NULs */
		r = io_write_all(fd, text_kernel_py, sizeof(text_kernel_py));
	else
		r = io_write_all(fd, text_kernel_js, sizeof(text_kernel_js));
	if (r == 0 && l->forks)
		r = io_write_all(fd, text_kernel_charts_py, sizeof(text_kernel_charts_py));
	return r == 0 && modules ? io_write_all(fd, modules, strlen(modules)) : r;
}

struct start {
	int fds[7]; /* what the process has as 0 to 6; -1: nothing */
	int spare[7];
};

/* Copies above all places that are filled, so that filling one destroys none. */
static int lift(struct start *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->fds); i++) {
		s->spare[i] = s->fds[i] < 0 ? -1 : fcntl(s->fds[i], F_DUPFD_CLOEXEC, 16);
		if (s->fds[i] >= 0 && s->spare[i] < 0)
			return -errno;
	}
	return 0;
}

static void make_argv(const struct language *l, struct strv *out)
{
	strv_add(out, l->program);
	if (!l->forks)
		strv_add(out, "--expose-internals"); /* its parser of JavaScript */
	strv_add(out, l->forks ? "-c" : "-e");
	strv_add(out, l->forks ? python_begin : node_begin);
}

static int spawn(const struct language *l, struct start *s, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	auto_strv argv = { 0 };
	int r = lift(s);

	make_argv(l, &argv);
	if (r == 0 && argv.failed)
		r = -ENOMEM;
	posix_spawn_file_actions_init(&files);
	for (int i = 0; i < (int)ARRAY_LEN(s->fds) && r == 0; i++)
		if (s->spare[i] >= 0)
			r = -posix_spawn_file_actions_adddup2(&files, s->spare[i], i);
	if (r == 0)
		r = launch(l->program, &files, &argv, environ, ret_pid);
	posix_spawn_file_actions_destroy(&files);
	for (size_t i = 0; i < ARRAY_LEN(s->fds); i++)
		own_close_fd(&s->spare[i]);
	return r;
}

/* Starts a process and hands it its sources. */
static int start(const struct language *l, struct start *s, pid_t *ret_pid)
{
	auto_fd null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int pair[2], r;

	if (null_fd < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		s->fds[i] = s->fds[i] < 0 ? null_fd : s->fds[i];
	s->fds[4] = pair[0];
	r = spawn(l, s, ret_pid);
	close(pair[0]);
	if (r == 0)
		r = write_source(l, pair[1]);
	close(pair[1]);
	return r;
}

/* Starts Python's first process; fork_lock is held. */
static int start_forker(const struct language *l)
{
	struct timeval wait = { .tv_sec = FORK_WAIT_S };
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	r = start(l, &(struct start){ .fds = { -1, -1, -1, pair[1], -1, -1, -1 } }, &pid);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	fork_fd = pair[0];
	return 0;
}

static int ask_forker(const struct buf *request, int kernel_fd, pid_t *ret_pid)
{
	int pid;

	if (io_send_fds(fork_fd, request->data, request->len, &kernel_fd, 1) < 0 ||
	    recv(fork_fd, &pid, sizeof(pid), 0) != sizeof(pid)) {
		own_close_fd(&fork_fd);
		fork_fd = -1;
		return -EPIPE;
	}
	*ret_pid = pid;
	return 0;
}

static int fork_kernel(const struct language *l, const struct buf *request, int kernel_fd,
		       pid_t *ret_pid)
{
	int r = -EPIPE;

	pthread_mutex_lock(&fork_lock);
	/* the second time for one that has been killed */
	for (int tries = 0; tries < 2 && r == -EPIPE; tries++) {
		r = fork_fd < 0 ? start_forker(l) : 0;
		if (r == 0)
			r = ask_forker(request, kernel_fd, ret_pid);
	}
	pthread_mutex_unlock(&fork_lock);
	return r;
}

static void close_pair(int pair[2])
{
	own_close_fd(&pair[0]);
	own_close_fd(&pair[1]);
}

/* A process of its own, which has both ends of the pipes that it prints to. */
static int start_kernel(const struct language *l, int kernel_fd, pid_t *ret_pid)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, r = 0;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
	    fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(err[0], F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = start(l,
			  &(struct start){
				  .fds = { -1, out[1], err[1], kernel_fd, -1, out[0], err[0] } },
			  ret_pid);
	close_pair(out);
	close_pair(err);
	return r;
}

int kernel_send(struct context *c, const struct buf *message)
{
	auto_buf frame = { 0 };
	uint32_t n = (uint32_t)message->len;

	buf_add(&frame, &n, sizeof(n));
	buf_add(&frame, message->data, message->len);
	return frame.failed || io_write_all(c->fd, frame.data, frame.len) < 0 ? -1 : 0;
}

static int open_kernel(struct context *c, int pair[2])
{
	auto_buf request = { 0 }, env = { 0 };
	struct json j = { .out = &request };
	unsigned version = variables_get(&env);
	pid_t pid = 0;
	int r;

	json_begin_object(&j, NULL);
	json_string(&j, "cwd", c->cwd);
	json_string(&j, "language", c->language->name);
	buf_printf(&request, ",\"env\":%s", buf_text(&env));
	json_end_object(&j);
	if (request.failed || env.failed)
		return -ENOMEM;
	r = c->language->forks ? fork_kernel(c->language, &request, pair[1], &pid)
			       : start_kernel(c->language, pair[1], &pid);
	if (r < 0)
		return r;
	c->fd = take_fd(&pair[0]);
	c->pid = pid;
	c->seen = version;
	return c->language->forks || kernel_send(c, &request) == 0 ? 0 : -EPIPE;
}

void kernel_close(struct context *c)
{
	context_end_kernel(c);
	own_close_fd(&c->fd);
	c->fd = -1;
}

static bool has_gone(const struct context *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };

	return c->pid == 0 || (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)));
}

int kernel_ready(struct context *c, char *why, size_t n)
{
	int pair[2], r;

	if (c->fd >= 0 && !has_gone(c))
		return 0;
	kernel_close(c);
	r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
	if (r == 0) {
		r = open_kernel(c, pair);
		close_pair(pair);
	}
	if (r == -ENOENT)
		snprintf(why, n, "%s is not in this sandbox", c->language->program);
	else if (r < 0)
		snprintf(why, n, "%s cannot be started: %s", c->language->program, strerror(-r));
	return r;
}

/*
 * The process of the code interpreter (interpreter.h). In: connections to port 49999 of the
 * sandbox, of wardd (through ward-envd) and of programs inside. Out: answers as E2B's template
 * code-interpreter-v1 has them. A thread for each connection. Runs in the sandbox, with its rights:
 * a program that reaches it can run programs there anyway. Access from outside is for wardd to
 * decide.
 */
#include "envd/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "envd/launch.h"
#include "envd/person.h"

#define CONNECTIONS_MAX 256
#define IDLE_S 60

static unsigned connections;

static bool asks(const struct asked *a, const char *method, const char *path)
{
	const struct http_request *q = &a->request;

	return q->method.n == strlen(method) && memcmp(q->method.s, method, q->method.n) == 0 &&
	       q->path.n == strlen(path) && memcmp(q->path.s, path, q->path.n) == 0;
}

static const struct language *find_language(struct asked *a, const struct buf *name)
{
	const struct language *l = context_language(name->len ? name->data : "python");

	if (!l)
		asked_refuse(a, 400,
			     "there is no language '%.100s': python, javascript, typescript",
			     name->data);
	return l;
}

static struct context *find_context(struct asked *a, const struct execution *e)
{
	const struct language *l;
	struct context *c;

	if (e->has_context && e->has_language) {
		asked_refuse(a, 400, "Only one of context_id or language can be provided");
		return NULL;
	}
	if (e->has_context) {
		c = context_find(buf_text(&e->context));
		if (!c)
			asked_refuse(a, 404, "Context %.100s not found", buf_text(&e->context));
		return c;
	}
	l = find_language(a, &e->language);
	if (!l)
		return NULL;
	c = context_usual(l);
	if (!c)
		asked_refuse(a, 500, "out of memory");
	return c;
}

static void execute(struct asked *a)
{
	struct execution e;
	struct context *c;

	if (!execution_read((const uint8_t *)buf_text(&a->body), a->body.len, &e)) {
		asked_refuse(a, 400, "the body is not JSON with \"code\"");
	} else {
		c = find_context(a, &e);
		if (c) {
			interpreter_run(a, c, &e);
			context_drop(c);
		}
	}
	execution_free(&e);
}

static void make_context(struct asked *a, const struct new_context *n)
{
	const struct language *l = find_language(a, &n->language);
	struct person person = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	char cwd[PATH_MAX], why[256];
	struct context *c;
	int r;

	if (!l)
		return;
	(void)!person_find(NULL, &person);
	if (person_path(&person, n->cwd.len ? n->cwd.data : "~", cwd) < 0) {
		asked_refuse(a, 400, "cwd cannot be used");
		return;
	}
	c = context_new(l, cwd, false);
	if (!c) {
		asked_refuse(a, 500, "there are too many contexts; remove some");
		return;
	}
	pthread_mutex_lock(&c->run);
	variables_refresh();
	r = kernel_ready(c, why, sizeof(why));
	pthread_mutex_unlock(&c->run);
	if (r < 0) {
		asked_refuse(a, 500, "%s", why);
		context_remove(c);
	} else {
		context_show(c, &j);
		asked_answer(a, 200, "application/json", buf_text(&out));
	}
	context_drop(c);
}

static void new_context(struct asked *a)
{
	struct new_context n;

	if (new_context_read((const uint8_t *)buf_text(&a->body), a->body.len, &n))
		make_context(a, &n);
	else
		asked_refuse(a, 400, "the body is not JSON of the form that this call has");
	new_context_free(&n);
}

/* The usual ones are in the list also before they are used. */
static void list_contexts(struct asked *a)
{
	static const char *const usual[] = { "python", "javascript" };
	auto_buf out = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		struct context *c = context_usual(context_language(usual[i]));

		if (c)
			context_drop(c);
	}
	context_list(&out);
	asked_answer(a, 200, "application/json", buf_text(&out));
}

static void change_context(struct asked *a)
{
	char id[64];
	bool restart;
	struct context *c;

	if (!context_path(a->request.path.s, a->request.path.n, id, &restart) ||
	    !asks(a, restart ? "POST" : "DELETE", strndupa(a->request.path.s, a->request.path.n))) {
		asked_refuse(a, 404, "Not Found");
		return;
	}
	c = context_find(id);
	if (!c) {
		asked_refuse(a, 404, "Context %s not found", id);
		return;
	}
	if (restart)
		context_end_kernel(c);
	else
		context_remove(c);
	context_drop(c);
	asked_answer(a, 200, "application/json", "null");
}

static void health(struct asked *a)
{
	asked_answer(a, 200, "text/plain; charset=utf-8", "OK");
}

static const struct {
	const char *method, *path;
	void (*run)(struct asked *a);
} routes[] = {
	{ "POST", "/execute", execute },
	{ "POST", "/contexts", new_context },
	{ "GET", "/contexts", list_contexts },
	{ "GET", "/health", health },
};

static void *serve(void *argument)
{
	struct asked *a = argument;
	struct timeval wait = { .tv_sec = IDLE_S };
	void (*run)(struct asked * a) = change_context;

	(void)setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (asked_read(a)) {
		for (size_t i = 0; i < ARRAY_LEN(routes); i++)
			if (asks(a, routes[i].method, routes[i].path))
				run = routes[i].run;
		run(a);
	}
	asked_free(a);
	own_close_fd(&a->fd);
	free(a);
	__atomic_sub_fetch(&connections, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void take_connection(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct asked *a;

	if (fd < 0)
		return;
	a = connections < CONNECTIONS_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (a)
		a->fd = fd;
	__atomic_add_fetch(&connections, 1, __ATOMIC_RELAXED);
	if (a && launch_thread(serve, a) == 0)
		return;
	__atomic_sub_fetch(&connections, 1, __ATOMIC_RELAXED);
	free(a);
	close(fd);
}

/* Its usual kernel runs before the first request. */
static void *make_ready(void *argument)
{
	const struct language *l = argument;
	struct context *c = context_usual(l);
	char why[256];

	if (!c)
		return NULL;
	pthread_mutex_lock(&c->run);
	(void)!kernel_ready(c, why, sizeof(why));
	pthread_mutex_unlock(&c->run);
	context_drop(c);
	return NULL;
}

/* Each is LANGUAGE or LANGUAGE:MODULE,... */
static void prepare(char **ready)
{
	for (; *ready; ready++) {
		char *modules = strchr(*ready, ':');
		const struct language *l;

		if (modules)
			*modules++ = '\0';
		l = context_language(*ready);
		if (!l)
			continue;
		kernel_preload(l, modules ? modules : "");
		(void)!launch_thread(make_ready, (void *)(uintptr_t)l);
	}
}

/* As the processes of clients have them. */
static void set_person(void)
{
	struct person person = { 0 };

	(void)!person_find(NULL, &person);
	setenv("HOME", person.home, 1);
	setenv("USER", person.name, 1);
	setenv("LOGNAME", person.name, 1);
	if (chdir(person.home) < 0)
		(void)!chdir("/");
}

int interpreter_main(char **ready)
{
	struct pollfd p[2] = { { .fd = 3, .events = POLLIN }, { .fd = 0, .events = POLLIN } };

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	if (fcntl(3, F_SETFD, FD_CLOEXEC) < 0 || fcntl(0, F_SETFL, O_NONBLOCK) < 0)
		return 1;
	set_person();
	prepare(ready);
	while (poll(p, 2, -1) >= 0 || errno == EINTR) {
		if (p[1].revents & (POLLERR | POLLHUP))
			return 0; /* ward-envd has gone; the next one starts another */
		if (p[1].revents)
			variables_refresh();
		if (p[0].revents)
			take_connection(3);
	}
	return 1;
}

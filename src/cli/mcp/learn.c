/*
 * ward learn --mcp: the least policy that an MCP server needs. In: the rounds of ward learn, each
 * with a server that runs in a sandbox. Out: for each round whether the server listed its tools;
 * and at the end what it said, accepted together with the policy. In a round a relay speaks to the
 * server, as under ward mcp wrap; calls are not tried: what they need is seen when they fail. Runs
 * with the user's rights.
 */
#include "cli/mcp/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/learn_round.h"

#define POLICY_NAME "learned.yaml"

struct learning {
	char name[PINS_NAME_MAX + 1];
	int control_fd, call_fd; /* of the round's relay */
	pid_t relay;
	struct node *said; /* by the last round's server; owned */
};

/* The relay's ends, and those of the server; [0] is read from. */
struct pipes {
	int to[2], from[2], control[2], null;
};

static int open_pipes(struct pipes *p, struct ward_err *e)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, -1 };
	p->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (p->null < 0 || pipe2(p->to, O_CLOEXEC) < 0 || pipe2(p->from, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->control) < 0)
		return ward_fail_errno(e, "cannot make the streams of the server");
	return 0;
}

static void close_pipes(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		own_close_fd(&p->to[i]);
		own_close_fd(&p->from[i]);
		own_close_fd(&p->control[i]);
	}
	own_close_fd(&p->null);
}

/* The question is sent at once; the relay answers when the server has listed its tools. */
static int ask(struct learning *l, int control_fd, struct ward_err *e)
{
	const struct relay_ask wanted = { .tool = RELAY_DEFINITIONS };
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make a socket");
	r = io_send_fds(control_fd, "", 1, &pair[1], 1);
	close(pair[1]);
	if (r == 0 &&
	    send(pair[0], &wanted, sizeof(wanted), MSG_NOSIGNAL) != (ssize_t)sizeof(wanted))
		r = -EPIPE;
	l->call_fd = pair[0];
	return r < 0 ? ward_fail(e, -r, "the reader of the server has ended") : 0;
}

static int begin(void *state, int ret_fds[2], int *ret_wait_fd, struct ward_err *e)
{
	struct learning *l = state;
	struct pipes p;
	int r = open_pipes(&p, e);
	const struct relay_start start = { .name = l->name,
					   .keep = true,
					   .mute = true,
					   .control_fd = p.control[1],
					   .to_fd = p.to[1],
					   .from_fd = p.from[0],
					   .error_fd = p.null,
					   .parent = getpid() };

	node_free(l->said);
	l->said = NULL;
	l->relay = r == 0 ? fork() : -1;
	if (l->relay == 0)
		relay_run(&start);
	if (r == 0 && l->relay < 0)
		r = ward_fail_errno(e, "cannot start a process");
	if (r == 0)
		r = ask(l, p.control[0], e);
	if (r == 0) {
		l->control_fd = take_fd(&p.control[0]);
		ret_fds[0] = take_fd(&p.to[0]);
		ret_fds[1] = take_fd(&p.from[1]);
		*ret_wait_fd = l->call_fd;
	}
	close_pipes(&p);
	return r;
}

static bool end(void *state)
{
	struct learning *l = state;
	struct ward_err e = { 0 };
	auto_buf text = { 0 };
	int r = trust_take(l->call_fd, &text, &e);

	if (r == 0)
		r = trust_read(&text, &l->said, &e);
	if (r < 0)
		(void)say_error(&e, false, 0);
	close(l->call_fd);
	close(l->control_fd);
	kill(l->relay, SIGKILL); /* and with it the end of the server's input */
	while (waitpid(l->relay, NULL, 0) < 0 && errno == EINTR)
		;
	return r == 0;
}

static int write_policy(const struct call_place *at, const struct buf *policy, struct ward_err *e)
{
	auto_fd fd =
		openat(at->lock_fd, POLICY_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, buf_text(policy), policy->len);

	return r < 0 ? ward_fail(e, -r, "cannot write the policy: %s", strerror(-r)) : 0;
}

/* The policy in full, as wrap has it of the same file. */
static int accept_said(void *state, const struct options *o, const struct buf *policy,
		       struct ward_err *e)
{
	struct learning *l = state;
	struct options own = {
		.verb = VERB_MCP, .name = l->name, .workspace = o->workspace, .cwd = o->cwd
	};
	struct source source = { 0 };
	auto_free char *file = NULL;
	auto_place at = { 0 };
	int r = call_place_open(&at, e);

	if (r == 0)
		r = write_policy(&at, policy, e);
	if (r == 0 && asprintf(&file, "%s/" POLICY_NAME, at.path) < 0) {
		file = NULL;
		r = ward_fail(e, ENOMEM, "out of memory");
	}
	own.policy_file = file;
	if (r == 0)
		r = source_read(&own, o->words, &source, e);
	if (r == 0)
		r = trust_accept(&source, l->said, e);
	if (r == 0 && !o->json)
		fprintf(stderr,
			"ward learn: accepted the tools of %s; next: ward mcp install CLIENT "
			"--name %s\n",
			l->name, l->name);
	free(own.fields);
	source_free(&source);
	return r;
}

int mcp_learn(struct options *o)
{
	struct learning l = { .control_fd = -1, .call_fd = -1 };
	const struct learn_driver driver = { &l, begin, end, accept_said };
	struct ward_err e = { 0 };
	int code;

	if (o->name && !pins_is_name(o->name)) {
		ward_fail(&e, EINVAL, "a name has letters, digits, _ and -, at most %d",
			  PINS_NAME_MAX);
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (o->name)
		snprintf(l.name, sizeof(l.name), "%s", o->name);
	else
		pins_default_name(o->words, l.name);
	o->learn_mcp = true;
	o->driver = &driver;
	code = verb_learn(o);
	node_free(l.said);
	return code;
}

/*
 * One run of ward learn: the command in a sandbox whose changes are kept aside, under a policy file
 * and what was learned so far. It is the same run_sandbox() as ward run, in a process of its own,
 * so that one round cannot disturb the next; what it came to is left in memory that both share. Its
 * standard output goes to standard error, because the policy is what ward learn prints; its
 * standard input is empty unless it is a terminal: it would be read up by the first round.
 *
 * The process ends with ward learn: what ends that one is passed on, and where it is killed the
 * kernel tells, and the round cleans up after both.
 */
#include "cli/learn_round.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/observe.h"
#include "review/review.h"

#define LEAVE_MS 1500 /* for a server to end, and between signals */

int learn_stop_begin(struct learn_stop *s, struct ward_err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	*s = (struct learn_stop){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) };
	if (s->fd < 0 || sigprocmask(SIG_BLOCK, &set, &s->old) < 0)
		return ward_fail_errno(e, "cannot wait for signals");
	return 0;
}

bool learn_stop_asked(struct learn_stop *s)
{
	struct signalfd_siginfo info;

	while (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		s->signal = (int)info.ssi_signo;
	return s->signal != 0;
}

void learn_stop_end(struct learn_stop *s)
{
	if (s->fd < 0)
		return;
	close(s->fd);
	s->fd = -1;
	sigprocmask(SIG_SETMASK, &s->old, NULL);
}

static void add_field(struct options *o, const char *field, const char *value, bool append)
{
	struct spec_option *grown = reallocarray(o->fields, o->field_count + 1, sizeof(*grown));

	if (!grown || !value)
		_exit(EXIT_REFUSED); /* only ever in the child */
	o->fields = grown;
	o->field_cap = o->field_count + 1;
	o->fields[o->field_count++] = (struct spec_option){
		.field = field, .value = value, .option = "ward learn", .append = append
	};
}

/* An option takes a text without quotes, where a document has "host:port". There is nothing to
 * escape in the name of a host. */
static char *as_option(const char *rule)
{
	size_t n = strlen(rule);

	return n > 2 && *rule == '"' ? strndup(rule + 1, n - 2) : strdup(rule);
}

/* What was learned so far, as options on top of the policy file. */
static void add_learned(struct options *o, const struct learn_round *r)
{
	for (size_t i = 0; i < r->learned->mount_count; i++) {
		auto_buf text = { 0 };

		if (learn_mount_text(&r->learned->mounts[i], &text))
			add_field(o, "filesystem.host_mounts", buf_take(&text), true);
	}
	for (size_t i = 0; i < r->learned->toolchains.len; i++)
		add_field(o, "toolchains", r->learned->toolchains.items[i], true);
	for (size_t i = 0; i < r->learned->programs.len; i++)
		add_field(o, "filesystem.programs", r->learned->programs.items[i], true);
	for (size_t i = 0; i < r->learned->rules.len; i++)
		add_field(o, "network.egress_allowlist", as_option(r->learned->rules.items[i]),
			  true);
	if (r->learned->build)
		add_field(o, "process.syscalls", "build", false);
	add_field(o, "network.mode", r->open ? "open" : "restricted", false);
}

/* ward learn was killed: what it would have removed. */
static void clean_up(const struct learn_round *r, const struct run_outcome *outcome)
{
	if (outcome->run_id[0])
		learn_forget(outcome->run_id);
	if (r->own_file)
		unlink(r->policy_file);
}

/* fds: its standard input and output, of a driver; -1: none. */
static _Noreturn void run_child(const struct learn_round *r, const struct options *user,
				const struct learn_stop *stop, pid_t parent, const int fds[2],
				struct run_outcome *outcome)
{
	struct options o = { .verb = VERB_RUN,
			     .policy_file = r->policy_file,
			     .workspace = user->workspace,
			     .cwd = user->cwd,
			     .widen = true,
			     .observe =
				     OBSERVE_EXEC | OBSERVE_WRITES | OBSERVE_READS | OBSERVE_LOOKS,
			     .words = user->words,
			     .word_count = user->word_count,
			     .line = user->line,
			     .outcome = outcome };
	auto_fd null_fd = isatty(STDIN_FILENO) ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
	int code;

	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
	    sigprocmask(SIG_SETMASK, &stop->old, NULL) < 0)
		_exit(EXIT_REFUSED);
	if (fds[0] >= 0) {
		if (dup2(fds[0], STDIN_FILENO) < 0 || dup2(fds[1], STDOUT_FILENO) < 0)
			_exit(EXIT_REFUSED);
	} else if ((null_fd >= 0 && dup2(null_fd, STDIN_FILENO) < 0) ||
		   dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		_exit(EXIT_REFUSED);
	}
	for (size_t i = 0; i < user->field_count && !r->as_written; i++)
		add_field(&o, user->fields[i].field, user->fields[i].value, user->fields[i].append);
	if (!r->as_written)
		add_learned(&o, r);
	if (!r->read_only)
		add_field(&o, "filesystem.mode", "review", false);
	add_field(&o, "audit.journal", "default", false);
	code = run_sandbox(&o, NULL);
	if (getppid() != parent)
		clean_up(r, outcome);
	exit(code);
}

/* A server that does not end when its input does. */
static int hurry(pid_t pid, unsigned *turn)
{
	if (*turn)
		kill(pid, *turn == 1 ? SIGTERM : SIGINT);
	++*turn;
	return LEAVE_MS;
}

/* Waits for the round. Signals of the terminal reach both processes; those sent to ward learn alone
 * are passed on. driven_fd: says when all was said to a server; -1: it is none. */
static int wait_child(pid_t pid, struct learn_stop *stop, const struct learn_driver *driver,
		      int driven_fd, bool *ret_said)
{
	auto_fd pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd waits[] = { { .fd = pid_fd, .events = POLLIN },
				  { .fd = stop->fd, .events = POLLIN },
				  { .fd = driven_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	int status = 0, n, wait_ms = -1;
	unsigned turn = 0;

	while (pid_fd >= 0 &&
	       ((n = poll(waits, ARRAY_LEN(waits), wait_ms)) >= 0 || errno == EINTR)) {
		if (waits[0].revents)
			break;
		if (waits[2].revents) {
			*ret_said = driver->end(driver->state);
			waits[2].fd = -1;
			waits[2].revents = 0;
		}
		if (n == 0 || (waits[2].fd < 0 && driven_fd >= 0 && wait_ms < 0))
			wait_ms = hurry(pid, &turn);
		if (read(stop->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
			continue;
		stop->signal = (int)info.ssi_signo;
		if (info.ssi_code <= 0 || stop->signal == SIGTERM || stop->signal == SIGHUP)
			kill(pid, stop->signal);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (waits[2].fd >= 0)
		*ret_said = driver->end(driver->state);
	return status;
}

int learn_run(const struct learn_round *r, const struct options *user, struct learn_stop *stop,
	      struct run_outcome *ret, struct ward_err *e)
{
	const struct learn_driver *driver = user->driver;
	int fds[2] = { -1, -1 }, driven_fd = -1;
	bool said = false;
	struct run_outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid, self = getpid();
	int status = 0;

	if (shared == MAP_FAILED)
		return ward_fail(e, ENOMEM, "out of memory");
	if (driver && driver->begin(driver->state, fds, &driven_fd, e) < 0) {
		munmap(shared, sizeof(*shared));
		return -e->code;
	}
	pid = fork();
	if (pid == 0)
		run_child(r, user, stop, self, fds, shared);
	own_close_fd(&fds[0]);
	own_close_fd(&fds[1]);
	if (pid > 0)
		status = wait_child(pid, stop, driver, driven_fd, &said);
	*ret = *shared;
	if (driver) /* how a server ends says nothing */
		ret->exit_code = said                          ? r->expect
				 : ret->exit_code == r->expect ? r->expect + 1
							       : ret->exit_code;
	munmap(shared, sizeof(*shared));
	if (pid < 0)
		return ward_fail_errno(e, "cannot start the command");
	if (WIFSIGNALED(status))
		return ward_fail(e, EINTR, "signal %d killed ward itself", WTERMSIG(status));
	if (ret->refused || !ret->run_id[0])
		return ward_fail(e, EINVAL, "the command was not started, see above");
	return 0;
}

void learn_forget(const char *run)
{
	struct ward_err e = { 0 };
	struct review r;

	if (review_open(run, REVIEW_WRITE, &r, &e) < 0)
		return; /* one without changes is gone already */
	if (review_remove(&r, &e) < 0)
		say_error(&e, false, 0);
	review_close(&r);
}

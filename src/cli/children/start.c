/*
 * Starting a child. In: its policy, and the words of its command. Out: a process, which is `ward
 * run` with that policy and no other: neither the user's own defaults nor a profile nor a file of
 * the workspace has a say. It has nothing of this process's but 0-2, and dies with it. Runs in
 * ward-children with the user's rights.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/children/parts.h"

#define CHANNEL_NAME "channel"
#define BACKLOG 16

/* Where a command starts: as it is seen inside. The caller frees. */
static char *find_cwd(const struct policy *p, const char *cwd)
{
	auto_free char *full = !cwd          ? strdup(p->fs_workspace)
			       : *cwd == '/' ? strdup(cwd)
					     : path_join(p->fs_workspace, cwd);

	return full ? path_clean(full) : NULL;
}

/* Between fork and exec: only what is safe with threads. */
_Noreturn static void become(char *const *words, char *const *envp, const int fds[3], pid_t parent)
{
	static const int signals[] = { SIGPIPE, SIGCHLD, SIGTERM, SIGINT, SIGHUP };
	const struct sigaction normal = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &normal, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* a group of its own in our session: SIGTSTP stops no orphaned one */
	if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
	for (int i = 0; i < 3; i++) /* all of them are above 2 */
		if (dup2(fds[i], i) < 0)
			_exit(125);
	if (syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		_exit(125);
	execve(words[0], words, envp);
	_exit(125);
}

/* A socket of its own: who connects to it is that child. ward run mounts it inside. */
static int open_channel(struct child *c, struct strv *env, struct ward_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	c->channel_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" CHANNEL_NAME,
		 c->place.lock_fd);
	if (c->channel_fd < 0 || bind(c->channel_fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    fchmodat(c->place.lock_fd, CHANNEL_NAME, 0666, 0) < 0 ||
	    listen(c->channel_fd, BACKLOG) < 0)
		return ward_fail_errno(e, "cannot make the socket of channels");
	strv_addf(env, "WARD_CHANNEL=%s/" CHANNEL_NAME, c->place.path);
	return 0;
}

int child_start(const struct child_request *q, const struct policy *policy, const int fds[3],
		bool channel, struct child *ret, struct ward_err *e)
{
	auto_free char *cwd = find_cwd(policy, q->cwd);
	auto_strv argv = { 0 }, words = { 0 }, env = { 0 };
	auto_buf document = { 0 };
	const char *at = q->command;
	pid_t own = getpid();
	int r;

	policy_document(policy, NULL, &document);
	for (size_t i = 0; i < q->word_count; i++, at += strlen(at) + 1)
		strv_add(&argv, at);
	if (!cwd || argv.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	for (char **variable = environ; *variable; variable++)
		strv_add(&env, *variable);
	r = call_place_open(&ret->place, e);
	if (r == 0 && channel)
		r = open_channel(ret, &env, e);
	if (r == 0 && env.failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = call_words_in(&ret->place, &document, cwd, argv.items, &words, e);
	if (r < 0)
		return r;
	ret->pid = fork();
	if (ret->pid == 0)
		become(words.items, env.items, fds, own);
	return ret->pid < 0 ? ward_fail_errno(e, "cannot start ward run") : 0;
}

void child_finish(struct child *c, struct call_result *ret)
{
	own_close_fd(&c->channel_fd);
	c->channel_fd = -1;
	call_read_report(&c->place, ret);
	call_place_close(&c->place);
	c->pid = 0;
}

void child_end(const struct child *c)
{
	/* two requests: ward run passes the first on to the command, and ends it by the second */
	kill(c->pid, SIGTERM);
	kill(c->pid, SIGINT);
	kill(c->pid, SIGCONT); /* one that is held, too */
}

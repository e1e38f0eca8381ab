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
#include <sys/syscall.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/children/parts.h"

/* Where a command starts: as it is seen inside. The caller frees. */
static char *find_cwd(const struct policy *p, const char *cwd)
{
	auto_free char *full = !cwd          ? strdup(p->fs_workspace)
			       : *cwd == '/' ? strdup(cwd)
					     : path_join(p->fs_workspace, cwd);

	return full ? path_clean(full) : NULL;
}

/* Between fork and exec: only what is safe with threads. */
_Noreturn static void become(char *const *words, const int fds[3], pid_t parent)
{
	static const int signals[] = { SIGPIPE, SIGCHLD, SIGTERM, SIGINT, SIGHUP };
	const struct sigaction normal = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &normal, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
	for (int i = 0; i < 3; i++) /* all of them are above 2 */
		if (dup2(fds[i], i) < 0)
			_exit(125);
	if (syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		_exit(125);
	execv(words[0], words);
	_exit(125);
}

int child_start(const struct child_request *q, const struct policy *policy, const int fds[3],
		struct child *ret, struct ward_err *e)
{
	auto_free char *cwd = find_cwd(policy, q->cwd);
	auto_strv argv = { 0 }, words = { 0 };
	auto_buf document = { 0 };
	const char *at = q->command;
	pid_t own = getpid();
	int r;

	policy_document(policy, NULL, &document);
	for (size_t i = 0; i < q->word_count; i++, at += strlen(at) + 1)
		strv_add(&argv, at);
	if (!cwd || argv.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = call_place_open(&ret->place, e);
	if (r == 0)
		r = call_words_in(&ret->place, &document, cwd, argv.items, &words, e);
	if (r < 0)
		return r;
	ret->pid = fork();
	if (ret->pid == 0)
		become(words.items, fds, own);
	return ret->pid < 0 ? ward_fail_errno(e, "cannot start ward run") : 0;
}

void child_finish(struct child *c, struct call_result *ret)
{
	call_read_report(&c->place, ret);
	call_place_close(&c->place);
	c->pid = 0;
}

void child_end(const struct child *c)
{
	/* two requests: ward run passes the first on to the command, and ends it by the second */
	kill(c->pid, SIGTERM);
	kill(c->pid, SIGINT);
}

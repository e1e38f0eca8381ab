/*
 * Putting what a person has allowed into a policy file. In: rules. Out: the file, changed by
 * ward-explain, which is `ward policy add`: it shows the difference, asks, and keeps a trusted file
 * trusted. Runs with the user's rights outside of every sandbox.
 */
#include "cli/policy_write.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "host/program.h"

static void become(const struct policy_write *w, char *const *argv, struct ward_err *e)
{
	if (w->silent)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (!w->file && w->dir && chdir(w->dir) < 0)
		ward_fail_errno(e, "cannot enter %.200s", w->dir);
	else
		(void)!program_become(argv, e);
	(void)say_error(e, false, EXIT_REFUSED);
	_exit(EXIT_REFUSED);
}

int policy_write_rules(const struct policy_write *w, const char *field, const struct strv *rules,
		       struct ward_err *e)
{
	auto_strv argv = { 0 };
	int status = -1;
	pid_t pid;

	strv_add(&argv, "ward-explain");
	strv_add(&argv, "policy");
	strv_add(&argv, "add");
	if (w->yes)
		strv_add(&argv, "--yes");
	if (w->file) {
		strv_add(&argv, "--policy");
		strv_add(&argv, w->file);
	}
	for (size_t i = 0; i < rules->len; i++) {
		strv_add(&argv, field);
		strv_add(&argv, rules->items[i]);
	}
	pid = argv.failed ? -1 : fork();
	if (pid == 0)
		become(w, argv.items, e);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return ward_fail(e, ECANCELED, "the policy was not written");
}

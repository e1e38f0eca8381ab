/* Specs and plans: what is accepted, what is refused with which words, and that the host program
 * notices nothing of it. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static const char *const command[] = { "echo", "two words", "", NULL };
static const char *const nothing[] = { NULL };
static const char *const nameless[] = { "", "x", NULL };

static void refuses(const char *dir)
{
	struct ward_spec *s = ward_spec_new();
	struct ward_error e = { 0 };
	char *json = NULL;

	CHECK(s);
	REFUSED(ward_spec_policy(s, NULL, &e), EINVAL, "policy file is NULL");
	REFUSED(ward_spec_workspace(s, "", &e), EINVAL, "workspace is empty");
	REFUSED(ward_spec_set(s, "", "1", &e), EINVAL, "name is empty");
	REFUSED(ward_spec_set(s, "a=b", "1", &e), EINVAL, "=");
	REFUSED(ward_spec_set(s, "process.env", "\xff", &e), EILSEQ, "UTF-8");
	REFUSED(ward_spec_command(s, nothing, &e), EINVAL, "no command");
	REFUSED(ward_spec_command(s, nameless, &e), EINVAL, "name of the command is empty");
	CHECK(ward_spec_workspace(s, "", NULL) == -EINVAL);
	FINE(ward_spec_workspace(s, dir, &e));
	FINE(ward_spec_set(s, "resources.pids_limi", "7", &e));
	REFUSED(ward_plan(s, &json, &e), EINVAL, "--set");
	CHECK(strstr(e.remedy, "pids_limit"));
	ward_spec_free(s);
	ward_spec_free(NULL);
	ward_free(NULL);

	s = ward_spec_new();
	CHECK(s);
	FINE(ward_spec_policy(s, "/nonexistent/ward.yaml", &e));
	REFUSED(ward_plan(s, &json, &e), ENOENT, "/nonexistent/ward.yaml");
	FINE(ward_spec_program(s, "/nonexistent/ward", &e));
	REFUSED(ward_plan(s, &json, &e), ENOENT, "cannot start /nonexistent/ward");
	FINE(ward_spec_program(s, "/bin/true", &e));
	REFUSED(ward_plan(s, &json, &e), EPROTO, "version differs");
	FINE(ward_spec_program(s, "/etc/passwd", &e));
	REFUSED(ward_plan(s, &json, &e), EACCES, "/etc/passwd");
	CHECK(!json);
	ward_spec_free(s);
}

static char *plan_of(const char *dir)
{
	struct ward_spec *s = ward_spec_new();
	struct ward_error e = { 0 };
	char *json = NULL;

	CHECK(s);
	FINE(ward_spec_workspace(s, dir, &e));
	FINE(ward_spec_set(s, "resources.pids_limit", "77", &e));
	FINE(ward_spec_add(s, "process.env", "FRUIT=pear", &e));
	FINE(ward_spec_mount(s, "/usr/share/man", "/mnt/system", 0, &e));
	FINE(ward_spec_command(s, command, &e));
	FINE(ward_plan(s, &json, &e));
	ward_spec_free(s);
	CHECK(strstr(json, "\"two words\"") && strstr(json, "FRUIT=pear") &&
	      strstr(json, "/mnt/system") && strstr(json, "77"));
	return json;
}

static int handled;

static void on_child(int signal_number)
{
	(void)signal_number;
	handled++;
}

/* A host program with habits of its own. */
static void unnoticed(const char *dir)
{
	sigset_t before, after;
	int i;

	signal(SIGCHLD, on_child);
	ward_free(plan_of(dir));
	CHECK(handled == 0);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);
	signal(SIGCHLD, SIG_IGN);
	ward_free(plan_of(dir));
	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);
	sigfillset(&after);
	sigprocmask(SIG_SETMASK, &after, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	ward_free(plan_of(dir));
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (i = 1; i < 32; i++)
		CHECK(sigismember(&before, i) == sigismember(&after, i));
	sigemptyset(&after);
	sigprocmask(SIG_SETMASK, &after, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
}

/* Without 0-2 every descriptor that the library opens is one of those that it has to put in their
 * places. */
static void bare(const char *dir)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		int fd;

		for (fd = 0; fd < 3; fd++)
			close(fd);
		ward_free(plan_of(dir));
		fd = open("/dev/null", O_RDONLY);
		_exit(fd == 0 ? 0 : 2); /* none was left open */
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	CHECK(strlen(ward_version()) >= 5);
	refuses(argv[1]);
	unnoticed(argv[1]);
	bare(argv[1]);
	char *json = plan_of(argv[1]);
	puts(json);
	ward_free(json);
	return 0;
}

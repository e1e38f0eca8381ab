/* A host program in trouble: few descriptors, many signals, supervisors that are killed. Nothing
 * leaks, nothing hangs. */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static const char *const sleeps[] = { "sleep", "1000", NULL };
static const char *const exits[] = { "sh", "-c", "exit 3", NULL };
static const char *workspace;
static struct ward_error e;

static int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct ward_spec *new_spec(const char *const *argv)
{
	struct ward_spec *s = ward_spec_new();

	CHECK(s);
	FINE(ward_spec_workspace(s, workspace, &e));
	if (argv)
		FINE(ward_spec_command(s, argv, &e));
	return s;
}

/* Everything once; false when a descriptor was missing somewhere. */
static int use_all(struct ward_spec *s)
{
	struct ward_command c = { .size = sizeof(c), .argv = exits };
	struct ward_process *p = NULL;
	struct ward_box *b = NULL;
	char *json = NULL, *list = NULL;
	int code = -1, fine;

	if (ward_start(s, 0, &b, &e) < 0)
		return 0;
	fine = ward_exec(b, &c, &p, &e) == 0 && ward_process_wait(p, -1, &code, &e) == 1 &&
	       code == 3 && ward_stats(b, &json, &e) == 0 && ward_list(&list, &e) == 0 &&
	       ward_box_fd(b, &e) >= 0 && ward_stop(b, 1000, &e) == 0 &&
	       ward_wait(b, -1, &code, &e) == 1;
	ward_free(json);
	ward_free(list);
	ward_process_free(p);
	ward_box_free(b);
	return fine;
}

/* With a command that has streams: all three, or none of it. */
static int use_streams(struct ward_spec *s)
{
	struct ward_box *b = NULL;
	int code = -1, fine = 1;

	if (ward_start(s, 0, &b, &e) < 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		int fd = ward_box_stream(b, i, &e);

		fine = fine && fd >= 0;
		close(fd);
	}
	CHECK(fine);
	CHECK(ward_wait(b, -1, &code, &e) == 1);
	ward_box_free(b);
	return 1;
}

static void few_descriptors(void)
{
	struct ward_spec *s = new_spec(NULL), *streams = new_spec(exits);
	struct rlimit before, now;
	int fine = 0, refused = 0, descriptors = open_descriptors();

	getrlimit(RLIMIT_NOFILE, &before);
	for (rlim_t n = 3; n < 24; n++) {
		now = before;
		now.rlim_cur = n;
		setrlimit(RLIMIT_NOFILE, &now);
		memset(&e, 0, sizeof(e));
		if (use_all(s))
			fine++;
		else
			refused += e.code != 0 && e.why[0];
		if (!use_streams(streams))
			CHECK(e.code != 0 && e.why[0]);
		setrlimit(RLIMIT_NOFILE, &before);
		CHECK(open_descriptors() == descriptors);
	}
	ward_spec_free(streams);
	CHECK(fine + refused == 21 && refused > 0);
	CHECK(use_all(s));
	ward_spec_free(s);
}

static void on_alarm(int number)
{
	(void)number;
}

static void many_signals(void)
{
	struct sigaction often = {
		.sa_handler = on_alarm
	}; /* no SA_RESTART: every call is interrupted */
	struct itimerval timer = { { 0, 700 }, { 0, 700 } };
	struct ward_spec *s = new_spec(NULL);
	int i;

	sigaction(SIGALRM, &often, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (i = 0; i < 5; i++)
		if (!use_all(s))
			FINE(-e.code);
	timer = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &timer, NULL);
	ward_spec_free(s);
}

/* The number behind "pid": of a box that is the only one. */
static pid_t supervisor(void)
{
	char *json = NULL, *at;
	pid_t pid;

	FINE(ward_list(&json, &e));
	at = strstr(json, "\"pid\":");
	CHECK(at);
	pid = (pid_t)atoi(at + 6);
	CHECK(pid > 1);
	ward_free(json);
	return pid;
}

static void killed(unsigned flags)
{
	struct ward_command c = { .size = sizeof(c), .argv = sleeps };
	struct ward_spec *s = new_spec(sleeps);
	struct ward_process *p = NULL;
	struct ward_box *b = NULL;
	char *json = NULL;
	int code = -1;

	FINE(ward_start(s, flags, &b, &e));
	FINE(ward_exec(b, &c, &p, &e));
	CHECK(ward_wait(b, 1, &code, &e) == 0);
	kill(supervisor(), SIGKILL);
	CHECK(ward_process_wait(p, 20000, &code, &e) == 1 && code == 137);
	code = -1;
	CHECK(ward_wait(b, 20000, &code, &e) == 1 && code == 137);
	REFUSED(ward_result(b, &json, &e), ESRCH, "killed");
	REFUSED(ward_exec(b, &c, &p, &e), ESRCH, "");
	ward_process_free(p);
	FINE(ward_remove(b, &e));
	ward_box_free(b);
	ward_spec_free(s);
}

/* Host programs that are killed at any moment of their use of a box: it goes with them. */
static void killed_hosts(void)
{
	struct timespec moment = { .tv_nsec = 10000000 };
	char *json = NULL;
	int i;

	srand((unsigned)getpid());
	for (i = 0; i < 16; i++) {
		struct timespec delay = { .tv_nsec = rand() % 25000000 };
		pid_t child = fork();

		if (child == 0) {
			struct ward_spec *s = new_spec(sleeps);

			for (;;)
				use_all(s);
		}
		CHECK(child > 0);
		nanosleep(&delay, NULL);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	for (i = 0; i < 2000; i++) {
		FINE(ward_list(&json, &e));
		if (strstr(json, "[]"))
			break;
		ward_free(json);
		json = NULL;
		nanosleep(&moment, NULL);
	}
	CHECK(json);
	ward_free(json);
}

static void nothing_leaks(void)
{
	struct ward_spec *s = new_spec(NULL);
	int i, descriptors = open_descriptors();

	for (i = 0; i < 10; i++)
		CHECK(use_all(s));
	CHECK(open_descriptors() == descriptors);
	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);
	ward_spec_free(s);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	workspace = argv[1];
	few_descriptors();
	many_signals();
	killed(0);
	killed(WARD_DETACHED);
	killed_hosts();
	nothing_leaks();
	return 0;
}

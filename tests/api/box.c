/* A box from start to end: streams, exec, signals, pause, stats, wait with and without time,
 * result, list, open, remove. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static const char *workspace;
static struct ward_error e;

static struct ward_box *start(unsigned flags, const char *name, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct ward_spec *s = ward_spec_new();
	struct ward_box *b = NULL;

	FINE(ward_spec_workspace(s, workspace, &e));
	if (name)
		FINE(ward_spec_name(s, name, &e));
	if (script)
		FINE(ward_spec_command(s, argv, &e));
	FINE(ward_start(s, flags, &b, &e));
	ward_spec_free(s);
	return b;
}

static void read_all(int fd, char *text, size_t n)
{
	size_t got = 0;
	ssize_t more;

	CHECK(fd >= 0);
	while (got < n - 1 && (more = read(fd, text + got, n - 1 - got)) > 0)
		got += (size_t)more;
	text[got] = '\0';
	close(fd);
}

static void attached(void)
{
	struct ward_box *b = start(0, NULL, "read x; echo got $x; echo bad >&2; exit 6");
	int in = ward_box_stream(b, 0, &e), out = ward_box_stream(b, 1, &e),
	    err = ward_box_stream(b, 2, &e), code = -1;
	char text[256], *json = NULL;
	struct pollfd p = { .events = POLLIN };

	CHECK(strlen(ward_box_id(b)) > 10 && strcmp(ward_box_name(b), "") == 0);
	REFUSED(ward_box_stream(b, 1, &e), EBADF, "already taken");
	REFUSED(ward_box_stream(b, 3, &e), EINVAL, "no stream 3");
	REFUSED(ward_resize(b, 10, 10, &e), ENOTTY, "no terminal");
	CHECK(ward_wait(b, 0, &code, &e) == 0 && code == -1);
	CHECK(ward_wait(b, 30, &code, &e) == 0);
	REFUSED(ward_result(b, &json, &e), EAGAIN, "still running");
	p.fd = ward_box_fd(b, &e);
	CHECK(p.fd >= 0 && poll(&p, 1, 0) == 0);
	CHECK(write(in, "pear\n", 5) == 5);
	close(in);
	read_all(out, text, sizeof(text));
	CHECK(strcmp(text, "got pear\n") == 0);
	read_all(err, text, sizeof(text));
	CHECK(strcmp(text, "bad\n") == 0);
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(ward_wait(b, -1, &code, &e) == 1 && code == 6);
	CHECK(ward_wait(b, 0, &code, &e) == 1 && code == 6);
	CHECK(ward_box_fd(b, &e) == p.fd && poll(&p, 1, 1000) == 1);
	FINE(ward_result(b, &json, &e));
	CHECK(strstr(json, "\"code\":6") && strstr(json, ward_box_id(b)));
	ward_free(json);
	REFUSED(ward_kill(b, &e), ESRCH, "has ended");
	ward_box_free(b);
}

static int run(struct ward_box *b, const char *script, const char *const *env, const char *dir,
	       char *text, size_t n)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct ward_command c = { .size = sizeof(c), .argv = argv, .env = env, .directory = dir };
	struct ward_process *p = NULL;
	int code = -1;

	FINE(ward_exec(b, &c, &p, &e));
	close(ward_process_stream(p, 0, &e));
	read_all(ward_process_stream(p, 1, &e), text, n);
	CHECK(ward_process_wait(p, -1, &code, &e) == 1);
	ward_process_free(p);
	return code;
}

static void executes(void)
{
	const char *const env[] = { "FRUIT=pear", NULL },
			  *const missing[] = { "there-is-no-such-program", NULL },
			  *const sleeps[] = { "sleep", "1000", NULL };
	struct ward_command c = { .size = sizeof(c), .argv = missing };
	struct ward_box *b = start(0, "pool-1", NULL), *other = NULL;
	struct ward_process *p = NULL;
	char text[256], *json = NULL;
	int code = -1;

	CHECK(strcmp(ward_box_name(b), "pool-1") == 0);
	REFUSED(ward_box_stream(b, 1, &e), EBADF, "does not exist");
	CHECK(run(b, "echo $FRUIT; pwd; exit 3", env, "/tmp", text, sizeof(text)) == 3);
	CHECK(strcmp(text, "pear\n/tmp\n") == 0);
	CHECK(run(b, "kill -9 $$", NULL, NULL, text, sizeof(text)) == 137);
	FINE(ward_exec(b, &c, &p, &e));
	CHECK(ward_process_wait(p, -1, &code, &e) == 1 && code == 127);
	ward_process_free(p);
	c.argv = sleeps;
	FINE(ward_exec(b, &c, &p, &e));
	CHECK(ward_process_wait(p, 20, &code, &e) == 0);
	REFUSED(ward_process_signal(p, 99, &e), EINVAL, "not a signal");
	REFUSED(ward_process_resize(p, 5, 5, &e), ENOTTY, "no terminal");
	FINE(ward_process_signal(p, SIGTERM, &e));
	CHECK(ward_process_wait(p, 20000, &code, &e) == 1 && code == 143);
	REFUSED(ward_process_signal(p, SIGTERM, &e), ESRCH, "has ended");
	ward_process_free(p);
	FINE(ward_pause(b, &e));
	FINE(ward_resume(b, &e));
	FINE(ward_stats(b, &json, &e));
	CHECK(strstr(json, "\"memory_bytes\":") && strstr(json, ward_box_id(b)));
	ward_free(json);
	REFUSED(ward_net_show(b, &json, &e), EOPNOTSUPP, "has no network");
	REFUSED(ward_net_allow(b, (const char *const[]){ "a.example", NULL }, 0, &e), EOPNOTSUPP,
		"has no network");
	FINE(ward_list(&json, &e));
	CHECK(strstr(json, "pool-1") && strstr(json, ward_box_id(b)));
	ward_free(json);
	FINE(ward_open("pool-1", &other, &e));
	CHECK(strcmp(ward_box_id(other), ward_box_id(b)) == 0);
	CHECK(run(other, "exit 9", NULL, NULL, text, sizeof(text)) == 9);
	REFUSED(ward_remove(other, &e), EBUSY, "still running");
	ward_box_free(other);
	FINE(ward_exec(b, &c, &p, &e)); /* freed while it runs: it is killed */
	ward_process_free(p);
	CHECK(run(b,
		  "n=0; while grep -qs ^sleep$ /proc/[0-9]*/comm; do n=$((n + 1)); [ $n -lt 3000 ] "
		  "|| exit 1; done",
		  NULL, NULL, text, sizeof(text)) == 0);
	FINE(ward_exec(b, &c, &p, &e)); /* freed after its box */
	ward_box_free(b);
	CHECK(ward_process_wait(p, 20000, &code, &e) == 1 && code == 137);
	ward_process_free(p);
	REFUSED(ward_open("pool-1", &other, &e), ENOENT, "no sandbox");
}

static void detached(void)
{
	struct ward_box *b = start(WARD_DETACHED, "left",
				   "trap 'exit 5' TERM; echo one; echo two >&2; printf !!!; : "
				   ">ready; while :; do sleep 0.05; done"),
			*other = NULL;
	struct timespec moment = { .tv_nsec = 10000000 };
	char id[64], ready[4096], *json = NULL;
	size_t bytes = 0;
	struct pollfd p = { .events = POLLIN };
	int code = -1;

	snprintf(ready, sizeof(ready), "%s/ready", workspace);
	for (int i = 0; i < 2000 && access(ready, F_OK) < 0; i++)
		nanosleep(&moment, NULL);
	snprintf(id, sizeof(id), "%s", ward_box_id(b));
	REFUSED(ward_box_stream(b, 0, &e), EBADF, "does not exist");
	ward_box_free(b);
	FINE(ward_open(id, &b, &e));
	FINE(ward_open("left", &other, &e));
	CHECK(ward_wait(b, 10, &code, &e) == 0);
	p.fd = ward_box_fd(b, &e);
	CHECK(p.fd >= 0 && poll(&p, 1, 0) == 0);
	FINE(ward_stop(other, 20000, &e));
	CHECK(poll(&p, 1, 20000) == 1);
	CHECK(ward_wait(b, -1, &code, &e) == 1 && code == 5);
	p.fd = ward_box_fd(other, &e); /* which has not been asked for before */
	CHECK(p.fd >= 0 && poll(&p, 1, 0) == 1);
	FINE(ward_result(other, &json, &e));
	CHECK(strstr(json, "\"code\":5"));
	ward_free(json);
	FINE(ward_log(b, &json, &bytes, &e));
	CHECK(bytes >= 11 && bytes == strlen(json) && strncmp(json, "one\ntwo\n!!!", 11) == 0);
	ward_free(json);
	FINE(ward_remove(b, &e));
	CHECK(ward_remove(b, &e) == -ENOENT);
	REFUSED(ward_log(b, &json, NULL, &e), ENOENT, "");
	ward_box_free(b);
	ward_box_free(other);
}

/* Reads until the text is there. */
static void expect(int fd, const char *wanted)
{
	char text[4096] = "";
	size_t got = 0;

	while (!strstr(text, wanted)) {
		ssize_t n =
			got < sizeof(text) - 1 ? read(fd, text + got, sizeof(text) - 1 - got) : 0;

		if (n <= 0) {
			fprintf(stderr, "wanted %s, got %s\n", wanted, text);
			_exit(1);
		}
		got += (size_t)n;
		text[got] = '\0';
	}
}

/* a signal with a trap ends read, too */
static const char typed_script[] =
	"trap 'stty size; w=1' WINCH; stty size; tty >/dev/null || exit 1; while w=; read x || [ "
	"-n \"$w\" ]; do echo \"<$x>\"; done; exit 8";

static void terminals(void)
{
	const char *const argv[] = { "sh", "-c", typed_script, NULL };
	struct ward_command c = { .size = sizeof(c), .argv = argv, .rows = 11, .columns = 33 };
	struct ward_spec *s = ward_spec_new();
	struct ward_process *p = NULL;
	struct ward_box *b = NULL;
	int code = -1, in, out;
	char byte;

	REFUSED(ward_spec_terminal(s, 0, 3, &e), EINVAL, "0 rows");
	FINE(ward_spec_workspace(s, workspace, &e));
	FINE(ward_spec_terminal(s, 22, 77, &e));
	FINE(ward_spec_command(s, argv, &e));
	FINE(ward_start(s, 0, &b, &e));
	ward_spec_free(s);
	in = ward_box_stream(b, 0, &e);
	out = ward_box_stream(b, 1, &e);
	CHECK(in >= 0 && out >= 0 && isatty(out));
	REFUSED(ward_box_stream(b, 2, &e), EBADF, "does not exist");
	FINE(ward_resize(b, 44, 99, &e));
	CHECK(write(in, "fig\n", 4) == 4);
	expect(out, "<fig>");
	CHECK(write(in, "\n", 1) == 1);
	FINE(ward_exec(b, &c, &p, &e));
	close(out);
	out = ward_process_stream(p, 1, &e);
	CHECK(isatty(out));
	FINE(ward_process_resize(p, 12, 34, &e));
	CHECK(write(out, "plum\n", 5) == 5);
	expect(out, "<plum>");
	CHECK(write(out, "\4", 1) == 1);
	CHECK(ward_process_wait(p, 20000, &code, &e) == 1 && code == 8);
	while (read(out, &byte, 1) == 1)
		;
	CHECK(errno == EIO);
	ward_process_free(p);
	CHECK(write(in, "\4", 1) == 1);
	CHECK(ward_wait(b, 20000, &code, &e) == 1 && code == 8);
	close(in);
	close(out);
	ward_box_free(b);
}

/* What the command may write at most is counted here too, and what it had written until then
 * arrives. */
static void limited(void)
{
	const char *const argv[] = { "sh", "-c", "cat /dev/zero; sleep 1000", NULL };
	struct ward_spec *s = ward_spec_new();
	struct ward_box *b = NULL;
	char data[65536], *json = NULL;
	size_t got = 0;
	int code = -1, out;
	ssize_t n;

	FINE(ward_spec_workspace(s, workspace, &e));
	FINE(ward_spec_set(s, "resources.output_limit", "1M", &e));
	FINE(ward_spec_command(s, argv, &e));
	FINE(ward_start(s, 0, &b, &e));
	out = ward_box_stream(b, 1, &e);
	while ((n = read(out, data, sizeof(data))) > 0)
		got += (size_t)n;
	CHECK(got == 1000000);
	CHECK(ward_wait(b, 20000, &code, &e) == 1 && code == 137);
	FINE(ward_result(b, &json, &e));
	CHECK(strstr(json, "\"output\":{\"value\":1000000") && strstr(json, "\"hit\":true"));
	ward_free(json);
	ward_box_free(b);
	close(out);
	FINE(ward_spec_terminal(s, 10, 10, &e));
	REFUSED(ward_start(s, 0, &b, &e), ENOTSUP, "output_limit");
	ward_spec_free(s);
}

static void refuses(void)
{
	static const char *const env[] = { "NOVALUE", NULL };
	const char *const argv[] = { "true", NULL }, *const nameless[] = { "", NULL };
	struct ward_command c = { .argv = argv };
	struct ward_spec *s = ward_spec_new();
	struct ward_process *p = NULL;
	struct ward_box *b = NULL;

	FINE(ward_spec_workspace(s, "/nonexistent", &e));
	REFUSED(ward_start(s, 0, &b, &e), ENOENT, "/nonexistent");
	REFUSED(ward_start(s, 64, &b, &e), EINVAL, "flag");
	FINE(ward_spec_workspace(s, workspace, &e));
	FINE(ward_spec_name(s, "a name", &e));
	REFUSED(ward_start(s, WARD_DETACHED, &b, &e), EINVAL, "a name");
	ward_spec_free(s);
	REFUSED(ward_open(NULL, &b, &e), EINVAL, "NULL");
	REFUSED(ward_open("", &b, &e), ENOENT, "no sandbox");
	b = start(0, NULL, NULL);
	REFUSED(ward_exec(b, &c, &p, &e), EINVAL, "size");
	c.size = sizeof(c);
	c.env = env;
	REFUSED(ward_exec(b, &c, &p, &e), EINVAL, "variables");
	c.env = NULL;
	c.argv = nameless;
	REFUSED(ward_exec(b, &c, &p, &e), EINVAL, "no command");
	c.argv = argv;
	c.rows = 5;
	REFUSED(ward_exec(b, &c, &p, &e), EINVAL, "0 columns");
	FINE(ward_kill(b, &e));
	CHECK(ward_wait(b, 20000, NULL, &e) == 1);
	ward_box_free(b);
	CHECK(!p);
}

/* The host program dies without a word: so does its box. */
static void orphan(void)
{
	int fds[2], status;
	char id[64] = "";
	struct ward_box *b;
	pid_t child;

	CHECK(pipe(fds) == 0);
	child = fork();
	if (child == 0) {
		b = start(0, "orphan", "sleep 1000");
		CHECK(write(fds[1], ward_box_id(b), strlen(ward_box_id(b))) > 0);
		raise(SIGKILL);
	}
	close(fds[1]);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	read_all(fds[0], id, sizeof(id));
	CHECK(id[0]);
	for (int i = 0; i < 2000 && ward_open(id, &b, &e) == 0; i++) {
		struct timespec moment = { .tv_nsec = 10000000 };

		ward_box_free(b);
		nanosleep(&moment, NULL);
	}
	CHECK(e.code == ENOENT);
}

/* What a box may reach, seen and changed while it runs. */
static void network(void)
{
	const char *const rules[] = { "api.example:8443", "*.cdn.example", NULL }, *const bad[] = {
		"a.example", "b..example", NULL
	};
	const char *const none[] = { NULL };
	struct ward_spec *s = ward_spec_new();
	struct ward_error e = { 0 };
	struct ward_box *b;
	char *json;

	FINE(ward_spec_workspace(s, workspace, &e));
	FINE(ward_spec_add(s, "network.egress_allowlist", "example.com", &e));
	FINE(ward_spec_set(s, "network.mode", "restricted", &e));
	FINE(ward_start(s, 0, &b, &e));
	FINE(ward_net_allow(b, rules, 0, &e));
	FINE(ward_net_deny(b, (const char *const[]){ "example.com:443", NULL }, 3600, &e));
	REFUSED(ward_net_allow(b, bad, 0, &e), EINVAL, "");
	REFUSED(ward_net_allow(b, none, 0, &e), EINVAL, "no rule");
	REFUSED(ward_net_deny(b, NULL, 0, &e), EINVAL, "no rule");
	FINE(ward_net_show(b, &json, &e));
	CHECK(strstr(json, "\"generation\":3,") && strstr(json, "api.example:8443") &&
	      strstr(json, "\"lasts_ms\":"));
	CHECK(!strstr(json, "a.example\""));
	ward_free(json);
	ward_box_free(b);
	ward_spec_free(s);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	workspace = argv[1];
	signal(SIGPIPE, SIG_IGN);
	attached();
	executes();
	detached();
	terminals();
	limited();
	refuses();
	network();
	orphan();
	return 0;
}

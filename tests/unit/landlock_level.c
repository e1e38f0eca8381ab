/*
 * The Landlock level as a whole: a plan made by hand, the real engine, shell commands inside. What
 * each command may not do it is seen to do outside first, where that does no harm.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "engine/landlock/landlock_engine.h"
#include "event/result.h"
#include "host/facts.h"
#include "observe/notify.h"
#include "plan/level.h"
#include "protocol/guest.h"

static char top[] = "/tmp/ward-level-XXXXXX"; /* ws/ the workspace, outside/ beside it */
static char ws[64], outside[64];

struct run {
	struct spec spec;
	struct plan plan;
	struct plan_live live;
	struct plan_mount mounts[16];
	struct running running;
	struct result result;
	struct notify *notify;
	int output[2];
	struct buf out;
	int status; /* of the command; -1: it did not end by itself */
	int failed; /* GUEST_FAILED's exit code */
	char *argv[4];
};

static void add_mount(struct run *r, const char *path, bool writable)
{
	r->mounts[r->plan.mount_count++] = (struct plan_mount){
		.kind = MOUNT_BIND, .source = path, .target = path, .writable = writable
	};
}

static void make_plan(struct run *r, const char *command)
{
	static const char *const system_paths[] = {
		"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"
	};
	struct ward_err e = { 0 };

	memset(r, 0, sizeof(*r));
	r->status = -1;
	assert_int_equal(policy_defaults(&r->spec.policy, &e), 0);
	r->argv[0] = (char *)(uintptr_t) "/bin/sh";
	r->argv[1] = (char *)(uintptr_t) "-c";
	r->argv[2] = (char *)(uintptr_t)command;
	r->spec.argv = r->argv;
	r->plan.argv = r->argv;
	r->plan.live = &r->live;
	r->plan.engine = "native";
	r->plan.level = LEVEL_LANDLOCK;
	r->plan.spec = &r->spec;
	facts_read(&r->plan.facts);
	snprintf(r->spec.run_id, sizeof(r->spec.run_id), "test-%d", getpid());
	r->plan.ids = (struct plan_ids){ .mode = getuid() ? IDS_OWN : IDS_ROOT,
					 .host_uid = getuid(),
					 .host_gid = getgid() };
	for (int i = 0; i < LIMITS; i++)
		r->plan.limits[i].value = POLICY_NONE;
	r->plan.mounts = r->mounts;
	for (size_t i = 0; i < ARRAY_LEN(system_paths); i++)
		add_mount(r, system_paths[i], false);
	add_mount(r, ws, true);
	r->plan.cwd = ws;
	r->plan.workspace = ws;
	strv_add(&r->plan.env, "PATH=/usr/bin:/bin");
	strv_add(&r->plan.env, "TMPDIR=/tmp");
	strv_add(&r->plan.env, "HOME=/home/agent");
	r->running =
		(struct running){ .pid_fd = -1, .control_fd = -1, .notify_fd = -1, .proc_fd = -1 };
	sigemptyset(&r->running.caller_mask);
}

static int start(struct run *r, struct ward_err *e)
{
	int null = open("/dev/null", O_RDONLY), code;

	assert_int_equal(pipe2(r->output, O_CLOEXEC), 0);
	code = engine_landlock.start(&r->plan, (int[3]){ null, r->output[1], r->output[1] },
				     &r->running, e);
	close(r->output[1]);
	close(null);
	if (code == 0)
		code = engine_landlock.release(&r->plan, &r->running, &r->result, e);
	if (code == 0)
		assert_int_equal(
			notify_create(take_fd(&r->running.notify_fd), &r->plan, &r->notify, e), 0);
	return code;
}

static void take_message(struct run *r)
{
	struct guest_message m;

	if (recv(r->running.control_fd, &m, sizeof(m), MSG_DONTWAIT) != sizeof(m))
		return;
	if (m.op == GUEST_EXITED)
		r->status = m.a;
	else if (m.op == GUEST_FAILED)
		r->failed = m.b;
}

/* Until ward-init is dead, or for so long. */
static bool serve(struct run *r, unsigned for_ms)
{
	uint64_t until = io_now_ms() + for_ms;

	while (io_now_ms() < until) {
		struct pollfd p[4] = { { .fd = r->running.pid_fd, .events = POLLIN },
				       { .fd = r->running.control_fd, .events = POLLIN },
				       { .fd = notify_fd(r->notify), .events = POLLIN },
				       { .fd = r->output[0], .events = POLLIN } };
		char bytes[4096];
		ssize_t n;

		poll(p, 4, 20);
		if (p[2].revents & POLLIN)
			notify_handle(r->notify, &r->result);
		if (p[1].revents & POLLIN)
			take_message(r);
		if (p[3].revents & POLLIN && (n = read(r->output[0], bytes, sizeof(bytes))) > 0)
			buf_add(&r->out, bytes, (size_t)n);
		else if (p[0].revents)
			return true;
	}
	return false;
}

static void bury(struct run *r)
{
	engine_landlock.kill(&r->running);
	if (r->running.init_pid > 0)
		while (waitpid(r->running.init_pid, NULL, 0) < 0 && errno == EINTR)
			;
	if (r->running.control_fd >= 0)
		take_message(r);
	notify_destroy(r->notify);
	close(r->output[0]);
	own_close_fd(&r->running.control_fd);
	own_close_fd(&r->running.pid_fd);
	engine_landlock.finish(&r->running);
	buf_free(&r->out);
	strv_free(&r->plan.env);
	result_clear(&r->result);
	policy_clear(&r->spec.policy);
}

/* Runs a command to its end; its exit code, its output compared where expected is not NULL. */
static int run(const char *command, const char *expected)
{
	struct ward_err e = { 0 };
	struct run r;
	int code;

	make_plan(&r, command);
	if (start(&r, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
	if (!serve(&r, 10000))
		fail_msg("did not end: %s", command);
	if (expected && strcmp(buf_text(&r.out), expected) != 0)
		fail_msg("%s: \"%s\", not \"%s\"", command, buf_text(&r.out), expected);
	take_message(&r);
	code = r.status >= 0 && WIFEXITED(r.status) ? WEXITSTATUS(r.status)
						    : 128 + (r.status & 0x7f);
	bury(&r);
	return code;
}

static int set_up(void **state)
{
	char path[128];
	int fd;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(top))
		return -1;
	chmod(top, 0755);
	snprintf(ws, sizeof(ws), "%s/ws", top);
	snprintf(outside, sizeof(outside), "%s/outside", top);
	snprintf(path, sizeof(path), "%s/secret", outside);
	if (mkdir(ws, 0755) < 0 || mkdir(outside, 0755) < 0 ||
	    (fd = open(path, O_CREAT | O_RDWR, 0644)) < 0)
		return -1;
	return write(fd, "secret\n", 7) == 7 && close(fd) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void test_work(void **state)
{
	(void)state;
	assert_int_equal(run("echo hello; exit 3", "hello\n"), 3);
	assert_int_equal(run("echo a > file && cat file && mkdir -p d/e && mv file d/e/ && ls d/e "
			     "&& rm -r d && ls",
			     "a\nfile\n"),
			 0);
	assert_int_equal(run("echo b > f && chmod 640 f && stat -c %a f && touch -d @1000 f && "
			     "stat -c %Y f && rm f",
			     "640\n1000\n"),
			 0);
	assert_int_equal(
		run("echo c > \"$TMPDIR/x\" && cat \"$HOME/x\" && chmod 600 \"$TMPDIR/x\"", "c\n"),
		0);
	assert_int_equal(run("echo x | sort | uniq -c | tr -d ' '; cat /dev/null; head -c 3 "
			     "/dev/zero | wc -c",
			     "1x\n3\n"),
			 0);
	assert_int_equal(run("cat <<EOF\nhere\nEOF", "here\n"), 0);
	assert_int_equal(run("kill -TERM $$", ""), 128 + SIGTERM);
	assert_int_equal(run("sleep 0.01 & wait; echo done", "done\n"), 0);
}

static void test_files(void **state)
{
	char command[512];
	const char *reads[] = { "cat $o/secret", "ls $o", "cp $o/secret .", "ln $o/secret link",
				"exec 3< $o/secret" };
	const char *writes[] = { "echo x > $o/secret",
				 "echo x > $o/new",
				 "mkdir $o/new",
				 "rm $o/secret",
				 "mv $o/secret .",
				 "mv $o/secret $o/other",
				 "truncate -s 0 $o/secret",
				 "ln -s x $o/link",
				 "mknod $o/p p",
				 "chmod 600 $o/secret",
				 "touch $o/secret",
				 "chgrp $(id -g) $o/secret",
				 "ln -s $o/secret l; echo x > l",
				 "ln -sf $o/secret l; chmod 600 l" };
	struct stat before, after;
	char secret[128];

	(void)state;
	snprintf(secret, sizeof(secret), "%s/secret", outside);
	assert_int_equal(stat(secret, &before), 0);
	for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
		snprintf(command, sizeof(command), "o=%s; %s", outside, reads[i]);
		assert_int_not_equal(run(command, NULL), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
		snprintf(command, sizeof(command), "o=%s; %s", outside, writes[i]);
		if (run(command, NULL) == 0)
			fail_msg("%s went through", command);
	}
	assert_int_equal(stat(secret, &after), 0);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	assert_int_equal(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
	assert_int_not_equal(run("cat /etc/shadow", NULL), 0);
	assert_int_not_equal(run("cat /proc/1/cmdline", NULL), 0);
	assert_int_not_equal(run("ls /tmp", NULL), 0);
	assert_int_not_equal(run("echo x > /dev/shm/x", NULL), 0);
	assert_int_not_equal(run("chmod 4755 /bin/true", NULL), 0);
	assert_int_not_equal(run("cp /bin/true t && chmod u+s t", NULL), 0);
}

static void test_processes(void **state)
{
	char command[256];
	pid_t victim = fork();
	int status;

	(void)state;
	if (victim == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	snprintf(command, sizeof(command), "kill -9 %d || kill -9 %d", victim, getpid());
	assert_int_not_equal(run(command, NULL), 0);
	snprintf(command, sizeof(command), "kill -0 %d", getpid());
	assert_int_not_equal(run(command, NULL), 0);
	/* nobody else is there to be killed */
	assert_int_equal(run("kill -9 -1; echo alive", "alive\n"), 0);
	assert_int_equal(waitpid(victim, &status, WNOHANG), 0);
	snprintf(command, sizeof(command), "renice -n 19 -p %d", victim);
	assert_int_not_equal(run(command, NULL), 0);
	snprintf(command, sizeof(command), "prlimit --pid %d --cpu=1:1", victim);
	assert_int_not_equal(run(command, NULL), 0);
	snprintf(command, sizeof(command), "cat /proc/%d/environ /proc/%d/cmdline", victim, victim);
	assert_int_not_equal(run(command, NULL), 0);
	kill(victim, SIGKILL);
	assert_int_equal(waitpid(victim, &status, 0), victim);
}

static void test_network(void **state)
{
	static const char script[] =
		"import socket, sys\n"
		"for f, t in ((socket.AF_INET, 1), (socket.AF_INET6, 2), (socket.AF_UNIX, 1), "
		"(socket.AF_UNIX, 2), (40, 1)):\n"
		"    try: socket.socket(f, t); sys.exit(9)\n"
		"    except OSError: pass\n"
		"a, b = socket.socketpair()\n"
		"a.send(b'x'); print(b.recv(1))\n"
		"try: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); sys.exit(8)\n"
		"except OSError: pass\n"
		"try: a.sendto(b'y', '/run/systemd/journal/socket'); sys.exit(7)\n"
		"except OSError: pass\n";
	char command[1200];

	(void)state;
	snprintf(command, sizeof(command), "python3 -c \"%s\"", script);
	assert_int_equal(run(command, "b'x'\n"), 0);
}

/* Whether somebody sleeps for that long; the brackets keep grep from finding itself. */
static bool sleepers(void)
{
	return system("grep -qsa 'sleep.9876[5]' /proc/[0-9]*/cmdline") == 0;
}

/* Daemons end with the command, by a word, and with the supervisor. */
static void test_nothing_stays(void **state)
{
	static const char daemons[] = "(setsid sleep 98765 & setsid sh -c 'trap \"\" TERM HUP; "
				      "sleep 98765 & wait' &) ; sleep 0.2; ";
	char command[256], tmp[64];
	struct ward_err e = { 0 };
	struct run r;

	(void)state;
	snprintf(command, sizeof(command), "%s exit 5", daemons);
	assert_int_equal(run(command, NULL), 5);
	assert_false(sleepers());

	snprintf(command, sizeof(command), "%s sleep 98765", daemons);
	make_plan(&r, command);
	level_tmp_path(r.spec.run_id, tmp, sizeof(tmp));
	assert_int_equal(start(&r, &e), 0);
	assert_false(serve(&r, 400));
	assert_true(sleepers());
	assert_int_equal(access(tmp, F_OK), 0);
	bury(&r);
	assert_false(sleepers());
	assert_int_not_equal(access(tmp, F_OK), 0);

	/* ward-init is killed from outside: the orphans are the supervisor's */
	make_plan(&r, command);
	assert_int_equal(start(&r, &e), 0);
	assert_false(serve(&r, 400));
	kill(r.running.init_pid, SIGKILL);
	assert_true(serve(&r, 5000));
	assert_true(sleepers());
	bury(&r);
	assert_false(sleepers());

	/* the supervisor is killed: a child plays it */
	pid_t supervisor = fork();

	if (supervisor == 0) {
		make_plan(&r, command);
		if (start(&r, &e) < 0)
			_exit(1);
		serve(&r, 60000);
		_exit(2);
	}
	poll(NULL, 0, 500);
	assert_true(sleepers());
	kill(supervisor, SIGKILL);
	assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
	poll(NULL, 0, 200);
	assert_false(sleepers());
	make_plan(&r, "true");
	snprintf(command, sizeof(command), "rm -rf /tmp/ward-test-%d", supervisor);
	assert_int_equal(system(command), 0);
	strv_free(&r.plan.env);
	policy_clear(&r.spec.policy);
}

/* What the sandbox leaves in its own directory goes, however it is nested and closed. */
static void test_deep_leftovers(void **state)
{
	(void)state;
	assert_int_equal(run("cd $TMPDIR && i=0; while [ $i -lt 300 ]; do mkdir dddddddddd && cd "
			     "dddddddddd || exit 1; i=$((i+1)); done; "
			     "echo x > f; ln -s / root; mkdir -p c/c; chmod 000 c",
			     ""),
			 0);
	char tmp[64];

	snprintf(tmp, sizeof(tmp), "/tmp/ward-test-%d", getpid());
	assert_int_not_equal(access(tmp, F_OK), 0);
}

static void expect_refusal(struct run *r, const char *word)
{
	struct ward_err e = { 0 };

	assert_true(start(r, &e) < 0);
	if (!strstr(e.why, word))
		fail_msg("\"%s\" does not speak of %s", e.why, word);
	assert_true(e.remedy[0]);
	bury(r);
}

static void test_refusals(void **state)
{
	auto_strv lines = { 0 };
	struct ward_err e = { 0 };
	char inner[80];
	struct run r;

	(void)state;
	make_plan(&r, "true");
	assert_int_equal(level_landlock_refusals(&r.spec.policy, &lines), 0);
	assert_int_equal(
		policy_set(&r.spec.policy, "filesystem.hide", "[.env]", false, POLICY_FILE, &e), 0);
	assert_int_equal(
		policy_set(&r.spec.policy, "filesystem.protect", "[x]", false, POLICY_FILE, &e), 0);
	assert_int_equal(
		policy_set(&r.spec.policy, "process.nesting", "true", false, POLICY_FILE, &e), 0);
	assert_int_equal(level_landlock_refusals(&r.spec.policy, &lines), 3);
	expect_refusal(&r, "filesystem.protect");

	make_plan(&r, "true");
	r.plan.facts.landlock_abi = 5;
	expect_refusal(&r, "ABI 6");

	struct guard_root hidden = { .path = ws };

	make_plan(&r, "true");
	r.live.roots = &hidden;
	r.live.root_count = 1;
	assert_int_equal(ignore_add(&hidden.aiignore, ".env\n", 5), 0);
	expect_refusal(&r, ".aiignore");
	ignore_free(hidden.aiignore);

	make_plan(&r, "true");
	snprintf(inner, sizeof(inner), "%s/inner", ws);
	add_mount(&r, inner, false);
	expect_refusal(&r, "read-only");
}

static void test_exec_failure(void **state)
{
	struct ward_err e = { 0 };
	struct run r;

	(void)state;
	make_plan(&r, "true");
	r.argv[0] = (char *)(uintptr_t) "no-such-command";
	assert_int_equal(start(&r, &e), 0);
	assert_true(serve(&r, 5000));
	take_message(&r);
	assert_int_equal(r.failed, 127);
	bury(&r);
	make_plan(&r, "true");
	r.plan.cwd = (char *)(uintptr_t) "/no/such/directory";
	assert_int_equal(start(&r, &e), -ENOENT);
	assert_non_null(strstr(e.what, "stage directory"));
	bury(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work),          cmocka_unit_test(test_files),
		cmocka_unit_test(test_processes),     cmocka_unit_test(test_network),
		cmocka_unit_test(test_nothing_stays), cmocka_unit_test(test_deep_leftovers),
		cmocka_unit_test(test_refusals),      cmocka_unit_test(test_exec_failure),
	};

	struct facts f;

	facts_read(&f);
	if (f.landlock_abi < LEVEL_LANDLOCK_ABI) {
		print_message(
			"skipped: the Landlock level needs Landlock ABI %d, this kernel has %d\n",
			LEVEL_LANDLOCK_ABI, f.landlock_abi);
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/*
 * The runner of a sandbox's command behind gVisor, and of one more command (`ward exec`). Started
 * by ward-init inside the native sandbox with the command's environment, directory and 0-2; ends as
 * the command ends. In:
 *
 *	ward-gvisor run PLATFORM OPTION WAY BYTES SHM PIDS COUNT DIR... CMD...
 *	ward-gvisor exec CMD...
 *
 * `run` makes the directories (place.c) and starts gVisor. WAY: `direct` starts its parts one by
 * one (direct.c), `alone` does so without a network, `whole` leaves it to `runsc run`. BYTES: the
 * longest file that may be written; SHM: the size of gVisor's own /dev/shm; PIDS: the most
 * processes and threads; each 0: no limit, or none. `exec` asks gVisor's kernel to start the
 * command (control.c), or starts `runsc exec`.
 *
 * Both start this program inside gVisor in its role `enter`, which becomes the agent and executes
 * CMD. Signals to the runner are meant for the command: runsc-sandbox passes them to the
 * container's first process, and for a command of exec `runsc kill` does. runsc and its gofer have
 * a session of their own, so that such signals do not reach them, and die with the runner.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"
#include "protocol/guest.h"

#define BINDS_MAX 64
#define WORDS_MAX 20
#define START_MS 10000
#define MOMENT_NS (5 * 1000 * 1000)
#define GONE_TRIES 40
#define COUNT_NS (25 * 1000 * 1000)
#define IDLE_NS 500000   /* of processor time: less than it takes to start a thread */
#define RUNSC_FAILED 128 /* runsc's own status when its kernel is gone */
#ifndef W_EXITCODE
#define W_EXITCODE(code, sig) ((code) << 8 | (sig))
#endif

static char path_variable[] = "PATH=/usr/bin:/bin", home_variable[] = "HOME=/";
static char *runsc_env[] = { path_variable, home_variable, NULL };

struct words {
	char *items[WORDS_MAX];
	size_t len;
};

static void add_word(struct words *w, const char *word)
{
	if (w->len + 1 < WORDS_MAX)
		w->items[w->len++] = strdup(word);
}

static void add_common(struct words *w)
{
	static const char *const common[] = { "runsc",
					      ("--root=" GVISOR_STATE),
					      "--network=host",
					      "--ignore-cgroups",
					      "--overlay2=none",
					      "--file-access=exclusive",
					      "--file-access-mounts=shared" };

	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		add_word(w, common[i]);
}

/* Starts runsc outside the runner's process group; it dies with the runner. */
static pid_t start_runsc(const struct words *w)
{
	pid_t parent = getpid(), pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(125);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(GVISOR_RUNSC, w->items, runsc_env);
	gvisor_say("cannot start runsc: %s", strerror(errno));
	_exit(125);
}

/* The number in a file that runsc writes; 0: it is not there yet. */
static pid_t read_pid(const char *path)
{
	auto_buf text = { 0 };
	long n;

	if (io_read_file(AT_FDCWD, path, 32, &text) < 0)
		return 0;
	n = strtol(buf_text(&text), NULL, 10);
	return n > 1 && n < 1 << 30 ? (pid_t)n : 0;
}

static bool is_direct(void)
{
	return access(GVISOR_CONTROL, F_OK) == 0;
}

static void kill_inside(const char *pid_file, int sig)
{
	struct words w = { 0 };
	char pid[32], number[16];

	if (is_direct()) {
		pid_t inside = read_pid(pid_file);

		if (inside && control_signal(inside, sig) < 0)
			errno = 0; /* it has ended */
		return;
	}
	snprintf(pid, sizeof(pid), "--pid=%d", (int)read_pid(pid_file));
	snprintf(number, sizeof(number), "%d", sig);
	add_word(&w, "runsc");
	add_word(&w, "--root=" GVISOR_STATE);
	add_word(&w, "kill");
	add_word(&w, pid);
	add_word(&w, GVISOR_NAME);
	add_word(&w, number);
	if (strcmp(pid, "--pid=0") != 0)
		start_runsc(&w);
}

static void pass_signal(const char *pid_file, bool inside, int sig)
{
	pid_t pid;

	if (inside) {
		kill_inside(pid_file, sig);
		return;
	}
	pid = read_pid(pid_file);
	if (pid)
		kill(pid, sig);
}

/* Makes gVisor's kernel pause or resume every program in it. A kernel that refuses is about to end.
 */
static void hold(bool stop)
{
	struct words w = { 0 };
	pid_t pid;

	if (is_direct()) {
		if (control_pause(stop) < 0)
			errno = 0;
		return;
	}
	add_word(&w, "runsc");
	add_word(&w, "--root=" GVISOR_STATE);
	add_word(&w, stop ? "pause" : "resume");
	add_word(&w, GVISOR_NAME);
	pid = start_runsc(&w);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Whether the first command has begun. Then its start file is no longer needed, and further
 * commands are accepted. */
static bool has_begun(int report_fd)
{
	int value, fd;

	if (gvisor_report(report_fd, &value) == REPORT_NOTHING)
		return false;
	unlink(GVISOR_START "/run");
	fd = open(GVISOR_UP, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	own_close_fd(&fd);
	return true;
}

/* Reports the number of processes and threads in gVisor to ward-init when it has changed. Asks only
 * if gVisor's kernel has used processor time since: no thread starts without it. */
struct count {
	uint64_t limit; /* 0: they are not counted */
	uint64_t written, used_ns;
};

static uint64_t used_ns(pid_t pid)
{
	struct timespec used = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void count_inside(struct count *c, pid_t kernel)
{
	uint64_t used = used_ns(kernel), now = 0;
	int r;

	if (used && used < c->used_ns + IDLE_NS)
		return;
	c->used_ns = used;
	r = control_count(&now);
	if (r == -EINVAL)
		now = INT32_MAX; /* more than fits into an answer */
	else if (r < 0)
		return; /* it is about to end */
	if (now > INT32_MAX)
		now = INT32_MAX;
	if (now != c->written &&
	    sigqueue(getppid(), GUEST_TELL, (union sigval){ .sival_int = (int)now }) == 0)
		c->written = now;
}

/* Waits for the end of runsc and returns its status. begun_fd: where the first command reports that
 * it has begun; -1: this is another command. pids: the limit of processes; 0: they are not counted.
 */
static int wait_for(pid_t runsc, const char *pid_file, int begun_fd, uint64_t pids)
{
	const struct timespec moment = { 0, MOMENT_NS }, while_counting = { 0, COUNT_NS };
	struct count count = { .limit = pids };
	bool inside = begun_fd < 0, begun = inside;
	bool hold_wanted = false, held = false;
	sigset_t all;

	sigfillset(&all);
	for (;;) {
		siginfo_t info;
		bool alone = direct_gofer_is_dead();
		int sig = begun && !pids && !alone
				  ? sigwaitinfo(&all, &info)
				  : sigtimedwait(&all, &info, begun ? &while_counting : &moment),
		    status;
		pid_t pid;

		if (alone && direct_is_broken())
			kill(runsc, SIGKILL);
		if (!begun)
			begun = has_begun(begun_fd);
		if (!inside && sig == GUEST_HOLD && info.si_code == SI_QUEUE)
			hold_wanted = info.si_value.sival_int == 1;
		/* gVisor's kernel counts pauses, and one resume too many makes it panic */
		if (begun && hold_wanted != held) {
			held = hold_wanted;
			hold(held);
		}
		if (begun && pids && !held)
			count_inside(&count, runsc);
		if (sig == GUEST_HOLD)
			continue;
		if (sig > 0 && sig != SIGCHLD) {
			pass_signal(pid_file, inside, sig);
			continue;
		}
		while ((pid = waitpid(runsc, &status, WNOHANG)) == runsc)
			return status;
		if (pid < 0 && errno == ECHILD)
			return 0;
	}
}

static void take_signals(void)
{
	sigset_t all;

	signal(SIGCHLD, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Whether an exec ended because gVisor's kernel ended. A killed kernel is a zombie until its parent
 * has reaped it. */
static bool kernel_is_gone(int code)
{
	const struct timespec moment = { 0, MOMENT_NS };
	pid_t kernel = read_pid(GVISOR_PID);
	bool gone = !kernel || kill(kernel, 0) < 0;

	for (int i = 0; code == RUNSC_FAILED && !gone && i < GONE_TRIES; i++) {
		nanosleep(&moment, NULL);
		gone = kill(kernel, 0) < 0;
	}
	return gone;
}

/* The report may be forged by another command, so it counts only if runsc's status agrees.
 * Otherwise runsc's status is taken, if the command has begun and gVisor's kernel outlived it. */
static enum command_report check_report(enum command_report report, int status, bool first,
					bool begun, int *value)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (!begun)
		return REPORT_NOTHING;
	if ((report == REPORT_EXIT && *value == code) ||
	    (report == REPORT_SIGNAL && 128 + *value == code))
		return report;
	if (code < 0 ||
	    (first ? code == RUNSC_FAILED || report == REPORT_BEGUN : kernel_is_gone(code)))
		return REPORT_BEGUN;
	*value = code;
	return REPORT_EXIT;
}

/* How the command ended, or what became of it. */
static int settle(enum command_report report, int value, int status)
{
	if (report == REPORT_EXIT || report == REPORT_SIGNAL)
		return gvisor_end_like(report, value);
	if (report == REPORT_BEGUN) {
		gvisor_say("gVisor's kernel or its gofer exited while the command ran: killed, or "
			   "limited by resources.pids_limit or open_files");
		return gvisor_end_like(REPORT_SIGNAL, SIGKILL);
	}
	if (WIFSIGNALED(status)) {
		gvisor_say("runsc was killed by signal %d before the command began",
			   WTERMSIG(status));
		return gvisor_end_like(REPORT_SIGNAL, WTERMSIG(status));
	}
	gvisor_say("gVisor could not start the command");
	return 125;
}

static pid_t start_whole(const struct gvisor_way *way)
{
	struct words w = { 0 };
	char platform[32];

	add_common(&w);
	snprintf(platform, sizeof(platform), "--platform=%s", way->platform);
	add_word(&w, platform);
	add_word(&w, way->option);
	add_word(&w, "run");
	add_word(&w, "--bundle=" GVISOR_BUNDLE);
	add_word(&w, "--pid-file=" GVISOR_PID);
	add_word(&w, GVISOR_NAME);
	return start_runsc(&w);
}

static pid_t start_gvisor(const struct gvisor_way *way, size_t binds)
{
	pid_t pid;

	if (!way->whole)
		return direct_start(way, binds, &pid) < 0 ? -1 : pid;
	pid = start_whole(way);
	if (pid < 0)
		gvisor_say("cannot start runsc: %s", strerror(errno));
	return pid;
}

int gvisor_run(int argc, char **argv)
{
	return gvisor_run_from(-1, argc, argv);
}

int gvisor_run_from(int image_fd, int argc, char **argv)
{
	long count = argc > 7 ? strtol(argv[6], NULL, 10) : -1;
	char name[16] = "run";
	auto_fd report_fd = -1;
	struct pumps pumps = { 0 };
	struct gvisor_way way;
	pid_t runsc;
	enum command_report how;
	int status, value = 0;

	if (count < 0 || count > BINDS_MAX || count + 7 >= argc) {
		gvisor_say("usage: ward-gvisor run PLATFORM OPTION WAY FILE-BYTES SHM-BYTES PIDS "
			   "COUNT DIR... CMD...");
		return 125;
	}
	way = (struct gvisor_way){ .platform = argv[0],
				   .option = argv[1],
				   .whole = strcmp(argv[2], "whole") == 0,
				   .alone = strcmp(argv[2], "alone") == 0,
				   .image_fd = image_fd,
				   .file_bytes = strtoull(argv[3], NULL, 10),
				   .shm_bytes = strtoull(argv[4], NULL, 10),
				   .pids = strtoull(argv[5], NULL, 10) };
	take_signals();
	if (gvisor_make_dirs() < 0 ||
	    gvisor_tell(argv + 7 + count, name, sizeof(name), &report_fd) < 0 ||
	    gvisor_place(&way, argv + 7, (size_t)count, isatty(0) == 1) < 0 || chdir("/") < 0 ||
	    pumps_start(&pumps) < 0)
		return 125;
	way.report_fd = report_fd;
	runsc = start_gvisor(&way, (size_t)count);
	if (runsc < 0)
		return 125;
	status = wait_for(runsc, GVISOR_PID, report_fd, way.whole ? 0 : way.pids);
	if (pumps.count)
		pumps_end(&pumps);
	how = gvisor_report(report_fd, &value);
	how = check_report(how, status, true, how != REPORT_NOTHING || access(GVISOR_UP, F_OK) == 0,
			   &value);
	if (how == REPORT_NOTHING && strcmp(way.platform, "kvm") == 0)
		gvisor_say("gVisor did not start on this host's KVM; gvisor.platform: systrap does "
			   "not need it");
	return settle(how, value, status);
}

/* The runner of an exec may be killed with its process group: then a watcher ends the command
 * inside gVisor, too. Returns a descriptor to which a byte is written if all went well (it closes
 * before a dead parent is gone, so its closing alone proves nothing); -1: there is no watcher. */
static int watch_runner(const char *name, const char *pid_file)
{
	ssize_t n;
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		return -1;
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	if (fork() == 0) {
		setsid();
		close(ends[1]);
		for (int i = 0; i < 3; i++)
			close(i);
		do
			n = read(ends[0], &byte, 1);
		while (n < 0 && errno == EINTR);
		if (n > 0)
			_exit(0);
		kill_inside(pid_file, GVISOR_END);
		while (wait(NULL) > 0)
			;
		unlink(pid_file);
		gvisor_forget(name);
		_exit(0);
	}
	close(ends[0]);
	return ends[1];
}

/* A command may be requested before gVisor is up: waits until the first command has begun, and ends
 * if gVisor ends meanwhile. */
int gvisor_wait_for_kernel(void)
{
	const struct timespec moment = { 0, MOMENT_NS };
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		if (access(GVISOR_UP, F_OK) == 0)
			return 0;
		nanosleep(&moment, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 < START_MS);
	gvisor_say("gVisor's kernel is not ready after %d s: the sandbox's own command has not "
		   "started",
		   START_MS / 1000);
	return -ETIMEDOUT;
}

/* Both return the status as wait(2) would, of a process whose status is the command's. */
static int exec_whole(const char *name, const char *pid_file)
{
	char pid_option[96];
	struct words w = { 0 };
	pid_t runsc;

	snprintf(pid_option, sizeof(pid_option), "--internal-pid-file=%s", pid_file);
	add_common(&w);
	add_word(&w, "exec");
	add_word(&w, "--cwd=/");
	add_word(&w, pid_option);
	add_word(&w, GVISOR_NAME);
	add_word(&w, GVISOR_SELF);
	add_word(&w, "enter");
	add_word(&w, name);
	runsc = start_runsc(&w);
	return runsc < 0 ? W_EXITCODE(RUNSC_FAILED, 0) : wait_for(runsc, pid_file, -1, 0);
}

static int exec_direct(const char *name, const char *pid_file)
{
	static const int stdio[] = { 0, 1, 2 };
	struct answer a;
	int status, pid = control_exec("enter", name, stdio, &a);
	auto_fd file = -1;
	char text[16];

	if (pid == -EREMOTEIO)
		gvisor_say("gVisor does not start the command: %s", a.error);
	if (pid < 0)
		return W_EXITCODE(RUNSC_FAILED, 0);
	snprintf(text, sizeof(text), "%d", pid);
	file = open(pid_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0 || io_write_all(file, text, strlen(text)) < 0 ||
	    control_wait(pid, &status) < 0)
		return W_EXITCODE(RUNSC_FAILED, 0);
	return WIFSIGNALED(status) ? W_EXITCODE(RUNSC_FAILED + WTERMSIG(status), 0) : status;
}

int gvisor_exec(int argc, char **argv)
{
	char name[32] = "", pid_file[64];
	enum command_report how;
	int status, watch_fd, value = 0;
	auto_fd report_fd = -1;

	if (argc < 1) {
		gvisor_say("usage: ward-gvisor exec CMD...");
		return 125;
	}
	take_signals();
	if (gvisor_wait_for_kernel() < 0 || gvisor_tell(argv, name, sizeof(name), &report_fd) < 0)
		return 125;
	snprintf(pid_file, sizeof(pid_file), GVISOR_DIR "/exec.%d", (int)getpid());
	unlink(pid_file); /* left by a runner that was killed together with its watcher */
	watch_fd = watch_runner(name, pid_file);
	status = is_direct() ? exec_direct(name, pid_file) : exec_whole(name, pid_file);
	if (watch_fd >= 0 && io_write_all(watch_fd, "e", 1) < 0)
		gvisor_say("no process supervises this command");
	how = gvisor_report(report_fd, &value);
	how = check_report(how, status, false, read_pid(pid_file) > 0, &value);
	unlink(pid_file);
	gvisor_forget(name);
	return settle(how, value, status);
}

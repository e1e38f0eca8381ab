/*
 * The supervisor of one run. In: an engine and a plan. Out: a filled struct result. Runs as the user, outside every
 * namespace of the sandbox, and is the only holder of the control socket: when this process goes, so does the sandbox.
 *
 * box_run() is the whole life in order: start, put on record, give the word, watch (one poll loop, the one switch of
 * this process), end, count, sweep. Nothing here decides what the sandbox may do; that was decided by the plan.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "guest/protocol.h"
#include "lib/box.h"
#include "lib/engine.h"
#include "lib/guardian.h"
#include "lib/notify.h"
#include "lib/streams.h"
#include "lib/store.h"

#define GRACE_MS 5000		/* between a forwarded signal and the end by force */
#define GUARDIAN_AFTER_MS 15	/* short commands need none: the next start finishes what they would leave */
#define DRAIN_MS 2000
#define DISK_ROOTS_MAX 16

struct box {
	const struct engine *engine;
	const struct plan *plan;
	struct result *result;
	struct running run;
	struct streams streams;
	struct store_run *record;
	struct watch *watch;
	struct notify *notify;
	struct guard_watch *guard_watch;
	struct guardian guardian;
	int signal_fd;
	int disk_fds[DISK_ROOTS_MAX];
	size_t disk_count;
	uint64_t started_ms, deadline_ms, kill_at_ms, tick_at_ms, notify_at_ms;
	bool tried_guardian, dead, exited, failed, paused;
	int status;			/* of the command, when exited */
	int failed_errno, failed_code;	/* when exec failed */
	int forwarded;			/* last signal passed on */
	bool limited;			/* ended by a limit */
	enum limit limit;
};

static void tell_init(struct box *b, enum guest_op op, int argument)
{
	struct guest_message m = { .op = op, .a = argument };

	(void)!send(b->run.control_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Every process of the sandbox at once; the pid namespace dies with its first process. */
static void kill_sandbox(struct box *b)
{
	if (b->engine->kill)
		b->engine->kill(&b->run);
	else if (b->run.pid_fd >= 0 && syscall(SYS_pidfd_send_signal, b->run.pid_fd, SIGKILL, NULL, 0) < 0 &&
		 errno != ESRCH)
		kill(b->run.init_pid, SIGKILL);	/* an outer filter; the pid is ours until bury() */
}

static void stop_all(struct box *b, bool stop)
{
	if (b->run.cgroup && cgroup_freeze(b->run.cgroup, stop) == 0)
		return;
	tell_init(b, stop ? GUEST_STOP : GUEST_CONTINUE, 0);
}

static void end_by_limit(struct box *b, enum limit l)
{
	b->limited = true;
	b->limit = l;
	b->result->usage.hit[l] = true;
	kill_sandbox(b);
}

/* ---- what can happen ---- */

static void on_control(struct box *b)
{
	struct guest_message m;
	ssize_t n = recv(b->run.control_fd, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(m)) {
		b->dead = true;
		return;
	}
	if (m.op == GUEST_EXITED) {
		b->exited = true;
		b->status = m.a;
	} else if (m.op == GUEST_FAILED) {
		b->failed = true;
		b->failed_errno = m.a;
		b->failed_code = m.b;
	}
}

static bool ends_run(uint32_t signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

static void on_signal(struct box *b, uint64_t now)
{
	struct signalfd_siginfo info;

	if (read(b->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGXFSZ)
		return;	/* of our own writing, which has failed and says so */
	if (b->forwarded && info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT) {
		kill_sandbox(b);	/* asked twice */
		return;
	}
	tell_init(b, GUEST_SIGNAL, (int)info.ssi_signo);
	if (ends_run(info.ssi_signo)) {
		b->forwarded = (int)info.ssi_signo;
		if (info.ssi_signo != SIGINT)	/* an interrupt may be the command's own business */
			b->kill_at_ms = now + GRACE_MS;
	}
}

static void look_at_limits(struct box *b)
{
	struct usage *u = &b->result->usage;
	enum limit l;

	if (b->run.cgroup)
		cgroup_usage(b->run.cgroup, u);
	if (b->watch && watch_tick(b->watch, u)) {
		stop_all(b, true);
		watch_confirm(b->watch, u);
		if (limits_stop(b->plan, u, &l))
			kill_sandbox(b);	/* before it goes on */
		stop_all(b, false);
		if (b->paused)
			tell_init(b, GUEST_STOP, 0);
	}
	if (limits_stop(b->plan, u, &l)) {
		end_by_limit(b, l);
		return;
	}
	if (b->watch && watch_wants_pause(b->watch) != b->paused) {
		b->paused = !b->paused;
		tell_init(b, b->paused ? GUEST_STOP : GUEST_CONTINUE, 0);
	}
}

static void look_at_output(struct box *b)
{
	const struct plan_limit *output = &b->plan->limits[LIMIT_OUTPUT];

	if (output->value != POLICY_NONE && b->streams.out_bytes > output->value)
		end_by_limit(b, LIMIT_OUTPUT);
}

/* The host replaced a file that was protected or hidden: its mount died with it and is made again. */
static void on_replaced(struct box *b)
{
	struct guard_undone undone[16];
	size_t count = guard_watch_read(b->guard_watch, undone, ARRAY_LEN(undone));
	struct ward_err e = { 0 };

	if (b->record && store_lost(b->record, b->plan->roots, b->plan->root_count) < 0)
		kill_sandbox(b);	/* whoever finished this run after a kill would not know */
	if (!count)
		return;
	stop_all(b, true);
	for (; count; count = guard_watch_read(b->guard_watch, undone, ARRAY_LEN(undone)))
		for (size_t i = 0; i < count; i++) {
			int r = b->engine->remount(b->plan, &b->run, &b->plan->roots[undone[i].root],
						   undone[i].steps, undone[i].count, &e);

			if (r < 0) {
				strv_addf(&b->result->notes, "the run was ended: %s (%s)", e.why, strerror(e.code));
				kill_sandbox(b);
			}
		}
	stop_all(b, false);
}

static void on_time(struct box *b, uint64_t now)
{
	if (b->deadline_ms && now >= b->deadline_ms && !b->limited)
		end_by_limit(b, LIMIT_TIMEOUT);
	if (b->kill_at_ms && now >= b->kill_at_ms) {
		kill_sandbox(b);
		b->kill_at_ms = 0;
	}
	if (b->tick_at_ms && now >= b->tick_at_ms && !b->limited) {
		look_at_limits(b);
		b->tick_at_ms = now + WATCH_TICK_MS;
	}
	if (!b->tried_guardian && now >= b->started_ms + GUARDIAN_AFTER_MS) {
		b->tried_guardian = true;
		if (b->record && guardian_start(&b->guardian, b->run.pid_fd) < 0)
			strv_add(&b->result->notes, "no guardian could be started: if ward is killed now, the next "
						    "`ward run` cleans up");
	}
}

static int next_timeout(const struct box *b, uint64_t now)
{
	const uint64_t times[] = { b->deadline_ms, b->kill_at_ms, b->tick_at_ms, b->notify_at_ms,
				   b->tried_guardian ? 0 : b->started_ms + GUARDIAN_AFTER_MS };
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] && times[i] < first)
			first = times[i];
	if (first == UINT64_MAX)
		return -1;
	if (first <= now)
		return 0;
	return first - now > 3600000 ? 3600000 : (int)(first - now);
}

enum { POLL_CONTROL, POLL_SIGNAL, POLL_PID, POLL_NOTIFY, POLL_GUARD, POLL_CGROUP, POLL_STDIO };

static void watch_once(struct box *b)
{
	struct pollfd polled[POLL_STDIO + 3] = {
		[POLL_CONTROL] = { .fd = b->run.control_fd, .events = POLLIN },
		[POLL_SIGNAL] = { .fd = b->signal_fd, .events = POLLIN },
		[POLL_PID] = { .fd = b->run.pid_fd, .events = POLLIN },
		[POLL_NOTIFY] = { .fd = b->notify && !b->notify_at_ms ? notify_fd(b->notify) : -1, .events = POLLIN },
		[POLL_GUARD] = { .fd = b->guard_watch ? guard_watch_fd(b->guard_watch) : -1, .events = POLLIN },
		[POLL_CGROUP] = { .fd = b->run.cgroup && b->tried_guardian ? cgroup_event_fd(b->run.cgroup) : -1,
				  .events = POLLIN | POLLPRI },
	};
	size_t relays = streams_poll(&b->streams, polled + POLL_STDIO);
	uint64_t now = io_now_ms();

	if (poll(polled, POLL_STDIO + relays, next_timeout(b, now)) < 0)
		memset(polled, 0, sizeof(polled));	/* EINTR: nothing is known */
	now = io_now_ms();
	if (b->notify_at_ms && now >= b->notify_at_ms)
		b->notify_at_ms = 0;
	if (polled[POLL_NOTIFY].revents & ~POLLIN) {
		notify_destroy(b->notify);	/* every process under the filter is gone: nobody will ask again */
		b->notify = NULL;
	} else if (polled[POLL_NOTIFY].revents) {
		unsigned wait_ms = notify_handle(b->notify, b->result);

		b->notify_at_ms = wait_ms ? now + wait_ms : 0;
	}
	if (polled[POLL_SIGNAL].revents)
		on_signal(b, now);
	if (polled[POLL_GUARD].revents)
		on_replaced(b);
	if (polled[POLL_CGROUP].revents) {
		cgroup_event_read(b->run.cgroup, &b->result->usage);
		look_at_limits(b);
	}
	streams_move(&b->streams, polled + POLL_STDIO, relays);
	look_at_output(b);
	if (polled[POLL_CONTROL].revents)
		on_control(b);
	if (polled[POLL_PID].revents)
		b->dead = true;
	on_time(b, now);
}

/* ---- the life, in order ---- */

/* From the first moment on: a signal while the sandbox is being built is passed on when it is there. */
static void block_signals(struct box_early *early)
{
	static const int passed_on[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGPIPE,
					  SIGXFSZ };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &early->run.caller_mask);
	early->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* On record before anything is made for it: whatever happens to us, the run can be finished. */
static int put_on_record(struct box *b, struct ward_err *e)
{
	auto_strv dirs = { 0 };

	cgroup_planned_dirs(b->plan, &dirs);
	if (dirs.len == 0 && b->plan->root_count == 0)
		return 0;
	return store_begin(b->plan->run_id, b->plan->workspace, b->plan->roots, b->plan->root_count, &dirs,
			   &b->record, e);
}

static int begin_watching(struct box *b, struct ward_err *e)
{
	const struct plan *p = b->plan;
	struct watch_config config = { .plan = p, .init_pid = b->run.init_pid, .proc_fd = b->run.proc_fd,
				       .tmpfs_fds = b->run.tmpfs_fds, .tmpfs_count = b->run.tmpfs_count,
				       .disk_fds = b->disk_fds };
	int r = 0;

	/* until somebody listens, denied calls wait */
	if (b->run.notify_fd >= 0)
		r = notify_create(take_fd(&b->run.notify_fd), p, &b->notify, e);
	for (size_t i = 0; i < p->root_count && p->watch && b->disk_count < DISK_ROOTS_MAX; i++) {
		int fd = p->roots[i].writable ? open(p->roots[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

		if (fd >= 0)
			b->disk_fds[b->disk_count++] = fd;
	}
	config.disk_count = b->disk_count;
	if (r == 0 && p->watch)
		r = watch_create(&config, &b->watch, e);
	if (r == 0)
		r = guard_watch_create(p->roots, p->root_count, &b->guard_watch, &b->result->notes, e);
	if (p->watch || b->run.cgroup)
		b->tick_at_ms = io_now_ms() + WATCH_TICK_MS;
	return r;
}

static int start(struct box *b, struct ward_err *e)
{
	uint64_t began = timing_now(b->run.timing);
	int r = streams_prepare(&b->streams, b->plan, e);

	if (r == 0 && b->signal_fd < 0)
		r = ward_fail(e, EMFILE, "cannot receive signals: no descriptor is left (ulimit -n)");
	if (r == 0)
		r = put_on_record(b, e);
	timing_end(b->run.timing, "on record", began);
	began = timing_now(b->run.timing);
	if (r == 0)
		r = b->engine->start(b->plan, b->streams.inside, &b->run, e);
	streams_started(&b->streams);
	timing_end(b->run.timing, "prepare and give the word", began);
	began = timing_now(b->run.timing);
	if (r == 0 && b->record)
		r = store_started(b->record, b->run.init_pid, e);
	if (r == 0)
		r = b->engine->release(b->plan, &b->run, b->result, e);
	timing_end(b->run.timing, "wait until it is built", began);
	return r < 0 ? r : begin_watching(b, e);
}

/* The sandbox is dead or dies now; what it used is counted. */
static void bury(struct box *b)
{
	struct rusage used = { 0 };
	struct usage *u = &b->result->usage;
	uint64_t cpu_ms;
	int status;

	if (b->run.init_pid <= 0)
		return;
	kill_sandbox(b);
	while (wait4(b->run.init_pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	b->run.init_pid = 0;	/* the number may be somebody else's from now on */
	if (b->watch && watch_tick(b->watch, u) && !b->limited)
		watch_confirm(b->watch, u);	/* it may have ended by itself, or by SIGXFSZ, within a tick */
	while (b->run.control_fd >= 0 && !b->exited) {
		bool dead = b->dead;

		b->dead = false;
		on_control(b);
		if (b->dead || dead)
			break;
		b->dead = dead;
	}
	if (b->run.cgroup)
		cgroup_usage(b->run.cgroup, u);
	cpu_ms = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
		 (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
	if (u->cpu_ms < cpu_ms)	/* who counted last counted most */
		u->cpu_ms = cpu_ms;
	if (u->memory_peak_bytes < (uint64_t)used.ru_maxrss * 1024)
		u->memory_peak_bytes = (uint64_t)used.ru_maxrss * 1024;
}

static void explain_failed_exec(struct box *b)
{
	struct result *r = b->result;
	const char *name = b->plan->spec->argv[0];

	r->exit_code = b->failed_code;
	ward_fail(&r->error, b->failed_errno, "%s", strerror(b->failed_errno));
	ward_wrap(&r->error, "running %s inside", name);
	if (b->failed_code == 127)
		box_suggest_mount(b->plan, name, &r->error);
}

static void judge(struct box *b)
{
	struct result *r = b->result;
	enum limit l;

	if (b->failed) {
		explain_failed_exec(b);
		return;
	}
	if (!b->limited && limits_stop(b->plan, &r->usage, &l) && !(b->exited && WIFEXITED(b->status))) {
		b->limited = true;
		b->limit = l;
	}
	if (b->limited) {
		r->exit_code = b->limit == LIMIT_TIMEOUT ? 124 : 137;
		r->exit_signal = SIGKILL;
	} else if (b->exited && WIFEXITED(b->status)) {
		r->exit_code = WEXITSTATUS(b->status);
	} else if (b->exited && WIFSIGNALED(b->status)) {
		r->exit_signal = WTERMSIG(b->status);
		r->exit_code = 128 + r->exit_signal;
	} else {
		r->exit_signal = b->forwarded ? b->forwarded : SIGKILL;
		r->exit_code = 128 + r->exit_signal;
	}
}

static void sweep(struct box *b)
{
	struct result *r = b->result;
	struct ward_err e = { 0 };

	if (!b->record || store_sweep(b->record, b->plan->roots, b->plan->root_count, &r->quarantine, &e) >= 0)
		return;
	strv_addf(&r->notes, "the sweep for planted files is incomplete: %s: %s", e.what, e.why);
	if (r->error.code)
		return;
	r->error = e;	/* said even if nobody watches */
	ward_wrap(&r->error, "the sweep for planted files is incomplete");
	ward_remedy(&r->error, "look before you use the workspace; the next `ward run` and `ward recover` sweep it again");
}

/* The reader gets all that the command wrote, however slowly it reads, unless the run is to end: by a limit, a signal or
 * its time. */
static void drain(struct box *b)
{
	uint64_t soon = io_now_ms() + DRAIN_MS, until = b->deadline_ms ? b->deadline_ms : UINT64_MAX;
	struct signalfd_siginfo info = { 0 };

	if (b->limited || b->forwarded || until < soon)
		until = soon;
	while (streams_drain(&b->streams, until, b->signal_fd) > 0)
		if (read(b->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) && ends_run(info.ssi_signo))
			until = 0;
}

static void close_all(int **fds)
{
	for (; *fds; fds++) {
		own_close_fd(*fds);
		**fds = -1;
	}
}

static void finish(struct box *b)
{
	drain(b);
	streams_finish(&b->streams);
	notify_destroy(b->notify);
	watch_destroy(b->watch);
	guard_watch_drain(b->guard_watch);
	guard_watch_destroy(b->guard_watch);
	cgroup_destroy(b->run.cgroup);
	sweep(b);
	store_end(b->record);
	guardian_dismiss(&b->guardian);
	for (size_t i = 0; i < b->disk_count; i++)
		close(b->disk_fds[i]);
	for (size_t i = 0; i < b->run.tmpfs_count; i++)
		close(b->run.tmpfs_fds[i]);
	close_all((int *[]){ &b->run.proc_fd, &b->run.notify_fd, &b->run.control_fd, &b->run.pid_fd,
			     &b->signal_fd, NULL });
	if (b->engine->finish)
		b->engine->finish(&b->run);
}

void box_begin(struct box_early *early, const struct engine *engine, struct timing *timing)
{
	*early = (struct box_early){ .engine = engine, .signal_fd = -1,
		.run = { .pid_fd = -1, .control_fd = -1, .notify_fd = -1, .proc_fd = -1, .timing = timing } };
	timing->origin_ns = timing_now(timing);
	block_signals(early);
	if (engine->prelaunch)
		engine->prelaunch(&early->run, &early->system);
	timing_end(timing, "begin", timing->origin_ns);
}

void box_abandon(struct box_early *early)
{
	if (early->engine && early->engine->finish)
		early->engine->finish(&early->run);
	plan_system_free(early->system);
	own_close_fd(&early->signal_fd);
	*early = (struct box_early){ .signal_fd = -1 };
}

/* The plan wants another engine than the one that has begun. */
static void change_engine(struct box_early *early, const struct engine *engine)
{
	if (early->engine && early->engine != engine && early->engine->finish)
		early->engine->finish(&early->run);
	early->engine = NULL;
}

void box_run(const struct engine *engine, const struct plan *p, struct box_early *early, struct result *r)
{
	struct box b = { .engine = engine, .plan = p, .result = r, .signal_fd = take_fd(&early->signal_fd),
			 .guardian = { .pipe_fd = -1 } };
	struct timing *timing = early->run.timing;
	struct ward_err e = { 0 };
	uint64_t began;

	change_engine(early, engine);
	b.run = early->run;	/* it is ours from here on */
	memcpy(r->run_id, p->run_id, sizeof(r->run_id));
	r->engine = engine->name;
	b.started_ms = io_now_ms();
	if (p->limits[LIMIT_TIMEOUT].value != POLICY_NONE)
		b.deadline_ms = b.started_ms + p->limits[LIMIT_TIMEOUT].value;
	if (start(&b, &e) < 0) {
		r->refused = true;
		r->error = e;
		r->exit_code = 125;
	} else {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		began = timing_now(timing);
		while (!b.dead)
			watch_once(&b);
		timing_end(timing, "the command", began);
	}
	began = timing_now(timing);
	bury(&b);
	if (!r->refused && !b.exited && engine->last_words && engine->last_words(&b.run, &r->error)) {
		r->refused = true;
		r->exit_code = 125;
	}
	if (!r->refused)
		judge(&b);
	finish(&b);
	timing_end(timing, "end, sweep, record", began);
	timing_sort(timing);
	r->duration_ms = io_now_ms() - b.started_ms;
}

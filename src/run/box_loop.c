/*
 * The supervisor while the sandbox lives: one poll loop over everything that can happen, the one
 * switch of this process. In: struct box. Out: its marks (dead, exited, limited). Runs as the user,
 * outside every namespace of the sandbox; what ward-init says is untrusted and only ever becomes a
 * mark.
 */
#include "plan/inner.h"
#include "run/box_commands.h"
#include "run/box_proposals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/trim_memory.h"
#include "confine/confine.h"
#include "egress/secrets.h"
#include "egress/ssh.h"
#include "gitview/git_run.h"
#include "plan/plan.h"
#include "run/children.h"
#include "run/serve_internal.h"
#include "state/runs.h"

#define GRACE_MS 5000       /* between a forwarded signal and the end by force */
#define TRIM_AFTER_MS 1000  /* quiet for so long: the supervisor gives memory back */
#define USAGE_MS 20         /* between two looks at what a cgroup counts */
#define FOLLOW_AFTER_MS 400 /* what a short command commits is taken over once, at its end */
#define FILLING_MS 200      /* most that the guardian's start waits while the disk fills */
/* short commands need none: the next start finishes what they would leave */
#define GUARDIAN_AFTER_MS 15

void box_tell_init(struct box *b, enum guest_op op, int argument)
{
	struct guest_message m = { .op = op, .a = argument };

	(void)!send(b->run.control_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void box_kill(struct box *b)
{
	if (b->engine->kill)
		b->engine->kill(&b->run);
	else if (b->run.pid_fd >= 0 &&
		 syscall(SYS_pidfd_send_signal, b->run.pid_fd, SIGKILL, NULL, 0) < 0 &&
		 errno != ESRCH)
		kill(b->run.init_pid,
		     SIGKILL); /* an outer filter; the pid is ours until box_reap() */
	if (b->frozen)
		(void)!cgroup_freeze(b->run.cgroup, false); /* what is frozen does not die */
	b->ending = true;
}

static bool ask_filling(void *arg)
{
	struct box *b = arg;

	return b->watch && watch_fills_disk(b->watch, &b->result->usage);
}

void box_stop_all(struct box *b, bool stop)
{
	struct cgroup *c = b->run.cgroup;
	bool frozen = c && (stop ? cgroup_freeze_unless(c, ask_filling, b)
				 : cgroup_freeze(c, false)) == 0;

	/* a freeze that does not come about in time (a process waits for a disk, or fills it) may
	 * hold ward-init already */
	if (stop && !frozen && c)
		(void)!cgroup_freeze(c, false);
	if (stop)
		b->stopped_by_init = !frozen;
	/* resumed the same way as they were stopped, whatever the freezer can do by then */
	if (b->stopped_by_init)
		box_tell_stop(b, stop);
}

bool box_runner_holds(const struct box *b)
{
	return b->plan->spec->inner && b->plan->spec->inner->holds;
}

void box_tell_stop(struct box *b, bool stop)
{
	box_tell_init(b, stop ? GUEST_STOP : GUEST_CONTINUE, box_runner_holds(b));
}

/* For a close look. What an inner runtime's runner holds is frozen or goes on: the look comes
 * often, and there is no message when that holds. Where the disk fills, the runner holds it all the
 * same: the less is written meanwhile. */
static enum watch_still stop_to_look(struct box *b)
{
	if (!box_runner_holds(b) && watch_is_urgent(b->watch, &b->result->usage)) {
		/* a freezer may take a hundred milliseconds, in which a disk fills */
		b->stopped_by_init = true;
		box_tell_stop(b, true);
		return WATCH_SIGNALLED;
	}
	if (!box_runner_holds(b)) {
		box_stop_all(b, true);
		return b->stopped_by_init ? WATCH_SIGNALLED : WATCH_FROZEN;
	}
	if (watch_is_urgent(b->watch, &b->result->usage) &&
	    watch_prove_disk(b->watch, &b->result->usage))
		return WATCH_MOVING;
	if (!b->run.cgroup) {
		b->held_to_look = !b->paused && watch_is_urgent(b->watch, &b->result->usage);
		if (b->held_to_look)
			box_tell_stop(b, true);
		return WATCH_MOVING;
	}
	if (cgroup_freeze(b->run.cgroup, true) == 0) {
		b->stopped_by_init = false;
		return WATCH_FROZEN;
	}
	(void)!cgroup_freeze(b->run.cgroup, false);
	return WATCH_MOVING;
}

/* So that the cpu limit holds. Signals are quick, where they can be used. */
static void pause_cpu(struct box *b, bool stop)
{
	if (box_runner_holds(b) && b->run.cgroup) {
		box_stop_all(b, stop);
		b->frozen = stop && !b->stopped_by_init;
	} else {
		box_tell_stop(b, stop);
	}
}

static void end_by_limit(struct box *b, enum limit l)
{
	b->limited = true;
	b->limit = l;
	b->result->usage.hit[l] = true;
	if (l == LIMIT_DISK && b->watch && !b->engine->kill)
		watch_kill(b->watch);
	box_kill(b);
}

/* What a container has used, as ward-init says: for the report, beside what others have counted. */
static void note_used(struct usage *u, const struct guest_message *m)
{
	if (m->a > 0 && u->cpu_ms < (uint64_t)m->a)
		u->cpu_ms = (uint64_t)m->a;
	if (m->b > 0 && u->memory_peak_bytes < (uint64_t)m->b * 1024)
		u->memory_peak_bytes = (uint64_t)m->b * 1024;
}

/* How many are in the inner runtime, as its runner reports. Its kernel admits one more than the
 * limit, by which a clone too many is known, and refuses the rest; those of ward exec, and what got
 * round that, come on top. */
static void note_pids(struct box *b, int32_t count)
{
	struct usage *u = &b->result->usage;
	uint64_t limit = b->plan->limits[LIMIT_PIDS].value;

	if (count < 0 || !b->plan->spec->inner || !b->plan->spec->inner->counts)
		return;
	u->inside_pids = (uint64_t)count;
	if (limit == POLICY_NONE || u->inside_pids <= limit)
		return;
	u->hit[LIMIT_PIDS] = true;
	if (u->inside_pids > limit + GUEST_EXECS_MAX && !b->limited)
		end_by_limit(b, LIMIT_PIDS);
}

/* A machine whose kernel killed the command for memory: that is the memory limit, however it is
 * held. */
static void note_spent(struct box *b)
{
	const struct inner *inner = b->plan->spec->inner;

	if (!inner || !inner->own_memory || !WIFSIGNALED(b->status) ||
	    WTERMSIG(b->status) != GUEST_SPENT)
		return;
	b->status = SIGKILL;
	b->result->usage.guest_spent = b->result->usage.hit[LIMIT_MEMORY] = true;
}

bool box_on_control(struct box *b)
{
	struct guest_message m;
	ssize_t n = recv(b->run.control_fd, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n != (ssize_t)sizeof(m)) {
		b->dead = true;
		return false;
	}
	if (m.tag & GUEST_TAG_COMMAND) {
		box_commands_guest(b, &m);
	} else if (m.tag) {
		if (b->serve)
			serve_guest(b->serve, &m);
	} else if (m.op == GUEST_READY) {
		b->answered = true;
	} else if (m.op == GUEST_EXITED) {
		if (!b->exited && b->engine->exited && !b->detached && !b->review)
			b->engine->exited(&b->run);
		b->exited = true;
		b->status = m.a;
		note_spent(b);
	} else if (m.op == GUEST_STOPPED) {
		b->stopped = true;
	} else if (m.op == GUEST_USED) {
		note_used(&b->result->usage, &m);
	} else if (m.op == GUEST_PIDS) {
		note_pids(b, m.a);
	} else if (m.op == GUEST_FAILED) {
		b->failed = true;
		b->failed_errno = m.a;
		b->failed_code = m.b;
	}
	return true;
}

bool box_ends_run(uint32_t signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/* When ward-git starts to take over commits; 0: it has, or there is nothing to take over. */
static uint64_t follow_from_ms(const struct box *b)
{
	if (b->tried_git || !b->plan->live->views)
		return 0;
	return b->guardian_from_ms + (b->detached ? GUARDIAN_AFTER_MS : FOLLOW_AFTER_MS);
}

/* Once everything that a supervisor starts has been: the guardian, and the gateway where there is a
 * network. */
static void confine(struct box *b)
{
	struct ward_err e;

	if (!b->detached || b->confined || !b->tried_guardian || follow_from_ms(b) ||
	    egress_is_waiting(b->egress))
		return;
	b->confined = true;
	if (confine_enter(PROC_BOX, NULL, &e) < 0)
		strv_add(&b->result->notes,
			 "the supervisor could not drop rights that it does not need");
}

/* A run in the foreground: ward ps and ward top list it, ward stop ends it, and the rules of its
 * network can be changed meanwhile. Not before it has lasted a little. */
static void listen_for_net(struct box *b)
{
	struct ward_err e = { 0 };

	if (b->detached)
		return;
	if ((runs_enter(b->plan, &b->net_entry, &e) < 0 ||
	     serve_create_net(b, &b->net_entry, &b->net_serve, &e) < 0) &&
	    b->egress)
		strv_addf(&b->result->notes,
			  "ward ps does not list this run, and ward net cannot reach it: %s",
			  e.why);
}

static void start_follower(struct box *b)
{
	struct ward_err e = { 0 };

	b->tried_git = true;
	if (git_run_start(b->plan, &b->git, &e) < 0)
		strv_addf(&b->result->notes, "ward imports commits only at the end of the run: %s",
			  e.why);
	confine(b);
}

static void start_guardian(struct box *b)
{
	if (b->tried_guardian)
		return;
	b->tried_guardian = true;
	if (b->record && guardian_start(&b->guardian, b->run.pid_fd) < 0)
		strv_add(&b->result->notes, "cannot start the guardian: if ward is killed now, the "
					    "next `ward run` cleans up");
	if (b->engine->on_long_run)
		b->engine->on_long_run(&b->run);
	listen_for_net(b);
	confine(b);
}

/* Stops with the whole sandbox, as the operator's shell expects it of a job: nothing goes on
 * without limits meanwhile. What is held already stays so: no job control, and no process inside
 * that stops itself, ends that. */
static void suspend(struct box *b, int signal, bool group)
{
	start_guardian(b); /* a stopped supervisor may be killed, too */
	if (!b->held)
		box_stop_all(b, true);
	console_suspend(b->streams.console, signal, group);
	if (!b->held)
		box_stop_all(b, false);
	if (b->paused)
		pause_cpu(b, true);
	/* where signals hold it, the one that ends that continues the command as well */
	if (!b->held || !b->stopped_by_init)
		box_tell_init(b, GUEST_SIGNAL, SIGCONT);
}

/* Signals that are about jobs and terminals. A terminal inside tells its own processes of its
 * size. */
static bool on_job_signal(struct box *b, int signal)
{
	if (signal == SIGTSTP || signal == SIGTTIN)
		suspend(b, signal, false);
	else if (signal == SIGCONT && b->streams.console)
		console_resume(b->streams.console);
	else if (signal == SIGWINCH && b->streams.console)
		console_resize(b->streams.console);
	else
		return signal == SIGCONT;
	return true;
}

static void pass_signal(struct box *b, int signal, uint64_t now)
{
	box_tell_init(b, GUEST_SIGNAL, signal);
	if (box_ends_run((uint32_t)signal)) {
		b->forwarded = signal;
		if (signal != SIGINT) /* an interrupt may be the command's own business */
			b->kill_at_ms = now + GRACE_MS;
	}
}

static void on_signal(struct box *b, uint64_t now)
{
	struct signalfd_siginfo info;

	if (read(b->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGXFSZ || info.ssi_signo == SIGTTOU)
		return; /* of our own writing, which has failed and says so */
	if (on_job_signal(b, (int)info.ssi_signo))
		return;
	if (info.ssi_signo == SIGHUP && b->forwarded == SIGHUP)
		return; /* the kernel and the shell both say it */
	if (b->forwarded && info.ssi_signo != SIGWINCH)
		box_kill(b); /* asked twice */
	else if (b->serve && box_ends_run(info.ssi_signo))
		box_stop(b, GRACE_MS);
	else
		pass_signal(b, (int)info.ssi_signo, now);
}

static void look_at_limits(struct box *b)
{
	struct usage *u = &b->result->usage;
	bool suspect;
	enum limit l;

	/* first what fills up quickest: a disk */
	suspect = b->watch && !b->held && watch_tick(b->watch, u);
	/* reading that takes its time where much is going on */
	if (!u->hit[LIMIT_DISK] && b->run.cgroup && io_now_ms() >= b->usage_at_ms) {
		cgroup_usage(b->run.cgroup, u);
		b->usage_at_ms = io_now_ms() + USAGE_MS;
	}
	if (!b->asked_count && b->plan->spec->inner && b->plan->spec->inner->counts) {
		b->asked_count = true;
		box_tell_init(b, GUEST_COUNT, 0);
	}
	if (b->held)
		return; /* nothing moves, and nothing must make it move */
	if (suspect && !limits_stop(b->plan, u, &l)) {
		enum watch_still still = stop_to_look(b);

		if (!limits_stop(b->plan, u, &l)) /* else it is proven */
			watch_confirm(b->watch, u, still);
		if (limits_stop(b->plan, u, &l))
			box_kill(b); /* before it goes on */
		if (still != WATCH_MOVING)
			box_stop_all(b, false);
		else if (b->held_to_look)
			box_tell_stop(b, false);
		b->held_to_look = false;
		if (b->paused && still != WATCH_MOVING)
			pause_cpu(b, true);
	}
	if (limits_stop(b->plan, u, &l)) {
		end_by_limit(b, l);
		return;
	}
	if (b->watch && watch_wants_pause(b->watch) != b->paused) {
		b->paused = !b->paused;
		pause_cpu(b, b->paused);
	}
}

static void look_at_output(struct box *b)
{
	const struct plan_limit *output = &b->plan->limits[LIMIT_OUTPUT];

	if (output->value != POLICY_NONE && b->streams.out_bytes > output->value)
		end_by_limit(b, LIMIT_OUTPUT);
}

/* The host replaced a file that was protected or hidden: its mount died with it and is made
 * again. */
static void on_replaced(struct box *b)
{
	struct guard_undone undone[16];
	size_t count = guard_watch_read(b->guard_watch, undone, ARRAY_LEN(undone));
	struct ward_err e = { 0 };

	if (b->record && store_lost(b->record, b->plan->live->roots, b->plan->live->root_count) < 0)
		box_kill(b); /* a recovery after a kill would not know */
	if (!count)
		return;
	if (!b->held)
		box_stop_all(b, true);
	for (; count; count = guard_watch_read(b->guard_watch, undone, ARRAY_LEN(undone)))
		for (size_t i = 0; i < count; i++) {
			int r = b->engine->remount(b->plan, &b->run,
						   &b->plan->live->roots[undone[i].root],
						   undone[i].steps, undone[i].count, &e);

			if (r < 0) {
				strv_addf(&b->result->notes, "the run was ended: %s (%s)", e.why,
					  strerror(e.code));
				box_kill(b);
			}
		}
	if (!b->held)
		box_stop_all(b, false);
}

/* The command was stopped and no process inside could continue it: the supervisor stops, too.
 * The operator's terminal is gone: so is the run. */
static void look_at_console(struct box *b, uint64_t now)
{
	if (!b->streams.console)
		return;
	if (b->stopped && console_in_front(b->streams.console))
		suspend(b, SIGTSTP, true);
	b->stopped = false;
	if (console_hung_up(b->streams.console) && !b->forwarded)
		pass_signal(b, SIGHUP, now);
}

/* When the guardian is to start; 0: it was. To start a process takes milliseconds where every
 * processor writes. */
static uint64_t guardian_due_ms(const struct box *b)
{
	bool filling =
		!b->tried_guardian && b->watch && watch_is_urgent(b->watch, &b->result->usage);

	return b->tried_guardian
		       ? 0
		       : b->guardian_from_ms + GUARDIAN_AFTER_MS + (filling ? FILLING_MS : 0);
}

static void on_time(struct box *b, uint64_t now)
{
	if (b->deadline_ms && now >= b->deadline_ms && !b->limited)
		end_by_limit(b, LIMIT_TIMEOUT);
	if (b->kill_at_ms && now >= b->kill_at_ms) {
		box_kill(b);
		b->kill_at_ms = 0;
	}
	if (b->tick_at_ms && now >= b->tick_at_ms && !b->limited) {
		look_at_limits(b);
		b->tick_at_ms = box_is_empty(b) ? 0 : now + box_tick_ms(b);
	}
	if (guardian_due_ms(b) && now >= guardian_due_ms(b))
		start_guardian(b);
	if (follow_from_ms(b) && now >= follow_from_ms(b))
		start_follower(b);
	if (b->sample_at_ms && now >= b->sample_at_ms)
		box_report_sample(b, now);
	egress_on_time(b->egress, now, b->result);
	approve_on_time(b->approve, now);
	notify_on_time(b->notify, now);
	if (b->trim_at_ms && now >= b->trim_at_ms) {
		b->trim_at_ms = b->detached || box_is_quiet(b) ? 0 : now + TRIM_AFTER_MS;
		b->trim = true;
	}
}

static struct serve *server_of(const struct box *b)
{
	return b->serve ? b->serve : b->net_serve;
}

static int next_timeout(const struct box *b, uint64_t now)
{
	const uint64_t times[] = {
		b->deadline_ms,
		b->kill_at_ms,
		b->tick_at_ms,
		b->notify_at_ms,
		guardian_due_ms(b),
		follow_from_ms(b),
		server_of(b) ? serve_due_ms(server_of(b)) : 0,
		b->trim_at_ms,
		b->detached && !box_alarm_sample_ms(b)
			? 0
			: b->sample_at_ms, /* one that is left behind is not woken up for it */
		egress_due_ms(b->egress),
		approve_due_ms(b->approve),
		notify_due_ms(b->notify),
		names_due_ms(b->names)
	};
	int streams_ms = b->keeps_etc ? 0 : streams_wait_ms(&b->streams);
	uint64_t first = streams_ms >= 0 ? now + (uint64_t)streams_ms : UINT64_MAX;

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] && times[i] < first)
			first = times[i];
	if (first == UINT64_MAX)
		return -1;
	if (first <= now)
		return 0;
	return first - now > 3600000 ? 3600000 : (int)(first - now);
}

static void on_orders(struct box *b, uint64_t now)
{
	egress_handle_orders(b->egress);
	if (b->serve)
		b->trim_at_ms = now + TRIM_AFTER_MS; /* it was woken up */
}

enum {
	POLL_CONTROL,
	POLL_SIGNAL,
	POLL_PID,
	POLL_NOTIFY,
	POLL_GUARD,
	POLL_CGROUP,
	POLL_EGRESS,
	POLL_ORDERS,
	POLL_SECRETS,
	POLL_SSH,
	POLL_NAMES,
	POLL_CANARY,
	POLL_COMMANDS,
	POLL_PROPOSALS,
	POLL_CHILDREN,
	POLL_STDIO
};

/* The seccomp listener has something, or no process under it is left. */
static void on_notify(struct box *b, short revents, uint64_t now)
{
	if (b->notify_at_ms && now >= b->notify_at_ms)
		b->notify_at_ms = 0;
	if (revents & ~POLLIN) {
		notify_finish(b->notify, b->result);
		/* every process under the filter is gone: nothing will ask again */
		notify_destroy(b->notify);
		b->notify = NULL;
	} else if (revents) {
		unsigned wait_ms = notify_handle(b->notify, b->result);

		b->notify_at_ms = wait_ms ? now + wait_ms : 0;
	}
}

static void wait_for_any(struct box *b, struct pollfd *polled, size_t count, uint64_t now)
{
	int n = b->trim ? trim_memory_poll(polled, count, next_timeout(b, now))
			: poll(polled, count, next_timeout(b, now));

	if (n != 0 || !box_is_quiet(b)) /* else each look at the limits brings pages back */
		b->trim = false;
	if (n < 0)
		memset(polled, 0, count * sizeof(*polled)); /* EINTR: nothing is known */
	if (n > 0 && !b->detached)
		b->trim_at_ms = io_now_ms() + TRIM_AFTER_MS; /* it was woken up */
	if (n == 0 && b->keeps_etc) {                        /* no process waits for us */
		b->keeps_etc = false;
		plan_built(b->plan);
		plan_system_keep(b->plan->system);
	}
}

/* ward-secrets, ward-ssh-agent, a stand-in or ward-ask has something to say. */
static void on_creds(struct box *b, const struct pollfd *polled, struct serve *server)
{
	if (polled[POLL_COMMANDS].revents)
		box_commands_handle(b);
	if (polled[POLL_PROPOSALS].revents)
		box_proposals_handle(b);
	if (polled[POLL_CHILDREN].revents)
		children_handle(b->plan->live, b->result);
	if (polled[POLL_SECRETS].revents)
		secrets_handle(b->plan->live->secrets, b->result,
			       server ? serve_secret_answered : NULL, server);
	if (polled[POLL_SSH].revents)
		ssh_handle(b->plan->live->ssh, b->result);
	if (server && b->egress)
		serve_net_look(server);
	box_proposals_look(b);
}

static void on_clients(struct box *b, struct serve *server, struct pollfd *clients, size_t count,
		       uint64_t now)
{
	if (server && serve_handle(server, clients, count, now) && b->serve)
		b->trim_at_ms = now + TRIM_AFTER_MS;
}

/* What the supervisor itself waits for; a descriptor of -1 is not waited for. */
static void fill_polls(struct box *b, struct pollfd *polled)
{
	const struct pollfd own[POLL_STDIO] = {
		[POLL_CONTROL] = { .fd = b->run.control_fd, .events = POLLIN },
		[POLL_SIGNAL] = { .fd = b->signal_fd, .events = POLLIN },
		[POLL_PID] = { .fd = b->run.pid_fd, .events = POLLIN },
		[POLL_NOTIFY] = { .fd = b->notify && !b->notify_at_ms ? notify_fd(b->notify) : -1,
				  .events = POLLIN },
		[POLL_GUARD] = { .fd = b->guard_watch ? guard_watch_fd(b->guard_watch) : -1,
				 .events = POLLIN },
		[POLL_CGROUP] = { .fd = b->run.cgroup && b->tried_guardian
						? cgroup_event_fd(b->run.cgroup)
						: -1,
				  .events = POLLIN | POLLPRI },
		[POLL_EGRESS] = { .fd = egress_fd(b->egress), .events = POLLIN },
		[POLL_ORDERS] = { .fd = egress_orders_fd(b->egress), .events = POLLIN },
		[POLL_SECRETS] = { .fd = secrets_fd(b->plan->live->secrets), .events = POLLIN },
		[POLL_SSH] = { .fd = ssh_fd(b->plan->live->ssh), .events = POLLIN },
		[POLL_NAMES] = { .fd = names_fd(b->names), .events = POLLIN },
		[POLL_CANARY] = { .fd = box_canary_fd(b), .events = POLLIN },
		[POLL_PROPOSALS] = { .fd = box_proposals_fd(b), .events = POLLIN },
		[POLL_COMMANDS] = { .fd = box_commands_fd(b), .events = POLLIN },
		[POLL_CHILDREN] = { .fd = children_fd(b->plan), .events = POLLIN },
	};

	memcpy(polled, own, sizeof(own));
}

void box_watch_once(struct box *b)
{
	struct pollfd polled[POLL_STDIO + STREAMS_POLLS + SERVE_POLL_MAX] = { 0 };
	size_t relays = streams_poll(&b->streams, polled + POLL_STDIO);
	struct pollfd *clients = polled + POLL_STDIO + relays;
	/* before anything may make one: its polls are counted here */
	struct serve *server = server_of(b);
	size_t client_count = server ? serve_poll(server, clients) : 0;
	uint64_t now = io_now_ms();

	fill_polls(b, polled);
	wait_for_any(b, polled, POLL_STDIO + relays + client_count, now);
	now = io_now_ms();
	on_notify(b, polled[POLL_NOTIFY].revents, now);
	if (polled[POLL_EGRESS].revents)
		egress_handle(b->egress, b->result);
	if (polled[POLL_NAMES].revents || (names_due_ms(b->names) && now >= names_due_ms(b->names)))
		names_handle(b->names, now, b->result);
	on_creds(b, polled, server);
	if (polled[POLL_ORDERS].revents && egress_orders_fd(b->egress) >= 0)
		on_orders(b, now);
	confine(b);
	if (polled[POLL_SIGNAL].revents)
		on_signal(b, now);
	if (polled[POLL_GUARD].revents)
		on_replaced(b);
	if (polled[POLL_CGROUP].revents) {
		cgroup_event_read(b->run.cgroup, &b->result->usage);
		look_at_limits(b);
	}
	streams_move(&b->streams, polled + POLL_STDIO, relays);
	on_clients(b, server, clients, client_count, now);
	look_at_output(b);
	if (polled[POLL_CONTROL].revents)
		box_on_control(b);
	look_at_console(b, now);
	if (polled[POLL_PID].revents)
		b->dead = b->gone = true;
	on_time(b, now);
	box_alarm_act(b);
	box_keep_record(b);
}

/*
 * The supervisor of one run. In: an engine and a plan. Out: a filled struct result. Runs as the
 * user, outside every namespace of the sandbox, and is the only holder of the control socket: when
 * this process goes, so does the sandbox.
 *
 * box_run() is the whole life in order: start, put on record, allow the exec, watch (box_loop.c),
 * end, count, sweep (box_end.c). Nothing here decides what the sandbox may do; that was decided by
 * the plan.
 */
#include "run/box_commands.h"
#include "run/box_proposals.h"
#include "run/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "event/event.h"
#include "limit/limits.h"
#include "observe/provenance.h"
#include "plan/inner.h"
#include "plan/plan.h"
#include "run/box.h"
#include "run/children.h"
#include "run/detach.h"
#include "run/serve.h"

#define SLICE_NS 100000

/* From the first moment on: a signal while the sandbox is being built is passed on when it is
 * there. */
static void block_signals(struct box_early *early)
{
	static const int passed_on[] = { SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1,
					 SIGUSR2, SIGWINCH, SIGPIPE, SIGXFSZ, SIGTSTP,
					 SIGCONT, SIGTTIN,  SIGTTOU };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &early->run.caller_mask);
	early->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* On record before anything is made for it that outlives us: whatever happens, the run can be
 * finished. Where all of it ends with us (no cgroup, no layer of a review, no directory of the
 * Landlock level), it is enough that the record is there before the command runs, and the sandbox
 * is built meanwhile; so it is with a cgroup that was made before the plan, which `ward recover`
 * finds without a record. */
static int put_on_record(struct box *b, bool built, struct ward_err *e)
{
	const struct plan *p = b->plan;
	auto_strv dirs = { 0 }, files = { 0 };

	if (b->engine->add_dirs)
		b->engine->add_dirs(b->plan, &dirs);
	if (b->run.cgroup)
		cgroup_dirs(b->run.cgroup, &dirs);
	else
		cgroup_planned_dirs(b->plan, &dirs);
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].from_policy && p->mounts[i].writable && p->mounts[i].is_file &&
		    !p->mounts[i].volume)
			strv_add(&files, p->mounts[i].source);
	if (files.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (b->record || (!built && (dirs.len == 0 || b->run.cgroup) && !p->review && !p->net.on &&
			  p->level != LEVEL_LANDLOCK))
		return 0;
	return store_begin(p->spec->run_id, p->workspace, p->live->roots, p->live->root_count,
			   &files, &dirs, &b->record, e);
}

static int begin_review(struct box *b, struct ward_err *e)
{
	int r = review_begin(b->plan, &b->review, &b->result->notes, b->progress, e);

	if (r < 0)
		return r;
	b->run.layer_fd = review_layer_fd(b->review);
	b->run.layer_path = review_layer_path(b->review);
	b->run.layer_copy = review_is_copy(b->review);
	return 0;
}

/* Looks come in time though the sandbox keeps every processor busy: a thread that asks for short
 * slices (Linux 6.12 and later) is scheduled sooner after it has slept, and gets no more than
 * before. */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 || attr.policy != SCHED_OTHER)
		return;
	attr.runtime = SLICE_NS;
	(void)!syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* One tree that may be written; takes fd. own: ward's, so that what is too much is removed. */
static int add_tree(struct box *b, int fd, bool own, struct ward_err *e)
{
	if (fd < 0)
		return 0; /* a file, whose size has its own limit */
	if (b->disk_count == BOX_DISK_ROOTS_MAX) {
		close(fd);
		ward_fail(e, E2BIG,
			  "the policy has more than %d writable directories, and the disk limit "
			  "applies to each",
			  BOX_DISK_ROOTS_MAX);
		return ward_remedy(e, "mount a parent directory that contains several of them");
	}
	b->disk_own[b->disk_count] = own;
	b->disk_fds[b->disk_count++] = fd;
	return 0;
}

/* Every tree of the host's that may be written: the guarded roots, the volumes, the layer of a
 * review. */
static int open_trees(struct box *b, struct ward_err *e)
{
	const struct plan *p = b->plan;
	int r = 0;

	for (size_t i = 0; i < p->mount_count && r == 0; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND && m->writable && !m->review)
			r = add_tree(b, open(m->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				     m->volume, e);
	}
	if (r == 0 && b->review)
		r = add_tree(b, fcntl(review_upper_fd(b->review), F_DUPFD_CLOEXEC, 0), true, e);
	return r;
}

/* Without a network the one socket is for lookups. Without memory they are not answered. */
static void take_names(struct box *b)
{
	if (b->egress || b->run.net_count != 1)
		return;
	b->run.net_count = 0;
	b->names = names_create(b->run.net_fds[0].fd);
}

static int begin_watching(struct box *b, struct ward_err *e)
{
	const struct plan *p = b->plan;
	struct watch_config config = {
		.plan = p,
		.init_pid = running_inside(&b->run),
		.proc_fd = b->run.proc_fd,
		.tmpfs_fds = b->run.tmpfs_fds,
		.tmpfs_count = b->run.tmpfs_count,
		.disk_fds = b->disk_fds,
		.disk_own = b->disk_own,
		.own_network = b->result->layers[LAYER_NET] == LAYER_IN_FORCE
	}; /* asked of /proc it would depend on the moment */
	int r = 0;

	if (p->spec->policy.audit_level <= AUDIT_WRITES && b->result->events) {
		b->result->provenance =
			provenance_create(p, b->review ? review_upper_fd(b->review) : -1);
		if (!b->result->provenance)
			return ward_fail(e, ENOMEM, "out of memory");
	}
	take_names(b);
	/* until there is a listener, denied calls wait */
	if (b->run.notify_fd >= 0)
		r = notify_create(take_fd(&b->run.notify_fd), p, &b->notify, e);
	if (b->notify)
		notify_listen(b->notify, &b->listeners);
	box_approve_files(b);
	if (p->watch)
		ask_for_short_slices();
	if (r == 0 && p->watch)
		r = open_trees(b, e);
	config.disk_count = b->disk_count;
	if (r == 0 && p->watch)
		r = watch_create(&config, &b->watch, e);
	if (p->watch || b->run.cgroup)
		b->tick_at_ms = io_now_ms() + WATCH_TICK_MS;
	return r;
}

/* The command's 0-2: the caller's, or those of a sandbox that is left to itself. */
static int prepare_streams(struct box *b, struct ward_err *e)
{
	int r;

	if (!b->detached)
		return streams_prepare(&b->streams, b->plan, b->engine->terminals, e);
	if (SCAN_MODE(&b->plan->spec->policy, b->plan->spec->policy.cred_scan_output) < SCAN_LOG) {
		ward_fail(e, ENOTSUP,
			  "credentials.scan_output cannot stop the output of a detached sandbox");
		return ward_remedy(e, "run it in the foreground, or set credentials.scan_output: "
				      "log");
	}
	b->streams = (struct streams){ .inside = { -1, -1, -1 }, .unread_fd = -1 };
	r = boxes_enter(b->plan, b->detached->name, &b->detached->entry, e);
	if (r == 0 && b->plan->spec->tty && !b->engine->terminals) {
		r = ward_fail(e, ENOTSUP, "-t: there are no terminals inside without namespaces");
		ward_remedy(e, "remove -t, or see ward doctor");
	}
	return r < 0 ? r
		     : serve_create(b, &b->detached->entry, b->plan->spec->tty && !box_is_idle(b),
				    &b->serve, b->streams.inside, e);
}

/* What a supervisor opens once its sandbox runs must not be what stops it. */
static int check_descriptors(struct ward_err *e)
{
	enum { PLENTY = 64, NEEDED = 24 };
	struct rlimit limit;
	auto_fd next = -1;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= PLENTY)
		return 0;
	next = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (next >= 0 && (rlim_t)next + NEEDED <= limit.rlim_cur)
		return 0;
	ward_fail(e, EMFILE, "too few file descriptors to supervise a sandbox");
	return ward_remedy(e, "ulimit -n %d", PLENTY);
}

/* Allows the exec of a sandbox that is built: its run is on record, and no panic is in force. */
static int release(struct box *b, struct ward_err *e)
{
	auto_fd ask_fd = -1;
	int r = put_on_record(b, true, e);

	if (r == 0)
		r = event_begin(b->result->events, b->plan->spec->run_id, e);
	if (r == 0 && b->record)
		r = store_started(b->record, b->run.init_pid, b->run.pid_fd, e);
	if (r == 0 && b->record)
		r = store_check_panic(b->record, e);
	if (r == 0)
		r = box_canary_arm(b, e);
	if (r == 0)
		r = b->engine->release(b->plan, &b->run, b->result, e);
	if (r == 0 && b->egress)
		r = egress_take(b->egress, &b->run, &ask_fd, e);
	box_proposals_listen(b, take_fd(&ask_fd));
	commands_mounted(b->plan);
	children_mounted(b->plan);
	inside_socket_mounted(b->plan->live->proposals);
	return r;
}

static int start(struct box *b, struct ward_err *e)
{
	uint64_t began = timing_now(b->run.timing);
	int r = prepare_streams(b, e);

	if (b->plan->limits[LIMIT_OUTPUT].value != POLICY_NONE)
		b->streams.most = b->plan->limits[LIMIT_OUTPUT].value;
	if (r == 0)
		r = check_descriptors(e);
	if (b->streams.terminal)
		console_look(&b->run.shape);
	if (r == 0 && b->signal_fd < 0)
		r = ward_fail(e, EMFILE,
			      "cannot receive signals: no file descriptors left (ulimit -n)");
	if (r == 0)
		r = b->plan->review ? begin_review(b, e) : 0;
	if (r == 0)
		r = put_on_record(b, false, e);
	timing_end(b->run.timing, "record the run", began);
	began = timing_now(b->run.timing);
	if (r == 0 && b->plan->net.on)
		r = egress_begin(b->plan, b->engine, &b->egress, e);
	if (r == 0)
		r = box_approve_begin(b, e);
	if (r == 0)
		r = box_commands_begin(b, e);
	if (r == 0)
		r = box_proposals_begin(b, e);
	/* before anything is mounted, or a name that is changed in that moment is missed */
	if (r == 0)
		r = guard_watch_create(b->plan->live->roots, b->plan->live->root_count,
				       &b->guard_watch, &b->result->notes, e);
	if (r == 0)
		r = b->engine->start(b->plan, b->streams.inside, &b->run, e);
	streams_started(&b->streams);
	timing_end(b->run.timing, "prepare and send the plan", began);
	began = timing_now(b->run.timing);
	if (r == 0)
		r = release(b, e);
	timing_end(b->run.timing, "wait until it is built", began);
	if (b->streams.no_terminal)
		strv_add(&b->result->notes,
			 "no terminal inside, only pipes: this engine does not support one");
	if (r == 0 && b->run.master_fd >= 0 && b->serve)
		serve_open_terminal(b->serve, take_fd(&b->run.master_fd),
				    take_fd(&b->run.slave_fd));
	if (r == 0 && b->run.master_fd >= 0)
		r = streams_open_terminal(&b->streams, b->plan, take_fd(&b->run.master_fd),
					  take_fd(&b->run.slave_fd), e);
	if (r == 0)
		r = box_prompt_begin(b, e);
	if (r == 0)
		r = begin_watching(b, e);
	/* a runtime takes longer to build than most commands take; ward-outer sees our end
	 * meanwhile */
	if (b->run.inside_pid)
		b->guardian_from_ms = io_now_ms();
	if (r == 0)
		box_report_start(b);
	return r;
}

void box_begin(struct box_early *early, const struct engine *engine, bool unlimited,
	       struct timing *timing)
{
	*early = (struct box_early){ .engine = engine,
				     .signal_fd = -1,
				     .run = { .pid_fd = -1,
					      .mounts_fd = -1,
					      .control_fd = -1,
					      .notify_fd = -1,
					      .proc_fd = -1,
					      .master_fd = -1,
					      .slave_fd = -1,
					      .layer_fd = -1,
					      .unlimited = unlimited,
					      .timing = timing } };
	timing->origin_ns = timing_now(timing);
	block_signals(early);
	if (engine->prelaunch)
		engine->prelaunch(&early->run, &early->system);
	timing_end(timing, "begin", timing->origin_ns);
}

void box_abandon(struct box_early *early)
{
	while (early->run.reaper_pid > 0 && waitpid(early->run.reaper_pid, NULL, 0) < 0 &&
	       errno == EINTR)
		;
	if (early->engine && early->engine->finish)
		early->engine->finish(&early->run);
	cgroup_destroy(early->run.cgroup);
	plan_system_free(early->system);
	own_close_fd(&early->signal_fd);
	*early = (struct box_early){ .signal_fd = -1 };
}

/* The plan wants another engine than the one that has begun, or another cgroup: then the child and
 * its cgroup go. */
static void drop_unsuitable(struct box_early *early, const struct engine *engine,
			    const struct plan *p)
{
	struct running *run = &early->run;
	bool same = early->engine == engine && (!run->cgroup || cgroup_suits(run->cgroup, p));

	if (early->engine && !same && early->engine->finish)
		early->engine->finish(run);
	if (!same) {
		cgroup_destroy(run->cgroup);
		run->cgroup = NULL;
	}
	early->engine = NULL;
}

/* Who leaves a sandbox running shall not learn from its log that there is no such command. On a
 * terminal the answer comes too early to tell. */
static bool is_running(struct box *b)
{
	detach_leave();
	if (b->detached->attached || b->run.control_fd < 0)
		return true;
	box_tell_init(b, GUEST_ASK, 0);
	while (!b->dead && !b->answered && !b->failed)
		box_watch_once(b);
	while (b->dead && !b->failed && box_on_control(b))
		; /* it ended at once: its last messages say why */
	return !b->failed;
}

static void refuse(struct result *r, const struct ward_err *e)
{
	r->refused = true;
	r->error = *e;
	r->exit_code = 125;
}

void box_run(const struct engine *engine, const struct plan *p, struct box_early *early,
	     struct result *r)
{
	struct box b = { .engine = engine,
			 .plan = p,
			 .result = r,
			 .signal_fd = take_fd(&early->signal_fd),
			 .guardian = { .end_fd = -1 },
			 .detached = early->detached,
			 .net_entry = NO_BOX_ENTRY,
			 .progress = early->progress };
	struct timing *timing = early->run.timing;
	struct ward_err e = { 0 };
	uint64_t began;

	drop_unsuitable(early, engine, p);
	listeners_init(&b.listeners);
	b.run = early->run; /* it is ours from here on */
	b.run.asked = b.detached != NULL;
	memcpy(r->run_id, p->spec->run_id, sizeof(r->run_id));
	r->engine = p->spec->inner ? p->spec->inner->name : engine->name;
	r->inner = p->spec->inner ? p->spec->inner->help : NULL;
	b.started_ms = b.guardian_from_ms = io_now_ms();
	if (p->limits[LIMIT_TIMEOUT].value != POLICY_NONE)
		b.deadline_ms = b.started_ms + p->limits[LIMIT_TIMEOUT].value;
	if (box_alarm_begin(&b, &e) < 0 || box_canary_begin(&b, &e) < 0 || start(&b, &e) < 0) {
		refuse(r, &e);
	} else {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		if (b.detached && is_running(&b)) {
			detach_ready(b.detached);
			plan_built(p);
			b.trim_at_ms = io_now_ms() + 100;
		}
		b.keeps_etc = p->system != NULL; /* while the command runs */
		began = timing_now(timing);
		while (!b.dead)
			box_watch_once(&b);
		timing_end(timing, "the command", began);
	}
	began = timing_now(timing);
	box_reap(&b);
	if (!r->refused && !b.exited && engine->start_error &&
	    engine->start_error(&b.run, &r->error)) {
		r->refused = true;
		r->exit_code = 125;
	}
	if (!r->refused)
		box_judge(&b);
	if (b.detached && !b.detached->started) /* no caller has its id */
		r->refused = true;
	box_finish(&b);
	/* for box_abandon(), when all else is done */
	early->run = (struct running){ .reaper_pid = b.run.reaper_pid };
	timing_end(timing, "end, sweep, record", began);
	timing_sort(timing);
	r->duration_ms = io_now_ms() - b.started_ms;
	box_report_end(&b);
	box_canary_end(&b);
	box_alarm_end(&b);
	if (b.keeps_etc) /* it was over so soon, or never idle */
		plan_system_keep(p->system);
}

/*
 * The end of a run. In: struct box whose sandbox is dead or shall be. Out: struct result; nothing
 * of the run is left but its quarantine. In order: reap, judge, finish.
 */
#include "run/changed_scan.h"
#include "run/box_commands.h"
#include "run/box_proposals.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "gitview/git_run.h"
#include "limit/limits.h"
#include "observe/provenance.h"
#include "plan/plan.h"
#include "run/box.h"
#include "run/children.h"
#include "run/detach.h"
#include "run/serve.h"
#include "state/runs.h"

#define DRAIN_MS 2000

/* The sandbox is dead or dies now; what it used is counted. */
void box_reap(struct box *b)
{
	struct rusage used = { 0 };
	struct usage *u = &b->result->usage;
	uint64_t cpu_ms;
	int status;

	if (b->run.init_pid <= 0)
		return;
	if (!b->gone || b->engine->kill)
		box_kill(b);
	while (wait4(b->run.init_pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	b->run.init_pid = 0; /* the number may be another process's from now on */
	if (b->engine->on_reaped)
		b->engine->on_reaped(&b->run);
	if (b->run.inside_pid)
		/* of a process around the sandbox: GUEST_USED has it */
		used = (struct rusage){ 0 };
	if (b->watch) /* it may have ended by itself, or by SIGXFSZ, within a tick */
		watch_end(b->watch, u, b->run.cgroup ? WATCH_FROZEN : WATCH_SIGNALLED, b->limited);
	while (b->run.control_fd >= 0 && box_on_control(b))
		; /* its last messages, however many */
	if (b->run.cgroup)
		cgroup_usage(b->run.cgroup, u);
	cpu_ms = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
		 (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
	if (u->cpu_ms < cpu_ms) /* the last count is the largest */
		u->cpu_ms = cpu_ms;
	if (u->memory_peak_bytes < (uint64_t)used.ru_maxrss * 1024)
		u->memory_peak_bytes = (uint64_t)used.ru_maxrss * 1024;
}

/* there: the host has such a program, and the sandbox's view has not. */
static void report_failed_exec(struct result *r, const char *name, bool there)
{
	struct ward_event v = event_make(EVENT_EXEC, ACTION_DENY, name);

	event_text(&v, FIELD_WHY, r->error.why);
	event_text(&v, FIELD_REMEDY, r->error.remedy[0] ? r->error.remedy : NULL);
	event_text(&v, FIELD_PATH, there ? name : NULL);
	event_emit(r->events, &v);
}

/* A file of the workspace that lacks nothing but the mode. */
static bool is_not_executable(const struct plan *p, const char *name)
{
	auto_free char *path = strchr(name, '/') ? path_join(p->cwd, name) : NULL;
	struct stat st;

	return path && text_is_plain(name) && path_is_beneath(path, p->workspace) &&
	       lstat(path, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 0111);
}

static void explain_failed_exec(struct box *b)
{
	struct result *r = b->result;
	const char *name = plan_started(b->plan)[0];
	bool there;

	r->exit_code = b->failed_code;
	ward_fail(&r->error, b->failed_errno, "%s", strerror(b->failed_errno));
	ward_wrap(&r->error, "running %s inside", name);
	there = b->failed_code == 127 && box_suggest_mount(b->plan, name, &r->error);
	if (b->failed_errno == EACCES && b->plan->level == LEVEL_LANDLOCK && name[0] == '/' &&
	    !path_is_beneath(name, b->plan->workspace))
		/* what the plan does not grant is there, and may not be executed */
		there = box_suggest_mount(b->plan, name, &r->error);
	if (b->failed_code == 127 && box_known_program(name))
		ward_remedy(&r->error, "%s", box_known_program(name));
	if (b->failed_errno == EACCES && is_not_executable(b->plan, name))
		ward_remedy(&r->error, "make it executable: chmod +x %s", name);
	report_failed_exec(r, name, there);
}

/* A file that is as long as the limit was cut by the kernel (RLIMIT_FSIZE), which the watch never
 * sees as too much. */
static void note_full_disk(struct box *b)
{
	const struct plan_limit *limit = &b->plan->limits[LIMIT_DISK];
	struct usage *u = &b->result->usage;

	if (limit->value != POLICY_NONE && limit->held_by == HELD_WATCH &&
	    u->disk_bytes >= limit->value)
		u->hit[LIMIT_DISK] = true;
}

void box_judge(struct box *b)
{
	struct result *r = b->result;
	enum limit l;

	if (b->failed) {
		explain_failed_exec(b);
		return;
	}
	/* what is on disk is there still: an end in time is no way out. What a process held is gone
	 * with it */
	if (!b->limited && limits_stop(b->plan, &r->usage, &l) &&
	    (l == LIMIT_DISK || l == LIMIT_INODES || !(b->exited && WIFEXITED(b->status)))) {
		b->limited = true;
		b->limit = l;
	}
	note_full_disk(b);
	if (b->unrecorded) {
		r->exit_code = 125;
	} else if (b->limited) {
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

#define CANNOT_EXECUTE 126

/* The inner runtime's runner started the command, and reported its exit status alone. */
static void explain_inner_exec(struct box *b)
{
	const struct plan *p = b->plan;
	const char *name = p->argv ? p->argv[0] : NULL;
	struct ward_event v = event_make(EVENT_EXEC, ACTION_DENY, name);
	auto_buf what = { 0 }, remedy = { 0 };

	if (!p->spec->inner || b->result->exit_code != CANNOT_EXECUTE || !name ||
	    !is_not_executable(p, name))
		return;
	buf_printf(&what, "program %s", name);
	buf_printf(&remedy, "make it executable: chmod +x %s", name);
	event_text(&v, FIELD_WHY, "its mode does not allow executing it");
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_emit(b->result->events, &v);
	if (!what.failed && !remedy.failed)
		result_deny(b->result, buf_text(&what), "its mode does not allow executing it",
			    buf_text(&remedy));
}

/* Why the command failed, as far as its words and its last output tell. After the output is
 * drained. */
static void explain_failure(struct box *b)
{
	if (b->result->refused || b->failed)
		return;
	b->told = b->result->loud.len;
	listeners_finish(&b->listeners, b->result);
	explain_inner_exec(b);
	box_hear(b);
	box_hear_variables(b);
	box_explain_called(b);
	box_guess(b);
}

static void sweep(struct box *b)
{
	struct result *r = b->result;
	struct ward_err e = { 0 };

	for (size_t i = 0; i < b->plan->live->root_count; i++)
		for (size_t k = 0; k < b->plan->live->roots[i].notes.len; k++)
			strv_add(&r->loud, b->plan->live->roots[i].notes.items[k]);
	if (b->run.trees_busy) {
		strv_add(&r->notes,
			 "the sandbox passed an open file of its trees to another sandbox, which "
			 "can still write to it: check again when that has ended");
		ward_fail(&r->error, EBUSY,
			  "the sandbox passed an open file of its trees to another sandbox, which "
			  "can still write to it");
		ward_remedy(&r->error, "stop the other sandboxes that share a directory or home "
				       "with this one, then check the workspace before you use it");
	}
	if (!b->record || store_sweep(b->record, b->plan->live->roots, b->plan->live->root_count,
				      &r->quarantine, &r->news, &e) >= 0)
		return;
	strv_addf(&r->notes, "the sweep for planted files is incomplete: %s: %s", e.what, e.why);
	if (r->error.code)
		return;
	r->error = e; /* said even if no events are read */
	ward_wrap(&r->error, "the sweep for planted files is incomplete");
	ward_remedy(&r->error, "check the workspace before you use it; the next `ward run` or "
			       "`ward recover` sweeps it again");
}

/* The reader gets all that the command wrote, however slowly it reads, unless the run is to end: by
 * a limit, a signal or its time. */
static void drain(struct box *b)
{
	uint64_t soon = io_now_ms() + DRAIN_MS,
		 until = b->deadline_ms ? b->deadline_ms : UINT64_MAX;
	struct signalfd_siginfo info = { 0 };

	if (b->limited || b->forwarded || until < soon)
		until = soon;
	while (streams_drain(&b->streams, until, b->signal_fd) > 0 ||
	       streams_wait_scan(&b->streams, until, b->signal_fd) > 0)
		if (read(b->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
		    box_ends_run(info.ssi_signo))
			until = 0;
	output_scan_end(&b->streams.scan, b->result);
}

static void close_all(int **fds)
{
	for (; *fds; fds++) {
		own_close_fd(*fds);
		**fds = -1;
	}
}

/* git has reported that it could not write; this says why, and how to go on. */
static void explain_git(struct box *b)
{
	for (size_t i = 0; i < b->plan->live->root_count; i++)
		for (size_t k = 0; k < b->plan->live->roots[i].refused.len; k++) {
			const char *path = b->plan->live->roots[i].refused.items[k];
			struct ward_event v = event_make(EVENT_FILE_GUARD, ACTION_DENY, path);
			auto_buf what = { 0 }, remedy = { 0 };

			buf_printf(&what, "writing %s", path);
			buf_puts(&remedy, "review the changes before they reach the workspace "
					  "(--review), or remove it from the protected names");
			/* else it would be something else in a shell than here */
			if (text_is_plain(path))
				buf_printf(&remedy, ": --set 'filesystem.protect=[\"!%s%s\"]'",
					   strchr(path, '/') ? "" : "/", path);
			event_text(&v, FIELD_WHY,
				   "it is protected, because it controls what git runs with your "
				   "rights");
			event_text(&v, FIELD_REMEDY, buf_text(&remedy));
			event_emit(b->result->events, &v);
			result_explain(b->result, buf_text(&what),
				       "it is protected, because it controls what git runs with "
				       "your rights",
				       buf_text(&remedy));
		}
}

/* The reaper waits for a thread of the kernel's, which may have been given the supervisor's
 * processor: it is done in a moment, and the others go on meanwhile. */
static void yield_to_reaper(const struct box *b)
{
	if (b->run.reaper_pid > 0)
		sched_yield();
}

void box_finish(struct box *b)
{
	children_stop(b->plan->live, b->result); /* before the sweep: they write to its trees */
	drain(b);
	b->result->midline = tail_is_open(&b->streams.tail);
	explain_failure(b);
	if (b->serve) {
		serve_drain(b->serve);
		serve_close(b->serve);
		b->detached->serve = b->serve; /* until the result is kept */
	}
	serve_destroy(b->net_serve);
	b->net_serve = NULL; /* what still waits is withdrawn below */
	runs_leave(&b->net_entry);
	streams_finish(&b->streams);
	egress_end(b->egress, b->result);
	box_approve_end(b);
	box_commands_end(b);
	box_proposals_end(b);
	for (size_t i = 0; i < b->run.net_count; i++) /* it never came to the gateway */
		close(b->run.net_fds[i].fd);
	names_destroy(b->names);
	notify_finish(b->notify, b->result);
	notify_destroy(b->notify);
	listeners_close(&b->listeners);
	provenance_tell(b->result->provenance, b->result, true);
	provenance_destroy(b->result->provenance);
	b->result->provenance = NULL;
	watch_destroy(b->watch);
	guard_watch_drain(b->guard_watch);
	explain_git(b);
	guard_watch_destroy(b->guard_watch);
	cgroup_destroy(b->run.cgroup);
	yield_to_reaper(b);
	/* before the sweep, which looks at what points there */
	git_run_end(b->plan, b->git, b->result);
	sweep(b);
	changed_scan(b->plan, b->review ? review_upper_fd(b->review) : -1, b->result);
	yield_to_reaper(b);
	store_end(b->record);
	yield_to_reaper(b);
	review_end(b->review, !b->result->refused);
	sidecar_dismiss(&b->guardian);
	for (size_t i = 0; i < b->disk_count; i++)
		close(b->disk_fds[i]);
	for (size_t i = 0; i < b->run.tmpfs_count; i++)
		close(b->run.tmpfs_fds[i]);
	close_all((int *[]){ &b->run.mounts_fd, &b->run.proc_fd, &b->run.notify_fd,
			     &b->run.control_fd, &b->run.pid_fd, &b->signal_fd, NULL });
	if (b->engine->finish)
		b->engine->finish(&b->run);
	yield_to_reaper(b);
}

/*
 * The native engine as the supervisor sees it. native_prelaunch() begins what no policy changes,
 * with cgroup v2 in a cgroup that has no limits yet; native_start() looks whether the plan agrees
 * with it (another id, another place to build in, or another cgroup to be born in need a new
 * child), prepares the rest and sends the plan, with the descriptors that go inside, and sees to it
 * that the cgroup has its limits; native_release() allows the exec and receives the descriptors
 * that come out. What the child does meanwhile is child.c; docs/start.md shows all of
 * it together.
 */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "base/io.h"
#include "base/path.h"
#include "engine/native/native.h"
#include "start_tricks.h"
#include "observe/observe.h"
#include "event/result.h"
#include "host/facts.h"
#include "limit/limits.h"
#include "plan/plan.h"

/* Where limits are held by cgroup v2 the sandbox is born in its cgroup, which is cheap there; so it
 * cannot begin early, unless there are none or the cgroup can be made early, too. */
static bool is_born_in_cgroup(void)
{
	struct statfs fs;

	return statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC &&
	       cgroup_probe() == CGROUP_V2;
}

static void native_prelaunch(struct running *run, struct plan_system **ret_system)
{
	/* whatever is wrong is found and said again by native_start() */
	struct ward_err later = { 0 };
	struct plan_ids ids;
	struct facts facts = { .uid = geteuid(), .gid = getegid() };
	int into, r;

	if (!TRICK_EARLY_CHILD)
		return;
	run->cgroup = run->unlimited ? NULL : cgroup_begin();
	into = run->cgroup ? cgroup_clone_fd(run->cgroup) : -1;
	if (into < 0 && !run->unlimited && is_born_in_cgroup())
		return;
	plan_expected_ids(&facts, &ids);
	r = native_launch(run, facts.uid == 0 ? NULL : &ids, native_choose_base(NULL), into, NULL,
			  &later);
	/* root's ids are among them; the child has other things to do first */
	facts_read(&facts);
	facts.cgroup = run->cgroup ? CGROUP_V2 : CGROUP_NONE;
	if (r == 0)
		native_recheck_idle(run);
	plan_expected_ids(&facts, &ids);
	if (r == 0 && facts.uid == 0)
		r = native_send_ids(run, &ids, &later);
	if (r == 0)
		r = plan_system_read(&facts, ret_system, &later);
	if (r == 0) {
		native_recheck_idle(run);
		native_send_system(run, *ret_system);
	} else {
		native_discard(run);
		cgroup_destroy(run->cgroup);
		run->cgroup = NULL;
	}
}

/* Whether the child that builds already builds what the plan wants. */
static bool fits(const struct running *run, const struct plan *p)
{
	const struct native_memory *m = run->child;

	if (!m || m->child.system != p->system || m->child.ids.mode != p->ids.mode ||
	    m->child.ids.host_uid != p->ids.host_uid || m->child.ids.host_gid != p->ids.host_gid)
		return false;
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND &&
		    path_is_beneath(p->mounts[i].source, m->child.base))
			return false;
	return true;
}

bool native_uses_cgroup(const struct plan *p)
{
	for (int i = 0; i < LIMITS; i++)
		if (p->limits[i].held_by == HELD_CGROUP1 || p->limits[i].held_by == HELD_CGROUP2)
			return true;
	return false;
}

/* The plan is in the shared memory; the descriptors that go inside follow it. */
static int send_plan(const struct plan *p, const struct native_child *c, const struct running *run,
		     const int stdio_fds[3], struct ward_err *e)
{
	FD_MESSAGE_CONTROL(3 + 4 + NATIVE_TREES_MAX + 1) control;
	size_t count = 0;
	int fds[3 + 4 + NATIVE_TREES_MAX + 1];
	char byte = 'p';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };

	for (int i = 0; i < 3; i++)
		if (stdio_fds[i] >= 0)
			fds[count++] = stdio_fds[i];
	memcpy(fds + count, c->cgroup_fds, c->cgroup_count * sizeof(int));
	count += c->cgroup_count;
	for (size_t i = 0; p->devices && i < p->devices->len; i++)
		if (p->devices->items[i].tree_fd >= 0)
			fds[count++] = p->devices->items[i].tree_fd;
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].tree_fd >= 0)
			fds[count++] = p->mounts[i].tree_fd;
	if (c->has_layer)
		fds[count++] = run->layer_fd;
	fd_message_put(&m, fds, count);
	if (io_sendmsg(run->control_fd, &m, MSG_NOSIGNAL) == 1)
		return 0;
	if (errno == ETOOMANYREFS) {
		ward_fail(e, ETOOMANYREFS,
			  "cannot pass descriptors to the sandbox: your processes have more of "
			  "them in flight in sockets than your limit of open files");
		return ward_remedy(e, "find out which program or sandbox fills sockets with "
				      "descriptors (ward ps), or raise the limit: ulimit -n");
	}
	if (errno != EPIPE && errno != ECONNRESET)
		return ward_fail_errno(e, "cannot pass descriptors to the sandbox");
	return 0; /* the child has ended: native_release() says why */
}

enum { FEW_PIDS = 64 };

static int native_start(const struct plan *p, const int stdio_fds[3], struct running *run,
			struct ward_err *e)
{
	/* the child was born in it, and it has no limits yet */
	bool early = run->cgroup != NULL;
	int into, r = 0;

	if (!early && native_uses_cgroup(p))
		r = cgroup_create(p, &run->cgroup, e);
	if (r < 0)
		return r;
	into = run->cgroup ? cgroup_clone_fd(run->cgroup) : -1;
	run->no_helper = into >= 0 && p->limits[LIMIT_PIDS].held_by == HELD_CGROUP2 &&
			 p->limits[LIMIT_PIDS].value < FEW_PIDS;
	if ((into >= 0 && !early) || run->no_helper || !fits(run, p)) {
		native_discard(run);
		r = native_launch(run, &p->ids, native_choose_base(p), into, NULL, e);
		if (r < 0)
			return r;
		native_send_system(run, p->system);
	}
	r = native_begin(p, stdio_fds, run, e);
	/* while the child goes on; native_release() allows the exec, and comes after this */
	return r == 0 && early ? cgroup_limit(run->cgroup, p, e) : r;
}

/* Whether the command may be over in a moment, and there are processors for its end. */
static bool is_short(const struct plan *p, const struct running *run)
{
	const struct native_child *c = &((const struct native_memory *)run->child)->child;

	return c->parallel && !c->bundle && !p->review && !run->asked;
}

int native_begin(const struct plan *p, const int stdio_fds[3], struct running *run,
		 struct ward_err *e)
{
	struct native_memory *m = run->child;
	int r;

	/* the numbers: which of them come */
	memcpy(m->child.stdio_fds, stdio_fds, sizeof(m->child.stdio_fds));
	m->child.starts_command = p->argv[0] && !run->asked && !observe_wanted(p) && !p->commands &&
				  stdio_fds[0] >= 0 && stdio_fds[1] >= 0 && stdio_fds[2] >= 0;
	m->child.shape = &run->shape;
	memcpy(&m->child.signal_mask, &run->caller_mask, sizeof(m->child.signal_mask));
	if (run->cgroup && !m->child.bundle) /* a runtime is not what the limits are for */
		m->child.cgroup_count = cgroup_self_fds(run->cgroup, m->child.cgroup_fds,
							ARRAY_LEN(m->child.cgroup_fds));
	m->child.layer_path = run->layer_path;
	m->child.layer_copy = run->layer_copy;
	m->child.has_layer = run->layer_fd >= 0;
	if (is_short(p, run) && !native_keeps_any(p))
		native_pin_mounts(run);
	r = native_prepare(m, p, e);
	if (r == 0)
		r = send_plan(p, &m->child, run, stdio_fds, e);
	if (r == 0 && m->child.parallel && !sync_get(&m->child.sync.helper_go))
		native_allow_helper(&m->child);
	return r;
}

/* After the exec was allowed: it failed, or what comes just before it. */
static bool native_start_error(const struct running *run, struct ward_err *e)
{
	const struct native_memory *m = run->child;

	return m && m->child.failed_error < 0 && native_explain_child(&m->child, e) < 0;
}

void native_allow_exec(struct running *run)
{
	struct native_memory *m = run->child;

	/* a dead child is seen by native_receive_ready() */
	(void)!send(run->control_fd, "g", 1, MSG_NOSIGNAL);
	native_allow_helper(&m->child);
}

int native_receive_ready(struct running *run, struct ward_err *e)
{
	struct native_memory *memory = run->child;
	struct native_child *c = &memory->child;
	int fds[11 + NATIVE_KEPT_MAX + NET_FDS_MAX];
	size_t count, next = 0;
	char byte;

	if (io_recv_fds(run->control_fd, &byte, 1, fds, ARRAY_LEN(fds), &count) != 1 ||
	    byte != NATIVE_READY) {
		siginfo_t info;

		while (waitid(P_PIDFD, (id_t)run->pid_fd, &info, WEXITED | WNOWAIT) < 0 &&
		       errno == EINTR)
			;
		return native_explain_child(c, e);
	}
	if (c->proc_fd >= 0 && next < count)
		run->proc_fd = fds[next++];
	if (c->listener_fd >= 0 && next < count)
		run->notify_fd = fds[next++];
	if (c->master_fd >= 0 && next + 1 < count) {
		run->master_fd = fds[next++];
		run->slave_fd = fds[next++];
	}
	for (size_t i = 0; i < c->kept_count && next < count; i++)
		memory->keep.fds[memory->keep.count++] = fds[next++];
	if (c->kept_count && c->view_fd >= 0 && next < count) {
		own_close_fd(&run->mounts_fd);
		run->mounts_fd = fds[next++];
	}
	while (next + c->net.count < count && run->tmpfs_count < ARRAY_LEN(run->tmpfs_fds))
		run->tmpfs_fds[run->tmpfs_count++] = fds[next++];
	for (size_t i = 0; i < c->net.count && next < count; i++)
		run->net_fds[run->net_count++] =
			(struct net_fd){ .fd = fds[next++], .kind = c->net.fds[i].kind };
	run->net_ports = c->net.by_port;
	return 0;
}

static int native_release(const struct plan *p, struct running *run, struct result *r,
			  struct ward_err *e)
{
	struct native_child *c = &((struct native_memory *)run->child)->child;
	bool guarded = native_keeps_any(p);
	int status;

	native_allow_exec(run);
	native_start_reaper(run);
	status = native_receive_ready(run, e);
	if (status < 0)
		return status;
	if (guarded)
		native_keep_begin(p, run);
	/* else its end is reported in the result */
	if (is_short(p, run) && guarded && !((struct native_memory *)run->child)->keep.met)
		native_start_reaper(run);
	c->layers[LAYER_PID] = LAYER_IN_FORCE;
	c->layers[LAYER_CGROUP] = run->cgroup ? LAYER_IN_FORCE : LAYER_ABSENT;
	c->layers[LAYER_IDMAP] = p->ids.mode == IDS_MAPPED ? LAYER_IN_FORCE : LAYER_ABSENT;
	native_stage_times(c, run->timing);
	for (int i = 0; i < LAYERS; i++)
		result_layer_note(r, (enum layer)i, c->layers[i], c->layer_notes[i]);
	return 0;
}

static void native_finish(struct running *run)
{
	native_discard(run);
}

const struct engine engine_native = {
	.name = "native",
	.terminals = true,
	.prelaunch = native_prelaunch,
	.start = native_start,
	.release = native_release,
	.remount = native_remount,
	.tproxy = native_tproxy,
	.on_long_run = native_stop_reaper,
	.on_reaped = native_keep_end,
	.start_error = native_start_error,
	.finish = native_finish,
	.stages = native_stage_names,
	.no_snapshot = "its processes belong to the host kernel, which cannot save their "
		       "state\nuse isolation: gvisor",
};

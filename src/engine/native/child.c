/*
 * The child, in order. native_stages[] is the order: up to stage "plan" everything is the same for
 * every policy and is built while the supervisor reads the policy and makes the plan; from then on
 * the plan is in the shared memory. The child shares the supervisor's memory and runs beside it
 * (no fork: page tables are not copied), so it uses raw system calls only, and an error is a value
 * that the supervisor reads. If the supervisor dies, every read of the control socket ends and so
 * does the sandbox, at whatever stage.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd_message.h"
#include "base/raw.h"
#include "engine/native/native.h"
#include "protocol/guest.h"

static const struct native_stage {
	const char *name;
	long (*run)(struct native_child *c); /* NULL: done by the supervisor */
	enum { CHILD, EITHER_ONE, BESIDE_HELPER } who;
} native_stages[] = {
#define STAGE(name, run, help) { name, run, CHILD },
#define EITHER(name, run, help) { name, run, EITHER_ONE },
#define BESIDE(name, run, help) { name, run, BESIDE_HELPER },
#include "native_stages.def"
};

const char *const *native_stage_names(void)
{
	static const char *const names[] = {
#define STAGE(name, run, help) name, help,
#define EITHER STAGE
#define BESIDE STAGE
#include "native_stages.def"
		NULL
	};

	return names;
}

_Static_assert(ARRAY_LEN(native_stages) <= NATIVE_STAGES_MAX, "NATIVE_STAGES_MAX is too small");

static uint64_t stamp(const struct native_child *c)
{
	return c->timed ? native_now() : 0;
}

void native_stage_times(const struct native_child *c, struct timing *t)
{
	for (size_t i = 0; i < ARRAY_LEN(native_stages); i++)
		if (c->stage_ns[i][1])
			timing_inside(t, native_stages[i].name, c->stage_ns[i][0],
				      c->stage_ns[i][1]);
}

static long run_stage(struct native_child *c, size_t i)
{
	long r;

	c->stage_ns[i][0] = stamp(c);
	r = native_stages[i].run(c);
	c->stage_ns[i][1] = stamp(c);
	return r;
}

long native_either(struct native_child *c, const char **ret_stage)
{
	long r = 0;

	for (size_t i = 0; i < ARRAY_LEN(native_stages) && r == 0; i++)
		if (native_stages[i].who == EITHER_ONE) {
			*ret_stage = native_stages[i].name;
			c->failed_path = NULL;
			r = run_stage(c, i);
		}
	return r;
}

/* As many descriptors as can come with a plan. */
union plan_control {
	FD_MESSAGE_CONTROL(3 + 4 + NATIVE_TREES_MAX + 1);
};

/* Takes the next n of the descriptors that came. */
static const int *take(const int *fds, int *into, size_t n)
{
	for (size_t i = 0; i < n; i++)
		into[i] = fds[i];
	return fds + n;
}

/* The plan is ready, and here are the descriptors; the supervisor's end closing means that it is
 * gone. */
long native_receive_plan(struct native_child *c)
{
	union plan_control control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	const int *fds;
	size_t count, came;
	long r;

	do
		r = raw_call(SYS_recvmsg, c->control_fd, &m, MSG_CMSG_CLOEXEC);
	while (r == -EINTR);
	if (r != 1)
		return r < 0 ? r : -ECONNRESET;
	count = c->cgroup_count + c->tree_count + c->has_layer;
	for (int i = 0; i < 3; i++)
		count += c->stdio_fds[i] >= 0;
	if (count == 0)
		return 0;
	fds = fd_message_get(&m, &came);
	if (m.msg_flags & MSG_CTRUNC || came != count)
		return -EMFILE;
	for (int i = 0; i < 3; i++)
		if (c->stdio_fds[i] >= 0)
			fds = take(fds, c->stdio_fds + i, 1);
	fds = take(fds, c->cgroup_fds, c->cgroup_count);
	fds = take(fds, c->tree_fds, c->tree_count);
	take(fds, &c->layer_fd, c->has_layer);
	return 0;
}

long native_wait_byte(struct native_child *c)
{
	char byte;
	long r;

	do
		r = raw_call(SYS_read, c->control_fd, &byte, 1);
	while (r == -EINTR);
	return r == 1 ? 0 : -ECONNRESET;
}

long native_wait_tree(struct native_child *c, int *ret_fd)
{
	FD_MESSAGE_CONTROL(1) control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	long r;

	do
		r = raw_call(SYS_recvmsg, c->control_fd, &m, MSG_CMSG_CLOEXEC);
	while (r == -EINTR);
	if (r != 1)
		return -ECONNRESET;
	fd_message_take(&m, ret_fd, 1);
	return m.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

/* Whatever is open, ours or inherited, ends with this process image. Done while an error can still
 * be reported. */
long native_close(struct native_child *c)
{
	(void)c;
	return raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
}

/* The kernel counts descriptors that are under way for all processes of a user and refuses whose
 * own limit is below that: another sandbox could keep this one from starting. So the limit of open
 * files comes after ready, and until then it is as high as it may be. */
static long raise_files(void)
{
	uint64_t value[2];
	long r = raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, value);

	value[0] = value[1];
	return r < 0 ? r : raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, value, 0);
}

/* All is done: descriptors go to the supervisor. */
long native_send_ready(struct native_child *c)
{
	FD_MESSAGE_CONTROL(11 + NATIVE_KEPT_MAX + NET_FDS_MAX) control;
	char byte = NATIVE_READY;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	int fds[11 + NATIVE_KEPT_MAX + NET_FDS_MAX];
	size_t count = 0;
	long r;

	if (c->proc_fd >= 0)
		fds[count++] = c->proc_fd;
	if (c->listener_fd >= 0)
		fds[count++] = c->listener_fd;
	if (c->master_fd >= 0) {
		fds[count++] = c->master_fd;
		fds[count++] = c->slave_fd;
	}
	for (size_t i = 0; i < c->kept_count; i++)
		fds[count++] = c->kept_fds[i];
	if (c->kept_count && c->view_fd >= 0)
		fds[count++] = c->view_fd;
	for (size_t i = 0; i < c->tmpfs_count; i++)
		fds[count++] = c->tmpfs_fds[i];
	for (size_t i = 0; i < c->net.count; i++)
		fds[count++] = c->net.fds[i].fd;
	fd_message_put(&m, fds, count);
	r = raw_call(SYS_sendmsg, c->control_fd, &m, MSG_NOSIGNAL);
	if (r == -ETOOMANYREFS && raise_files() == 0)
		r = raw_call(SYS_sendmsg, c->control_fd, &m, MSG_NOSIGNAL);
	return r < 0 ? r : 0;
}

/* /dev/null was passed as it is (a terminal is the sandbox's own). To the host's uid 0 that is a
 * file of its own, whose mode it could change: the one inside, which is on a read-only mount, takes
 * its place. */
static long own_null(struct native_child *c)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;
		long fd = raw_call(SYS_fstat, c->stdio_fds[i], &st);

		if (fd == 0 && (!S_ISCHR(st.st_mode) || c->stdio_fds[i] == c->slave_fd))
			continue;
		if (fd == 0)
			fd = raw_call(SYS_openat, c->base_fd, "dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return fd;
		c->stdio_fds[i] = (int)fd;
	}
	return 0;
}

long native_place_stdio(struct native_child *c)
{
	long r = c->ids.mode == IDS_ROOT ? own_null(c) : 0;

	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &c->signal_mask, 0, 8);
	for (int i = 0; i < 3 && r >= 0; i++)
		r = raw_call(SYS_dup3, c->stdio_fds[i], i, 0);
	if (r >= 0)
		r = raw_call(SYS_dup3, c->control_fd, GUEST_CONTROL_FD, 0);
	return r;
}

static long exec_init(struct native_child *c)
{
	long r = native_allow_command(c);

	c->failed_path = "/" NATIVE_INIT;
	return r < 0 ? r
		     : raw_call(SYS_execve, c->failed_path,
				c->command_started ? (void *)c->init_argv : (void *)c->argv,
				c->envp);
}

int native_child_main(void *argument)
{
	struct native_child *c = argument;
	long r = 0;

	native_note_cpu(c);
	/* nothing in the sandbox is of the operator's session and terminal, not even its first
	 * process */
	raw_call(SYS_setsid);
	/* the copy of the supervisor's end would keep us alive without it */
	raw_call(SYS_close, c->supervisor_fd);
	for (size_t i = 0; i < ARRAY_LEN(native_stages) && r == 0; i++) {
		if (!native_stages[i].run || (native_stages[i].who == EITHER_ONE && c->helped))
			continue;
		c->failed_stage = native_stages[i].name;
		if (native_stages[i].who != BESIDE_HELPER)
			c->failed_path = NULL; /* else it may be the helper's */
		r = run_stage(c, i);
	}
	if (r == 0) {
		c->failed_stage = "exec";
		r = exec_init(c);
	}
	c->failed_error = r;
	return 125;
}

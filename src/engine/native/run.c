/*
 * The native engine, in order. In: a const plan. Out: a running sandbox. native_stages[] is the order; the first part
 * happens in the supervisor, the rest in the child that one clone3 makes with every namespace at once. The child
 * shares the supervisor's memory and runs beside it (no fork: page tables are not copied), so it uses raw system
 * calls only, and an error is a value that the supervisor reads.
 *
 * The child builds the root while the supervisor prepares the rest and puts the run on record; it goes on when the
 * supervisor gives the word (native_release()), and hands over descriptors before it executes ward-init (hello()). If the
 * supervisor dies, every read of the control socket ends and so does the sandbox, at whatever stage.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/path.h"
#include "base/raw.h"
#include "engine/native/native.h"
#include "engine/native/seccomp.h"
#include "guest/protocol.h"
#include "lib/probe.h"

/* The supervisor has everything ready, limits attached and the run on record; its end closing means that it is gone. */
static long wait_for_word(struct native_child *c)
{
	char word;
	long r;

	do
		r = raw_call(SYS_read, c->control_fd, &word, 1);
	while (r == -EINTR);
	return r == 1 ? 0 : -ECONNRESET;
}

/* Whatever is open, ours or inherited, ends with this process image. Done while an error can still be told. */
static long close_on_exec(struct native_child *c)
{
	(void)c;
	return raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
}

struct native_stage {
	const char *name;
	long (*run)(struct native_child *c);	/* NULL: done by the supervisor */
	const char *help;
};

static const struct native_stage native_stages[] = {
	{ "cgroup", NULL, "make the run's cgroup and write its limits" },
	{ "clone", NULL, "user, mount, pid, ipc and uts namespaces in one call" },
	{ "net", native_net_begin, "a helper makes the network namespace meanwhile" },
	{ "join", native_join_cgroup, "enter the cgroup (v1), then a cgroup namespace of its own" },
	{ "ids", native_maps, "map the ids; as root become an unprivileged one" },
	{ "name", native_host_name, "a host name of its own" },
	{ "root", native_root, "an empty root with the plan's read-only mounts" },
	{ "proc", native_proc, "a fresh /proc, settings read-only, secrets masked" },
	{ "dev", native_dev, "six devices, own terminals, limited shared memory" },
	{ "mounts", native_late_mounts, "private file systems, the workspace, writable mounts" },
	{ "guards", native_guards, "hidden and protected files, ancestors pinned" },
	{ "enter", native_net_enter, "enter it: its own loopback is up, there is no other interface" },
	{ "pivot", native_pivot, "enter the new root, drop the old one" },
	{ "word", wait_for_word, "wait until the supervisor answers for the run" },
	{ "rlimits", native_rlimits, "limits per process" },
	{ "caps", native_capabilities, "drop every capability for good" },
	{ "nnp", native_no_new_privs, "set-id programs give nothing" },
	{ "landlock", native_landlock, "a second wall behind the mounts" },
	{ "seccomp", native_seccomp, "last layer: nothing after this may need a new system call" },
	{ "close", close_on_exec, "close every descriptor at exec" },
	{ "exec", NULL, "start ward-init and the command" },
};

static const char *const *stage_names(void)
{
	static const char *names[2 * ARRAY_LEN(native_stages) + 1];

	for (size_t i = 0; i < ARRAY_LEN(native_stages); i++) {
		names[2 * i] = native_stages[i].name;
		names[2 * i + 1] = native_stages[i].help;
	}
	return names;
}

/* ---- in the child ---- */

/* All is done: the descriptors go to the supervisor. */
static long hello(struct native_child *c)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(9 * sizeof(int))];
	} control = { 0 };
	int fds[9], count = 0;
	char word = 'h';
	struct iovec iov = { .iov_base = &word, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	struct cmsghdr *header = &control.align;
	long r;

	if (c->listener_fd >= 0)
		fds[count++] = c->listener_fd;
	for (size_t i = 0; i < c->passed_count; i++)
		fds[count++] = c->passed_fds[i];
	m.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	for (int i = 0; i < count; i++)
		((int *)(void *)CMSG_DATA(header))[i] = fds[i];
	r = raw_call(SYS_sendmsg, c->control_fd, &m, MSG_NOSIGNAL);
	return r == 1 ? 0 : -ECONNRESET;
}

/* /dev/null was passed as it is. To the host's uid 0 that is a file of its own, whose mode it could change: the one inside,
 * which is on a read-only mount, takes its place. */
static long own_null(struct native_child *c)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;
		long fd = raw_call(SYS_fstat, c->stdio_fds[i], &st);

		if (fd == 0 && !S_ISCHR(st.st_mode))
			continue;
		if (fd == 0)
			fd = raw_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return fd;
		c->stdio_fds[i] = (int)fd;
	}
	return 0;
}

static long exec_init(struct native_child *c)
{
	long r = c->plan->ids.mode == IDS_ROOT ? own_null(c) : 0;

	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &c->signal_mask, 0, 8);
	for (int i = 0; i < 3 && r >= 0; i++)
		r = raw_call(SYS_dup3, c->stdio_fds[i], i, 0);
	if (r >= 0)
		r = raw_call(SYS_dup3, c->control_fd, GUEST_CONTROL_FD, 0);
	c->failed_path = "/" NATIVE_INIT;
	return r < 0 ? r : raw_call(SYS_execve, c->failed_path, c->argv, c->envp);
}

static int child_main(void *argument)
{
	struct native_child *c = argument;
	long r = 0;

	/* the copy of the supervisor's end would keep us alive without it */
	raw_call(SYS_close, c->supervisor_fd);
	for (size_t i = 0; i < ARRAY_LEN(native_stages) && r == 0; i++) {
		c->failed_stage = native_stages[i].name;
		if (native_stages[i].run) {
			c->failed_path = NULL;
			r = native_stages[i].run(c);
		}
	}
	if (r == 0)
		r = hello(c);
	if (r == 0) {
		c->failed_stage = "exec";
		r = exec_init(c);
	}
	c->failed_error = r;
	return 125;
}

/* ---- in the supervisor ---- */

/* A directory of the host's to build over; none of the sources may lie beneath it. */
static const char *choose_base(const struct plan *p)
{
	static const char *const candidates[] = { "/mnt", "/srv", "/media", "/opt", "/tmp", "/boot",
						  "/var", "/home", "/root" };

	for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
		bool used = false;
		struct stat st;

		for (size_t k = 0; k < p->mount_count; k++)
			used |= p->mounts[k].kind == MOUNT_BIND &&
				path_is_beneath(p->mounts[k].source, candidates[i]);
		if (!used && lstat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}

static char *tmpfs_options(struct strv *texts, const struct plan *p, unsigned mode, uint64_t bytes,
			   uint64_t inodes)
{
	auto_buf text = { 0 };

	buf_printf(&text, "mode=%04o,uid=%u,gid=%u", mode, p->ids.inside_uid, p->ids.inside_gid);
	if (bytes)
		buf_printf(&text, ",size=%llu", (unsigned long long)bytes);
	if (inodes)
		buf_printf(&text, ",nr_inodes=%llu", (unsigned long long)inodes);
	strv_take(texts, buf_take(&text));
	return texts->failed ? NULL : texts->items[texts->len - 1];
}

/* What the supervisor keeps for as long as the child uses it. */
struct native_memory {
	struct native_child child;
	struct strv texts;
	char **options, **argv;
	struct limits_rlimit rlimits[LIMITS_RLIMITS];
};

static void free_memory(struct native_memory *m)
{
	if (!m)
		return;
	strv_free(&m->texts);
	free(m->options);
	free(m->argv);
	munmap(m, sizeof(*m));
}

static int prepare_mounts(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	struct native_child *c = &m->child;
	uint64_t shm_bytes = 0, shm_inodes = 0;

	c->base = choose_base(p);
	if (!c->base)
		return ward_fail(e, ENOENT, "found no directory to build the sandbox's root over");
	m->options = calloc(p->mount_count + 1, sizeof(*m->options));
	if (!m->options)
		return ward_fail(e, ENOMEM, "out of memory");
	c->tmpfs_options = m->options;
	c->root_options = tmpfs_options(&m->texts, p, 0755, 4 << 20, 4096);
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *pm = &p->mounts[i];

		if (pm->kind != MOUNT_TMPFS)
			continue;
		m->options[i] = tmpfs_options(&m->texts, p, pm->mode, pm->bytes, pm->inodes);
		shm_bytes = pm->bytes;
		shm_inodes = pm->inodes;
	}
	c->shm_options = tmpfs_options(&m->texts, p, 01777, shm_bytes, shm_inodes);
	return m->texts.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static void add_landlock_path(struct native_child *c, const char *path, unsigned rights)
{
	if (c->path_count < NATIVE_PATHS_MAX)
		c->paths[c->path_count++] = (struct landlock_path){ .path = path, .rights = rights };
}

/* Behind the mounts: everything in view may be read and executed, what is writable there may be written. */
static int prepare_landlock(struct native_child *c, const struct plan *p, struct ward_err *e)
{
	size_t writable = 0;

	add_landlock_path(c, "/", LANDLOCK_READ | LANDLOCK_EXECUTE);
	add_landlock_path(c, "/proc", LANDLOCK_READ | LANDLOCK_MODIFY);
	add_landlock_path(c, "/dev", LANDLOCK_READ | LANDLOCK_MODIFY | LANDLOCK_DEVICE);
	add_landlock_path(c, "/dev/shm", LANDLOCK_FULL);
	add_landlock_path(c, "/dev/null", LANDLOCK_READ | LANDLOCK_MODIFY);	/* the caller's too, as /dev/stdin */
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].writable) {
			writable++;
			add_landlock_path(c, p->mounts[i].target, LANDLOCK_FULL);
		}
	if (writable + 5 > NATIVE_PATHS_MAX)
		return ward_fail(e, E2BIG, "too many writable mounts: at most %d", NATIVE_PATHS_MAX - 5);
	return 0;
}

static int prepare_filter(struct native_child *c, const struct plan *p, struct ward_err *e)
{
	unsigned flags = (p->spec->policy.proc_nesting ? SECCOMP_NESTING : 0) |
			 (p->limits[LIMIT_MEMORY].held_by == HELD_WATCH ? SECCOMP_CLOSE_MEMORY : 0);
	int r = seccomp_program(p->spec->policy.proc_syscalls, flags, c->filter, ARRAY_LEN(c->filter),
				&c->filter_len);

	return r < 0 ? ward_fail(e, -r, "cannot make the system call filter") : 0;
}

static int prepare_argv(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	size_t argc = 0;

	while (p->spec->argv[argc])
		argc++;
	m->argv = calloc(argc + 2, sizeof(*m->argv));
	strv_add(&m->texts, "ward-init");
	if (!m->argv || m->texts.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->argv[0] = m->texts.items[m->texts.len - 1];
	memcpy(m->argv + 1, p->spec->argv, argc * sizeof(*m->argv));
	m->child.argv = m->argv;
	m->child.envp = p->env.items;
	return 0;
}

static int prepare_ids(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	const struct plan_ids *ids = &p->ids;

	if (ids->mode == IDS_MAPPED || ids->mode == IDS_OWNER)
		return 0;
	strv_addf(&m->texts, "%u %u 1\n", ids->inside_uid, ids->host_uid);
	strv_addf(&m->texts, "%u %u 1\n", ids->inside_gid, ids->host_gid);
	if (m->texts.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->child.uid_map = m->texts.items[m->texts.len - 2];
	m->child.gid_map = m->texts.items[m->texts.len - 1];
	return 0;
}

static int prepare(const struct plan *p, const int stdio_fds[3], const struct running *run, int control_fd,
		   struct native_memory **ret_memory, struct ward_err *e)
{
	struct native_memory *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (m == MAP_FAILED)
		return ward_fail_errno(e, "out of memory");
	*ret_memory = m;
	m->child.plan = p;
	m->child.control_fd = control_fd;
	m->child.listener_fd = -1;
	m->child.supervisor_fd = run->control_fd;
	memcpy(&m->child.signal_mask, &run->caller_mask, sizeof(m->child.signal_mask));
	memcpy(m->child.stdio_fds, stdio_fds, sizeof(m->child.stdio_fds));
	if (run->cgroup)
		m->child.cgroup_count = cgroup_self_fds(run->cgroup, m->child.cgroup_fds,
							ARRAY_LEN(m->child.cgroup_fds));
	r = prepare_mounts(m, p, e);
	return r < 0 ? r : prepare_ids(m, p, e);
}

/* What the child needs only after the word: made while it builds the root. */
static int prepare_rest(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	int r = prepare_argv(m, p, e);

	m->child.rlimits = m->rlimits;
	m->child.rlimit_count = limits_rlimits(p, m->rlimits, ARRAY_LEN(m->rlimits));
	if (r == 0)
		r = prepare_landlock(&m->child, p, e);
	return r < 0 ? r : prepare_filter(&m->child, p, e);
}

static int explain_clone(int error, struct ward_err *e)
{
	struct probe found = { 0 };

	if (error == EAGAIN || error == ENOMEM)
		return ward_fail(e, error, "cannot start another process: %s", strerror(error));
	probe_explain_user(&found, error);
	ward_fail(e, error, "cannot make a user namespace: %s", found.why);
	return ward_remedy(e, "%s; or accept a weaker sandbox: require: {isolation: landlock, limits: none}",
			   found.remedy);
}

static int write_maps(const struct plan *p, const struct running *run, struct ward_err *e)
{
	static const char *const files[] = { "uid_map", "gid_map" };

	for (int i = 0; i < 2; i++) {
		char path[64], line[64];
		int r;

		snprintf(path, sizeof(path), "/proc/%d/%s", run->init_pid, files[i]);
		snprintf(line, sizeof(line), "%u %u 1\n", i ? p->ids.inside_gid : p->ids.inside_uid,
			 i ? p->ids.host_gid : p->ids.host_uid);
		r = io_write_file(AT_FDCWD, path, line);
		if (r < 0) {
			ward_fail(e, -r, "cannot map the sandbox's ids to host id %u: %s",
				  i ? p->ids.host_gid : p->ids.host_uid, strerror(-r));
			return ward_remedy(e, "root needs CAP_SETUID and CAP_SETGID for that (containers: --cap-add SETUID "
					      "--cap-add SETGID)");
		}
	}
	return io_write_all(run->control_fd, "m", 1);
}

static int clone_sandbox(const struct plan *p, struct native_child *c, struct running *run,
			 struct ward_err *e)
{
	int into = run->cgroup ? cgroup_clone_fd(run->cgroup) : -1;
	struct clone_child child = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_VM | CLONE_PIDFD | (into >= 0 ? CLONE_INTO_CGROUP : 0),
		.cgroup_fd = into,
		.pid_fd = -1,
		.stack = c->stack,
		.stack_bytes = sizeof(c->stack),
		.main = child_main,
		.argument = c,
	};
	long pid = clone_start(&child);
	int r = 0;

	if (pid < 0)
		return explain_clone((int)-pid, e);
	run->init_pid = (pid_t)pid;
	run->pid_fd = child.pid_fd;
	if (!c->uid_map)
		r = write_maps(p, run, e);
	return r;
}

static bool uses_cgroup(const struct plan *p)
{
	for (int i = 0; i < LIMITS; i++)
		if (p->limits[i].held_by == HELD_CGROUP1 || p->limits[i].held_by == HELD_CGROUP2)
			return true;
	return false;
}

static int native_start(const struct plan *p, const int stdio_fds[3], struct running *run,
			struct ward_err *e)
{
	struct native_memory *m = NULL;
	auto_fd child_fd = -1;
	int pair[2], r = 0;

	if (uses_cgroup(p))
		r = cgroup_create(p, &run->cgroup, e);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the control socket");
	run->control_fd = pair[0];
	/* above 0-3, which the child overwrites */
	child_fd = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
	close(pair[1]);
	if (child_fd < 0)
		return ward_fail_errno(e, "cannot make the control socket");
	r = prepare(p, stdio_fds, run, child_fd, &m, e);
	run->child = m;
	if (r == 0)
		r = clone_sandbox(p, &m->child, run, e);
	return r < 0 ? r : prepare_rest(m, p, e);
}

/* The child ended before it could say hello: its last words are in its memory. */
static int explain_child(const struct native_child *c, struct ward_err *e)
{
	int code = c->failed_error < 0 ? (int)-c->failed_error : EIO;

	ward_fail(e, code, "%s%s%s", c->failed_path ? c->failed_path : "", c->failed_path ? ": " : "",
			c->failed_error < 0 ? strerror(code) : "the sandbox's first process was killed");
	ward_wrap(e, "building the sandbox (stage %s)", c->failed_stage ? c->failed_stage : "clone");
	return ward_remedy(e, "%s", probe_step_remedy(code));
}

/* After the word: exec failed, or what comes just before it. */
static bool native_last_words(const struct running *run, struct ward_err *e)
{
	const struct native_memory *m = run->child;

	return m && m->child.failed_error < 0 && explain_child(&m->child, e) < 0;
}

/* The word goes out first: the child finds it when it gets there, and nobody waits for anybody. */
static int native_release(const struct plan *p, struct running *run, struct result *r, struct ward_err *e)
{
	struct native_memory *m = run->child;
	struct native_child *c = &m->child;
	int fds[9];
	size_t count, next = 0;
	char word;
	ssize_t n;

	(void)!send(run->control_fd, "g", 1, MSG_NOSIGNAL);	/* a dead child is seen below */
	n = io_recv_fds(run->control_fd, &word, 1, fds, ARRAY_LEN(fds), &count);
	if (n != 1) {
		siginfo_t info;

		while (waitid(P_PIDFD, (id_t)run->pid_fd, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
		return explain_child(c, e);
	}
	if (c->listener_fd >= 0 && next < count)
		run->notify_fd = fds[next++];
	if (next < count)
		run->proc_fd = fds[next++];
	while (next < count)
		run->tmpfs_fds[run->tmpfs_count++] = fds[next++];
	c->layers[LAYER_PID] = c->layers[LAYER_IPC] = LAYER_IN_FORCE;
	c->layers[LAYER_CGROUP] = run->cgroup ? LAYER_IN_FORCE : LAYER_ABSENT;
	c->layers[LAYER_IDMAP] = p->ids.mode == IDS_MAPPED ? LAYER_IN_FORCE : LAYER_ABSENT;
	for (int i = 0; i < LAYERS; i++)
		result_layer_note(r, (enum layer)i, c->layers[i], c->layer_notes[i]);
	return 0;
}

static void native_finish(struct running *run)
{
	free_memory(run->child);
	run->child = NULL;
}

const struct engine engine_native = {
	.name = "native",
	.start = native_start,
	.release = native_release,
	.remount = native_remount,
	.last_words = native_last_words,
	.finish = native_finish,
	.stages = stage_names,
};

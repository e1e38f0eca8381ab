/*
 * The Landlock level, outside. In: a const plan for a host that gives no user namespaces. Out: a
 * running sandbox, as far as one can be had: files, network, system calls, signals and tracing are
 * confined; the rest is absent, said in the result, and refused where the policy asks for it
 * (plan/level.c). Runs in the supervisor with the user's rights. The order of everything is
 * level_stages[] in child.c.
 *
 * ward-init is in the sandbox's Landlock domain and kills exactly that domain when it ends, when it
 * is asked to, and when the supervisor is gone (guest/init.c). So the sandbox is ended by a
 * message, not by a signal to ward-init.
 */
#include "engine/landlock/landlock_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/path.h"
#include "base/remove.h"
#include "engine/landlock/leftovers.h"
#include "event/result.h"
#include "host/init_image.h"
#include "host/probe.h"
#include "observe/observe.h"
#include "plan/level.h"
#include "protocol/guest.h"

/* What the supervisor keeps for as long as the run lasts. */
struct level_memory {
	struct level_child child;
	struct strv texts;
	char **argv, **envp;
};

static const struct {
	const char *path;
	unsigned rights;
} fixed_paths[] = {
#define LANDLOCK_PATH(path, rights) { path, rights },
#include "landlock_paths.def"
};

/* ---- what must not be tried ---- */

static int check_nested_mounts(const struct plan *p, struct ward_err *e)
{
	for (size_t i = 0; i < p->mount_count; i++)
		for (size_t k = 0; k < p->mount_count; k++) {
			const struct plan_mount *inner = &p->mounts[i], *outer = &p->mounts[k];

			if (inner->kind != MOUNT_BIND || outer->kind != MOUNT_BIND ||
			    inner->writable || !outer->writable ||
			    !path_is_beneath(inner->source, outer->source))
				continue;
			(void)ward_fail(e, ENOTSUP,
					"%s cannot be read-only inside the writable %s: Landlock "
					"only adds rights",
					inner->source, outer->source);
			return ward_remedy(e, "remove one of them; with user namespaces it works "
					      "(see `ward doctor`)");
		}
	return 0;
}

static bool names_some(const struct ignore *list)
{
	return list && !ignore_is_empty(list);
}

/* Sockets are hidden by the scan as well, but the filter gives none to connect with. */
static bool hides_some(const struct guard_root *g)
{
	for (size_t i = 0; i < g->step_count; i++) {
		auto_free char *path = path_join(g->path, g->steps[i].path);
		struct stat st;

		if (g->steps[i].action == GUARD_HIDE &&
		    (!path || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode)))
			return true;
	}
	return names_some(g->hide) || names_some(g->aiignore);
}

static int check_hidden(const struct plan *p, struct ward_err *e)
{
	for (size_t i = 0; i < p->live->root_count; i++)
		if (hides_some(&p->live->roots[i])) {
			(void)ward_fail(e, ENOTSUP,
					"%s has files to hide (.aiignore), which isolation level "
					"landlock cannot do",
					p->live->roots[i].path);
			return ward_remedy(e, "enable user namespaces (`ward doctor` shows how), "
					      "or remove .aiignore");
		}
	return 0;
}

/* A datagram socket could be sent on to any address behind a pointer that no filter sees. */
static int check_stdio(const int stdio_fds[3], struct ward_err *e)
{
	for (int i = 0; i < 3; i++) {
		int type = 0;
		socklen_t len = sizeof(type);

		if (getsockopt(stdio_fds[i], SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
		    type != SOCK_STREAM && type != SOCK_SEQPACKET) {
			(void)ward_fail(e, EINVAL,
					"descriptor %d is a datagram socket: at isolation level "
					"landlock it would reach any address",
					i);
			return ward_remedy(e, "use a pipe or a stream socket");
		}
	}
	return 0;
}

static int check_plan(const struct plan *p, const int stdio_fds[3], struct ward_err *e)
{
	int r = level_check(p, e);

	if (r == 0)
		r = check_nested_mounts(p, e);
	if (r == 0)
		r = check_hidden(p, e);
	return r < 0 ? r : check_stdio(stdio_fds, e);
}

/* ---- what the child needs ---- */

static void add_path(struct level_child *c, const char *path, unsigned rights)
{
	if (c->path_count < LANDLOCK_PATHS_MAX)
		c->paths[c->path_count] = (struct landlock_path){ .path = path, .rights = rights };
	c->path_count++;
}

static int prepare_paths(struct level_child *c, const struct plan *p, struct ward_err *e)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];
		unsigned rights = m->writable ? LANDLOCK_FULL : LANDLOCK_READ | LANDLOCK_EXECUTE;

		if (m->noexec)
			rights &= ~(unsigned)LANDLOCK_EXECUTE;
		if (m->kind == MOUNT_BIND)
			add_path(c, m->source, rights);
		else if (m->kind == MOUNT_FILE)
			add_path(c, m->target,
				 LANDLOCK_READ); /* the host's own: passwd, hosts and the like */
	}
	for (size_t i = 0; i < ARRAY_LEN(fixed_paths); i++)
		add_path(c, fixed_paths[i].path, fixed_paths[i].rights);
	add_path(c, c->tmp_path, LANDLOCK_FULL);
	if (c->path_count > LANDLOCK_PATHS_MAX)
		return ward_fail(e, E2BIG, "too many paths for one sandbox: %zu, at most %d",
				 c->path_count, LANDLOCK_PATHS_MAX);
	return 0;
}

static int make_tmp(struct level_child *c, const struct plan *p, struct ward_err *e)
{
	char path[sizeof(c->tmp_path)];

	level_tmp_path(p->spec->run_id, path, sizeof(path));
	if (mkdir(path, 0700) < 0)
		return ward_fail_errno(e, "cannot make the run's temporary directory %s", path);
	memcpy(c->tmp_path, path, sizeof(path));
	if (p->facts.uid == 0 && lchown(path, p->ids.host_uid, p->ids.host_gid) < 0)
		return ward_fail_errno(e, "cannot give %s to uid %u", path, p->ids.host_uid);
	return 0;
}

static bool names(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncmp(line, name, n) == 0 && line[n] == '=';
}

/* There is no /tmp and no /home/agent here. */
static int prepare_env(struct level_memory *m, const struct plan *p, struct ward_err *e)
{
	static const char *const moved[] = { "TMPDIR", "HOME" };

	m->envp = calloc(p->env.len + 1, sizeof(*m->envp));
	if (!m->envp)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < p->env.len; i++) {
		m->envp[i] = p->env.items[i];
		for (size_t k = 0; k < ARRAY_LEN(moved); k++)
			if (names(p->env.items[i], moved[k])) {
				strv_addf(&m->texts, "%s=%s", moved[k], m->child.tmp_path);
				if (m->texts.failed)
					return ward_fail(e, ENOMEM, "out of memory");
				m->envp[i] = m->texts.items[m->texts.len - 1];
			}
	}
	m->child.envp = m->envp;
	return 0;
}

static int prepare_argv(struct level_memory *m, const struct plan *p, struct ward_err *e)
{
	size_t argc = 0;

	while (p->argv[argc])
		argc++;
	m->argv = calloc(argc + 2, sizeof(*m->argv));
	strv_add(&m->texts, "ward-landlock");
	if (!m->argv || m->texts.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->argv[0] = m->texts.items[m->texts.len - 1];
	memcpy(m->argv + 1, p->argv, argc * sizeof(*m->argv));
	m->child.argv = m->argv;
	return 0;
}

static int prepare_image(struct level_child *c, struct ward_err *e)
{
	c->image_fd = init_image_open("ward-init", c->tmp_path);
	return c->image_fd < 0 ? ward_fail(e, -c->image_fd, "cannot copy ward-init into memory: %s",
					   strerror(-c->image_fd))
			       : 0;
}

static int prepare(struct level_memory *m, const struct plan *p, const int stdio_fds[3],
		   const struct running *run, struct ward_err *e)
{
	struct level_child *c = &m->child;
	int r;

	c->plan = p;
	c->supervisor_fd = run->control_fd;
	memcpy(&c->signal_mask, &run->caller_mask, sizeof(c->signal_mask));
	memcpy(c->stdio_fds, stdio_fds, sizeof(c->stdio_fds));
	if (run->cgroup)
		c->cgroup_count = cgroup_self_fds(run->cgroup, c->cgroup_fds, LANDLOCK_CGROUPS_MAX);
	c->rlimit_count = limits_rlimits(p, c->rlimits, LIMITS_RLIMITS);
	r = seccomp_program(p->spec->policy.proc_syscalls,
			    SECCOMP_LANDLOCK | SECCOMP_WATCH(observe_wanted(p)), c->filter,
			    SECCOMP_PROGRAM_MAX, &c->filter_len);
	if (r < 0)
		return ward_fail(e, -r, "cannot make the system call filter");
	r = make_tmp(c, p, e);
	if (r == 0)
		r = prepare_paths(c, p, e);
	if (r == 0)
		r = prepare_argv(m, p, e);
	if (r == 0)
		r = prepare_env(m, p, e);
	return r < 0 ? r : prepare_image(c, e);
}

/* ---- the engine ---- */

static int make_control(struct running *run, struct level_child *c, struct ward_err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the control socket");
	run->control_fd = pair[0];
	c->control_fd = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
	close(pair[1]);
	return c->control_fd < 0 ? ward_fail_errno(e, "cannot make the control socket") : 0;
}

static int clone_sandbox(struct level_child *c, struct running *run, struct ward_err *e)
{
	int into = run->cgroup ? cgroup_clone_fd(run->cgroup) : -1;
	struct clone_child child = {
		.flags = CLONE_VM | CLONE_PIDFD | (into >= 0 ? CLONE_INTO_CGROUP : 0),
		.cgroup_fd = into,
		.pid_fd = -1,
		.stack = c->stack,
		.stack_bytes = sizeof(c->stack),
		.main = level_child_main,
		.argument = c,
	};
	long pid = clone_start(&child);

	if (pid < 0)
		return ward_fail(e, (int)-pid, "cannot start the sandbox's first process: %s",
				 strerror((int)-pid));
	run->init_pid = (pid_t)pid;
	run->pid_fd = child.pid_fd;
	return 0;
}

static bool uses_cgroup(const struct plan *p)
{
	for (int i = 0; i < LIMITS; i++)
		if (p->limits[i].held_by == HELD_CGROUP1 || p->limits[i].held_by == HELD_CGROUP2)
			return true;
	return false;
}

/* The child has copies of its own, and reads the numbers from the memory that we share: those stay.
 */
static void close_childs(const struct level_child *c)
{
	if (c->control_fd >= 0)
		close(c->control_fd);
	if (c->image_fd >= 0)
		close(c->image_fd);
}

static int level_start(const struct plan *p, const int stdio_fds[3], struct running *run,
		       struct ward_err *e)
{
	struct level_memory *m;
	int r = check_plan(p, stdio_fds, e);

	if (r == 0 && uses_cgroup(p))
		r = cgroup_create(p, &run->cgroup, e);
	if (r < 0)
		return r;
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return ward_fail_errno(e, "out of memory");
	run->child = m;
	m->child.control_fd = m->child.image_fd = m->child.listener_fd = -1;
	r = make_control(run, &m->child, e);
	if (r == 0)
		r = prepare(m, p, stdio_fds, run, e);
	/* if ward-init is killed from outside, its orphans come to us */
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = ward_fail_errno(e, "cannot become a child subreaper");
	if (r == 0)
		r = clone_sandbox(&m->child, run, e);
	close_childs(&m->child);
	return r;
}

/* The child ended before it was ready: its memory says why. */
static int explain_child(const struct level_child *c, struct ward_err *e)
{
	int code = c->failed_error < 0 ? (int)-c->failed_error : EIO;

	(void)ward_fail(e, code, "%s",
			c->failed_error < 0 ? strerror(code)
					    : "the sandbox's first process was killed");
	(void)ward_wrap(e, "building the sandbox (isolation level landlock, stage %s)",
			c->failed_stage ? c->failed_stage : "clone");
	return ward_remedy(e, "%s", probe_step_remedy(code));
}

/* After the exec was allowed: it failed, or what comes just before it. */
static bool level_start_error(const struct running *run, struct ward_err *e)
{
	const struct level_memory *m = run->child;

	return m && m->child.failed_error < 0 && explain_child(&m->child, e) < 0;
}

static void tell_layers(const struct running *run, struct result *r)
{
	static const enum layer in_force[] = { LAYER_RLIMITS, LAYER_CAPS, LAYER_NNP, LAYER_LANDLOCK,
					       LAYER_SECCOMP };

	for (int i = 0; i < LAYERS; i++)
		result_layer_note(r, (enum layer)i, LAYER_ABSENT,
				  "isolation level landlock has none");
	for (size_t i = 0; i < ARRAY_LEN(in_force); i++)
		result_layer_note(r, in_force[i], LAYER_IN_FORCE, NULL);
	if (run->cgroup)
		result_layer_note(r, LAYER_CGROUP, LAYER_IN_FORCE, NULL);
	if (run->notify_fd < 0)
		result_layer_note(r, LAYER_SECCOMP, LAYER_IN_FORCE,
				  "inside another sandbox: denied calls are not recorded, and "
				  "chmod, touch and attributes are refused everywhere");
	level_add_notes(&r->notes);
}

static int level_release(const struct plan *p, struct running *run, struct result *r,
			 struct ward_err *e)
{
	struct level_memory *m = run->child;
	int fd = -1;
	size_t count = 0;
	char byte;

	(void)p;
	if (io_recv_fds(run->control_fd, &byte, 1, &fd, 1, &count) != 1) {
		siginfo_t info;

		while (waitid(P_PIDFD, (id_t)run->pid_fd, &info, WEXITED | WNOWAIT) < 0 &&
		       errno == EINTR)
			;
		return explain_child(&m->child, e);
	}
	if (count)
		run->notify_fd = fd;
	tell_layers(run, r);
	if (io_write_all(run->control_fd, "g", 1) < 0)
		return ward_fail_errno(e, "the sandbox exited while it was starting");
	m->child.released = true;
	return 0;
}

/* There are no mounts that the host could undo. */
static int level_remount(const struct plan *p, struct running *run, const struct guard_root *g,
			 const size_t *steps, size_t count, struct ward_err *e)
{
	(void)p, (void)run, (void)g, (void)steps, (void)count, (void)e;
	return 0;
}

static void level_kill(struct running *run)
{
	const struct level_memory *m = run->child;
	struct pollfd dead = { .fd = run->pid_fd, .events = POLLIN };
	struct guest_message end = { .op = GUEST_END };

	if (run->pid_fd < 0)
		return;
	if (poll(&dead, 1, 0) == 1) {
		leftovers_kill(run->init_pid);
		return;
	}
	/* before the exec there is one process; after it, ward-init ends the whole domain. Without
	 * room for a message, the end of the socket says the same. */
	if (!m->child.released)
		(void)!syscall(SYS_pidfd_send_signal, run->pid_fd, SIGKILL, NULL, 0);
	else if (send(run->control_fd, &end, sizeof(end), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		shutdown(run->control_fd, SHUT_WR);
}

static void level_finish(struct running *run)
{
	struct level_memory *m = run->child;

	if (!m)
		return;
	leftovers_kill(run->init_pid);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	if (m->child.tmp_path[0])
		(void)!remove_tree(m->child.tmp_path);
	strv_free(&m->texts);
	free(m->argv);
	free(m->envp);
	munmap(m, sizeof(*m));
	run->child = NULL;
}

static const char *const *level_stage_names(void)
{
	static const char *names_and_helps[2 * 16 + 1];

	for (size_t i = 0; i < level_stage_count && i < 16; i++) {
		names_and_helps[2 * i] = level_stages[i].name;
		names_and_helps[2 * i + 1] = level_stages[i].help;
	}
	return names_and_helps;
}

const struct engine engine_landlock = {
	.name = "native",
	.start = level_start,
	.release = level_release,
	.remount = level_remount,
	.start_error = level_start_error,
	.kill = level_kill,
	.finish = level_finish,
	.stages = level_stage_names,
	.no_snapshot = "its processes belong to the host kernel, which cannot save their "
		       "state\nuse isolation: gvisor",
};

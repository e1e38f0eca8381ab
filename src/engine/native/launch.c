/*
 * Launching the child. In: ids and a directory to build over, both of which a policy rarely
 * changes. Out: a child that builds its root and waits for the plan. Runs in the supervisor; as
 * root it also writes the child's id maps, which only its rights allow.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
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
#include "host/probe.h"
#include "host/facts.h"
#include "plan/etc_cache.h"
#include "start_tricks.h"

static int explain_clone(int error, struct ward_err *e)
{
	struct probe found = { 0 };

	if (error == EAGAIN || error == ENOMEM)
		return ward_fail(e, error, "cannot start another process: %s", strerror(error));
	probe_explain_user(&found, error);
	ward_fail(e, error, "cannot make a user namespace: %s", found.why);
	return ward_remedy(
		e, "%s; or accept a weaker sandbox: require: {isolation: landlock, limits: none}",
		found.remedy);
}

/* The kernel wants more of a file system that is reviewed than of one that is bound. */
static int explain_review(const struct native_child *c, int code, struct ward_err *e)
{
	ward_fail(e, code, "the kernel cannot overlay %s and %s: %s", c->failed_path, c->layer_path,
		  strerror(code));
	ward_wrap(e, "review");
	return ward_remedy(
		e, "mount the workspace directly (filesystem.mode: read_only or read_write), or "
		   "put it and WARD_STATE_DIR on ext4, xfs, btrfs or tmpfs");
}

/* The outermost directory of the path that others may not enter: the length of its name, 0: none
 * is. */
static size_t find_closed(const char *path)
{
	for (size_t n = 1; *path == '/' && path[n]; n++) {
		auto_free char *dir = path[n] == '/' ? strndup(path, n) : NULL;
		struct stat st;

		if (dir && stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & S_IXOTH))
			return n;
	}
	return 0;
}

int native_explain_child(const struct native_child *c, struct ward_err *e)
{
	int code = c->failed_error < 0 ? (int)-c->failed_error : EIO;
	size_t closed;

	const char *why = c->failed_error == -ECHILD ? "a helper process was killed"
			  : code == ETOOMANYREFS
				  ? "your processes have more descriptors in flight in sockets "
				    "than your limit of open files (ulimit -n)"
			  : c->failed_error < 0 ? strerror(code)
						: "the sandbox's first process was killed";

	if (c->review_refused)
		return explain_review(c, code, e);
	ward_fail(e, code, "%s%s%s", c->failed_path ? c->failed_path : "",
		  c->failed_path ? ": " : "", why);
	ward_wrap(e, "building the sandbox (stage %s)",
		  c->failed_stage ? c->failed_stage : "clone");
	closed = code == EACCES && c->failed_path ? find_closed(c->failed_path) : 0;
	if (closed)
		return ward_remedy(e,
				   "%.*s is closed to other users, and the sandbox runs as one: "
				   "chmod o+x it, or run ward as its owner",
				   (int)closed, c->failed_path);
	return ward_remedy(e, "%s", probe_step_remedy(code));
}

/* The kernel's own directory first: nothing that a policy gives lies there. */
const char *native_choose_base(const struct plan *p)
{
	static const char *const candidates[] = { "/sys", "/mnt",  "/srv", "/media", "/opt",
						  "/tmp", "/boot", "/var", "/home",  "/root" };

	for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
		bool used = p && p->image.root && path_is_beneath(p->image.root, candidates[i]);
		struct stat st;

		for (size_t k = 0; p && k < p->mount_count; k++)
			used |= p->mounts[k].kind == MOUNT_BIND &&
				path_is_beneath(p->mounts[k].source, candidates[i]);
		if (!used && lstat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}

static int write_maps(const struct plan_ids *ids, const struct running *run, struct ward_err *e)
{
	static const char *const files[] = { "uid_map", "gid_map" };

	for (int i = 0; i < 2; i++) {
		char path[64], line[64];
		int r;

		snprintf(path, sizeof(path), "/proc/%d/%s", run->init_pid, files[i]);
		snprintf(line, sizeof(line), "%u %u 1\n", i ? ids->inside_gid : ids->inside_uid,
			 i ? ids->host_gid : ids->host_uid);
		r = io_write_file(AT_FDCWD, path, line);
		if (r < 0) {
			ward_fail(e, -r, "cannot map the sandbox's ids to host id %u: %s",
				  i ? ids->host_gid : ids->host_uid, strerror(-r));
			return ward_remedy(e, "root needs CAP_SETUID and CAP_SETGID for that "
					      "(containers: --cap-add SETUID "
					      "--cap-add SETGID)");
		}
	}
	return 0;
}

/* Whether most processors have nothing to do now. In "0.71 0.2 0.3 2/80 4711" 2 is how many
 * processes want one, on the whole host; some of them ours. Where processes wait for a processor,
 * more processes wait longer. The averages before it say little: they count processes that wait for
 * the kernel, and remember for a minute what is over. */
static bool host_is_idle(unsigned cpu_count, int ours)
{
	char text[64];
	auto_fd fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int running;

	if (HELPER_ALWAYS)
		return cpu_count > 1;
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%*s %*s %*s %d/", &running) == 1 &&
	       4 * (running - ours) < (int)cpu_count;
}

/* Where the child and its helper work: in parallel if there are idle processors, else in turn. What
 * looks busy may be over in a moment (the kernel's own work for a process that has just ended), so
 * the child looks, too, how soon it has got a processor of its own. */
static void choose_cpus(struct native_child *c)
{
	c->cpu_count =
		sched_getaffinity(0, sizeof(c->cpus), &c->cpus) < 0 ? 0 : facts_count(&c->cpus);
	if (c->cpu_count < 2 || raw_call(SYS_getcpu, &c->cpu, 0, 0) < 0)
		return;
	c->here = c->others = c->cpus;
	CPU_CLR(c->cpu, &c->others);
	CPU_XOR(&c->here, &c->cpus, &c->others);
	if (c->cpu_count > 2) {
		c->here = c->others; /* a third one for the helper, which need not wait for us */
		c->sync.helper_go = c->go_at_once = true;
	}
	c->launched_ns = native_now();
	c->parallel = HELPER_ALWAYS; /* the child may ask before we have looked */
}

void native_recheck_idle(const struct running *run)
{
	struct native_child *c = &((struct native_memory *)run->child)->child;

	if (c->parallel || !c->launched_ns || __atomic_load_n(&c->child_began, __ATOMIC_ACQUIRE) ||
	    !host_is_idle(c->cpu_count, 2))
		return;
	c->parallel = true;
	native_put_on(c, run->init_pid, &c->others);
}

static void fill_child(struct native_child *c, const char *base)
{
	c->base = base;
	choose_cpus(c);
	c->base_fd = c->net_fd = c->proc_fd = c->listener_fd = c->master_fd = c->slave_fd =
		c->layer_fd = -1;
	c->old_root_error = -ECHILD;
}

static void fill_ids(struct native_child *c, const struct plan_ids *ids)
{
	c->ids = *ids;
	snprintf(c->root_options, sizeof(c->root_options),
		 "mode=0755,size=4m,nr_inodes=4096,uid=%u,gid=%u", ids->inside_uid,
		 ids->inside_gid);
	snprintf(c->pts_options, sizeof(c->pts_options),
		 "newinstance,ptmxmode=0666,mode=0620,max=%d,uid=%u,gid=%u", NATIVE_PTYS_MAX,
		 ids->inside_uid, ids->inside_gid);
	if (ids->mode == IDS_MAPPED || ids->mode == IDS_OWNER)
		return;
	snprintf(c->uid_map, sizeof(c->uid_map), "%u %u 1\n", ids->inside_uid, ids->host_uid);
	snprintf(c->gid_map, sizeof(c->gid_map), "%u %u 1\n", ids->inside_gid, ids->host_gid);
}

static int clone_child(struct native_child *c, struct running *run, int into, struct ward_err *e)
{
	struct clone_child child = {
		.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWUTS | CLONE_VM | CLONE_PIDFD |
			 (into >= 0 ? CLONE_INTO_CGROUP : 0),
		.cgroup_fd = into,
		.pid_fd = -1,
		.stack = c->stack,
		.stack_bytes = sizeof(c->stack),
		.main = c->bundle ? c->bundle->main : native_child_main,
		.argument = c,
	};
	long pid = clone_start(&child);

	if (pid < 0)
		return explain_clone((int)-pid, e);
	run->init_pid = (pid_t)pid;
	run->pid_fd = child.pid_fd;
	/* it may have begun by now, and asks later */
	if (c->launched_ns && host_is_idle(c->cpu_count, 2)) {
		c->parallel = true;
		native_put_on(c, pid, &c->others);
	}
	return 0;
}

void native_send_system(struct running *run, const struct plan_system *system)
{
	struct native_memory *m = run->child;
	/* a tree can be attached once, and an earlier child may have done that before it was thrown
	 * away */
	auto_fd again = -1;
	int tree_fd = system->etc.tree_fd;

	m->child.system = system;
	if (tree_fd >= 0 && run->etc_given) {
		again = etc_cache_open_tree(&system->etc);
		tree_fd = again >= 0 ? again : tree_fd;
	}
	/* a child that has ended is seen later */
	if (tree_fd >= 0) {
		run->etc_given = true;
		(void)!io_send_fds(run->control_fd, "s", 1, &tree_fd, 1);
	} else {
		(void)!send(run->control_fd, "s", 1, MSG_NOSIGNAL);
	}
}

int native_send_ids(struct running *run, const struct plan_ids *ids, struct ward_err *e)
{
	struct native_child *c = &((struct native_memory *)run->child)->child;
	int r;

	fill_ids(c, ids);
	r = c->uid_map[0] ? 0 : write_maps(ids, run, e);
	if (r == 0 && io_write_all(run->control_fd, "m", 1) < 0)
		r = ward_fail(e, EPIPE, "the sandbox exited");
	return r;
}

int native_launch(struct running *run, const struct plan_ids *ids, const char *base, int into,
		  const struct native_bundle *bundle, struct ward_err *e)
{
	struct native_memory *m;
	auto_fd child_fd = -1;
	int pair[2], r;

	if (!base)
		return ward_fail(e, ENOENT, "found no directory to mount the sandbox's root on");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the control socket");
	run->control_fd = pair[0];
	/* above 0-3, which the child overwrites */
	child_fd = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
	close(pair[1]);
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (child_fd < 0 || m == MAP_FAILED)
		return ward_fail_errno(e, "cannot prepare the sandbox");
	run->child = m;
	fill_child(&m->child, base);
	if (ids)
		fill_ids(&m->child, ids);
	m->child.ids_sent = !m->child.uid_map[0];
	m->child.bundle = bundle;
	m->child.no_helper = run->no_helper;
	m->child.timed = run->timing && run->timing->on;
	m->child.control_fd = child_fd;
	m->child.supervisor_fd = run->control_fd;
	r = clone_child(&m->child, run, into, e);
	return r == 0 && ids && m->child.ids_sent ? native_send_ids(run, ids, e) : r;
}

void native_discard(struct running *run)
{
	struct native_memory *m = run->child;

	if (run->init_pid > 0) {
		kill(run->init_pid, SIGKILL);
		while (waitpid(run->init_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	own_close_fd(&run->control_fd);
	own_close_fd(&run->pid_fd);
	run->control_fd = run->pid_fd = -1;
	run->init_pid = 0;
	run->child = NULL;
	if (!m)
		return;
	strv_free(&m->texts);
	free(m->options);
	free(m->argv);
	buf_free(&m->routes4);
	buf_free(&m->routes6);
	buf_free(&m->rules);
	buf_free(&m->log);
	/* m itself stays: ward ends soon, and to take memory away from several processors takes
	 * longer than that */
}

/*
 * The oci engine as the supervisor sees it. In: a plan. Out: a container whose first process is ward-init, on the same control socket, under the same filter, with the same seccomp listener as in the native engine: commands, exec,
 * copies, pauses, signals and the end of everything when the supervisor dies go the same way. The runtime builds the container and ends; the container's first process
 * becomes our child then (we are a subreaper) and comes with its own pidfd and /proc.
 *
 * What this engine does not do is refused: networks, review, terminals of its own (pipes instead), and runs of ordinary users. The container has the name of the run's cgroups, so the runtime puts it into them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/text.h"
#include "engine/native/seccomp.h"
#include "engine/oci/oci.h"
#include "guest/protocol.h"
#include "lib/observe.h"
#include "lib/limits.h"

#define START_MS 60000
#define LOG_SHOWN 300
#define FILTER_MAX 1024

struct oci_memory {
	pid_t runtime_pid;	/* 0: collected */
	int log_fd;
	struct strv own;	/* cgroups that ward made for the run */
	struct strv cgroups;	/* that the runtime made */
};

static const char *const runtimes[] = { "/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc" };

static const char *find_runtime(void)
{
	for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
		if (access(runtimes[i], X_OK) == 0)
			return runtimes[i];
	return NULL;
}

static int oci_probe(struct ward_err *e)
{
	if (!find_runtime()) {
		ward_fail(e, ENOENT, "runc is not installed");
		return ward_remedy(e, "apt-get install runc");
	}
	if (geteuid() != 0) {
		ward_fail(e, EPERM, "the oci engine is for root");
		return ward_remedy(e, "isolation: native needs no root");
	}
	return 0;
}

static int oci_check(const struct plan *p, struct ward_err *e)
{
	const struct {
		bool wanted;
		const char *what;
	} rows[] = { { p->net.on, "network" }, { p->review, "filesystem.mode: review" }, { p->spec->policy.proc_nesting, "process.nesting" },
		     { p->facts.cgroup == CGROUP_V2, "limits held by cgroup v2" } };

	/* a runtime binds the host's devices as they are: to the host's uid 0 they are files of its own, whose modes it could change */
	if (p->ids.mode == IDS_ROOT) {
		ward_fail(e, ENOTSUP, "the workspace %s belongs to root: in the oci engine, which maps no mounts, the agent would be the host's uid 0", p->workspace);
		return ward_remedy(e, "give the workspace to an ordinary user (chown), or isolation: native");
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].wanted) {
			ward_fail(e, ENOTSUP, "%s: the oci engine of this build cannot do that", rows[i].what);
			return ward_remedy(e, "isolation: native can");
		}
	return 0;
}

static void note_own(const struct plan *p, struct oci_memory *m);

static int fill_filter(const struct plan *p, struct buf *out, struct ward_err *e)
{
	struct sock_filter code[FILTER_MAX];
	size_t n = 0;
	unsigned flags = SECCOMP_WATCH(observe_wanted(p)) | (p->limits[LIMIT_MEMORY].held_by == HELD_WATCH ? SECCOMP_CLOSE_MEMORY : 0) |
			 (p->gpus ? SECCOMP_GPUS : 0);
	int r = seccomp_program(p->spec->policy.proc_syscalls, flags, code, ARRAY_LEN(code), &n);

	if (r < 0)
		return ward_fail(e, -r, "cannot make the system call filter");
	buf_add(out, code, n * sizeof(*code));
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int make_cgroup(const struct plan *p, struct running *run, struct ward_err *e)
{
	bool uses = false;

	for (int i = 0; i < LIMITS; i++)
		uses |= p->limits[i].held_by == HELD_CGROUP1;
	if (!uses)
		return 0;
	return cgroup_create(p, &run->cgroup, e);
}

static int prepare(const struct plan *p, struct running *run, struct oci_place *o, struct ward_err *e)
{
	int r;

	o->runtime = find_runtime();
	if (!o->runtime)
		return oci_probe(e);
	o->base = oci_choose_base(p);
	if (!o->base)
		return ward_fail(e, ENOENT, "found no directory to build the bundle over");
	r = fill_filter(p, &o->filter, e);
	if (r == 0)
		r = oci_config(p, o->base, &o->config, e);
	return r < 0 ? r : make_cgroup(p, run, e);
}

static int launch(struct running *run, struct oci_place *o, struct oci_memory *m, struct ward_err *e)
{
	auto_fd inner = -1;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the control socket");
	run->control_fd = pair[0];
	inner = pair[1];
	m->log_fd = memfd_create("ward-oci-log", MFD_CLOEXEC);
	if (m->log_fd < 0)
		return ward_fail_errno(e, "cannot keep the runtime's log");
	o->supervisor = getpid();
	o->control_fd = inner;
	o->log_fd = m->log_fd;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return ward_fail_errno(e, "cannot become the parent of the container");
	m->runtime_pid = fork();
	if (m->runtime_pid == 0)
		oci_become_runtime(o);
	if (m->runtime_pid < 0)
		return ward_fail_errno(e, "cannot start the runtime");
	run->init_pid = m->runtime_pid;	/* until the container's own is there */
	return 0;
}

static int oci_start(const struct plan *p, const int stdio_fds[3], struct running *run, struct ward_err *e)
{
	struct oci_place o = { .plan = p };
	struct oci_memory *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->log_fd = -1;
	run->child = m;
	memcpy(o.stdio_fds, stdio_fds, sizeof(o.stdio_fds));
	r = prepare(p, run, &o, e);
	note_own(p, m);
	if (r == 0)
		r = launch(run, &o, m, e);
	buf_free(&o.config);
	buf_free(&o.filter);
	return r;
}

static void collect_runtime(struct running *run)
{
	struct oci_memory *m = run->child;

	if (!m || m->runtime_pid <= 0)
		return;
	while (waitpid(m->runtime_pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (run->init_pid == m->runtime_pid)
		run->init_pid = 0;
	m->runtime_pid = 0;
}

/* The container did not come: the runtime's last line says why. */
static int fail_start(struct running *run, struct ward_err *e)
{
	struct oci_memory *m = run->child;
	auto_buf text = { 0 }, shown = { 0 };
	const char *why;

	kill(m->runtime_pid, SIGKILL);
	collect_runtime(run);
	if (lseek(m->log_fd, 0, SEEK_SET) < 0 || io_read_all(m->log_fd, 65536, &text) < 0)
		text.len = 0;
	while (text.len && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	why = strrchr(buf_text(&text), '\n');
	text_escape(&shown, why ? why + 1 : buf_text(&text));
	ward_fail(e, EIO, "the runtime could not start the container: %.*s", LOG_SHOWN, shown.len ? buf_text(&shown) : "it said nothing");
	return ward_remedy(e, "isolation: native needs no runtime; ward doctor shows what there is");
}

/* The process that a pidfd is, in our own namespace. */
static pid_t pid_of(int pid_fd)
{
	auto_buf text = { 0 };
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	if (io_read_file(AT_FDCWD, path, 4096, &text) < 0)
		return -1;
	at = strstr(buf_text(&text), "\nPid:");
	return at ? (pid_t)strtol(at + 5, NULL, 10) : -1;
}

/* The directories of the cgroups that a process is in, of those whose path ends with `part`, with `behind` behind each. */
static void list_cgroups(const char *file, const char *part, const char *behind, struct strv *out)
{
	auto_buf text = { 0 };

	if (io_read_file(AT_FDCWD, file, 65536, &text) < 0)
		return;
	for (char *line = text.data, *next; line && *line; line = next) {
		char *name = strchr(line, ':'), *dir = name ? strchr(name + 1, ':') : NULL;

		next = line + strcspn(line, "\n");
		next += *next == '\n' ? (*next = '\0', 1) : 0;
		if (!dir || strlen(dir) < strlen(part) || (*part && strcmp(dir + strlen(dir) - strlen(part), part) != 0))
			continue;
		*dir++ = '\0';
		name++;
		if (strncmp(name, "name=", 5) == 0)
			name += 5;
		strv_addf(out, "/sys/fs/cgroup/%s%s%s", *name ? name : "unified", strcmp(dir, "/") == 0 && *behind ? "" : dir, behind);
	}
}

/* What the runtime makes has the container's name, which is that of the run's own cgroups: those it finds and uses. */
static void oci_add_dirs(const struct plan *p, struct strv *dirs)
{
	char behind[48];

	snprintf(behind, sizeof(behind), "/ward-%s", p->run_id);
	list_cgroups("/proc/self/cgroup", "", behind, dirs);
}

/* Remembers the cgroups that the runtime made where the run has none of its own. */
static void note_cgroups(const struct plan *p, struct oci_memory *m, pid_t pid)
{
	auto_strv all = { 0 };
	char file[64], part[48];

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	snprintf(part, sizeof(part), "/ward-%s", p->run_id);
	list_cgroups(file, part, "", &all);
	for (size_t i = 0; i < all.len; i++)
		if (!strv_has(&m->own, all.items[i]))
			strv_add(&m->cgroups, all.items[i]);
}

/* Before the runtime starts: what is there of that name is ward's. */
static void note_own(const struct plan *p, struct oci_memory *m)
{
	auto_strv all = { 0 };

	oci_add_dirs(p, &all);
	for (size_t i = 0; i < all.len; i++)
		if (access(all.items[i], F_OK) == 0)
			strv_add(&m->own, all.items[i]);
}

static int take_hello(struct running *run, struct ward_err *e)
{
	struct pollfd p = { .fd = run->control_fd, .events = POLLIN };
	struct guest_message hello = { 0 };
	int fds[3] = { -1, -1, -1 };
	size_t count = 0;
	ssize_t n = 0;

	if (poll(&p, 1, START_MS) == 1)
		n = io_recv_fds(run->control_fd, &hello, sizeof(hello), fds, ARRAY_LEN(fds), &count);
	if (n == (ssize_t)sizeof(hello) && hello.op == GUEST_FAILED)
		return ward_fail(e, hello.a, "ward-init could not put the system call filter on: %s", strerror(hello.a));
	if (n != (ssize_t)sizeof(hello) || count != 3) {
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		return fail_start(run, e);
	}
	run->proc_fd = fds[0];
	run->pid_fd = fds[1];
	run->notify_fd = fds[2];
	return 0;
}

static int oci_release(const struct plan *p, struct running *run, struct result *r, struct ward_err *e)
{
	static const enum layer in_force[] = { LAYER_USER, LAYER_MOUNT, LAYER_PID, LAYER_NET, LAYER_IPC, LAYER_UTS, LAYER_CGROUPNS, LAYER_PROC,
					       LAYER_RLIMITS, LAYER_CAPS, LAYER_NNP, LAYER_SECCOMP };
	struct oci_memory *m = run->child;
	int status = take_hello(run, e);
	const struct guest_message go = { .op = GUEST_CONTINUE };

	if (status < 0)
		return status;
	run->init_pid = pid_of(run->pid_fd);
	if (run->init_pid <= 0)
		return ward_fail(e, EIO, "the container's first process cannot be found");
	note_cgroups(p, m, run->init_pid);
	for (size_t i = 0; i < ARRAY_LEN(in_force); i++)
		result_layer_note(r, in_force[i], LAYER_IN_FORCE, NULL);
	result_layer_note(r, LAYER_CGROUP, run->cgroup ? LAYER_IN_FORCE : LAYER_ABSENT, NULL);
	result_layer_note(r, LAYER_IDMAP, LAYER_ABSENT, "the runtime maps no mounts");
	result_layer_note(r, LAYER_LANDLOCK, LAYER_ABSENT, "the oci engine has none");
	(void)!send(run->control_fd, &go, sizeof(go), MSG_NOSIGNAL);	/* a container that has ended is seen in the loop */
	return 0;
}

/* Ends the container and waits for that; then the runtime, whose child it was, can be collected. */
static void oci_kill(struct running *run)
{
	struct oci_memory *m = run->child;
	struct pollfd dead = { .fd = run->pid_fd, .events = POLLIN };

	if (run->pid_fd >= 0) {
		syscall(SYS_pidfd_send_signal, run->pid_fd, SIGKILL, NULL, 0);
		poll(&dead, 1, 5000);
	}
	collect_runtime(run);
	for (size_t i = 0; m && run->pid_fd >= 0 && i < m->cgroups.len; i++)
		rmdir(m->cgroups.items[i]);
}

static int oci_remount(unused_arg const struct plan *p, unused_arg struct running *run, const struct guard_root *g, unused_arg const size_t *steps,
		       unused_arg size_t count, struct ward_err *e)
{
	return ward_fail(e, ENOTSUP, "a hidden or protected file of %s was replaced, and the oci engine cannot cover it again", g->path);
}

static void oci_finish(struct running *run)
{
	struct oci_memory *m = run->child;

	if (!m)
		return;
	oci_kill(run);
	own_close_fd(&m->log_fd);
	strv_free(&m->cgroups);
	strv_free(&m->own);
	free(m);
	run->child = NULL;
}

static const char *const *oci_stages(void)
{
	static const char *const stages[] = {
		"bundle", "a mount namespace, and in it a tmpfs with the root, the mount points and config.json",
		"cgroup", "make the run's cgroup and write its limits; the runtime enters it",
		"runtime", "runc makes the container: namespaces, ids, mounts, masks, rlimits, no capabilities, names of system calls",
		"filter", "ward-init puts the exact system call filter on",
		"exec", "ward-init starts the command", NULL
	};

	return stages;
}

const struct engine engine_oci = {
	.name = "oci",
	.probe = oci_probe,
	.check = oci_check,
	.add_dirs = oci_add_dirs,
	.start = oci_start,
	.release = oci_release,
	.remount = oci_remount,
	.kill = oci_kill,
	.finish = oci_finish,
	.stages = oci_stages,
};

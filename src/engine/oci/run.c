/*
 * The oci engine as the supervisor sees it. In: a plan. Out: a container whose first process is
 * ward-init, on the same control socket, under the same filter, with the same seccomp listener and
 * the same gateway as in the native engine. The child (child.c) builds the root and the network as
 * the native one does and becomes ward-outer, which is what init_pid and pid_fd are: it is pid 1 of
 * a namespace that holds the runtime, the container and whatever either starts. The runtime makes
 * the container and ends; ward-init, its first process, then gets what only ward knows (struct
 * guest_join, struct guest_setup): cgroups, the command, limits, the filter.
 *
 * Works for root and for ordinary users alike: nothing of it has rights on the host that the
 * agent's id has not. What this engine does not do is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/text.h"
#include "engine/oci/oci.h"
#include "event/result.h"
#include "limit/limits.h"
#include "protocol/guest.h"

#define START_MS 60000
#define LOG_SHOWN 300

struct oci_memory {
	struct native_bundle bundle;
	struct buf config;
	struct strv words;       /* the runtime's */
	char root[64];           /* in the bundle */
	struct native_view view; /* of the container's mounts */
};

static struct oci_memory *memory_of(const struct running *run)
{
	const struct native_memory *m = run->child;

	return m->own;
}

static int oci_probe(struct ward_err *e)
{
	struct oci_runtime runtime;

	return oci_find_runtime(OCI_AUTO, &runtime, e);
}

static int oci_check(const struct plan *p, struct ward_err *e)
{
	struct oci_runtime runtime;
	int r = oci_find_runtime(p->spec->policy.oci_runtime, &runtime, e);

	if (r < 0)
		return r;
	if (p->spec->policy.proc_nesting) {
		ward_fail(e, ENOTSUP, "process.nesting: the oci engine does not support it");
		return ward_remedy(e, "use isolation: native");
	}
	return 0;
}

static int prepare(const struct plan *p, struct oci_memory *m, struct ward_err *e)
{
	struct oci_runtime runtime;
	char id[40];
	int r = oci_find_runtime(p->spec->policy.oci_runtime, &runtime, e);

	if (r < 0)
		return r;
	m->bundle.dir = oci_choose_dir(p, &runtime);
	if (!m->bundle.dir)
		return ward_fail(e, ENOENT, "found no directory to mount the bundle on");
	snprintf(m->root, sizeof(m->root), "%s/" OCI_ROOT, m->bundle.dir);
	/* not the name of the run's own cgroup, which the runtime would take for its own */
	snprintf(id, sizeof(id), "oci-%s", p->spec->run_id);
	r = oci_runtime_words(&runtime, m->bundle.dir, id, &m->words, e);
	if (r == 0)
		r = oci_config(p, m->bundle.dir, &runtime, &m->config, e);
	m->bundle.main = oci_child_main;
	/* it refuses a host that has both versions mounted */
	m->bundle.hide_cgroups = runtime.crun;
	m->bundle.config = (struct native_bytes){ m->config.data, m->config.len };
	m->bundle.argv = m->words.items;
	if (r == 0) {
		auto_fd log_fd = memfd_create("ward-oci-log", MFD_CLOEXEC);

		/* above what the child overwrites */
		m->bundle.log_fd = log_fd < 0 ? -1 : fcntl(log_fd, F_DUPFD_CLOEXEC, 16);
		if (m->bundle.log_fd < 0)
			r = ward_fail_errno(e, "cannot create the runtime's log");
	}
	return r;
}

static void free_memory(struct oci_memory *m)
{
	if (!m)
		return;
	own_close_fd(&m->bundle.log_fd);
	own_close_fd(&m->view.user_fd);
	own_close_fd(&m->view.mount_fd);
	buf_free(&m->config);
	strv_free(&m->words);
	free(m);
}

static int launch(const struct plan *p, const int stdio_fds[3], struct running *run,
		  struct oci_memory *m, struct ward_err *e)
{
	struct plan_ids ids = p->ids;
	int r;

	/* for the runtime; ward-init becomes what the plan says */
	ids.inside_uid = ids.inside_gid = 0;
	r = native_launch(run, &ids, m->root, -1, &m->bundle, e);
	if (!run->child) {
		free_memory(m);
		return r;
	}
	((struct native_memory *)run->child)->own = m;
	if (r < 0)
		return r;
	native_send_system(run, p->system);
	return native_begin(p, stdio_fds, run, e);
}

static int oci_start(const struct plan *p, const int stdio_fds[3], struct running *run,
		     struct ward_err *e)
{
	struct oci_memory *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->bundle.log_fd = m->view.user_fd = m->view.mount_fd = -1;
	r = prepare(p, m, e);
	if (r == 0 && native_uses_cgroup(p))
		r = cgroup_create(p, &run->cgroup, e);
	if (r < 0) {
		free_memory(m);
		return r;
	}
	return launch(p, stdio_fds, run, m, e);
}

/* The container did not come: the runtime's last line says why. */
static int fail_start(struct running *run, struct ward_err *e)
{
	const struct native_child *c = &((struct native_memory *)run->child)->child;
	struct oci_memory *m = memory_of(run);
	auto_buf text = { 0 }, shown = { 0 };
	const char *why;
	siginfo_t info;

	kill(run->init_pid, SIGKILL);
	while (waitid(P_PIDFD, (id_t)run->pid_fd, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	if (c->failed_error < 0)
		return native_explain_child(c, e);
	if (lseek(m->bundle.log_fd, 0, SEEK_SET) < 0 ||
	    io_read_all(m->bundle.log_fd, 65536, &text) < 0)
		text.len = 0;
	while (text.len && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	why = strrchr(buf_text(&text), '\n');
	text_escape(&shown, why ? why + 1 : buf_text(&text));
	ward_fail(e, EIO, "the runtime could not start the container: %.*s", LOG_SHOWN,
		  shown.len ? buf_text(&shown) : "it gave no reason");
	return ward_remedy(
		e, "isolation: native needs no runtime; ward doctor shows which runtimes work");
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

/* The ways into the run's cgroups, for ward-init alone. v2 has one, which is opened for it. */
static int cgroup_fds(const struct running *run, int fds[GUEST_CGROUPS_MAX], int *ret_opened,
		      struct ward_err *e)
{
	int dir = run->cgroup ? cgroup_clone_fd(run->cgroup) : -1;

	if (!run->cgroup)
		return 0;
	if (dir < 0)
		return (int)cgroup_self_fds(run->cgroup, fds, GUEST_CGROUPS_MAX);
	*ret_opened = fds[0] = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return fds[0] < 0 ? ward_fail_errno(e, "cannot open the run's cgroup") : 1;
}

static mode_t own_umask(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return mask;
}

/* The directory, the words and the variables, as they are. */
static int make_texts(const struct plan *p, struct guest_setup *s, struct ward_err *e)
{
	auto_fd fd = memfd_create("ward-texts", MFD_CLOEXEC);
	auto_buf text = { 0 };
	int r;

	buf_add(&text, p->cwd, strlen(p->cwd) + 1);
	for (char *const *word = p->argv; word && *word; word++, s->word_count++)
		buf_add(&text, *word, strlen(*word) + 1);
	for (char *const *variable = p->env.items; variable && *variable;
	     variable++, s->variable_count++)
		buf_add(&text, *variable, strlen(*variable) + 1);
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	s->text_len = text.len;
	r = fd < 0 ? -errno : io_write_all(fd, text.data, text.len);
	return r < 0 ? ward_fail(e, -r, "cannot pass the command on: %s", strerror(-r))
		     : take_fd(&fd);
}

static int send_packet(const struct running *run, const void *bytes, size_t n, const int *fds,
		       size_t count, struct ward_err *e)
{
	int r = io_send_fds(run->control_fd, bytes, n, fds, count);

	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return ward_fail(e, -r, "cannot send ward-init its layers: %s", strerror(-r));
	return 0; /* an end that has come is seen next */
}

static int send_join(const struct plan *p, const struct running *run, struct ward_err *e)
{
	struct guest_join j = { .uid = p->ids.inside_uid, .gid = p->ids.inside_gid };
	int fds[GUEST_CGROUPS_MAX], count;
	auto_fd opened = -1;

	count = cgroup_fds(run, fds, &opened, e);
	j.cgroup_count = count < 0 ? 0 : (uint32_t)count;
	return count < 0 ? count : send_packet(run, &j, sizeof(j), fds, (size_t)count, e);
}

static int send_setup(const struct plan *p, const struct running *run, struct ward_err *e)
{
	const struct native_child *c = &((struct native_memory *)run->child)->child;
	struct guest_setup s = { .signal_mask = c->signal_mask,
				 .umask = own_umask(),
				 .filter_len = (uint32_t)c->filter_len,
				 .rlimit_count = (uint32_t)c->rlimit_count };
	auto_fd texts = make_texts(p, &s, e);
	auto_buf packet = { 0 };

	_Static_assert(NATIVE_FILTER_MAX <= GUEST_FILTER_MAX && LIMITS_RLIMITS <= GUEST_RLIMITS_MAX,
		       "a setup is too small");
	if (texts < 0)
		return texts;
	for (size_t i = 0; i < c->rlimit_count; i++) {
		s.rlimits[i].resource = (uint64_t)c->rlimits[i].resource;
		s.rlimits[i].soft = c->rlimits[i].soft;
		s.rlimits[i].hard = c->rlimits[i].hard;
	}
	buf_add(&packet, &s, sizeof(s));
	buf_add(&packet, c->filter, c->filter_len * sizeof(*c->filter));
	if (packet.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return send_packet(run, packet.data, packet.len, &texts, 1, e);
}

/* The container's first process is there, under everything. */
static int take_container(struct running *run, struct ward_err *e)
{
	struct pollfd p = { .fd = run->control_fd, .events = POLLIN };
	struct guest_message ready = { 0 };
	int fds[3] = { -1, -1, -1 };
	auto_fd pid_fd = -1;
	size_t count = 0;
	ssize_t n = 0;

	if (poll(&p, 1, START_MS) == 1)
		n = io_recv_fds(run->control_fd, &ready, sizeof(ready), fds, ARRAY_LEN(fds),
				&count);
	if (n == (ssize_t)sizeof(ready) && ready.op == GUEST_FAILED)
		return ward_fail(e, ready.a, "ward-init could not apply the last layers: %s",
				 strerror(ready.a));
	if (n != (ssize_t)sizeof(ready) || count != 3) {
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		return fail_start(run, e);
	}
	run->proc_fd = fds[0];
	pid_fd = fds[1];
	run->notify_fd = fds[2];
	run->inside_pid = pid_of(pid_fd);
	if (run->inside_pid <= 0) /* it has ended already, and is gone */
		run->inside_pid = run->init_pid;
	return 0;
}

/* For mounts that must be made again later. Without it that is refused when it comes to it. */
static void keep_view(const struct running *run)
{
	struct native_view *v = &memory_of(run)->view;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", run->inside_pid);
	v->mount_fd = open(path, O_RDONLY | O_CLOEXEC);
	v->user_fd = v->mount_fd < 0 ? -1 : ioctl(v->mount_fd, NS_GET_USERNS);
}

static void note_layers(const struct plan *p, const struct running *run, struct result *r)
{
	static const enum layer in_force[] = { LAYER_USER,     LAYER_MOUNT, LAYER_PID,
					       LAYER_NET,      LAYER_IPC,   LAYER_UTS,
					       LAYER_CGROUPNS, LAYER_PROC,  LAYER_RLIMITS,
					       LAYER_CAPS,     LAYER_NNP,   LAYER_SECCOMP };
	const struct native_child *c = &((struct native_memory *)run->child)->child;

	for (size_t i = 0; i < ARRAY_LEN(in_force); i++)
		result_layer_note(r, in_force[i], LAYER_IN_FORCE, c->layer_notes[in_force[i]]);
	result_layer_note(r, LAYER_CGROUP, run->cgroup ? LAYER_IN_FORCE : LAYER_ABSENT, NULL);
	result_layer_note(r, LAYER_IDMAP, p->ids.mode == IDS_MAPPED ? LAYER_IN_FORCE : LAYER_ABSENT,
			  NULL);
	result_layer_note(r, LAYER_LANDLOCK, LAYER_ABSENT, "the oci engine has none");
}

static int oci_release(const struct plan *p, struct running *run, struct result *r,
		       struct ward_err *e)
{
	int status;

	native_allow_exec(run);
	status = native_receive_ready(run, e);

	if (status == 0)
		status = send_join(p, run, e);
	if (status == 0)
		status = send_setup(p, run, e);
	if (status == 0)
		status = take_container(run, e);
	if (status < 0)
		return status;
	keep_view(run);
	note_layers(p, run, r);
	return 0;
}

/* The command has ended, and so do the others; the runtime, which may still be writing down that it
 * has begun, is not waited for. */
static void oci_exited(struct running *run)
{
	syscall(SYS_pidfd_send_signal, run->pid_fd, SIGKILL, NULL, 0);
}

static int oci_remount(const struct plan *p, struct running *run, const struct guard_root *g,
		       const size_t *steps, size_t count, struct ward_err *e)
{
	const struct native_view *v = &memory_of(run)->view;

	(void)p;
	if (v->user_fd < 0)
		return ward_fail(e, ENOTSUP,
				 "a hidden or protected file of %s was replaced, and the container "
				 "cannot be entered to cover it again",
				 g->path);
	return native_remount_in(v, run, g, steps, count, e);
}

static void oci_finish(struct running *run)
{
	struct oci_memory *m = run->child ? memory_of(run) : NULL;

	native_discard(run);
	free_memory(m);
}

const struct engine engine_oci = {
	.name = "oci",
	.terminals = true,
	.probe = oci_probe,
	.check = oci_check,
	.start = oci_start,
	.release = oci_release,
	.remount = oci_remount,
	.tproxy = native_tproxy,
	.exited = oci_exited,
	.finish = oci_finish,
	.stages = oci_stage_names,
	.no_snapshot = "its processes belong to the host kernel, which cannot save their "
		       "state\nuse isolation: gvisor",
};

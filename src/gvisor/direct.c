/*
 * Starts gVisor's kernel and its gofer without `runsc run`. In: the bundle, the runner's user
 * namespace, 0-2. Out: two children in their jails (jail.c), which are the programs that `runsc
 * run` ends up with, and the first command begun by a call over the control socket (control.c).
 * Runs in the runner. `runsc run` is a process that starts each of the two, which makes its jail
 * and executes itself again, with one more program to take /proc away: seven starts of sixty
 * megabytes, of which these two are left.
 *
 * The words are those of one version (src/engine/gvisor/runtime.c has the list); for every other
 * one the runner starts `runsc run`.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

#define OWN_SERVED 3 /* the root and the two directories of the runner's own, see place.c */
#define SERVED_MAX 72
#define WORDS_MAX 32
#define DEVICE "/dev/kvm"
/* a kernel that ends has closed its connections by then, and ends the gofer with that */
#define ALONE_MS 5000
#define LOOK_MS 1000

struct direct {
	const struct gvisor_way *way;
	size_t served; /* connections between the two */
	int kernel_io[SERVED_MAX], gofer_io[SERVED_MAX];
	int program, nothing; /* runsc; /dev/null */
	/* the bundle's file, each with a position of its own */
	int kernel_spec, gofer_spec;
	int mounts[2], began[2]; /* what the gofer found; the kernel is up */
	int control;
	/* /dev/kvm for the platform of that name; else -1 */
	int device;
};

struct words {
	char *items[WORDS_MAX];
	size_t len;
};

/* Our child; 0: there is none, `runsc run` watches its own. */
static pid_t gofer;

bool direct_gofer_is_dead(void)
{
	siginfo_t info = { 0 };

	return gofer && waitid(P_PID, (id_t)gofer, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == gofer;
}

bool direct_is_broken(void)
{
	static uint64_t since;

	if (!direct_gofer_is_dead())
		return false;
	if (!since)
		since = io_now_ms();
	return io_now_ms() - since >= ALONE_MS;
}

int direct_wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		int n = poll(&p, 1, gofer ? LOOK_MS : -1);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (direct_is_broken())
			return -EPIPE;
	}
}

static void add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (w->len + 1 < WORDS_MAX && vasprintf(&w->items[w->len], format, args) >= 0)
		w->len++;
	va_end(args);
}

/* "--io-fds=3,4,5" and, of the same length, what kind of mounts they are. */
static void add_served(struct words *w, const int *fds, size_t count)
{
	auto_buf list = { 0 }, kinds = { 0 };

	for (size_t i = 0; i < count; i++) {
		buf_printf(&list, "%s%d", i ? "," : "", fds[i]);
		buf_printf(&kinds, "%slisafs:none", i ? "," : "");
	}
	add(w, "--io-fds=%s", buf_text(&list));
	add(w, "--gofer-mount-confs=%s", buf_text(&kinds));
}

static void add_globals(struct words *w, const char *name, const struct gvisor_way *way)
{
	static const char *const same[] = { ("--root=" GVISOR_STATE), "--ignore-cgroups=true",
					    "--overlay2=none", "--file-access=exclusive",
					    "--file-access-mounts=shared" };

	add(w, "%s", name);
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		add(w, "%s", same[i]);
	add(w, "--network=%s", way->alone ? "none" : "host");
	add(w, "--platform=%s", way->platform);
	add(w, "%s", way->option);
}

static int keep_open(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fcntl(fds[i], F_SETFD, 0) < 0)
			return -errno;
	return 0;
}

/* The process becomes runsc, which keeps the descriptors that its words name. */
static int become(const struct direct *d, struct words *w)
{
	static char *none[] = { NULL };
	char path[32];

	w->items[w->len] = NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", d->program);
	execve(path, w->items, none);
	return -errno;
}

/* Away from the runner's group, and dead when it is. */
static void begin_child(void)
{
	sigset_t none;

	setsid();
	/* where it died before, ward-init is about to end everything */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int be_kernel(const struct direct *d)
{
	int stdio[3], kept[] = { d->kernel_spec, d->mounts[0], d->began[1], d->control, d->device },
		      sync_fd, r = 0;
	struct words w = { 0 };
	struct sysinfo host = { 0 };

	sysinfo(&host);
	for (int i = 0; i < 3; i++) {
		stdio[i] = dup(i); /* the command's */
		if (stdio[i] < 0 || (i < 2 && dup2(d->nothing, i) < 0))
			return -errno;
	}
	sync_fd = jail_kernel(d->device < 0);
	if (sync_fd < 0)
		return sync_fd;
	r = keep_open(kept, ARRAY_LEN(kept) - (d->device < 0));
	if (r == 0)
		r = keep_open(d->kernel_io, d->served);
	if (r < 0)
		return r;
	add_globals(&w, "runsc-sandbox", d->way);
	add(&w, "boot");
	add(&w, "--bundle=" GVISOR_BUNDLE);
	add_served(&w, d->kernel_io, d->served);
	add(&w, "--apply-caps=false");
	add(&w, "--setup-root=false");
	add(&w, "--attached=true");
	add(&w, "--host-shmem-huge=never");
	add(&w, "--total-host-memory=%" PRIu64, (uint64_t)host.totalram * host.mem_unit);
	add(&w, "--total-memory=%" PRIu64, (uint64_t)host.totalram * host.mem_unit);
	add(&w, "--mounts-fd=%d", d->mounts[0]);
	add(&w, "--start-sync-fd=%d", d->began[1]);
	add(&w, "--controller-fd=%d", d->control);
	add(&w, "--spec-fd=%d", d->kernel_spec);
	if (d->device >= 0)
		add(&w, "--device-fd=%d", d->device);
	add(&w, "--stdio-fds=%d,%d,%d", stdio[0], stdio[1], stdio[2]);
	add(&w, "--proc-mount-sync-fd=%d", sync_fd);
	add(&w, "%s", GVISOR_NAME);
	return become(d, &w);
}

/* The file size limit is for what the kernel asks it to do (fallocate); writes go past it, by
 * descriptors that it hands over, and the kernel's own limit is in the bundle (place.c). */
static int be_gofer(const struct direct *d)
{
	const struct rlimit longest = { d->way->file_bytes, d->way->file_bytes };
	int kept[] = { d->gofer_spec, d->mounts[1] }, sync_fd, r = 0;
	struct words w = { 0 };

	if (dup2(d->nothing, 0) < 0 || dup2(d->nothing, 1) < 0 ||
	    (d->way->file_bytes && setrlimit(RLIMIT_FSIZE, &longest) < 0))
		return -errno;
	sync_fd = jail_gofer();
	if (sync_fd < 0)
		return sync_fd;
	r = keep_open(kept, ARRAY_LEN(kept));
	if (r == 0)
		r = keep_open(d->gofer_io, d->served);
	if (r < 0)
		return r;
	add_globals(&w, "runsc-gofer", d->way);
	add(&w, "gofer");
	add(&w, "--bundle=" GVISOR_BUNDLE);
	add_served(&w, d->gofer_io, d->served);
	add(&w, "--apply-caps=false");
	add(&w, "--setup-root=false");
	add(&w, "--sync-nvproxy-fd=-1");
	add(&w, "--sync-userns-fd=-1");
	add(&w, "--mounts-fd=%d", d->mounts[1]);
	add(&w, "--spec-fd=%d", d->gofer_spec);
	add(&w, "--proc-mount-sync-fd=%d", sync_fd);
	return become(d, &w);
}

/* Each is the first process of a pid namespace of its own: the kernel may trace, and there no
 * process is whom it has not started. */
static pid_t start_one(const struct direct *d, int (*be)(const struct direct *d), const char *name)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	int r;

	if (pid)
		return pid < 0 ? -errno : pid;
	begin_child();
	r = be(d);
	gvisor_say("cannot start gVisor's %s: %s", name, strerror(-r));
	_exit(125);
}

/* The platform's; *ret_fd stays as it is where that has none. */
static int open_device(const struct gvisor_way *way, int *ret_fd)
{
	int fd;

	if (strcmp(way->platform, "kvm") != 0)
		return 0;
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		gvisor_say("cannot open " DEVICE ": %s", strerror(errno));
		return -errno;
	}
	*ret_fd = fd;
	return 0;
}

static int open_all(struct direct *d, size_t binds)
{
	d->served = OWN_SERVED + (d->way->shm_bytes == 0 ? 1u : 0u) + binds;
	if (d->served > SERVED_MAX)
		return -E2BIG;
	for (size_t i = 0; i < d->served; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return -errno;
		d->kernel_io[i] = ends[0];
		d->gofer_io[i] = ends[1];
	}
	d->control = control_listen();
	if (d->control < 0)
		return d->control;
	if ((d->program = open(GVISOR_RUNSC, O_PATH | O_CLOEXEC)) < 0 ||
	    (d->nothing = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0 ||
	    (d->kernel_spec = open(GVISOR_BUNDLE "/config.json", O_RDONLY | O_CLOEXEC)) < 0 ||
	    (d->gofer_spec = open(GVISOR_BUNDLE "/config.json", O_RDONLY | O_CLOEXEC)) < 0 ||
	    pipe2(d->mounts, O_CLOEXEC) < 0 || pipe2(d->began, O_CLOEXEC) < 0)
		return -errno;
	return open_device(d->way, &d->device);
}

/* All that is the children's now: their ends tell when they are gone. */
static void close_all(struct direct *d)
{
	for (size_t i = 0; i < d->served; i++) {
		close(d->kernel_io[i]);
		close(d->gofer_io[i]);
	}
	close(d->control);
	own_close_fd(&d->device);
	close(d->program);
	close(d->nothing);
	close(d->kernel_spec);
	close(d->gofer_spec);
	close(d->mounts[0]);
	close(d->mounts[1]);
	close(d->began[1]);
}

static int keep_pid(pid_t pid)
{
	auto_fd file = open(GVISOR_PID, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char text[16];

	if (file < 0)
		return -errno;
	snprintf(text, sizeof(text), "%d", (int)pid);
	return io_write_all(file, text, strlen(text));
}

/* The first command begins, or what the checkpoint has goes on. */
static int begin(const struct gvisor_way *way, struct answer *a)
{
	int r = way->alone ? control_loopback(a) : 0;
	auto_fd device = -1; /* a kernel that goes on makes its machine anew */

	if (r < 0)
		return r;
	if (way->image_fd < 0)
		return control_start(a);
	r = open_device(way, &device);
	if (r == 0)
		r = control_restore(way->image_fd, device, a);
	return r < 0 ? r : io_write_all(way->report_fd, "b", 1);
}

/* The kernel says that it is up; then the first command begins. A process that has ended instead
 * has reported why. */
static int begin_command(const struct gvisor_way *way, int began_fd, pid_t kernel)
{
	struct answer a;
	char byte;
	int r = direct_wait_readable(began_fd);

	if (r == 0 && read(began_fd, &byte, 1) != 1)
		return -EPIPE;
	if (r == 0)
		r = begin(way, &a);
	if (r == -EREMOTEIO && way->image_fd >= 0)
		gvisor_say("gVisor cannot restore the checkpoint: it is damaged, or files that "
			   "programs had open are gone: %.150s",
			   a.error);
	else if (r == -EREMOTEIO)
		gvisor_say("gVisor does not start the command: %s", a.error);
	else if (r < 0 && r != -EPIPE && r != -ECONNRESET && r != -ECONNREFUSED)
		gvisor_say("gVisor's kernel does not answer: %s", strerror(-r));
	if (r < 0)
		kill(kernel, SIGKILL);
	return r;
}

int direct_start(const struct gvisor_way *way, size_t binds, pid_t *ret_pid)
{
	struct direct d = { .way = way, .device = -1 };
	pid_t kernel, second;
	int r = open_all(&d, binds);

	if (r < 0) {
		gvisor_say("cannot connect gVisor's kernel and its gofer: %s", strerror(-r));
		return r;
	}
	kernel = start_one(&d, be_kernel, "kernel");
	second = kernel < 0 ? kernel : start_one(&d, be_gofer, "gofer");
	close_all(&d);
	if (second < 0 || (r = keep_pid(kernel)) < 0) {
		gvisor_say("cannot start gVisor: %s", strerror(second < 0 ? -second : -r));
		return second < 0 ? second : r;
	}
	gofer = second;
	r = begin_command(way, d.began[0], kernel);
	close(d.began[0]);
	if (r < 0 && way->image_fd >= 0)
		return r; /* its kernel dies with us */
	*ret_pid = kernel;
	return 0;
}

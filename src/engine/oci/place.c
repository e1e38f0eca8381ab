/*
 * Where the bundle lies. In: the plan, config.json. Out: a process that has become the runtime. Runs as root in a child of the supervisor, in a mount namespace of its own: a tmpfs there holds bundle, root and the
 * runtime's state, so nothing of it is ever on disk or seen by others, and all of it goes when the last process does. In the root lies what ward makes itself and a
 * place for every mount; an image is put under that, as in the native engine, so that no link of it is followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/oci/oci.h"
#include "guest/image.h"
#include "guest/protocol.h"

#define LOG_FD 4	/* in the runtime */

const char *oci_choose_base(const struct plan *p)
{
	static const char *const candidates[] = { "/mnt", "/srv", "/media", "/opt", "/boot" };

	for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
		bool used = p->image.root && path_is_beneath(p->image.root, candidates[i]);
		struct stat st;

		for (size_t k = 0; k < p->mount_count; k++)
			used |= p->mounts[k].kind == MOUNT_BIND && path_is_beneath(p->mounts[k].source, candidates[i]);
		if (!used && lstat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}

/* Says why on the log, and ends. */
static _Noreturn void give_up(const struct oci_place *o, const char *what)
{
	dprintf(o->log_fd, "%s: %s\n", what, strerror(errno));
	_exit(125);
}

static int make_parents(int dir_fd, char *path)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(dir_fd, path, 0755) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return 0;
}

static int make_file(int dir_fd, const char *path, const void *bytes, size_t n, mode_t mode)
{
	auto_fd fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int r = fd < 0 ? -errno : io_write_all(fd, bytes, n);

	if (r == -EEXIST)
		return 0;	/* two mounts of the plan may share a place */
	errno = r < 0 ? -r : 0;
	return r < 0 || fchmod(fd, mode) < 0 ? -1 : 0;
}

/* What the mount needs in the root: a place, or all of it where ward itself makes it. */
static int make_point(int root_fd, const struct plan_mount *m)
{
	auto_free char *path = strdup(m->target + 1);

	if (!path || make_parents(root_fd, path) < 0)
		return -1;
	if (m->kind == MOUNT_LINK)
		return symlinkat(m->source, root_fd, path) < 0 && errno != EEXIST ? -1 : 0;
	if (m->kind == MOUNT_FILE)
		return make_file(root_fd, path, m->source, strlen(m->source), m->mode);
	if (m->is_file)
		return make_file(root_fd, path, "", 0, 0444);
	return mkdirat(root_fd, path, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

static int make_own(const struct oci_place *o, int root_fd)
{
	if (mkdirat(root_fd, ".ward", 0755) < 0 || mkdirat(root_fd, ".ward/nothing", 0) < 0 || mkdirat(root_fd, "proc", 0555) < 0 ||
	    mkdirat(root_fd, "dev", 0755) < 0)
		return -1;
	if (make_file(root_fd, &OCI_INIT[1], guest_init_begin, (size_t)(guest_init_end - guest_init_begin), 0555) < 0)
		return -1;
	if (make_file(root_fd, &OCI_FILTER[1], buf_text(&o->filter), o->filter.len, 0444) < 0)
		return -1;
	return make_file(root_fd, ".ward/empty", "", 0, 0);
}

static int make_root(const struct oci_place *o)
{
	const struct plan_image *image = o->plan->system->image;
	auto_fd root_fd = -1;

	if (mkdir(OCI_ROOTFS, 0755) < 0 || mkdir("state", 0700) < 0)
		return -1;
	root_fd = open(OCI_ROOTFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0 || make_own(o, root_fd) < 0)
		return -1;
	for (size_t i = 0; i < o->plan->mount_count; i++)
		if (!o->plan->mounts[i].in_bind && make_point(root_fd, &o->plan->mounts[i]) < 0)
			return -1;
	if (!image)
		return 0;
	if (mkdir("image", 0700) < 0 || mount(image->root, "image", NULL, MS_BIND, NULL) < 0)
		return -1;
	return mount("ward", OCI_ROOTFS, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
		     "lowerdir=" OCI_ROOTFS ":image,redirect_dir=nofollow,metacopy=off");
}

static void build(const struct oci_place *o)
{
	umask(0);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		give_up(o, "cannot make a mount namespace for the bundle");
	if (mount("ward", o->base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0 || chdir(o->base) < 0)
		give_up(o, "cannot mount a place for the bundle");
	if (make_root(o) < 0)
		give_up(o, "cannot make the root of the bundle");
	if (make_file(AT_FDCWD, "config.json", buf_text(&o->config), o->config.len, 0600) < 0)
		give_up(o, "cannot write config.json");
}

/* 0-2, then the control socket and the log; nothing else stays open. */
static void place_descriptors(const struct oci_place *o)
{
	int moved[5] = { o->stdio_fds[0], o->stdio_fds[1], o->stdio_fds[2], o->control_fd, o->log_fd };

	for (int i = 0; i < 5; i++) {
		moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, 16);
		if (moved[i] < 0)
			give_up(o, "cannot pass descriptors");
	}
	for (int i = 0; i < 5; i++)
		if (dup2(moved[i], i) < 0)
			_exit(125);
	syscall(SYS_close_range, 5, ~0U, 0);
}

_Noreturn void oci_become_runtime(const struct oci_place *o)
{
	static char *const environment[] = { (char *)(uintptr_t)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	char id[40];
	const char *runc[] = { "runc", "--root", "state", "--log", "/proc/self/fd/4", "run", "--detach", "--bundle", ".", "--preserve-fds", "1", id, NULL };
	sigset_t none;

	_Static_assert(LOG_FD == 4 && GUEST_CONTROL_FD == 3, "the runtime passes the first descriptor behind 0-2 on");
	snprintf(id, sizeof(id), "ward-%s", o->plan->run_id);
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* nobody would finish what it begins */
	if (getppid() != o->supervisor)
		_exit(125);
	build(o);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	place_descriptors(o);
	execve(o->runtime, (char *const *)(uintptr_t)runc, environment);
	dprintf(LOG_FD, "cannot run %s: %s\n", o->runtime, strerror(errno));
	_exit(125);
}

/*
 * From the kernel's hand to READY: modules, the root, what every program expects, the port, the
 * network. In: the initramfs (/modules, loaded in the order of their names) and the kernel's
 * command line (vm/serve.h has its words). Out: a root that is an erofs image under a tmpfs,
 * without any device of the machine's in /dev: pid 1 has the port open and no other process can.
 * Runs as the guest's root. Failures are printed on the console, and the guest turns itself off.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define PORT_NAME "ward.0"
#define WAIT_STEPS 500
#define WAIT_STEP_US 10000

_Noreturn void boot_die(const char *what)
{
	dprintf(2, "ward-vm-init: %s: %s\n", what, strerror(errno));
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_modules(void)
{
	struct dirent **names = NULL;
	int count = scandir("/modules", &names, NULL, by_name);

	for (int i = 0; i < count; i++) {
		char path[300];
		int fd;

		snprintf(path, sizeof(path), "/modules/%s", names[i]->d_name);
		fd = names[i]->d_name[0] == '.' ? -1 : open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
			dprintf(2, "ward-vm-init: %s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		free(names[i]);
	}
	free(names);
}

/* The value of a word of the kernel's command line in out, "" if it has none. */
static void word(const char *line, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);

	out[0] = '\0';
	for (const char *at = line; (at = strstr(at, name)); at += len)
		if ((at == line || at[-1] == ' ') && at[len] == '=') {
			snprintf(out, size, "%.*s", (int)strcspn(at + len + 1, " \n"),
				 at + len + 1);
			return;
		}
}

static void must_mount(const char *source, const char *target, const char *type,
		       unsigned long flags, const char *data)
{
	mkdir(target, 0755);
	if (mount(source, target, type, flags, data) < 0)
		boot_die(target);
}

/* Devices appear when their drivers have looked at them. */
static void wait_for(const char *path)
{
	for (int i = 0; i < WAIT_STEPS && access(path, F_OK) < 0; i++)
		usleep(WAIT_STEP_US);
}

static bool read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static int try_port(void)
{
	DIR *ports = opendir("/sys/class/virtio-ports");
	int fd = -1;

	for (struct dirent *d = ports ? readdir(ports) : NULL; d && fd < 0; d = readdir(ports)) {
		char path[320], name[64];

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", d->d_name);
		if (d->d_name[0] == '.' || !read_line(path, name, sizeof(name)) ||
		    strcmp(name, PORT_NAME "\n") != 0)
			continue;
		snprintf(path, sizeof(path), "/dev/%s", d->d_name);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	}
	if (ports)
		closedir(ports);
	return fd;
}

static int open_port(void)
{
	int fd = -1;

	for (int i = 0; i < WAIT_STEPS && fd < 0; i++) {
		fd = try_port();
		if (fd < 0)
			usleep(WAIT_STEP_US);
	}
	if (fd < 0)
		boot_die("the virtio port " PORT_NAME);
	return fd;
}

/* Past the cache: what lies there is read once, and each time it is something else. */
static int open_disk(const char *line)
{
	char device[64];
	int fd;

	word(line, "ward.disk", device, sizeof(device));
	if (!device[0])
		return -1;
	wait_for(device);
	fd = open(device, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		boot_die(device);
	return fd;
}

/* ---- the root ---- */

static const struct {
	const char *name;
	unsigned major, minor;
} devices[] = { { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
		{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 } };

static const struct {
	const char *path, *target;
} links[] = { { "/new/dev/ptmx", "pts/ptmx" },
	      { "/new/dev/fd", "/proc/self/fd" },
	      { "/new/dev/stdin", "/proc/self/fd/0" },
	      { "/new/dev/stdout", "/proc/self/fd/1" },
	      { "/new/dev/stderr", "/proc/self/fd/2" } };

static void make_devices(void)
{
	umask(0);
	must_mount("dev", "/new/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		char path[32];

		snprintf(path, sizeof(path), "/new/dev/%s", devices[i].name);
		if (mknod(path, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor)) < 0)
			boot_die(path);
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlink(links[i].target, links[i].path) < 0)
			boot_die(links[i].path);
	must_mount("devpts", "/new/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		   "ptmxmode=666,mode=620");
	must_mount("shm", "/new/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	umask(022);
}

static void mount_root(const char *line)
{
	char device[64], type[32], upper[32], data[64];

	word(line, "ward.root", device, sizeof(device));
	word(line, "ward.fs", type, sizeof(type));
	word(line, "ward.upper", upper, sizeof(upper));
	snprintf(data, sizeof(data), "mode=755%s%s", upper[0] ? ",size=" : "", upper);
	must_mount("upper", "/upper", "tmpfs", 0, data);
	mkdir("/upper/data", 0755);
	mkdir("/upper/work", 0755);
	mkdir("/new", 0755);
	if (!device[0]) { /* no image: what the initramfs has is all there is */
		must_mount("/upper/data", "/new", NULL, MS_BIND, NULL);
	} else {
		wait_for(device);
		must_mount(device, "/lower", type[0] ? type : "erofs", MS_RDONLY, NULL);
		must_mount("root", "/new", "overlay", 0,
			   "lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work");
	}
	make_devices();
	must_mount("proc", "/new/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	must_mount("sys", "/new/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL);
	must_mount("tmp", "/new/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	must_mount("run", "/new/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
}

/* What the initramfs held is memory: it goes. */
static void switch_root(void)
{
	unlink("/init");
	umount2("/dev", MNT_DETACH);
	umount2("/proc", MNT_DETACH);
	umount2("/sys", MNT_DETACH);
	if (chdir("/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		boot_die("the new root");
}

static void drop_modules(void)
{
	DIR *d = opendir("/modules");

	for (struct dirent *each = d ? readdir(d) : NULL; each; each = readdir(d))
		if (each->d_name[0] != '.')
			unlinkat(dirfd(d), each->d_name, 0);
	if (d)
		closedir(d);
}

static void take_signals(struct agent *a)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	a->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->signal_fd < 0)
		boot_die("signalfd");
}

void boot_all(struct agent *a)
{
	char line[4096], net[128];

	mkdir("/dev", 0755);
	/* some kernels have mounted it */
	if (mount("dev", "/dev", "devtmpfs", 0, NULL) < 0 && errno != EBUSY)
		boot_die("/dev");
	for (int fd = open("/dev/console", O_RDWR); fd >= 0 && fd < 2;)
		fd = dup(fd);
	must_mount("proc", "/proc", "proc", 0, NULL);
	must_mount("sys", "/sys", "sysfs", 0, NULL);
	read_line("/proc/cmdline", line, sizeof(line));
	word(line, "ward.net", net, sizeof(net));
	load_modules();
	drop_modules();
	a->port_fd = open_port();
	a->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	a->disk_fd = open_disk(line);
	a->manifest_fd = memfd_create("trees", MFD_CLOEXEC);
	mount_root(line);
	switch_root();
	limits_open(a);
	(void)!sethostname("ward", 4);
	if (net_set_up(net) < 0)
		dprintf(2, "ward-vm-init: network %s: %s\n", net, strerror(errno));
	warm_cache();
	take_signals(a);
	/* of what the kernel opened, too: no command gets any of it */
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		boot_die("close_range");
	if (!limits_seal())
		boot_die("capabilities");
}

/*
 * Probes of the host. In: nothing. Out: for each row of tables/probes.def whether it is there, why
 * not, and the command that grants it. Nothing is believed that can be tried: a child asks the
 * kernel for the very thing and ends, so mounts, namespaces and filters vanish with it. Settings
 * are read only to say why something failed. Runs with the user's rights, in `ward doctor` alone.
 */
#include "host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "host/idmap.h"
#include "host/program.h"

#define SPACES_FLAGS (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define LANDLOCK_LEVEL_ABI 6
#define NOBODY 65534

static void found(struct probe *p, const char *why, ...) __attribute__((format(printf, 2, 3)));
static void absent(struct probe *p, const char *why, ...) __attribute__((format(printf, 2, 3)));
static void remedy(struct probe *p, const char *text, ...) __attribute__((format(printf, 2, 3)));

static void found(struct probe *p, const char *why, ...)
{
	va_list ap;

	p->state = PROBE_PRESENT;
	va_start(ap, why);
	vsnprintf(p->why, sizeof(p->why), why, ap);
	va_end(ap);
}

static void absent(struct probe *p, const char *why, ...)
{
	va_list ap;

	p->state = PROBE_ABSENT;
	va_start(ap, why);
	vsnprintf(p->why, sizeof(p->why), why, ap);
	va_end(ap);
}

static void remedy(struct probe *p, const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	vsnprintf(p->remedy, sizeof(p->remedy), text, ap);
	va_end(ap);
}

/* Runs step in a child and returns the errno with which it ended, 0 when it worked. */
static int in_child(int (*step)(void))
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(step() & 0xff);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/* The first number of a file, -1 when there is none. */
static long read_number(const char *path)
{
	auto_buf text = { 0 };

	if (io_read_file(AT_FDCWD, path, 4096, &text) < 0 || !text.len)
		return -1;
	return strtol(text.data, NULL, 10);
}

bool probe_root_without(unsigned capability)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (geteuid() != 0 || syscall(SYS_capget, &head, data) < 0)
		return false;
	return !(data[capability / 32].effective & (1U << (capability % 32)));
}

/* --- what a child tries; each returns an errno --- */

static int try_user(void)
{
	unsigned uid, gid;
	char map[64];
	int r;

	/* Such a root cannot map itself; a run maps an unprivileged id instead. */
	if (probe_root_without(CAP_SETFCAP) && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0)
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	uid = geteuid();
	gid = getegid();
	if (unshare(CLONE_NEWUSER) < 0)
		return errno;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	r = io_write_file(AT_FDCWD, "/proc/self/uid_map", map);
	if (r == 0)
		r = io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (r == 0)
		r = io_write_file(AT_FDCWD, "/proc/self/gid_map", map);
	return -r;
}

static int try_spaces(void)
{
	int err = try_user();

	if (err)
		return err;
	return unshare(SPACES_FLAGS | CLONE_NEWCGROUP) < 0 ? errno : 0;
}

static int try_mounts(void)
{
	int err = try_spaces();

	if (err)
		return err;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	return mount("tmpfs", "/proc", "tmpfs", 0, "size=64k") < 0 ? errno : 0;
}

/* The newer calls, which filters of containers may not know. */
static int try_trees(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int err = try_mounts(), tree;

	if (err)
		return err;
	tree = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ||
	    move_mount(tree, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno;
	return 0;
}

static int mount_proc(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? errno
											  : 0;
}

/* The first child of a new pid namespace is the one that is in it. */
static int try_proc(void)
{
	int err = try_spaces();

	return err ? err : in_child(mount_proc);
}

static int install_filter(unsigned flags)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { .len = ARRAY_LEN(allow), .filter = allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) < 0 ? errno : 0;
}

static int try_seccomp(void)
{
	return install_filter(0);
}

static int try_listener(void)
{
	return install_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static int try_overlay(void)
{
	static const char *const dirs[] = { "/proc/l", "/proc/u", "/proc/w", "/proc/m" };
	int err = try_mounts();

	for (size_t i = 0; !err && i < ARRAY_LEN(dirs); i++)
		err = mkdir(dirs[i], 0700) < 0 ? errno : 0;
	if (err)
		return err;
	return mount("overlay", "/proc/m", "overlay", 0,
		     "userxattr,lowerdir=/proc/l,upperdir=/proc/u,workdir=/proc/w") < 0
		       ? errno
		       : 0;
}

/* Asks nf_tables for its generation in a network namespace of its own. */
static int try_nftables(void)
{
	struct {
		struct nlmsghdr head;
		struct nfgenmsg body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_flags = NLM_F_REQUEST,
			  .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN },
	};
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} answer;
	auto_fd fd = -1;
	int err = try_spaces();

	if (err)
		return err;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0)
		return errno;
	if (recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head))
		return EIO;
	if (answer.head.nlmsg_type != NLMSG_ERROR)
		return 0;
	return -((struct nlmsgerr *)NLMSG_DATA(&answer.head))->error;
}

/* --- what is said about it --- */

static void probe_kernel(struct probe *p)
{
	unsigned long major = 0, minor = 0;
	struct utsname u;
	char *end;

	if (uname(&u) == 0) {
		major = strtoul(u.release, &end, 10);
		minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	}
	if (major > 5 || (major == 5 && minor >= 14)) {
		found(p, "Linux %.60s", u.release);
		return;
	}
	absent(p, "Linux %lu.%lu is older than 5.14", major, minor);
	remedy(p, "install a newer kernel");
}

/* The AppArmor profile as it was installed with this program; NULL if it was not. The caller
 * frees. */
static char *find_profile(void)
{
	char self[PATH_MAX];
	auto_free char *path = NULL;
	struct ward_err ignored = { 0 };

	if (program_own_dir(self, &ignored) < 0)
		return NULL;
	path = path_join(self, "../share/doc/ward/apparmor/ward");
	return path && access(path, R_OK) == 0 ? take_ptr(path) : NULL;
}

/* Or why what needs its rights was. */
void probe_explain_user(struct probe *p, int err)
{
	if (read_number("/proc/sys/user/max_user_namespaces") == 0) {
		absent(p, "user.max_user_namespaces is 0");
		remedy(p, "sudo sysctl -w user.max_user_namespaces=15000");
	} else if (read_number("/proc/sys/kernel/unprivileged_userns_clone") == 0 &&
		   geteuid() != 0) {
		absent(p, "kernel.unprivileged_userns_clone is 0");
		remedy(p, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
	} else if (read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1 &&
		   geteuid() != 0) {
		auto_free char *profile = find_profile();

		absent(p, "AppArmor allows user namespaces only for programs with a profile");
		remedy(p,
		       "sudo install -m 644 %s /etc/apparmor.d/ward && sudo apparmor_parser -r "
		       "/etc/apparmor.d/ward",
		       profile ? profile : "packaging/apparmor/ward");
	} else if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER) {
		absent(p, "%s: a system call filter around ward forbids it", strerror(err));
		remedy(p, "in a container: --security-opt seccomp=unconfined; inside ward: --set "
			  "process.nesting=true for the outer sandbox");
	} else if (err == EPERM && probe_root_without(CAP_SETFCAP)) {
		absent(p, "root without CAP_SETFCAP cannot be mapped into a user namespace");
		remedy(p, "run ward as an ordinary user, or in a container: --cap-add SETFCAP");
	} else if (err == ENOSPC || err == EUSERS) {
		absent(p, "%s: too many user namespaces, or too deep", strerror(err));
		remedy(p, "sudo sysctl -w user.max_user_namespaces=15000");
	} else {
		absent(p, "%s", strerror(err));
		remedy(p, err == EINVAL || err == ENOSYS
				  ? "use a kernel with CONFIG_USER_NS"
				  : "leave the chroot or container that forbids it");
	}
}

const char *probe_step_remedy(int err)
{
	bool filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;

	if (err == EPERM && probe_root_without(CAP_SETFCAP))
		return "root needs CAP_SETFCAP here (containers: --cap-add SETFCAP), or run ward "
		       "as an ordinary user";
	if ((err == EPERM || err == ENOSYS) && filtered)
		return "a system call filter around ward refuses this; in a container: "
		       "--security-opt seccomp=unconfined; inside ward: --set process.nesting=true "
		       "for the outer sandbox";
	if (err == ENOSYS)
		return "use Linux 5.14 or later";
	if (err == EACCES)
		return "in a container: --security-opt apparmor=unconfined; `ward doctor` shows "
		       "what this host supports";
	return "`ward doctor` shows what this host supports";
}

static void probe_user(struct probe *p)
{
	int err = in_child(try_user);

	if (err)
		probe_explain_user(p, err);
	else
		found(p, "created one");
}

static void probe_spaces(struct probe *p)
{
	int err = in_child(try_spaces);

	if (err)
		probe_explain_user(p, err);
	else
		found(p, "created them");
}

static void probe_mounts(struct probe *p)
{
	int err = in_child(try_mounts);

	if (err) {
		probe_explain_user(p, err);
	} else if ((err = in_child(try_trees))) {
		absent(p, "open_tree, mount_setattr or move_mount: %s", strerror(err));
		remedy(p, "%s", probe_step_remedy(err));
	} else if (probe_root_without(CAP_SYS_ADMIN) && probe_root_without(CAP_SETFCAP)) {
		absent(p, "root without CAP_SYS_ADMIN and CAP_SETFCAP can neither id-map the "
			  "workspace nor map itself");
		remedy(p, "run ward as an ordinary user, or in a container: --cap-add SETFCAP");
	} else {
		found(p, "mounted a tmpfs and a copy of it");
	}
}

static void probe_proc(struct probe *p)
{
	int err = in_child(try_proc);

	if (!err) {
		found(p, "mounted one");
		return;
	}
	absent(p, "%s: the outer /proc is masked, or mounting is forbidden", strerror(err));
	remedy(p, "in a container: --security-opt systempaths=unconfined (Docker), "
		  "--security-opt unmask=ALL (Podman)");
}

static void probe_seccomp(struct probe *p)
{
	int err = in_child(try_seccomp);

	if (!err) {
		found(p, "installed a filter");
		return;
	}
	absent(p, "%s", strerror(err));
	remedy(p, "use a kernel with CONFIG_SECCOMP_FILTER");
}

static void probe_listener(struct probe *p)
{
	int err = in_child(try_listener);

	if (!err) {
		found(p, "opened one");
		return;
	}
	absent(p, "%s",
	       err == EBUSY ? "an outer sandbox already has one, and the kernel allows only one"
			    : strerror(err));
	if (err != EBUSY)
		remedy(p, "use a kernel of 5.0 or newer with CONFIG_SECCOMP_FILTER");
}

/* The boot option that adds Landlock to what is in use. */
static void remedy_lsm(struct probe *p)
{
	auto_buf now = { 0 };

	if (io_read_file(AT_FDCWD, "/sys/kernel/security/lsm", 1024, &now) < 0 || !now.len ||
	    now.len > 200)
		remedy(p, "add landlock to the lsm= boot option and reboot");
	else
		remedy(p,
		       "boot with lsm=landlock,%.*s (GRUB_CMDLINE_LINUX in /etc/default/grub, then "
		       "sudo update-grub)",
		       (int)strcspn(now.data, "\n"), now.data);
}

static void probe_landlock(struct probe *p)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi > 0) {
		found(p, "ABI %ld%s", abi,
		      abi < LANDLOCK_LEVEL_ABI
			      ? "; isolation level landlock needs ABI 6 (Linux 6.12)"
			      : "");
	} else if (errno == EOPNOTSUPP) {
		absent(p, "the kernel has it, but it was not enabled at boot");
		remedy_lsm(p);
	} else {
		absent(p, "%s", strerror(errno));
		remedy(p, "use a kernel with CONFIG_SECURITY_LANDLOCK");
	}
}

static void probe_cgroup(struct probe *p, enum cgroup_kind kind)
{
	if (kind != CGROUP_NONE) {
		found(p, "version %d", kind == CGROUP_V1 ? 1 : 2);
		return;
	}
	absent(p, "uid %u cannot write to a hierarchy with memory and pids controllers", geteuid());
	if (geteuid() == 0)
		remedy(p, "mount the cgroup tree writable (in a container: --cgroupns=private with "
			  "a writable /sys/fs/cgroup)");
	else if (access("/run/systemd/system", F_OK) == 0)
		remedy(p, "systemd-run --user --scope -p Delegate=yes -- ward run ...");
	else
		remedy(p, "have root create a cgroup v2 directory, chown it to you and move your "
			  "shell into it");
}

/* On the file system of the current directory: that is where the workspace is. */
static void probe_idmap(struct probe *p)
{
	struct ward_err e = { 0 };
	auto_free char *here = NULL;
	auto_fd tree_fd = -1;
	struct stat st;
	int r;

	if (geteuid() != 0) {
		p->state = PROBE_UNNEEDED;
		snprintf(p->why, sizeof(p->why), "the agent has your uid");
		return;
	}
	here = realpath(".", NULL);
	if (!here || stat(here, &st) < 0) {
		absent(p, "the current directory: %s", strerror(errno));
		return;
	}
	tree_fd = idmap_clone_tree(here, st.st_dev, st.st_ino, &e);
	r = tree_fd < 0 ? tree_fd : idmap_apply(tree_fd, st.st_uid, st.st_gid, NOBODY, NOBODY);
	if (r >= 0) {
		found(p, "on the current directory's file system");
		return;
	}
	if (r == -EPERM) {
		absent(p,
		       "not permitted: root without CAP_SYS_ADMIN, or a container that forbids it");
		remedy(p, "see mounts");
		return;
	}
	absent(p, "the current directory's file system does not support it: %s", strerror(-r));
	remedy(p, "put the workspace on ext4, xfs, btrfs or tmpfs, or chown it to an ordinary "
		  "user: sudo chown -R USER DIR");
}

static void probe_overlay(struct probe *p)
{
	int err = in_child(try_overlay);

	if (!err) {
		found(p, "mounted one");
		return;
	}
	absent(p, "%s", strerror(err));
	remedy(p, err == ENODEV ? "sudo modprobe overlay" : "see mounts");
}

static void probe_nftables(struct probe *p)
{
	int err = in_child(try_nftables);

	if (!err) {
		found(p, "answered");
		return;
	}
	absent(p, "%s", strerror(err));
	remedy(p, err == EINVAL || err == EOPNOTSUPP || err == EPROTONOSUPPORT
			  ? "sudo modprobe nf_tables nft_tproxy"
			  : "see user namespace");
}

void probe_host(struct probe *probes, enum cgroup_kind cgroup)
{
	static void (*const steps[PROBES])(struct probe * p) = {
		[PROBE_ID_KERNEL] = probe_kernel,     [PROBE_ID_USER] = probe_user,
		[PROBE_ID_SPACES] = probe_spaces,     [PROBE_ID_MOUNTS] = probe_mounts,
		[PROBE_ID_PROC] = probe_proc,         [PROBE_ID_SECCOMP] = probe_seccomp,
		[PROBE_ID_LISTENER] = probe_listener, [PROBE_ID_LANDLOCK] = probe_landlock,
		[PROBE_ID_IDMAP] = probe_idmap,       [PROBE_ID_OVERLAY] = probe_overlay,
		[PROBE_ID_NFTABLES] = probe_nftables,
	};

	for (size_t i = 0; i < PROBES; i++) {
		probes[i] = (struct probe){ 0 };
		if (steps[i])
			steps[i](&probes[i]);
	}
	probe_cgroup(&probes[PROBE_ID_CGROUP], cgroup);
}

const char *probe_name(enum probe_id id)
{
	switch (id) {
#define PROBE(id, need, name, help)                                                                \
	case PROBE_ID_##id:                                                                        \
		return name;
#include "probes.def"
	case PROBES:
		break;
	}
	return "";
}

const char *probe_help(enum probe_id id)
{
	switch (id) {
#define PROBE(id, need, name, help)                                                                \
	case PROBE_ID_##id:                                                                        \
		return help;
#include "probes.def"
	case PROBES:
		break;
	}
	return "";
}

enum probe_need probe_need(enum probe_id id)
{
	switch (id) {
#define PROBE(id, need, name, help)                                                                \
	case PROBE_ID_##id:                                                                        \
		return PROBE_##need;
#include "probes.def"
	case PROBES:
		break;
	}
	return PROBE_LATER;
}

bool probe_namespaces_level(const struct probe *probes)
{
	for (enum probe_id i = 0; i < PROBES; i++)
		if (probe_need(i) == PROBE_MUST && probes[i].state == PROBE_ABSENT)
			return false;
	return true;
}

bool probe_landlock_level(const struct probe *probes)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi >= LANDLOCK_LEVEL_ABI && probes[PROBE_ID_SECCOMP].state == PROBE_PRESENT &&
	       probes[PROBE_ID_KERNEL].state == PROBE_PRESENT;
}

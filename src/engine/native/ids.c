/*
 * User namespace: id maps and host name. An ordinary user maps itself; for root the supervisor
 * writes the maps (only its rights allow a foreign id) and the child then becomes that id and drops
 * every supplementary group. Runs in the child, first of all: until the maps are there it can
 * create nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#include "base/raw.h"
#include "engine/native/native.h"

/* It could have come with the others, but then the supervisor would have waited for it, too. */
long native_ipc(struct native_child *c)
{
	long r = raw_call(SYS_unshare, CLONE_NEWIPC);

	if (r == 0)
		c->layers[LAYER_IPC] = LAYER_IN_FORCE;
	return r;
}

/* Writing itself into the cgroup costs the child microseconds, where the supervisor would wait for
 * every processor. The cgroup namespace comes after, so that its root is the sandbox's own
 * cgroup. */
long native_join_cgroup(struct native_child *c)
{
	long r;

	c->failed_path = "cgroup.procs";
	for (size_t i = 0; i < c->cgroup_count; i++) {
		r = raw_call(SYS_write, c->cgroup_fds[i], "0", 1);
		if (r < 0)
			return r;
	}
	if (c->cgroup_count)
		c->layers[LAYER_CGROUP] = LAYER_IN_FORCE;
	c->failed_path = NULL;
	if (raw_call(SYS_unshare, CLONE_NEWCGROUP) == 0)
		c->layers[LAYER_CGROUPNS] = LAYER_IN_FORCE;
	else
		c->layer_notes[LAYER_CGROUPNS] = "this kernel has no cgroup namespaces";
	return 0;
}

static long write_file(const char *path, const char *text)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	long r;

	if (fd < 0)
		return fd;
	r = raw_call(SYS_write, fd, text, raw_strlen(text));
	raw_call(SYS_close, fd);
	return r < 0 ? r : 0;
}

static long map_self(struct native_child *c)
{
	long r = write_file("/proc/self/setgroups", "deny");

	c->failed_path = "/proc/self/uid_map";
	if (r == 0)
		r = write_file("/proc/self/uid_map", c->uid_map);
	return r < 0 ? r : write_file("/proc/self/gid_map", c->gid_map);
}

static long become(struct native_child *c)
{
	const struct plan_ids *ids = &c->ids;
	long r = raw_call(SYS_setgroups, 0, 0);

	if (r == 0)
		r = raw_call(SYS_setresgid, ids->inside_gid, ids->inside_gid, ids->inside_gid);
	if (r == 0)
		r = raw_call(SYS_setresuid, ids->inside_uid, ids->inside_uid, ids->inside_uid);
	return r;
}

/* A quarter of the number in one file, to another. */
static void pass_quarter(const char *from, const char *to)
{
	char text[RAW_NUMBER_BYTES];
	long fd = raw_call(SYS_openat, AT_FDCWD, from, O_RDONLY | O_CLOEXEC), n;
	uint64_t number = 0;

	if (fd < 0)
		return;
	n = raw_call(SYS_read, fd, text, sizeof(text));
	raw_call(SYS_close, fd);
	for (long i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	raw_put_number(text, number / 4);
	(void)write_file(to, text);
}

/* Watches are counted for the user that made the namespace, too: the agent could take all that
 * the host gives to the user (or to root), and editors, daemons and the next ward would have
 * none. Where the host's settings cannot be written there is no such bound. */
static void bound_watches(void)
{
	pass_quarter("/proc/sys/fs/inotify/max_user_instances",
		     "/proc/sys/user/max_inotify_instances");
	pass_quarter("/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches");
}

/* With process.nesting the same holds for namespaces, which descriptors keep: the user's next
 * sandbox needs some. */
void native_bound_namespaces(void)
{
	static const char *const files[] = {
		"/proc/sys/user/max_user_namespaces",   "/proc/sys/user/max_mnt_namespaces",
		"/proc/sys/user/max_net_namespaces",    "/proc/sys/user/max_pid_namespaces",
		"/proc/sys/user/max_ipc_namespaces",    "/proc/sys/user/max_uts_namespaces",
		"/proc/sys/user/max_cgroup_namespaces", "/proc/sys/user/max_time_namespaces"
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)write_file(files[i], "2048");
}

long native_maps(struct native_child *c)
{
	long r = c->ids_sent ? native_wait_byte(c) : 0;

	if (r == 0)
		r = c->uid_map[0] ? map_self(c) : become(c);
	bound_watches();
	c->layers[LAYER_USER] = LAYER_IN_FORCE;
	return r;
}

long native_host_name(struct native_child *c)
{
	long r = raw_call(SYS_sethostname, "ward", 4);

	/* the namespace is there: only its name is the outer one's (Podman's own filter allows
	 * everything else) */
	if (r == -EPERM || r == -ENOSYS) {
		c->layer_notes[LAYER_UTS] = "a filter around ward refuses sethostname: the sandbox "
					    "sees the outer host name";
		r = 0;
	}
	c->layers[LAYER_UTS] = LAYER_IN_FORCE;
	return r;
}

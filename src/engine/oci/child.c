/*
 * The child of the oci engine, in order: the native engine's stages as far as they build the root,
 * /dev, the network and the terminal, in a user, pid and mount namespace of ward's own; then a
 * bundle of that, and ward-outer, which runs the runtime (guest/outer.c). Only the agent's own id
 * exists here, and it is root: the rights that a runtime wants, over nothing of the host, the
 * process that called ward.
 *
 * What is mounted here belongs to this namespace. The container's mount namespace is a copy that
 * belongs to another one, so nothing in it, whatever it becomes, can unmount what ward mounted.
 * The same holds for the network namespace, which the container only shares. Raw system calls only:
 * see native/child.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mount.h>

#include "base/raw.h"
#include "engine/oci/oci.h"
#include "protocol/guest.h"

#define CGROUPS "/sys/fs/cgroup"

static long oci_bundle(struct native_child *c)
{
	long r = raw_call(SYS_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0);

	c->failed_path = c->bundle->dir;
	if (r == 0)
		r = raw_call(SYS_mount, "ward", c->bundle->dir, "tmpfs", MS_NOSUID | MS_NODEV,
			     "mode=0755,size=16m,nr_inodes=1024");
	if (r == 0)
		r = raw_call(SYS_chdir, c->bundle->dir);
	if (r == 0)
		r = raw_call(SYS_mkdirat, AT_FDCWD, OCI_ROOT, 0755);
	return r < 0 ? r : raw_call(SYS_mkdirat, AT_FDCWD, OCI_STATE, 0700);
}

static long oci_config_file(struct native_child *c)
{
	const struct native_bytes *text = &c->bundle->config;
	long r = raw_call(SYS_chdir, c->bundle->dir), fd;

	c->failed_path = "config.json";
	fd = r < 0 ? r
		   : raw_call(SYS_openat, AT_FDCWD, c->failed_path,
			      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	r = raw_call(SYS_write, fd, text->data, text->len);
	raw_call(SYS_close, fd);
	return r < 0 ? r : (size_t)r == text->len ? 0 : -ENOSPC;
}

/* The runtime knows processes by the numbers of its own pid namespace. */
static long oci_proc(struct native_child *c)
{
	c->failed_path = "/proc";
	return raw_call(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0);
}

/* Cgroups are ward's: where an ordinary user may make some, the runtime would, and leave them. */
static long oci_cgroups(struct native_child *c)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	long r;

	c->failed_path = CGROUPS;
	if (c->bundle->hide_cgroups)
		r = raw_call(SYS_mount, "ward", CGROUPS, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV,
			     "mode=0755,size=4k");
	else
		r = raw_call(SYS_mount_setattr, AT_FDCWD, CGROUPS, AT_RECURSIVE, &attr,
			     sizeof(attr));
	/* no such directory, or nothing mounted there */
	return r == -ENOENT || r == -EINVAL ? 0 : r;
}

static const struct oci_stage {
	const char *name;
	long (*run)(struct native_child *c); /* NULL: not the child's */
} oci_stages[] = {
#define STAGE(name, run, help) { name, run },
#include "oci_stages.def"
};

const char *const *oci_stage_names(void)
{
	static const char *const names[] = {
#define STAGE(name, run, help) name, help,
#include "oci_stages.def"
		NULL
	};

	return names;
}

static long exec_outer(struct native_child *c)
{
	static char *const environment[] = {
		(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL
	};
	long r = native_place_stdio(c);

	if (r >= 0)
		r = raw_call(SYS_dup3, c->bundle->log_fd, GUEST_LOG_FD, 0);
	if (r >= 0)
		r = raw_call(SYS_chdir, "/");
	c->failed_path = "/" NATIVE_INIT;
	return r < 0 ? r
		     : raw_call(SYS_execveat, c->base_fd, NATIVE_INIT, c->bundle->argv, environment,
				0);
}

int oci_child_main(void *argument)
{
	struct native_child *c = argument;
	long r = 0;

	raw_call(SYS_setsid);
	raw_call(SYS_close, c->supervisor_fd); /* the copy would keep us alive without it */
	for (size_t i = 0; i < ARRAY_LEN(oci_stages) && r == 0; i++) {
		if (!oci_stages[i].run)
			continue;
		c->failed_stage = oci_stages[i].name;
		c->failed_path = NULL;
		r = oci_stages[i].run(c);
	}
	if (r == 0)
		r = native_send_ready(c);
	if (r == 0) {
		c->failed_stage = "runtime";
		r = exec_outer(c);
	}
	c->failed_error = r;
	return 125;
}

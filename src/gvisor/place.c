/*
 * The place that gVisor runs in: namespaces of its own inside the native sandbox, a tree for its
 * gofer, an OCI bundle. In: the directories that others may change while it runs. Out: the calling
 * process is root of a user namespace that holds one id, the agent's. Runs in the runner, and the
 * tree is made in the process that becomes the gofer where the runner starts it by itself
 * (direct.c), with the rights of any program in the sandbox.
 *
 * The tree is the sandbox's own root with all its mounts, so that what is hidden, protected or
 * under review stays so: the gofer has no other view. Covered are what gVisor has of its own
 * (/proc, /sys, /dev but for /dev/shm) and /.ward, where the runner's own things lie. runsc mounts
 * a /proc for each of its two processes; the kernel allows that because the native engine has left
 * one in view (/.ward/proc) on which nothing is masked.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

static int fail(const char *what)
{
	int r = -errno;

	gvisor_say("%s: %s", what, strerror(errno));
	return r < 0 ? r : -EIO;
}

static int map_ids(uid_t uid, gid_t gid)
{
	char uids[32], gids[32];
	int r;

	snprintf(uids, sizeof(uids), "0 %u 1\n", uid);
	snprintf(gids, sizeof(gids), "0 %u 1\n", gid);
	r = io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r == 0)
		r = io_write_file(AT_FDCWD, "/proc/self/uid_map", uids);
	if (r == 0)
		r = io_write_file(AT_FDCWD, "/proc/self/gid_map", gids);
	if (r < 0) {
		errno = -r;
		return fail("cannot map the agent's id");
	}
	return 0;
}

int gvisor_own_files(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	return unshare(CLONE_NEWUSER) < 0 ? fail("cannot make a user namespace in the sandbox")
					  : map_ids(uid, gid);
}

int gvisor_make_dirs(void)
{
	static const char *const dirs[] = { GVISOR_STATE,     GVISOR_BUNDLE, GVISOR_JAIL,
					    GVISOR_START,     GVISOR_MASK,   GVISOR_DEV,
					    GVISOR_DEV "/shm" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdir(dirs[i], 0700) < 0)
			return fail(dirs[i]);
	return 0;
}

/* Over what gVisor has of its own; what the tree does not have needs nothing. */
static int cover(const char *path, const char *with)
{
	if (mount(with, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT && errno != ENOTDIR)
		return fail(path);
	return 0;
}

/* What the policy's own things in /.ward are: links to its programs, certificates. */
static int show_given(void)
{
	static const char *const given[][2] = { { "/.ward/bin", GVISOR_ROOT "/.ward/bin" },
						{ "/.ward/trust", GVISOR_ROOT "/.ward/trust" } };

	for (size_t i = 0; i < ARRAY_LEN(given); i++)
		if (access(given[i][0], F_OK) == 0 &&
		    (mkdir(given[i][1], 0755) < 0 ||
		     mount(given[i][0], given[i][1], NULL, MS_BIND | MS_REC, NULL) < 0))
			return fail(given[i][0]);
	return 0;
}

/* /.ward as it is inside the inner runtime: this program, what the policy gives there, and the
 * directories for what both sides tell each other. */
static int make_own(void)
{
	static const char own[] = GVISOR_ROOT "/.ward", self[] = GVISOR_ROOT GVISOR_SELF,
			  io[] = GVISOR_ROOT GVISOR_IO, start[] = GVISOR_ROOT GVISOR_START_INSIDE;
	int file;

	if (mount("ward", own, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") < 0)
		return fail(own);
	file = open(self, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
	if (file < 0 || close(file) < 0 || mkdir(io, 0700) < 0 || mkdir(start, 0700) < 0 ||
	    mount(GVISOR_SELF, self, NULL, MS_BIND, NULL) < 0 ||
	    mount(GVISOR_IO, io, NULL, MS_BIND, NULL) < 0 ||
	    mount(GVISOR_START, start, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, start, NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
	    show_given() < 0 ||
	    mount(NULL, own, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
		    0)
		return fail(own);
	return 0;
}

int gvisor_make_tree(void)
{
	static const char *const covered[][2] = { { GVISOR_ROOT "/proc", GVISOR_MASK },
						  { GVISOR_ROOT "/sys", GVISOR_MASK },
						  { GVISOR_ROOT "/dev", GVISOR_DEV },
						  { GVISOR_ROOT GVISOR_SHM, GVISOR_SHM } };
	int r = 0;

	if (mount("/", GVISOR_ROOT, NULL, MS_BIND | MS_REC, NULL) < 0)
		return fail(GVISOR_ROOT);
	for (size_t i = 0; i < ARRAY_LEN(covered) && r == 0; i++)
		r = cover(covered[i][0], covered[i][1]);
	return r < 0 ? r : make_own();
}

static void one_mount(struct json *j, const char *type, const char *target, const char *source,
		      const char *first, const char *second)
{
	json_begin_object(j, NULL);
	json_string(j, "type", type);
	json_string(j, "source", source);
	json_string(j, "destination", target);
	json_begin_array(j, "options");
	json_string(j, NULL, first);
	if (second)
		json_string(j, NULL, second);
	json_end_array(j);
	json_end_object(j);
}

/* gVisor's own file systems in memory know no limit of names: /dev/shm is the sandbox's, where the
 * host's kernel counts, unless names have none. */
static void mounts_json(struct json *j, const struct gvisor_way *way, char *const *binds,
			size_t count)
{
	char size[32];

	snprintf(size, sizeof(size), "size=%" PRIu64, way->shm_bytes);
	json_begin_array(j, "mounts");
	if (way->shm_bytes)
		one_mount(j, "tmpfs", GVISOR_SHM, "tmpfs", "mode=1777", size);
	else
		one_mount(j, "bind", GVISOR_SHM, GVISOR_SHM, "rbind", "noexec");
	one_mount(j, "bind", GVISOR_IO, GVISOR_IO, "rbind", NULL);
	one_mount(j, "bind", GVISOR_START_INSIDE, GVISOR_START, "rbind", "ro");
	for (size_t i = 0; i < count; i++)
		one_mount(j, "bind", binds[i], binds[i], "rbind", NULL);
	json_end_array(j);
}

/* gVisor's kernel holds to them for each write and each clone, of commands of exec, too. The second
 * does not bind who has made a user namespace there: the runner counts (run.c). It is one more than
 * allowed: that one is the clone too many, as on the host (limits.c). */
static void limits_json(struct json *j, const struct gvisor_way *way)
{
	const struct {
		const char *type;
		uint64_t value;
	} limits[] = { { "RLIMIT_FSIZE", way->file_bytes },
		       { "RLIMIT_NPROC", way->pids ? way->pids + 1 : 0 } };

	json_begin_array(j, "rlimits");
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		if (!limits[i].value)
			continue;
		json_begin_object(j, NULL);
		json_string(j, "type", limits[i].type);
		json_uint(j, "hard", limits[i].value);
		json_uint(j, "soft", limits[i].value);
		json_end_object(j);
	}
	json_end_array(j);
}

/* See close_dev() in enter.c. */
static void capabilities_json(struct json *j)
{
	static const char *const sets[] = { "bounding", "effective", "permitted" };

	json_begin_object(j, "capabilities");
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		json_begin_array(j, sets[i]);
		json_string(j, NULL, "CAP_CHOWN");
		json_end_array(j);
	}
	json_end_object(j);
}

static void process_json(struct json *j, bool terminal, const struct gvisor_way *way)
{
	json_begin_object(j, "process");
	json_bool(j, "terminal", terminal);
	json_begin_object(j, "user");
	json_uint(j, "uid", 0);
	json_uint(j, "gid", 0);
	json_end_object(j);
	json_begin_array(j, "args");
	json_string(j, NULL, GVISOR_SELF);
	json_string(j, NULL, "enter");
	json_string(j, NULL, "run");
	json_end_array(j);
	json_string(j, "cwd", "/");
	capabilities_json(j);
	json_bool(j, "noNewPrivileges", true);
	limits_json(j, way);
	json_end_object(j);
}

static int write_bundle(const struct gvisor_way *way, char *const *binds, size_t count,
			bool terminal)
{
	static const char *const namespaces[] = { "pid", "ipc", "uts", "mount" };
	auto_buf text = { 0 };
	struct json j = { .out = &text };
	char name[65] = "ward";
	auto_fd file =
		open(GVISOR_BUNDLE "/config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (gethostname(name, sizeof(name)) < 0)
		return fail("the host's name");
	name[sizeof(name) - 1] = '\0';
	json_begin_object(&j, NULL);
	json_string(&j, "ociVersion", "1.0.2");
	process_json(&j, terminal, way);
	json_begin_object(&j, "root");
	json_string(&j, "path", GVISOR_ROOT);
	json_end_object(&j);
	json_string(&j, "hostname", name);
	mounts_json(&j, way, binds, count);
	json_begin_object(&j, "linux");
	json_begin_array(&j, "namespaces");
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
		json_begin_object(&j, NULL);
		json_string(&j, "type", namespaces[i]);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_end_object(&j);
	if (text.failed)
		errno = ENOMEM;
	if (file < 0 || text.failed || io_write_all(file, text.data, text.len) < 0)
		return fail("the bundle");
	return 0;
}

int gvisor_place(const struct gvisor_way *way, char *const *binds, size_t count, bool terminal)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int r;

	if (unshare(CLONE_NEWUSER | (way->whole ? CLONE_NEWNS : 0)) < 0)
		return fail("cannot make namespaces in the sandbox");
	r = map_ids(uid, gid);
	if (r == 0 && way->whole)
		r = mkdir(GVISOR_ROOT, 0700) < 0 ? fail(GVISOR_ROOT) : gvisor_make_tree();
	return r < 0 ? r : write_bundle(way, binds, count, terminal);
}

/*
 * The plan as config.json. In: a const plan. Out: one OCI runtime configuration: root, mounts in the plan's order, then what is hidden and protected, ids, no capability, limits of a process, the paths of /proc that are
 * masked and read-only, the names of system calls. A pure function of the plan. Arguments of system calls are not in it: the exact filter is the native
 * engine's, and ward-init puts it on before the command starts, so that denials are told as ever. No hooks.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "base/json.h"
#include "base/path.h"
#include "engine/oci/oci.h"
#include "lib/limits.h"

#include "seccomp-oci.h"	/* oci_calls[]: { name, the smallest set that has it } */

static void text_list(struct json *j, const char *key, char *const *items)
{
	json_begin_array(j, key);
	for (; items && *items; items++)
		json_string(j, NULL, *items);
	json_end_array(j);
}

/* One mount; options end with NULL. */
static void put_mount(struct json *j, const char *target, const char *type, const char *source, const char *const *options)
{
	json_begin_object(j, NULL);
	json_string(j, "destination", target);
	json_string(j, "type", type);
	json_string(j, "source", source);
	json_begin_array(j, "options");
	for (; *options; options++)
		json_string(j, NULL, *options);
	json_end_array(j);
	json_end_object(j);
}

static void put_bind(struct json *j, const char *target, const char *source, bool writable)
{
	const char *options[] = { "rbind", writable ? "rw" : "rro", "nosuid", "nodev", "rprivate", NULL };

	put_mount(j, target, "bind", source, options);
}

static void put_tmpfs(struct json *j, const struct plan *p, const char *target, unsigned mode, uint64_t bytes, uint64_t inodes, bool noexec)
{
	char ids[64], text_mode[16], size[40], count[40];
	const char *options[9] = { "nosuid", "nodev", text_mode, ids };
	size_t n = 4;

	snprintf(text_mode, sizeof(text_mode), "mode=%04o", mode);
	snprintf(ids, sizeof(ids), "uid=%u,gid=%u", p->ids.inside_uid, p->ids.inside_gid);
	snprintf(size, sizeof(size), "size=%llu", (unsigned long long)bytes);
	snprintf(count, sizeof(count), "nr_inodes=%llu", (unsigned long long)inodes);
	if (bytes)
		options[n++] = size;
	if (inodes)
		options[n++] = count;
	if (noexec)
		options[n++] = "noexec";
	put_mount(j, target, "tmpfs", "ward", options);
}

static void put_guards(struct json *j, const struct plan *p, const char *base)
{
	for (size_t i = 0; i < p->root_count; i++)
		for (size_t k = 0; k < p->roots[i].step_count; k++) {
			const struct guard_root *g = &p->roots[i];
			const struct guard_step *s = &g->steps[k];
			auto_free char *target = path_join(g->target, s->path), *source = path_join(g->path, s->path);
			auto_buf empty = { 0 };

			if (!target || !source)
				continue;	/* the buffer's own failure is seen at the end */
			buf_printf(&empty, "%s/" OCI_ROOTFS "/.ward/%s", base, s->is_dir ? "nothing" : "empty");
			put_bind(j, target, s->action == GUARD_HIDE ? buf_text(&empty) : source, s->action == GUARD_PIN && g->writable);
		}
}

static void put_mounts(struct json *j, const struct plan *p, const char *base)
{
	static const char *const proc[] = { "nosuid", "noexec", "nodev", NULL };
	static const char *const dev[] = { "nosuid", "noexec", "mode=755", "size=65536", NULL };
	static const char *const pts[] = { "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "max=256", NULL };
	uint64_t bytes = 0, inodes = 0;

	json_begin_array(j, "mounts");
	put_mount(j, "/proc", "proc", "proc", proc);
	put_mount(j, "/dev", "tmpfs", "tmpfs", dev);
	put_mount(j, "/dev/pts", "devpts", "devpts", pts);
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND)
			put_bind(j, m->target, m->source, m->writable);
		if (m->kind != MOUNT_TMPFS)
			continue;
		put_tmpfs(j, p, m->target, m->mode, m->bytes, m->inodes, m->noexec);
		bytes = m->bytes;
		inodes = m->inodes;
	}
	put_tmpfs(j, p, "/dev/shm", 01777, bytes, inodes, true);
	put_guards(j, p, base);
	json_end_array(j);
}

static void put_rlimits(struct json *j, const struct plan *p)
{
	static const struct {
		int resource;
		const char *name;
	} names[] = { { RLIMIT_AS, "RLIMIT_AS" }, { RLIMIT_CORE, "RLIMIT_CORE" }, { RLIMIT_CPU, "RLIMIT_CPU" }, { RLIMIT_DATA, "RLIMIT_DATA" },
		      { RLIMIT_FSIZE, "RLIMIT_FSIZE" }, { RLIMIT_LOCKS, "RLIMIT_LOCKS" }, { RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK" },
		      { RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE" }, { RLIMIT_NICE, "RLIMIT_NICE" }, { RLIMIT_NOFILE, "RLIMIT_NOFILE" },
		      { RLIMIT_NPROC, "RLIMIT_NPROC" }, { RLIMIT_RTPRIO, "RLIMIT_RTPRIO" }, { RLIMIT_RTTIME, "RLIMIT_RTTIME" },
		      { RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING" }, { RLIMIT_STACK, "RLIMIT_STACK" } };
	struct limits_rlimit limits[LIMITS_RLIMITS];
	size_t count = limits_rlimits(p, limits, ARRAY_LEN(limits));

	json_begin_array(j, "rlimits");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			if (names[k].resource != limits[i].resource)
				continue;
			json_begin_object(j, NULL);
			json_string(j, "type", names[k].name);
			json_uint(j, "soft", limits[i].soft);
			json_uint(j, "hard", limits[i].hard);
			json_end_object(j);
		}
	json_end_array(j);
}

static void put_process(struct json *j, const struct plan *p)
{
	static const char *const sets[] = { "bounding", "effective", "permitted", "inheritable", "ambient" };

	json_begin_object(j, "process");
	json_bool(j, "terminal", false);
	json_begin_object(j, "user");
	json_uint(j, "uid", p->ids.inside_uid);
	json_uint(j, "gid", p->ids.inside_gid);
	json_end_object(j);
	json_begin_array(j, "args");
	json_string(j, NULL, OCI_INIT);
	for (char *const *word = p->argv; word && *word; word++)
		json_string(j, NULL, *word);
	json_end_array(j);
	text_list(j, "env", p->env.items);
	json_string(j, "cwd", p->cwd);
	json_begin_object(j, "capabilities");
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		text_list(j, sets[i], NULL);
	json_end_object(j);
	put_rlimits(j, p);
	json_bool(j, "noNewPrivileges", true);
	json_end_object(j);
}

/* The agent's id, and one for the runtime's own work inside, which nobody else has. */
static void put_ids(struct json *j, const char *key, const struct plan *p, unsigned inside, unsigned outside)
{
	const unsigned spare = p->facts.id_count ? p->facts.id_first + p->facts.id_count - 1 : 65533;
	const unsigned rows[2][2] = { { 0, spare == outside ? spare - 1 : spare }, { inside, outside } };

	json_begin_array(j, key);
	for (int i = 0; i < 2; i++) {
		json_begin_object(j, NULL);
		json_uint(j, "containerID", rows[i][0]);
		json_uint(j, "hostID", rows[i][1]);
		json_uint(j, "size", 1);
		json_end_object(j);
	}
	json_end_array(j);
}

enum { READONLY, MASK, ALWAYS = 0, ROOT };

static void put_proc(struct json *j, const char *key, const struct plan *p, int action)
{
	static const struct {
		const char *path;
		int action, when;
	} rows[] = {
#define PROC(name, action, when) { "/proc/" name, action, when },
#include "proc.def"
#undef PROC
	};

	json_begin_array(j, key);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].action == action && (rows[i].when == ALWAYS || p->ids.mode == IDS_ROOT))
			json_string(j, NULL, rows[i].path);
	json_end_array(j);
}

static void put_seccomp(struct json *j, const struct plan *p)
{
	const unsigned set = p->spec->policy.proc_syscalls;

	json_begin_object(j, "seccomp");
	json_string(j, "defaultAction", "SCMP_ACT_ERRNO");
	json_uint(j, "defaultErrnoRet", ENOSYS);
	json_begin_array(j, "architectures");
	json_string(j, NULL, "SCMP_ARCH_X86_64");
	json_end_array(j);
	json_begin_array(j, "syscalls");
	json_begin_object(j, NULL);
	json_begin_array(j, "names");
	for (size_t i = 0; i < ARRAY_LEN(oci_calls); i++)
		if (oci_calls[i].from <= set)
			json_string(j, NULL, oci_calls[i].name);
	json_end_array(j);
	json_string(j, "action", "SCMP_ACT_ALLOW");
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
}

static void put_device(struct json *j, const struct plan_device *d, bool rule)
{
	json_begin_object(j, NULL);
	json_string(j, "type", "c");
	json_uint(j, "major", major(d->device));
	json_uint(j, "minor", minor(d->device));
	if (rule) {
		json_bool(j, "allow", true);
		json_string(j, "access", "rw");
	} else {
		json_string(j, "path", d->path);
	}
	json_end_object(j);
}

/* The plan's devices, and the runtime's own rule that they may be opened. */
static void put_devices(struct json *j, const struct plan *p)
{
	if (!p->gpus)
		return;
	json_begin_array(j, "devices");
	for (size_t i = 0; i < p->gpus->device_count; i++)
		put_device(j, &p->gpus->devices[i], false);
	json_end_array(j);
	json_begin_object(j, "resources");
	json_begin_array(j, "devices");
	json_begin_object(j, NULL);
	json_bool(j, "allow", false);
	json_string(j, "access", "rwm");
	json_end_object(j);
	for (size_t i = 0; i < p->gpus->device_count; i++)
		put_device(j, &p->gpus->devices[i], true);
	json_end_array(j);
	json_end_object(j);
}

static void put_linux(struct json *j, const struct plan *p)
{
	static const char *const spaces[] = { "user", "mount", "pid", "network", "ipc", "uts", "cgroup" };

	json_begin_object(j, "linux");
	json_begin_array(j, "namespaces");
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		json_begin_object(j, NULL);
		json_string(j, "type", spaces[i]);
		json_end_object(j);
	}
	json_end_array(j);
	put_ids(j, "uidMappings", p, p->ids.inside_uid, p->ids.host_uid);
	put_ids(j, "gidMappings", p, p->ids.inside_gid, p->ids.host_gid);
	put_devices(j, p);
	put_proc(j, "maskedPaths", p, MASK);
	put_proc(j, "readonlyPaths", p, READONLY);
	put_seccomp(j, p);
	json_end_object(j);
}

int oci_config(const struct plan *p, const char *base, struct buf *out, struct ward_err *e)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "ociVersion", "1.0.2");
	json_string(&j, "hostname", "ward");
	json_begin_object(&j, "root");
	json_string(&j, "path", OCI_ROOTFS);
	json_bool(&j, "readonly", true);
	json_end_object(&j);
	put_process(&j, p);
	put_mounts(&j, p, base);
	put_linux(&j, p);
	json_end_object(&j);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

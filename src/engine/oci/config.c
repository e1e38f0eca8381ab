/*
 * The plan as config.json. In: a const plan, and where the bundle is. Out: one OCI runtime
 * configuration: a root in which everything is mounted already, /proc and which of its paths are
 * masked and read-only, namespaces, one id, one capability that ward-init gives away first of all,
 * the names of system calls. A pure function of the plan. Arguments of system calls are not in it:
 * the exact filter is the native engine's, and ward-init puts it on before the command starts, so
 * that denials are reported as usual; rlimits are put on there, too, because they are not for the
 * runtime. No hooks.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "engine/oci/oci.h"

#include "seccomp-oci.h" /* oci_calls[]: { name, the smallest set that has it } */

static void text_list(struct json *j, const char *key, char *const *items)
{
	json_begin_array(j, key);
	for (; items && *items; items++)
		json_string(j, NULL, *items);
	json_end_array(j);
}

/* One mount; options end with NULL. */
static void put_mount(struct json *j, const char *target, const char *type, const char *source,
		      const char *const *options)
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

static void put_bind(struct json *j, const char *bundle, const char *path)
{
	static const char *const options[] = { "rbind", NULL };
	auto_buf source = { 0 };

	buf_printf(&source, "%s/" OCI_ROOT "%s", bundle, path);
	put_mount(j, path, "bind", buf_text(&source), options);
}

/* What is mounted in the root comes with it; this says that nothing is to be made in /dev. Some
 * crun forget what is mounted below a bind, so each is listed. */
static void put_dev(struct json *j, const struct plan *p, const char *bundle, bool each)
{
	static const char *const parts[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty",
					     "/dev/pts",    "/dev/shm" };

	put_bind(j, bundle, "/dev");
	for (size_t i = 0; each && i < ARRAY_LEN(parts); i++)
		put_bind(j, bundle, parts[i]);
	for (size_t i = 0; each && p->devices && i < p->devices->len; i++)
		put_bind(j, bundle, p->devices->items[i].path);
}

static void put_mounts(struct json *j, const struct plan *p, const char *bundle, bool each)
{
	const char *options[] = { "nosuid", "noexec", "nodev",
				  p->spec->policy.proc_syscalls == SYSCALLS_STRICT ? "subset=pid"
										   : NULL,
				  NULL };

	json_begin_array(j, "mounts");
	put_mount(j, "/proc", "proc", "proc", options);
	put_dev(j, p, bundle, each);
	json_end_array(j);
}

static void put_process(struct json *j)
{
	static const char *const sets[] = { "bounding", "effective", "permitted" };
	/* for the id map of ward-init's own namespace: guest/container.c */
	static char *const one[] = { (char *)(uintptr_t) "CAP_SETFCAP", NULL };

	json_begin_object(j, "process");
	json_bool(j, "terminal", false);
	json_begin_object(j, "user");
	json_uint(j, "uid", 0);
	json_uint(j, "gid", 0);
	json_end_object(j);
	json_begin_array(j, "args");
	/* the command comes over the control socket: JSON cannot hold every byte */
	json_string(j, NULL, OCI_INIT);
	json_end_array(j);
	text_list(j, "env", NULL);
	json_string(j, "cwd", "/");
	json_begin_object(j, "capabilities");
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		text_list(j, sets[i], one);
	json_end_object(j);
	json_bool(j, "noNewPrivileges", true);
	json_end_object(j);
}

/* The agent's id, which is root of the namespace that the runtime is in, and of the container's. */
static void put_ids(struct json *j, const char *key)
{
	json_begin_array(j, key);
	json_begin_object(j, NULL);
	json_uint(j, "containerID", 0);
	json_uint(j, "hostID", 0);
	json_uint(j, "size", 1);
	json_end_object(j);
	json_end_array(j);
}

enum { READONLY, MASK, MASK_DIR = MASK, ALWAYS = 0, ROOT };

static void put_proc(struct json *j, const char *key, const struct plan *p, int action)
{
	static const struct {
		const char *path;
		int action, when;
	} rows[] = {
#define PROC(name, action, when) { "/proc/" name, action, when },
#include "proc.def"
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

static void put_linux(struct json *j, const struct plan *p)
{
	/* the network is ward's, the cgroup namespace ward-init's */
	static const char *const spaces[] = { "user", "mount", "pid", "ipc", "uts" };

	json_begin_object(j, "linux");
	json_begin_array(j, "namespaces");
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		json_begin_object(j, NULL);
		json_string(j, "type", spaces[i]);
		json_end_object(j);
	}
	json_end_array(j);
	put_ids(j, "uidMappings");
	put_ids(j, "gidMappings");
	put_proc(j, "maskedPaths", p, MASK);
	put_proc(j, "readonlyPaths", p, READONLY);
	put_seccomp(j, p);
	json_end_object(j);
}

int oci_config(const struct plan *p, const char *bundle, const struct oci_runtime *r,
	       struct buf *out, struct ward_err *e)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "ociVersion", "1.0.2");
	json_string(&j, "hostname", "ward");
	json_begin_object(&j, "root");
	json_string(&j, "path", OCI_ROOT);
	json_bool(&j, "readonly", true);
	json_end_object(&j);
	put_process(&j);
	put_mounts(&j, p, bundle, r->crun);
	put_linux(&j, p);
	json_end_object(&j);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

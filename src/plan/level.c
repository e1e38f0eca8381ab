/*
 * The Landlock level: for hosts that give no user namespaces. In: the policy. Out: which of its
 * wishes cannot be met, which the planner turns into a refusal, and what a run on this level goes
 * without, which the result tells. What the policy leaves at its default is reported as absent;
 * what it sets itself is refused, never ignored. Pure functions.
 */
#include "plan/level.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/remove.h"

static bool is_set(const struct policy *p, enum policy_field field)
{
	return p->origin[field].source != POLICY_DEFAULT;
}

static bool moves_a_mount(const struct policy *p)
{
	for (size_t i = 0; i < p->fs_host_mounts.len; i++)
		if (p->fs_host_mounts.items[i].at)
			return true;
	return false;
}

size_t level_landlock_refusals(const struct policy *p, struct strv *refusals)
{
	const struct {
		bool wanted;
		enum policy_field field;
		const char *why;
	} rows[] = {
		{ is_set(p, POLICY_F_fs_hide) && p->fs_hide.len, POLICY_F_fs_hide,
		  "hiding files needs a mount namespace" },
		{ is_set(p, POLICY_F_fs_protect) && p->fs_protect.len, POLICY_F_fs_protect,
		  "protecting files needs a mount namespace" },
		{ p->fs_mode == FS_MODE_REVIEW, POLICY_F_fs_mode,
		  "review needs a mount namespace" },
		{ p->fs_ask.len > 0, POLICY_F_fs_ask,
		  "asking about files outside of the view needs a mount namespace" },
		{ moves_a_mount(p), POLICY_F_fs_host_mounts,
		  "a path can only be mounted at the same path (no `at`)" },
		{ p->fs_caches.len > 0, POLICY_F_fs_caches, "volumes need a mount namespace" },
		{ strcmp(p->image, "host") != 0, POLICY_F_image,
		  "an image needs a mount namespace" },
		{ p->fs_scratch.len > 0, POLICY_F_fs_scratch,
		  "private directories need a mount namespace" },
		{ p->fs_programs.len > 0, POLICY_F_fs_programs,
		  "filesystem.programs needs a mount namespace" },
		{ is_set(p, POLICY_F_toolchains) && p->toolchains.len &&
			  !strv_has(&p->toolchains, "auto"),
		  POLICY_F_toolchains, "toolchains need a mount namespace" },
		{ strcmp(p->fs_home, "private") != 0, POLICY_F_fs_home,
		  "a home needs a mount namespace" },
		{ strcmp(p->proc_user, "agent") != 0, POLICY_F_proc_user,
		  "another user needs a mount namespace" },
		{ is_set(p, POLICY_F_net_mode) && p->net_mode != 0, POLICY_F_net_mode,
		  "a network needs a network namespace" },
		{ p->audit_level <= AUDIT_WRITES, POLICY_F_audit_level,
		  "observing file changes needs namespaces" },
		{ p->res_gpus.len > 0, POLICY_F_res_gpus, "devices need a mount namespace" },
		{ p->proc_nesting, POLICY_F_proc_nesting, "nesting needs namespaces" },
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].wanted) {
			strv_addf(refusals, "%s: %s", policy_row(rows[i].field)->path, rows[i].why);
			count++;
		}
	return count;
}

int level_check(const struct plan *p, struct ward_err *e)
{
	auto_strv refusals = { 0 };
	auto_buf all = { 0 };

	if (p->facts.landlock_abi < LEVEL_LANDLOCK_ABI) {
		(void)ward_fail(e, ENOTSUP,
				"there are no user namespaces here, and isolation level landlock "
				"needs Landlock ABI %d; this kernel has %d",
				LEVEL_LANDLOCK_ABI, p->facts.landlock_abi);
		return ward_remedy(e, "enable user namespaces (`ward doctor` shows how), or use "
				      "Linux 6.12 or later with landlock in the lsm= list");
	}
	if (!level_landlock_refusals(&p->spec->policy, &refusals))
		return 0;
	for (size_t i = 0; i < refusals.len; i++)
		buf_printf(&all, "%s%s", i ? "; " : "", refusals.items[i]);
	(void)ward_fail(e, ENOTSUP, "not available at isolation level landlock: %s",
			buf_text(&all));
	return ward_remedy(
		e,
		"enable user namespaces (`ward doctor` shows how), or remove it from the policy");
}

void level_add_notes(struct strv *notes)
{
	static const char *const absent[] = {
		"isolation level landlock has no namespaces: the sandbox sees names, sizes and "
		"times of the host's files, but their content only where the plan grants it; it "
		"sees other processes, but cannot signal, trace or change them",
		"not available at this level: hide, protect, a private /tmp and /dev/shm, "
		"/proc/self, terminals, System V IPC, Unix sockets other than pairs; if ward is "
		"killed, its processes end and the next run removes its temporary directory",
	};

	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		strv_add(notes, absent[i]);
}

void level_tmp_path(const char *run_id, char *out, size_t n)
{
	snprintf(out, n, "/tmp/ward-%.40s", run_id);
}

int level_tmp_remove(const char *run_id)
{
	char path[64];

	level_tmp_path(run_id, path, sizeof(path));
	return remove_tree(path);
}

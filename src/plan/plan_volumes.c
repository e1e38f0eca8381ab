/*
 * The volumes of a plan: caches and a named home. In: the policy, whom the agent is. Out: binds of
 * directories in ward's state, locked while the plan lives. Runs in the supervisor with the user's
 * rights, only where a policy names a volume. Volumes follow the ids that the workspace got and
 * never weaken them: where root's agent is id-mapped and the state directory's file system refuses
 * that, a cache is left out with a note, and a home, which the operator counts on, is a refusal. An
 * agent has written what lies in a home: mount points are made there through no link.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "host/idmap.h"
#include "plan/toolchains.h"
#include "state/volume.h"

struct cache_row {
	char name[8], part[12], path[28];
};

static const struct cache_row cache_rows[] = {
#define CACHE(name, part, path) { name, part, path },
#include "caches.def"
};

bool plan_keeps_home(const struct plan *p)
{
	return strcmp(p->spec->policy.fs_home, "private") != 0;
}

int plan_keep_lock(struct plan *p, int *fd)
{
	int *grown = reallocarray(p->live->lock_fds, p->live->lock_count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	p->live->lock_fds = grown;
	p->live->lock_fds[p->live->lock_count++] = take_fd(fd);
	return 0;
}

static void set_owner(const struct plan *p, struct volume_key *key)
{
	bool owner = p->ids.mode == IDS_OWNER;

	key->owner = owner ? p->ids.host_uid : geteuid();
	key->group = owner ? p->ids.host_gid : getegid();
}

/* As root: the tree with root's eyes, as plan_ids.c does for the policy's. 1: it cannot be given to
 * this agent. */
static int clone_volume(const struct plan *p, struct plan_mount *m, struct ward_err *e)
{
	if (p->facts.uid != 0)
		return 0;
	m->tree_fd = idmap_clone_tree(m->source, m->dev, m->ino, e);
	if (m->tree_fd == -EPERM) {
		m->tree_fd = -1;
		return p->ids.mode == IDS_ROOT ? 0 : 1; /* uid 0 gets there by itself */
	}
	if (m->tree_fd < 0)
		return m->tree_fd;
	if (p->ids.mode != IDS_MAPPED)
		return 0;
	m->mapped = idmap_apply(m->tree_fd, 0, 0, p->ids.host_uid, p->ids.host_gid) == 0;
	return m->mapped ? 0 : 1;
}

static int refuse_home(const struct plan *p, struct ward_err *e)
{
	ward_fail(e, ENOTSUP,
		  "filesystem.home: %s: the file system of ward's state directory does not allow "
		  "id-mapped mounts",
		  p->spec->policy.fs_home);
	return ward_remedy(e, "set WARD_STATE_DIR to a directory on ext4, xfs, btrfs or tmpfs, or "
			      "set filesystem.home: private");
}

/* Adds the volume as a bind at target; *ret_added is false where it could not be given. */
static int add_volume(struct plan *p, const struct volume_key *key, const char *target,
		      bool *ret_added, struct ward_err *e)
{
	auto_free char *path = NULL, *real = NULL;
	struct plan_mount *m;
	auto_fd lock = -1;
	struct stat st = { 0 };
	int r = volume_open(key, p->spec->starts, &path, &lock, e);

	*ret_added = false;
	if (r < 0)
		return r;
	real = p->spec->starts ? realpath(path, NULL) : strdup(path);
	if (!real || (p->spec->starts && lstat(real, &st) < 0))
		return ward_fail_errno(e, "cannot access the volume %s", path);
	if (lock >= 0 && plan_keep_lock(p, &lock) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	m = plan_add_bind(p, real, target);
	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->writable = m->from_policy = m->volume = true;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	r = p->spec->starts ? clone_volume(p, m, e) : 0;
	if (r == 1) {
		own_close_fd(&m->tree_fd);
		p->mount_count--;
		return 0;
	}
	*ret_added = r == 0;
	return r;
}

/* asked: the policy names it, and not only a toolchain that it belongs to. */
static int add_cache(struct plan *p, const struct cache_row *row, bool asked, struct ward_err *e)
{
	struct volume_key key = { .kind = VOLUME_CACHE,
				  .workspace = p->workspace,
				  .name = row->name,
				  .part = row->part };
	char target[64];
	bool added;
	int r;

	set_owner(p, &key);
	snprintf(target, sizeof(target), PLAN_HOME "/%s", row->path);
	r = add_volume(p, &key, target, &added, e);
	if (r == 0 && !added && asked)
		strv_addf(&p->notes,
			  "the cache %s does not persist: the file system of ward's state "
			  "directory does not allow id-mapped mounts (set WARD_STATE_DIR to a "
			  "directory on ext4, xfs, btrfs or tmpfs)",
			  row->name);
	return r;
}

static bool is_of_toolchain(const struct plan *p, const char *cache)
{
	for (size_t i = 0; i < p->toolchains.len; i++)
		if (toolchain_has_cache(p->toolchains.items[i], cache, p->workspace))
			return true;
	return false;
}

int plan_add_volumes(struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;
	struct volume_key home = { .kind = VOLUME_HOME, .name = policy->fs_home };
	bool added = true;
	int r = 0;

	if (plan_keeps_home(p)) {
		set_owner(p, &home);
		r = add_volume(p, &home, PLAN_HOME, &added, e);
		if (r == 0 && !added)
			r = refuse_home(p, e);
	}
	for (size_t i = 0;
	     r == 0 && (policy->fs_caches.len || p->toolchains.len) && i < ARRAY_LEN(cache_rows);
	     i++)
		if (strv_has(&policy->fs_caches, cache_rows[i].name))
			r = add_cache(p, &cache_rows[i], true, e);
		else if (is_of_toolchain(p, cache_rows[i].name))
			r = add_cache(p, &cache_rows[i], false, e);
	return r;
}

/* The bind that m's target lies in, the innermost one. */
static const struct plan_mount *outer_bind(const struct plan *p, const struct plan_mount *m)
{
	const struct plan_mount *best = NULL;

	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *o = &p->mounts[i];

		if (o != m && o->kind == MOUNT_BIND && strcmp(o->target, m->target) != 0 &&
		    path_is_beneath(m->target, o->target) &&
		    (!best || strlen(o->target) > strlen(best->target)))
			best = o;
	}
	return best;
}

int plan_make_points(struct plan *p, struct ward_err *e)
{
	struct volume_key key = { .kind = VOLUME_HOME };
	int r = 0;

	if (!plan_keeps_home(p) || !p->spec->starts)
		return 0;
	set_owner(p, &key);
	for (size_t i = 0; r == 0 && i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i],
					*outer = m->from_policy ? outer_bind(p, m) : NULL;
		auto_fd home = -1;

		if (!outer || !outer->volume || strcmp(outer->target, PLAN_HOME) != 0)
			continue;
		home = open(outer->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (home < 0)
			return ward_fail_errno(e, "cannot open the home %s", outer->source);
		r = volume_make_point(home, m->target + strlen(PLAN_HOME "/"), m->is_file, &key, e);
		if (r < 0)
			return ward_remedy(e, "check %s, or remove it with: ward volume rm home/%s",
					   outer->source, p->spec->policy.fs_home);
	}
	return r;
}

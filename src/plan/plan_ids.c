/*
 * Whom the agent is. An ordinary user's agent has the user's own uid in a user namespace that gives
 * it nothing else. Root's agent gets an unprivileged uid that no other running sandbox has (the
 * supervisor's pid makes it unique), and sees the policy's trees through id-mapped mounts, so that
 * files keep their owner. Where a file system refuses that: the workspace's owner if that is not
 * root, else uid 0 without any capability, which the plan's notes say.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "host/idmap.h"
#include "host/probe.h"
#include "plan/level.h"
#include "plan/plan.h"

#define AGENT_ID 1000

static const struct plan_mount *workspace_mount(const struct plan *p)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].from_policy && strcmp(p->mounts[i].target, p->workspace) == 0)
			return &p->mounts[i];
	return NULL;
}

static void note_groups(struct plan *p)
{
	gid_t groups[64];
	int n = getgroups(64, groups);
	auto_buf list = { 0 };

	for (int i = 0; i < n; i++)
		if (groups[i] != p->facts.gid)
			buf_printf(&list, " %u", groups[i]);
	if (list.len)
		strv_addf(&p->notes,
			  "the agent keeps your supplementary groups (an ordinary user cannot "
			  "drop them):%s",
			  list.data);
}

/* As root: every tree of the policy is cloned now, with root's eyes, and mapped if asked. 1: some
 * tree refused it. */
static int clone_trees(struct plan *p, bool map, struct ward_err *e)
{
	int refused = 0;

	for (size_t i = 0; i < p->mount_count; i++) {
		struct plan_mount *m = &p->mounts[i];
		struct stat st;

		if (!m->from_policy)
			continue;
		if (m->tree_fd >= 0)
			close(m->tree_fd);
		m->mapped = false;
		m->tree_fd = idmap_clone_tree(m->source, m->dev, m->ino, e);
		if (m->tree_fd < 0)
			return m->tree_fd;
		if (fstat(m->tree_fd, &st) < 0)
			return ward_fail_errno(e, "cannot look at %s", m->source);
		if (!map)
			continue;
		m->mapped = idmap_apply(m->tree_fd, st.st_uid, st.st_gid, p->ids.host_uid,
					p->ids.host_gid) == 0;
		if (!m->mapped && m->writable)
			refused = 1;
	}
	return refused;
}

/* The kernel lets no root without CAP_SETFCAP map itself: no namespaces then. */
static int without_map(struct plan *p, struct ward_err *e)
{
	if (p->spec->policy.req_isolation == REQUIRE_LANDLOCK) {
		p->level = LEVEL_LANDLOCK;
		return level_check(p, e);
	}
	ward_fail(e, EPERM, "root without CAP_SETFCAP cannot be mapped into a user namespace");
	return ward_remedy(e, "in a container: --cap-add SETFCAP; or run ward as an ordinary user, "
			      "or chown the workspace to one; or accept a weaker sandbox: require: "
			      "{isolation: landlock, limits: none}");
}

static int without_idmap(struct plan *p, struct ward_err *e)
{
	if (p->spec->policy.req_idmap) {
		ward_fail(e, ENOTSUP,
			  "require.idmap: the file system of %s (or one mounted in it) does not "
			  "support id-mapped mounts",
			  p->workspace);
		return ward_remedy(e, "put the workspace on ext4, xfs, btrfs or tmpfs, or set "
				      "require.idmap: false");
	}
	if (p->ids.owner_uid != 0) {
		p->ids.mode = IDS_OWNER;
		p->ids.host_uid = p->ids.owner_uid;
		p->ids.host_gid = p->ids.owner_gid;
		strv_addf(
			&p->notes,
			"no id-mapped mounts here: the agent runs as the workspace's owner, uid %u",
			p->ids.owner_uid);
		return 0;
	}
	if (p->level != LEVEL_LANDLOCK && probe_root_without(CAP_SETFCAP)) {
		int r = without_map(p, e);

		if (r < 0)
			return r;
	}
	if (p->spec->policy.proc_nesting)
		strv_add(&p->notes, "process.nesting and the host's uid 0: the sandbox can change "
				    "limits enforced by cgroup v1");
	p->ids.mode = IDS_ROOT;
	p->ids.host_uid = 0;
	p->ids.host_gid = 0;
	strv_add(&p->notes, "no id-mapped mounts here: the agent runs as the host's uid 0 without "
			    "capabilities; a workspace owned by an ordinary user, or one on ext4, "
			    "xfs, btrfs or tmpfs, is safer");
	return 0;
}

static int without_idmap_cloned(struct plan *p, struct ward_err *e)
{
	int r = without_idmap(p, e);

	if (r == 0)
		r = clone_trees(p, false, e);
	/* root of a container without CAP_SYS_ADMIN may clone nothing: the sandbox opens the trees
	 * itself */
	return r == -EPERM ? 0 : r;
}

void plan_expected_ids(const struct facts *f, struct plan_ids *ret_ids)
{
	*ret_ids = (struct plan_ids){ .mode = f->uid == 0 ? IDS_ROOT : IDS_OWN,
				      .host_uid = f->uid,
				      .host_gid = f->gid,
				      .inside_uid = AGENT_ID,
				      .inside_gid = AGENT_ID };
	if (f->uid != 0 || f->id_count == 0)
		return;
	ret_ids->mode = IDS_MAPPED;
	ret_ids->host_uid = f->id_first + (uid_t)getpid() % f->id_count;
	ret_ids->host_gid = ret_ids->host_uid;
}

/* Before Linux 5.19 an overlay could not be made of id-mapped mounts. */
static bool can_map(const struct plan *p)
{
	unsigned major = 0, minor = 0;
	struct utsname host;

	if (!p->review || uname(&host) < 0 || sscanf(host.release, "%u.%u", &major, &minor) != 2)
		return true;
	return major > 5 || (major == 5 && minor >= 19);
}

int plan_choose_ids(struct plan *p, struct ward_err *e)
{
	const struct plan_mount *w = workspace_mount(p);
	struct stat st;
	int r;

	if (!w || stat(w->source, &st) < 0)
		return ward_fail_errno(e, "cannot access the workspace %s", p->workspace);
	plan_expected_ids(&p->facts, &p->ids);
	p->ids.owner_uid = st.st_uid;
	p->ids.owner_gid = st.st_gid;
	if (p->facts.uid != 0) {
		note_groups(p);
		return 0;
	}
	if (p->level == LEVEL_LANDLOCK)
		return without_idmap(p, e);
	r = p->ids.mode == IDS_MAPPED && can_map(p) ? clone_trees(p, true, e) : 1;
	if (r != 1 && r != -EPERM)
		return r;
	return r == 1 ? without_idmap_cloned(p, e) : without_idmap(p, e);
}

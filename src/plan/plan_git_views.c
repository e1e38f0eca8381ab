/*
 * The repositories of a plan. In: the git directories that the guards found in writable trees. Out:
 * a private copy of each, mounted over it, with the host's objects behind it, read-only. Runs in
 * the supervisor with the user's rights, once the trees have been looked through.
 *
 * What the sandbox does to a private copy is taken over by meaning (ward-git), so the host's git
 * directory is never written by the sandbox, and nothing that it writes there can run anything on
 * the host, not even while it lives. Where no copy can be made (git is not installed, an unknown
 * format) the repository is there read-only, and a note says why.
 */
#include "gitview/git_run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/remove.h"
#include "gitview/git_view.h"
#include "guard/guard_internal.h"
#include "host/idmap.h"
#include "host/program.h"
#include "plan/plan_root.h"
#include "state/review_place.h"
#include "state/store.h"

/* of those that a sandbox can have: for the policy's own, and for repositories that are
 * read-only */
#define MOUNTS_SPARE 40
#define MOUNTS_TAKEN 3 /* by a view: itself, the objects, what else is lent */

struct adding {
	struct plan *plan;
	struct git_views *views;
	const char *unsuitable; /* why no repository can have a view; NULL: they can */
	struct ward_err *e;
};

static int out_of_memory(struct adding *a)
{
	return ward_fail(a->e, ENOMEM, "out of memory");
}

/* Whether git can take over anything at all. */
static const char *find_obstacle(void)
{
	struct ward_err e = { 0 };
	char path[PATH_MAX];
	auto_fd own = program_open("ward-git", &e);

	if (own < 0)
		return "ward-git is not installed next to ward";
	return program_find_system("git", path, &e) < 0 ? "git is not installed on this host"
							: NULL;
}

/* STATE/git/RUN, made and locked. */
static int open_views(struct adding *a)
{
	struct git_views *v = a->views;
	auto_free char *state_path = NULL;
	auto_fd state = store_open(a->e);
	auto_fd all = state < 0 ? state : store_open_dir(state, GIT_VIEWS, a->e);
	int status = all < 0 ? all : state_dir_path(&state_path, a->e);

	if (status < 0)
		return status;
	if (asprintf(&v->path, "%s/" GIT_VIEWS "/%s", state_path, a->plan->spec->run_id) < 0) {
		v->path = NULL;
		return out_of_memory(a);
	}
	v->lock_fd = store_open_dir(all, a->plan->spec->run_id, a->e);
	if (v->lock_fd < 0)
		return v->lock_fd;
	if (flock(v->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail(a->e, errno, "the private git directories of %s are in use",
				 a->plan->spec->run_id);
	return 0;
}

/* Where view number n is. */
static char *view_path(struct adding *a, size_t n)
{
	char *dir;

	if (asprintf(&dir, "%s/%zu", a->views->path, n) >= 0)
		return dir;
	out_of_memory(a);
	return NULL;
}

/* A continued review has the views of its former runs: counts them. */
static int open_former(struct adding *a)
{
	int status = open_views(a);

	for (; status == 0; a->views->made++) {
		auto_free char *dir = view_path(a, a->views->made);
		struct stat st;

		if (!dir)
			return -a->e->code;
		if (lstat(dir, &st) < 0)
			return errno == ENOENT ? 0 : ward_fail_errno(a->e, "cannot access %s", dir);
	}
	return status;
}

/* As root: the tree with root's eyes, for whom the agent is. */
static int clone_mount(struct adding *a, struct plan_mount *m, const char *dir, uid_t uid,
		       gid_t gid)
{
	const struct plan_ids *ids = &a->plan->ids;

	if (a->plan->facts.uid != 0)
		return 0;
	m->tree_fd = idmap_clone_tree(m->source, m->dev, m->ino, a->e);
	if (m->tree_fd == -EPERM) {
		m->tree_fd = -1;
		return 0; /* a container without CAP_SYS_ADMIN: the sandbox opens it itself */
	}
	if (m->tree_fd < 0)
		return m->tree_fd;
	if (ids->mode == IDS_MAPPED)
		m->mapped = idmap_apply(m->tree_fd, uid, gid, ids->host_uid, ids->host_gid) == 0;
	/* the state directory's file system cannot: the copy changes hands */
	if (ids->mode == IDS_MAPPED && !m->mapped && m->writable)
		return git_view_give(dir, ids->host_uid, ids->host_gid, a->e);
	return 0;
}

/* Mounts source (absolute; of the view at dir, NULL: of the host) at target, which lies in a tree
 * of the policy's or in a view. */
static int add_mount(struct adding *a, const char *dir, const char *source, const char *target,
		     bool writable, const struct stat *owner)
{
	struct plan_mount *m = plan_add_bind(a->plan, source, target);
	struct stat st;

	if (!m)
		return out_of_memory(a);
	m->from_policy = m->volume = m->view = m->in_bind = true;
	m->writable = writable;
	if (!a->plan->spec->starts)
		return 0;
	if (lstat(source, &st) < 0)
		return ward_fail_errno(a->e, "cannot look at %s", source);
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	return clone_mount(a, m, dir, owner->st_uid, owner->st_gid);
}

/* The host's directories that the view shows, read-only. */
static int add_lent(struct adding *a, const char *git_dir, const char *target,
		    const struct strv *lent, const struct stat *owner)
{
	int status = 0;

	for (size_t i = 0; i < lent->len && status == 0; i++) {
		const char *in_git = strchr(lent->items[i], '\n');
		auto_free char *source = NULL, *point = NULL;

		if (!in_git)
			continue;
		if (asprintf(&source, "%s/%s", git_dir, in_git + 1) < 0)
			return out_of_memory(a);
		if (asprintf(&point, "%s/%.*s", target, (int)(in_git - lent->items[i]),
			     lent->items[i]) < 0)
			return out_of_memory(a);
		status = add_mount(a, NULL, source, point, false, owner);
	}
	return status;
}

/* The rules for what its commits bring. The files of a git directory that is a tree of its own lie
 * in another one. */
static int list_rules(struct adding *a, const struct guard_root *g, const char *name,
		      struct strv *rules)
{
	for (size_t i = 0; i < a->plan->live->root_count; i++) {
		const struct guard_root *other = &a->plan->live->roots[i];

		for (size_t k = 0; k < other->rules.len && (other == g || !*name); k++)
			if (!strv_has(rules, other->rules.items[k]))
				strv_add(rules, other->rules.items[k]);
	}
	return rules->failed ? out_of_memory(a) : 0;
}

/* What a view of the repository is made of. */
static int fill_source(struct adding *a, const struct guard_root *g, const char *name,
		       const char *git_dir, const struct stat *st, const struct strv *rules,
		       struct git_view_source *ret)
{
	auto_buf config = { 0 }, hooks = { 0 };

	*ret = (struct git_view_source){ .git_dir = git_dir,
					 .root = g->target,
					 .host_root = g->path,
					 .uid = st->st_uid,
					 .gid = st->st_gid,
					 .chown = a->plan->facts.uid == 0,
					 .rules = rules };
	buf_printf(&config, "%s%sconfig", name, *name ? "/" : "");
	buf_printf(&hooks, "%s%shooks", name, *name ? "/" : "");
	if (config.failed || hooks.failed)
		return out_of_memory(a);
	ret->free_config = guard_is_released(g, config.data, false);
	ret->free_hooks = guard_is_released(g, hooks.data, true);
	return 0;
}

/* The view of the repository that a former run of the review made; *ret_dir is NULL where there is
 * none. The number says nothing: the host may have got and lost repositories since. */
static int find_former(struct adding *a, const struct git_view_source *s, const struct stat *st,
		       char **ret_dir)
{
	size_t former = a->plan->spec->continued ? a->views->made : 0;
	int found = 0;

	*ret_dir = NULL;
	for (size_t i = 0; i < former && found == 0; i++) {
		auto_free char *dir = view_path(a, i);

		found = dir ? git_view_is_of(dir, s, st, a->e) : -a->e->code;
		if (found > 0)
			*ret_dir = take_ptr(dir);
	}
	return found < 0 ? found : 0;
}

/* Makes a new view at dir. */
static int make_view(struct adding *a, const struct git_view_source *s, const char *dir,
		     struct strv *lent)
{
	if (mkdir(dir, 0700) < 0)
		return ward_fail_errno(a->e, "cannot make the private git directory %s", dir);
	if (s->chown && chown(dir, s->uid, s->gid) < 0)
		return ward_fail_errno(
			a->e, "cannot change the owner of the private git directory %s", dir);
	return git_view_make(dir, s, lent, a->e);
}

/* Mounts the view at dir over the repository. */
static int mount_view(struct adding *a, const char *dir, const char *git_dir, const char *target,
		      const struct strv *lent, const struct stat *st)
{
	auto_free char *view = NULL;
	int status;

	if (asprintf(&view, "%s/" GIT_VIEW_DIR, dir) < 0) {
		view = NULL;
		return out_of_memory(a);
	}
	status = add_mount(a, dir, view, target, true, st);
	return status < 0 ? status : add_lent(a, git_dir, target, lent, st);
}

static int add_read_only(struct adding *a, const char *git_dir, const char *target, const char *why,
			 const struct stat *st)
{
	strv_addf(&a->plan->notes, "git inside can read %s, but not write to it: %s", target, why);
	if (a->plan->notes.failed)
		return out_of_memory(a);
	return add_mount(a, NULL, git_dir, target, false, st);
}

static int note_view(struct adding *a, size_t root, const char *name, const char *dir)
{
	strv_add(&a->views->dirs, dir);
	strv_add(&a->views->names, name);
	strv_addf(&a->views->roots, "%zu", root);
	return a->views->dirs.failed || a->views->names.failed || a->views->roots.failed
		       ? out_of_memory(a)
		       : 0;
}

/* As root: whether that user gets to the directory. What is taken over is never written by root
 * into another user's repository. */
static bool reaches(uid_t uid, const char *path)
{
	auto_fd fd = -1;

	if (uid == 0)
		return true;
	setfsuid(uid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	setfsuid(0);
	return fd >= 0;
}

/* Whether the sandbox can have the mounts of one more view. Engines bound them, so a workspace full
 * of repositories, which an agent may have made on purpose, must not stop the next run. */
static bool has_room(const struct adding *a)
{
	size_t taken = MOUNTS_TAKEN;

	for (size_t i = 0; i < a->plan->mount_count; i++)
		taken += a->plan->mounts[i].view || a->plan->mounts[i].tree_fd >= 0 ||
			 a->plan->mounts[i].writable;
	return a->views->made < GIT_VIEWS_MAX && taken + MOUNTS_SPARE <= PLAN_MOUNTS_MAX;
}

/* Whether no private copy could be made of any repository now. What lies in one, which an agent may
 * have made, must not stop the run. */
static bool is_hosts_fault(int status)
{
	static const int faults[] = { ENOMEM, ENOSPC, EDQUOT, EROFS, EMFILE, ENFILE, EIO };

	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		if (status == -faults[i])
			return true;
	return false;
}

/* A repository without a view yet: makes one, or shows the repository read-only. */
static int add_new_view(struct adding *a, const struct git_view_source *s, size_t root,
			const char *name, const char *target, const struct stat *st)
{
	auto_free char *dir = NULL;
	auto_strv lent = { 0 };
	struct ward_err own;
	int status;

	if (!has_room(a)) {
		a->views->left++; /* said in one line: there may be thousands */
		return add_mount(a, NULL, s->git_dir, target, false, st);
	}
	if (!a->plan->spec->starts) {
		a->views->made++;
		return note_view(a, root, name, s->git_dir) < 0
			       ? -a->e->code
			       : add_mount(a, NULL, s->git_dir, target, true, st);
	}
	status = a->views->path ? 0 : open_views(a);
	if (status == 0)
		dir = view_path(a, a->views->made);
	if (!dir)
		return -a->e->code;
	status = make_view(a, s, dir, &lent);
	/* too large, too deep, files of another user */
	if (status < 0 && !is_hosts_fault(status)) {
		own = *a->e;
		*a->e = (struct ward_err){ 0 };
		return remove_tree(dir) < 0 ? -EIO
					    : add_read_only(a, s->git_dir, target, own.why, st);
	}
	if (status == 0)
		a->views->made++;
	if (status == 0)
		status = mount_view(a, dir, s->git_dir, target, &lent, st);
	return status < 0 ? status : note_view(a, root, name, dir);
}

/* One repository: name is its git directory's path in the tree, "" for the tree itself. */
static int add_view(struct adding *a, size_t root, const char *name)
{
	const struct guard_root *g = &a->plan->live->roots[root];
	auto_free char *git_dir = *name ? path_join(g->path, name) : strdup(g->path);
	auto_free char *target = *name ? path_join(g->target, name) : strdup(g->target),
		       *former = NULL;
	struct ward_err gone;
	auto_fd fd =
		path_open_nolink(g->held_fd, *name ? name : ".", O_RDONLY | O_DIRECTORY, &gone);
	const char *why = a->unsuitable;
	struct git_view_source source;
	auto_strv lent = { 0 }, rules = { 0 };
	struct stat st;
	int status;

	if (!git_dir || !target)
		return out_of_memory(a);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* removed this moment */
	if (!why && a->plan->facts.uid == 0 && !reaches(st.st_uid, git_dir))
		why = "its owner, as which ward imports commits, cannot access it";
	if (!why && !git_view_suits(fd))
		why = "ward cannot import from its format";
	if (why)
		return add_read_only(a, git_dir, target, why, &st);
	status = list_rules(a, g, name, &rules);
	if (status == 0)
		status = fill_source(a, g, name, git_dir, &st, &rules, &source);
	if (status == 0)
		status = find_former(a, &source, &st, &former);
	if (status < 0 || !former)
		return status < 0 ? status : add_new_view(a, &source, root, name, target, &st);
	status = git_view_reopen(former, &source, &lent, a->e);
	if (status == 0)
		status = mount_view(a, former, git_dir, target, &lent, &st);
	return status < 0 ? status : note_view(a, root, name, former);
}

int plan_add_views(struct plan *p, struct ward_err *e)
{
	struct adding a = { .plan = p, .e = e };
	bool any = false;
	int status = 0;

	for (size_t i = 0; i < p->live->root_count; i++)
		any |= p->live->roots[i].views.len > 0;
	if (!any)
		return 0;
	a.views = p->live->views = calloc(1, sizeof(*p->live->views));
	if (!a.views)
		return out_of_memory(&a);
	a.views->lock_fd = -1;
	a.views->kept = p->review;
	a.unsuitable = find_obstacle();
	if (p->spec->continued && !a.unsuitable)
		status = open_former(&a);
	for (size_t i = 0; i < p->live->root_count && status == 0; i++)
		for (size_t k = 0; k < p->live->roots[i].views.len && status == 0; k++) {
			const char *name = p->live->roots[i].views.items[k];

			status = add_view(&a, i, strcmp(name, ".") == 0 ? "" : name);
		}
	return status;
}

void git_views_free(struct git_views *v)
{
	bool needed;

	if (!v)
		return;
	/* a run that was refused has no review */
	needed = v->failed || (v->kept && v->path && review_exists(strrchr(v->path, '/') + 1));
	if (v->path && !needed)
		(void)!remove_tree(v->path);
	own_close_fd(&v->lock_fd);
	free(v->path);
	strv_free(&v->dirs);
	strv_free(&v->roots);
	strv_free(&v->names);
	free(v);
}

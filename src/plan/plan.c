/*
 * The planner. In: a spec and the host's facts. Out: one struct plan, const from then on, that an
 * engine carries out and `ward plan` prints. Runs in the supervisor with the user's rights. It
 * opens and looks, it changes nothing, and whatever is impossible is reported here, before anything
 * starts.
 */
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/path.h"
#include "gitview/git_run.h"
#include "guard/guard_follow.h"
#include "guard/guard_internal.h"
#include "host/facts.h"
#include "host/idmap.h"
#include "host/program.h"
#include "limit/limits.h"
#include "plan/certs.h"
#include "plan/inner.h"
#include "plan/level.h"
#include "plan/plan_net.h"
#include "plan/plan_root.h"
#include "plan/plan_tape.h"
#include "plan/profile.h"
#include "state/images.h"
#include "state/store.h"

#define LOOKS_MAX 4 /* at the trees, where other runs come and go meanwhile */

static int do_nothing(void *unused)
{
	(void)unused;
	return 0;
}

/* Whether the kernel lets this caller make the namespaces. Asked only where the answer changes the
 * plan. */
static bool has_namespaces(void)
{
	char stack[4096] __attribute__((aligned(16)));
	struct clone_child child = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
					      CLONE_VM | CLONE_VFORK,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = do_nothing };
	long pid = clone_start(&child);

	if (pid < 0)
		return false;
	while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}

static void choose_level(struct plan *p)
{
	p->engine = p->spec->engine ? p->spec->engine : "native";
	p->level = LEVEL_NAMESPACES;
	if (strcmp(p->engine, "native") == 0 && p->spec->policy.req_isolation == REQUIRE_LANDLOCK &&
	    !has_namespaces())
		p->level = LEVEL_LANDLOCK;
}

/* A policy that insists on Landlock gets it, with its rules for files. */
static int check_landlock(const struct plan *p, struct ward_err *e)
{
	if (!p->spec->policy.req_landlock)
		return 0;
	if (strcmp(p->engine, "oci") == 0) {
		ward_fail(e, ENOTSUP,
			  "require.landlock: a container of isolation oci has no Landlock");
		return ward_remedy(e, "use isolation: native, or set require.landlock: false");
	}
	if (p->spec->policy.proc_nesting) {
		ward_fail(e, ENOTSUP,
			  "require.landlock: process.nesting turns its rules for files off");
		return ward_remedy(e, "set process.nesting: false, or require.landlock: false");
	}
	if (p->facts.landlock_abi >= LANDLOCK_ABI_MIN)
		return 0;
	ward_fail(e, ENOTSUP,
		  "require.landlock: this kernel has no Landlock, or it is not in the lsm= list");
	return ward_remedy(e, "boot with landlock in the lsm= list (Linux 5.19 or newer), or set "
			      "require.landlock: false");
}

static bool any_limit(const struct policy *policy)
{
	return policy->res_memory != POLICY_NONE || policy->res_pids != POLICY_NONE ||
	       policy->res_cpu != POLICY_NONE;
}

/* Where ".ENVRC" is ".envrc" the lists of names do not hold, and that has to be said. */
static void note_case(struct plan *p, const char *path, int fd)
{
	static const unsigned long blind[] = { 0x4d44 /* vfat */,
					       0x2011bab0 /* exfat */,
					       0x7366746e /* ntfs3 */,
					       0x5346544e /* ntfs */,
					       0x482b /* hfsplus */,
					       0xff534d42 /* cifs */,
					       0xfe534d42 /* smb3 */,
					       0x01021997 /* 9p: drives of Windows */ };
	bool is_blind = false;
	struct statfs fs;
	int flags = 0;

	if (fstatfs(fd, &fs) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(blind); i++)
		is_blind |= (unsigned long)fs.f_type == blind[i];
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && flags & FS_CASEFOLD_FL)
		is_blind = true;
	if (is_blind)
		strv_addf(&p->notes,
			  "%s may be case-insensitive: ward recognizes hidden and protected names "
			  "only in the case of their lists",
			  path);
}

/* ward's own programs: the gateway and `ward recover` are started when the sandbox already runs,
 * the rest the next time. There are many, and nearly never one in the tree. */
static int protect_programs(struct guard_root *g, struct ward_err *e)
{
	char self[PATH_MAX], file[PATH_MAX + 64];
	const char *place;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t dir, up;
	int r;

	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward's own file");
	self[n] = '\0';
	r = guard_protect_place(g, self, false, e);
	for (dir = (size_t)n; dir && self[dir - 1] != '/'; dir--)
		;
	for (up = dir > 1 ? dir - 1 : dir; up && self[up - 1] != '/'; up--)
		;
	memcpy(file, self, dir);
	for (size_t i = 0; r == 0 && (place = program_place(i)); i++) {
		bool above = strncmp(place, "../", 3) == 0;
		const char *rest = place + (above ? 3 : 0);

		memcpy(file + (above ? up : dir), rest, strlen(rest) + 1);
		r = guard_protect_place(g, file, false, e);
		if (above)
			memcpy(file, self, dir);
	}
	return r;
}

/* What ward believes or runs tomorrow. A state directory in the tree itself is refused elsewhere; a
 * link to it may lie there. */
static int protect_own(struct guard_root *g, struct ward_err *e)
{
	auto_free char *state = NULL, *real = NULL;
	int r = state_dir_path(&state, e);

	if (r == 0)
		r = guard_protect_way(g, state, &real, e);
	if (r == 0)
		r = profile_protect(g, e);
	return r < 0 ? r : protect_programs(g, e);
}

/* An image of ward's own store is nobody's project: nothing in it is hidden, as where it is the
 * root, and it has no sockets. One that is still being made may have some. */
static bool is_stored_image(const struct plan_mount *m)
{
	struct ward_err unused = { 0 };
	auto_free char *state = NULL, *images = NULL, *real = NULL;
	const char *rest;

	if (m->writable || state_dir_path(&state, &unused) < 0)
		return false;
	images = path_join(state, IMAGES_DIR);
	real = images ? realpath(images, NULL) : NULL;
	rest = real && path_is_beneath(m->source, real) ? m->source + strlen(real) : "";
	return *rest == '/' && strncmp(rest + 1, IMAGES_WORK, strlen(IMAGES_WORK)) != 0;
}

/* What the protected names of one tree lead to may lie in another one. */
static int join_guards(struct plan *p, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < p->live->root_count && r == 0; i++)
		for (size_t k = 0; k < p->live->root_count && r == 0; k++)
			if (i != k && p->live->roots[i].writable)
				r = guard_add_beyond(&p->live->roots[i], &p->live->roots[k], e);
	for (size_t i = 0; i < p->live->root_count && r == 0; i++) {
		struct guard_root *g = &p->live->roots[i];

		if (g->writable && p->spec->policy.proc_nesting)
			r = guard_hold(g, g->held_fd, &p->notes, e);
		for (size_t k = 0; k < g->notes.len; k++)
			strv_add(&p->notes, g->notes.items[k]);
	}
	return r;
}

/* Every writable tree of the policy is guarded. In a read-only one nothing can be planted, but what
 * is hidden still is, and sockets: a read-only mount does not keep a program from connecting. */
static int scan_trees(struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;

	p->live->roots = calloc(p->mount_count, sizeof(*p->live->roots));
	if (!p->live->roots)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];
		bool workspace = strcmp(m->target, p->workspace) == 0;
		struct guard_root *g = &p->live->roots[p->live->root_count];
		auto_fd fd = -1;
		int r;

		if (!m->from_policy || m->is_file || m->volume ||
		    (!workspace && is_stored_image(m)))
			continue;
		if (m->toolchain) { /* too much to look through, and made by package managers */
			r = plan_hide_in_toolchain(p, m, e);
			if (r < 0)
				return r;
			continue;
		}
		fd = open(m->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && errno == EACCES && !m->writable && !workspace)
			continue; /* what we cannot list is given all the same */
		p->live->root_count++;
		g->path = strdup(m->source);
		g->target = strdup(m->target);
		/* what is written there is not in the tree */
		g->writable = m->writable && !m->review;
		g->reviewed = m->review;
		/* such a sandbox could leave the mounts behind */
		g->shares_git = p->level == LEVEL_LANDLOCK || policy->proc_nesting;
		g->progress = p->spec->progress;
		if (!g->path || !g->target || fd < 0)
			return ward_fail_errno(e, "cannot read the directory %s", m->source);
		note_case(p, m->source, fd);
		r = guard_compile(g, workspace ? &policy->fs_hide : NULL, &policy->fs_protect, e);
		if (r == 0 && m->writable)
			r = protect_own(g, e);
		if (r == 0)
			r = guard_scan(g, fd, e);
		g->held_fd = take_fd(&fd);
		if (r < 0)
			return r;
	}
	return 0;
}

static int taint_trees(struct plan *p, const struct store_live *l, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < p->live->root_count && r >= 0; i++)
		r = store_live_taint(l, &p->live->roots[i], e);
	return r;
}

/* Scans the trees; what other runs that are under way may have made in them counts as new.
 * *ret_again: a run came and went meanwhile, and nothing says what it may have made for the time
 * that we looked. */
static int look_at_trees(struct plan *p, bool *ret_again, struct ward_err *e)
{
	struct store_live *before = NULL, *after = NULL;
	int r = p->spec->starts ? store_live_read(&before, e) : 0;

	if (r == 0)
		r = scan_trees(p, e);
	if (r == 0 && p->spec->starts)
		r = store_live_read(&after, e);
	if (r == 0)
		r = taint_trees(p, before, e);
	if (r == 0)
		r = taint_trees(p, after, e);
	*ret_again = r == 0 && store_live_missed(before, after);
	store_live_free(before);
	store_live_free(after);
	return r;
}

static int add_guards(struct plan *p, struct ward_err *e)
{
	bool again = true;
	int r = 0;

	for (unsigned i = 0; i < LOOKS_MAX && again && r == 0; i++) {
		for (size_t k = 0; k < p->live->root_count; k++)
			guard_clear(&p->live->roots[k]);
		free(p->live->roots);
		p->live->roots = NULL;
		p->live->root_count = 0;
		r = look_at_trees(p, &again, e);
	}
	return r < 0 ? r : join_guards(p, e);
}

static int check_cwd(struct plan *p, struct ward_err *e)
{
	if (p->cwd)
		return 0;
	if (!path_is_beneath(p->spec->cwd, p->workspace) && !plan_image_has(p, p->spec->cwd)) {
		for (size_t i = 0; i < p->mount_count; i++)
			if (path_is_beneath(p->spec->cwd, p->mounts[i].target) &&
			    p->mounts[i].kind == MOUNT_BIND)
				goto visible;
		ward_fail(e, EINVAL, "the working directory %s does not exist inside",
			  p->spec->cwd);
		return ward_remedy(e, "choose a directory of the workspace with -C, or mount it "
				      "with --ro or --rw");
	}
visible:
	p->cwd = strdup(p->spec->cwd);
	return p->cwd ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static int fill_net(struct plan *p, struct ward_err *e)
{
	int r = plan_net_fill(&p->spec->policy, &p->net, e);

	if (r < 0 || !p->net.on || !rules_inspect(p->net.rules))
		return r;
	p->live->certs = calloc(1, sizeof(*p->live->certs));
	return p->live->certs ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static const struct {
	const char *name, *help;
	int (*run)(struct plan *, struct ward_err *);
} steps[] = {
#define STEP(name, function, help) { name, help, function },
#include "plan_steps.def"
};

static int fill_plan(struct plan *p, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(steps) && r >= 0; i++)
		r = steps[i].run(p, e);
	return r < 0 ? r : 0;
}

void plan_print_steps(struct buf *out)
{
	buf_puts(out, "\nsteps of the planner\n");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		buf_printf(out, "  %2zu. %-14s %s\n", i + 1, steps[i].name, steps[i].help);
}

int plan_compile(const struct spec *s, const struct plan_system *system, struct plan **ret_plan,
		 struct ward_err *e)
{
	struct plan *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return ward_fail(e, ENOMEM, "out of memory");
	p->live = calloc(1, sizeof(*p->live));
	if (!p->live) {
		free(p);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	p->spec = s;
	p->image.lock_fd = -1;
	p->workspace = strdup(s->workspace);
	if (system)
		p->facts = system->facts;
	else
		facts_read(&p->facts);
	if (!any_limit(&s->policy))
		p->facts.cgroup = CGROUP_NONE;
	else if (p->facts.cgroup == CGROUP_NONE) /* else the run has begun in one */
		p->facts.cgroup = cgroup_probe();
	for (size_t i = 0; i < s->notes.len; i++)
		strv_add(&p->notes, s->notes.items[i]);
	choose_level(p);
	r = p->workspace ? 0 : ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = check_landlock(p, e);
	if (r == 0)
		r = plan_open_image(p, e);
	if (r == 0 && !system && !p->own_system)
		r = plan_system_read(&p->facts, &p->own_system, e);
	p->system = p->own_system ? p->own_system : system;
	if (r == 0 && p->level == LEVEL_LANDLOCK)
		r = level_check(p, e);
	if (r == 0)
		r = fill_plan(p, e);
	if (r < 0) {
		plan_free(p);
		return r;
	}
	plan_seal_image(p);
	*ret_plan = p;
	return 0;
}

char *const *plan_started(const struct plan *p)
{
	return p->started ? p->started : p->argv;
}

void plan_release(struct plan *p)
{
	for (size_t i = 0; i < p->live->lock_count; i++)
		close(p->live->lock_fds[i]);
	p->live->lock_count = 0;
}

void plan_built(const struct plan *p)
{
	if (p->facts.uid == 0)
		idmap_collect();
	for (size_t i = 0; i < p->mount_count; i++) {
		own_close_fd(&p->mounts[i].tree_fd);
		p->mounts[i].tree_fd = -1;
	}
}

void plan_end(struct plan *p)
{
	plan_release(p);
	plan_built(p);
	plan_tape_free(p->live->tape);
	p->live->tape = NULL;
	git_views_free(p->live->views);
	p->live->views = NULL;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	plan_end(p);
	for (size_t i = 0; i < p->live->root_count; i++)
		guard_clear(&p->live->roots[i]);
	free(p->live->lock_fds);
	plan_system_free(p->own_system);
	plan_net_clear(&p->net);
	plan_commands_free(p->commands);
	strv_free(&p->asks);
	strv_free(&p->asks_real);
	plan_gpus_free(p->gpus);
	plan_devices_free(p->devices);
	image_clear(&p->image);
	certs_free(p->live->certs);
	free(p->mounts);
	free(p->live->roots);
	free(p->cwd);
	free(p->workspace);
	strv_free(&p->inner_run);
	strv_free(&p->inner_exec);
	strv_free(&p->inner_copy);
	strv_free(&p->inner_same);
	free(p->started);
	strv_free(&p->env);
	strv_free(&p->strings);
	strv_free(&p->toolchains);
	strv_free(&p->tool_rows);
	strv_free(&p->tool_bins);
	strv_free(&p->tool_env);
	free(p->own_program);
	strv_free(&p->loud);
	strv_free(&p->notes);
	free(p->live);
	free(p);
}

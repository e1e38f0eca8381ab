/*
 * The toolchains of a plan. In: the policy's presets, the project's directory, the command, the
 * caller's PATH and environment. Out: read-only binds of what the presets show (toolchains.c),
 * links where the host has links, directories for PATH, variables. Runs in the supervisor with the
 * user's rights, only where a policy names presets, a project has a marker, or the command lies
 * outside of the system's directories.
 *
 * The workspace chooses by its files, and an agent may have written those. So a preset must be
 * safe to show to any sandbox: it has programs, no settings and no credentials
 * (tables/toolchains.def), and it is never taken from a place that a sandbox can write to, nor
 * through a link in one. Nothing that the workspace says names a path. What cannot be shown is
 * left out with a note.
 */
#include "plan/plan_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "guard/guard_internal.h"
#include "host/state_dir.h"
#include "plan/plan_reach.h"
#include "plan/toolchains.h"

#define BINDS_MAX 120  /* of all presets; PLAN_MOUNTS_MAX has room for others */
#define LOOK_DEPTH 4   /* directories below a mount that are looked through for credentials */
#define LOOK_MAX 20000 /* names that are looked at there */
#define LINKS_MAX 1024 /* names of a directory of PATH that are looked at */

static bool is_auto(const struct plan *p)
{
	return strv_has(&p->spec->policy.toolchains, "auto");
}

static void note(struct plan *p, const char *preset, const struct toolchain_item *item,
		 const char *why)
{
	strv_addf(&p->notes, "toolchain %s: %s is not mounted: %s", preset, item->path, why);
}

/* Whether ward's own state lies in it. */
static bool holds_state(const char *real)
{
	struct ward_err unused = { 0 };
	auto_free char *state = NULL, *place = NULL;

	if (state_dir_path(&state, &unused) < 0)
		return true;
	place = realpath(state, NULL);
	return path_is_beneath(place ? place : state, real);
}

/* Why what lies there is not for a sandbox of this plan; NULL: it is. */
static const char *refuse_here(const struct plan *p, const struct toolchain_item *item)
{
	struct ward_err unused = { 0 };

	if (item->refused)
		return item->refused;
	if (plan_reach(p, item->real))
		return "the sandbox can write there";
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && p->mounts[i].writable &&
		    path_is_beneath(p->mounts[i].source, item->real))
			return "it contains a place that the sandbox can write to";
	if (path_is_beneath(p->workspace, item->real))
		return "it contains the workspace";
	if (plan_reach_way(p, "toolchains", item->path, item->real, &unused) < 0)
		return "it goes through a link that a sandbox could have made";
	return holds_state(item->real) ? "it contains ward's own state" : NULL;
}

static size_t count_binds(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->mount_count; i++)
		n += p->mounts[i].toolchain;
	return n;
}

/* Whether something of the plan is at that path already, or above it. */
static bool is_taken(const struct plan *p, const char *path)
{
	if (path_is_beneath(path, "/usr"))
		return true;
	for (size_t i = 0; i < p->mount_count; i++)
		if (path_is_beneath(path, p->mounts[i].target))
			return true;
	return false;
}

/* 1: it is seen inside now. */
static int add_item(struct plan *p, const char *preset, const struct toolchain_item *item,
		    struct ward_err *e)
{
	const char *why;
	int r;

	if (!plan_is_in_view(p, item->real)) {
		why = count_binds(p) >= BINDS_MAX ? "there are too many" : refuse_here(p, item);
		if (why) {
			note(p, preset, item, why);
			return 0;
		}
		r = plan_add_policy_bind(p, item->real, item->real, false, e);
		if (r < 0)
			return r;
		p->mounts[p->mount_count - 1].toolchain = true;
		if (strcmp(p->mounts[p->mount_count - 1].source, item->real) != 0)
			return ward_fail(e, ESTALE, "%s was replaced while the sandbox was set up",
					 item->path);
	}
	if (strcmp(item->path, item->real) != 0 && !is_taken(p, item->path) &&
	    plan_add_link(p, item->real, item->path) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	return 1;
}

/* Whether the path is part of a toolchain that is mounted. */
static bool is_shown(const struct plan *p, const char *real)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].toolchain && path_is_beneath(real, p->mounts[i].source))
			return true;
	return false;
}

static void take_words(struct plan *p, const char *preset, const struct toolchain_items *t)
{
	const char *name;

	for (size_t i = 0; i < t->bins.len; i++) {
		auto_free char *real = realpath(t->bins.items[i], NULL);

		if (real && plan_is_in_view(p, real))
			strv_add(&p->tool_bins, t->bins.items[i]);
	}
	for (size_t i = 0; i < t->env.len; i++)
		strv_add(&p->tool_env, t->env.items[i]);
	for (size_t i = 0; (name = toolchain_passes(preset, i)); i++) {
		const char *value = getenv(name);
		auto_free char *real = value && *value == '/' ? realpath(value, NULL) : NULL;

		/* a directory whose parts are mounted is not in view itself */
		for (size_t k = 0; real && k < p->mount_count; k++)
			if (plan_is_in_view(p, real) ||
			    (p->mounts[k].toolchain &&
			     path_is_beneath(p->mounts[k].source, real))) {
				strv_addf(&p->tool_env, "%s=%s", name, value);
				break;
			}
	}
}

static int add_preset(struct plan *p, const char *preset, const struct toolchain_items *t,
		      struct ward_err *e)
{
	bool any = false;
	int r = t->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;

	for (size_t i = 0; i < t->len && r >= 0; i++) {
		r = add_item(p, preset, &t->items[i], e);
		any |= r == 1;
		if (r == 1 && !strv_has(&p->tool_rows, t->items[i].row))
			strv_add(&p->tool_rows, t->items[i].row);
	}
	if (r < 0 || !any)
		return r < 0 ? r : 0;
	strv_add(&p->toolchains, preset);
	take_words(p, preset, t);
	return 0;
}

/* Whether the command is one of the preset's programs. */
static bool has_program(const struct plan *p, const struct toolchain_items *t)
{
	auto_free char *real = p->own_program ? realpath(p->own_program, NULL) : NULL;

	for (size_t i = 0; real && i < t->len; i++)
		if (path_is_beneath(p->own_program, t->items[i].path) ||
		    path_is_beneath(real, t->items[i].real))
			return true;
	return false;
}

static bool is_chosen(const struct plan *p, const char *preset, const struct toolchain_items *t)
{
	if (strv_has(&p->spec->policy.toolchains, preset))
		return true;
	return is_auto(p) && (has_program(p, t) || toolchain_has_marker(p->workspace, preset) ||
			      (p->spec->cwd && toolchain_has_marker(p->spec->cwd, preset)));
}

/* Programs of toolchains that are links elsewhere: pipx and uv put them into ~/.local/bin, beside
 * others that stay outside. */
static int add_links(struct plan *p, const char *path, struct ward_err *e)
{
	auto_dir dir = opendir(path);
	struct dirent *d;

	for (unsigned n = 0; dir && n < LINKS_MAX && (d = readdir(dir)); n++) {
		auto_free char *file = d->d_type == DT_LNK ? path_join(path, d->d_name) : NULL,
			       *real = file ? realpath(file, NULL) : NULL;

		if (real && is_shown(p, real) && !is_taken(p, file) &&
		    plan_add_link(p, real, file) < 0)
			return ward_fail(e, ENOMEM, "out of memory");
	}
	return 0;
}

static int link_programs(struct plan *p, struct ward_err *e)
{
	const char *path = getenv("PATH"), *home = getenv("HOME");
	int r = 0;

	while (path && *path && home && *home == '/' && r == 0) {
		size_t n = strcspn(path, ":");
		auto_free char *entry = strndup(path, n),
			       *dir = entry && *entry == '/' ? path_clean(entry) : NULL,
			       *real = dir ? realpath(dir, NULL) : NULL;

		if (real && path_is_beneath(dir, home) && !plan_is_in_view(p, real) &&
		    !plan_reach(p, real))
			r = add_links(p, dir, e);
		path += n + (path[n] == ':');
	}
	return r;
}

int plan_show_toolchains(struct plan *p, struct ward_err *e)
{
	const char *preset;
	int r = 0;

	for (size_t i = 0; r == 0 && (preset = toolchain_preset(i)); i++) {
		struct toolchain_items t;

		toolchain_find(preset, &t);
		if (is_chosen(p, preset, &t))
			r = add_preset(p, preset, &t, e);
		toolchain_clear(&t);
	}
	if (r == 0 && count_binds(p))
		r = link_programs(p, e);
	if (p->toolchains.failed || p->tool_bins.failed || p->tool_env.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return r;
}

char *plan_toolchain_path(const struct plan *p, const char *dir)
{
	auto_free char *real = realpath(dir, NULL);

	if (real && is_shown(p, real))
		return take_ptr(real);
	for (size_t i = 0; i < p->mount_count; i++) {
		const char *slash = strrchr(p->mounts[i].target, '/');

		if ((p->mounts[i].toolchain || p->mounts[i].kind == MOUNT_LINK) &&
		    (size_t)(slash - p->mounts[i].target) == strlen(dir) &&
		    strncmp(p->mounts[i].target, dir, strlen(dir)) == 0)
			return strdup(dir);
	}
	return NULL;
}

/* ---- credentials between programs ---- */

struct look {
	struct guard_root *g;
	unsigned names;
	struct ward_err *e;
};

static int look_through(struct look *l, int dir_fd, const char *path, unsigned depth);

static int look_at(struct look *l, int dir_fd, const char *path, const struct dirent *d,
		   unsigned depth)
{
	auto_buf full = { 0 };
	int fd;

	buf_printf(&full, "%s%s%s", path, *path ? "/" : "", d->d_name);
	if (full.failed)
		return ward_fail(l->e, ENOMEM, "out of memory");
	/* what a link leads to is judged by its own name, where it lies */
	if ((d->d_type != DT_LNK && toolchain_hides(d->d_name)) || d->d_type == DT_SOCK ||
	    d->d_type == DT_FIFO)
		return guard_add_step(l->g, GUARD_HIDE, buf_text(&full), d->d_type == DT_DIR, l->e);
	if (d->d_type != DT_DIR || !depth)
		return 0;
	fd = openat(dir_fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? 0 : look_through(l, fd, buf_text(&full), depth - 1);
}

/* Takes dir_fd. */
static int look_through(struct look *l, int dir_fd, const char *path, unsigned depth)
{
	auto_dir dir = fdopendir(dir_fd);
	struct dirent *d;
	int r = 0;

	if (!dir) {
		close(dir_fd);
		return ward_fail(l->e, ENOMEM, "out of memory");
	}
	while (r >= 0 && (d = readdir(dir)) && l->names++ < LOOK_MAX)
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = look_at(l, dirfd(dir), path, d, depth);
	return r;
}

int plan_hide_in_toolchain(struct plan *p, const struct plan_mount *m, struct ward_err *e)
{
	struct guard_root *g = &p->live->roots[p->live->root_count];
	struct look l = { .g = g, .e = e };
	auto_fd fd = open(m->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC), copy = -1;
	int r;

	if (fd < 0)
		return errno == EACCES ? 0 : ward_fail_errno(e, "cannot read %s", m->source);
	copy = dup(fd);
	if (copy < 0)
		return ward_fail_errno(e, "cannot read %s", m->source);
	g->path = strdup(m->source);
	g->target = strdup(m->target);
	r = g->path && g->target ? look_through(&l, take_fd(&copy), "", LOOK_DEPTH)
				 : ward_fail(e, ENOMEM, "out of memory");
	if (r < 0 || !g->step_count) {
		guard_clear(g);
		return r < 0 ? r : 0;
	}
	g->held_fd = take_fd(&fd);
	p->live->root_count++;
	return 0;
}

/* ---- the command ---- */

/* Whether a program of that name is at the path inside: the plan shows the host's own there. */
static bool runs_at(const struct plan *p, const char *dir, const char *name)
{
	auto_free char *file = path_join(dir, name), *real = file ? realpath(file, NULL) : NULL;

	return real && access(real, X_OK) == 0 && plan_is_in_view(p, real);
}

static bool has_link(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_LINK && strcmp(p->mounts[i].target, path) == 0)
			return true;
	return false;
}

void plan_note_program(struct plan *p)
{
	const char *name = p->spec->argv[0], *path = NULL;
	auto_free char *real = realpath(p->own_program, NULL);

	if (strchr(name, '/') || strv_has(&p->spec->policy.fs_programs, name) ||
	    plan_is_in_view(p, p->own_program) || has_link(p, p->own_program) ||
	    (real && is_shown(p, real)))
		return;
	for (size_t i = 0; i < p->env.len; i++)
		if (strncmp(p->env.items[i], "PATH=", 5) == 0)
			path = p->env.items[i] + 5;
	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *dir = strndup(path, n);

		if (dir && *dir == '/' && runs_at(p, dir, name)) {
			strv_addf(&p->loud,
				  "%s is %s/%s inside, not %s as on your PATH; to use that one: "
				  "%s%s",
				  name, dir, name, p->own_program,
				  p->level == LEVEL_LANDLOCK ? "name it by its path, with --ro "
							     : "--add filesystem.programs=",
				  p->level == LEVEL_LANDLOCK ? p->own_program : name);
			strv_add(&p->notes, p->loud.items[p->loud.len - 1]);
			return;
		}
		path += n + (path[n] == ':');
	}
}

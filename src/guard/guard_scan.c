/*
 * The scan. In: a tree and its compiled lists. Out: steps for the engine and the baseline for the
 * sweep. Runs in the supervisor before the sandbox starts; changes nothing.
 *
 * One walk looks at every name once. What matches hide is hidden with all that lies beneath it, and
 * so is a socket or a named pipe; what is protected becomes read-only, and its directory is then
 * looked at only for names to hide. A link cannot carry a mount: the sweep compares it with what it
 * was, and what it leads to inside the tree is hidden or protected in its place (guard_follow.c). A
 * directory that the caller may not read becomes read-only, so that its owner cannot open it up
 * from inside. Other names of a hidden or protected file share its lot (guard_hardlinks.c). Of git
 * directories called ".git" only the data (objects, refs, logs) is passed over: names there are
 * git's, not files of the project.
 */
#include "guard/guard_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "guard/guard_dirs.h"
#include "guard/guard_judge.h"
#include "guard/guard_leads.h"

/* Marks of directories; above them the number of the nearest recorded directory. */
enum { IN_READONLY = 1, GIT_DIR = 2, IN_VIEW = 4, NUMBER_SHIFT = 3 };

struct nested {
	struct ignore *list;
	size_t base_len; /* length of the path of its directory */
};

struct scan {
	struct guard_root *g;
	int root_fd;
	struct ward_err *e;
	bool hides;          /* there is anything to hide at all */
	struct git_seen git; /* of the directory that is being listed */
	bool git_hidden[GIT_PARTS];
	struct nested *nested;
	size_t nested_count, nested_cap;
	struct guard_hardlinks twins; /* protected files with a second name */
	struct follow follow;         /* what protected names lead to */
	struct strv git_files;        /* .git files */
	struct strv targets;          /* what links lead to that is to be hidden */
};

static int out_of_memory(struct scan *s)
{
	return ward_fail(s->e, ENOMEM, "out of memory");
}

static bool is_hidden(const struct scan *s, const struct walk_entry *entry)
{
	bool as_dir = entry->type == DT_DIR || entry->type == DT_LNK;
	enum ignore_verdict v =
		ignore_decide_at(s->g->hide, entry->path, entry->path_len, entry->name_at, as_dir);

	if (v != IGNORE_NONE)
		return v == IGNORE_EXCLUDED;
	for (size_t i = s->nested_count; i-- > 0 && v == IGNORE_NONE;) {
		size_t skip = s->nested[i].base_len + 1;

		v = ignore_decide_at(s->nested[i].list, entry->path + skip, entry->path_len - skip,
				     entry->name_at - skip, as_dir);
	}
	if (v == IGNORE_NONE)
		v = ignore_decide_at(s->g->aiignore, entry->path, entry->path_len, entry->name_at,
				     as_dir);
	return v == IGNORE_EXCLUDED;
}

/* Where the link at path leads, if that is inside the root: its path there, else NULL. */
static char *link_inside(struct scan *s, const char *path)
{
	struct ward_err ignored;
	auto_fd fd = path_open_beneath(s->root_fd, path, O_PATH, &ignored);
	char proc[32], *real = malloc(PATH_MAX), *inside = NULL;
	ssize_t n = -1;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (fd >= 0 && real)
		n = readlink(proc, real, PATH_MAX - 1);
	if (n > 0) {
		real[n] = '\0';
		if (path_is_beneath(real, s->g->path) && strlen(real) > strlen(s->g->path))
			inside = strdup(real + strlen(s->g->path) + (s->g->path[1] ? 1 : 0));
	}
	free(real);
	return inside;
}

/* A hidden link to nothing, or by an absolute path: where it would lead inside the root. */
static int see_way(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(d->fd, entry->name, target, sizeof(target) - 1);
	const char *slash = strrchr(entry->path, '/');
	auto_free char *dir = strndup(entry->path, slash ? (size_t)(slash - entry->path) : 0),
		       *inside = NULL;

	if (!dir)
		return out_of_memory(s);
	target[n < 0 ? 0 : n] = '\0';
	inside = judge_resolve(s->g, dir, target);
	if (inside && *inside)
		strv_add(&s->targets, inside);
	return s->targets.failed ? out_of_memory(s) : 0;
}

/* What a hidden link leads to is hidden at the end of the scan. */
static int hide_link(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	auto_free char *inside = link_inside(s, entry->path);
	int status = 0;

	if (inside && *inside)
		strv_add(&s->targets, inside);
	else if (!inside)
		status = see_way(s, d, entry);
	if (s->targets.failed)
		return out_of_memory(s);
	return status < 0 || !guard_is_protected(s->g, entry)
		       ? status
		       : follow_link(&s->follow, entry->path);
}

/* Hides an entry and notes that it was there. */
static int hide(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	if (entry->type == DT_LNK)
		return hide_link(s, d, entry);
	if (entry->type == DT_REG &&
	    guard_hardlink_note(&s->twins, d->fd, entry->name, true, s->e) < 0)
		return -s->e->code;
	strv_addf(&s->g->baseline, "%s%s", entry->path, entry->type == DT_DIR ? "/" : "");
	if (s->g->baseline.failed)
		return out_of_memory(s);
	return guard_add_step(s->g, GUARD_HIDE, entry->path, entry->type == DT_DIR, s->e);
}

/* A socket or a named pipe that is there before the run leads to a process outside, whatever mount
 * it lies on: hidden, unless the policy's hide list takes it out with "!NAME". */
static bool is_host_channel(const struct scan *s, const struct walk_entry *entry)
{
	return ignore_decide_at(s->g->hide, entry->path, entry->path_len, entry->name_at, false) !=
	       IGNORE_INCLUDED;
}

/* Makes path read-only and notes that it was there. */
static int protect_path(struct scan *s, const char *path, bool is_dir)
{
	strv_addf(&s->g->baseline, "%s%s", path, is_dir ? "/" : "");
	if (s->g->baseline.failed)
		return out_of_memory(s);
	return guard_add_step(s->g, GUARD_READONLY, path, is_dir, s->e);
}

/* A protected file that names others to run. */
static int note_caller(struct scan *s, const struct walk_entry *entry)
{
	return s->g->writable && calls_others(entry->path) ? follow_caller(&s->follow, entry->path)
							   : 0;
}

static int protect_entry(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	if (entry->type == DT_LNK)
		return follow_link(&s->follow, entry->path);
	if (entry->type == DT_REG &&
	    (guard_hardlink_note(&s->twins, d->fd, entry->name, false, s->e) < 0 ||
	     note_caller(s, entry) < 0))
		return -s->e->code;
	return protect_path(s, entry->path, entry->type == DT_DIR);
}

/* Something in a directory that is read-only as a whole: a link leads out of it, a file can have a
 * second name elsewhere. */
static int scan_readonly(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	int status = 0;

	if (!s->g->writable)
		return 1;
	if (entry->type == DT_LNK)
		status = follow_link(&s->follow, entry->path);
	else if (entry->type == DT_REG)
		status = guard_hardlink_note(&s->twins, d->fd, entry->name, false, s->e) < 0
				 ? -s->e->code
				 : note_caller(s, entry);
	return status < 0 ? status : 1;
}

static int scan_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct scan *s = ctx;
	int status = 0;

	guard_git_note(&s->git, entry);
	progress_step(s->g->progress, "checking the workspace's files");
	s->g->file_count += entry->type == DT_REG;
	if ((entry->type == DT_SOCK || entry->type == DT_FIFO) && is_host_channel(s, entry))
		return hide(s, d, entry);
	if (s->hides && is_hidden(s, entry)) {
		for (size_t i = 0; i < GIT_PROTECTED; i++)
			if (strcmp(entry->name, guard_git_name((enum git_part)i)) == 0)
				s->git_hidden[i] = true;
		return hide(s, d, entry);
	}
	if (d->mark & IN_READONLY)
		return scan_readonly(s, d, entry);
	status = guard_note_tasks(s->g, d, entry, s->e);
	if (status >= 0 && (entry->type == DT_REG || entry->type == DT_LNK) && s->g->writable)
		status = guard_steer_note(s->g, d, entry, s->e);
	if (status < 0 || (!guard_is_gitlink(s->g, entry) && !guard_is_protected(s->g, entry)))
		return status < 0 ? status : 1;
	if (entry->type == DT_REG && strcmp(entry->name, ".git") == 0)
		strv_add(&s->git_files, entry->path);
	if (s->git_files.failed)
		return out_of_memory(s);
	status = protect_entry(s, d, entry);
	return status < 0 ? status : 1;
}

/* A git directory of which the sandbox gets a private copy (plan_git_views.c). */
static int scan_view(struct scan *s, struct walk_dir *d)
{
	static const enum git_part configs[] = { GIT_config, GIT_config_worktree };
	int status = 0;

	if (guard_in_view(s->g, d->path, d->path_len))
		return 0; /* a submodule's or a worktree's, in another one */
	d->mark |= IN_VIEW;
	strv_add(&s->g->views, d->path_len ? d->path : ".");
	if (s->g->views.failed)
		return out_of_memory(s);
	if (s->g->reviewed)
		return 0;
	if (d->path_len)
		status = guard_add_step(s->g, GUARD_VIEW, d->path, true, s->e);
	/* out of the sandbox's sight, but not by other names in the tree */
	for (size_t i = 0; status >= 0 && i < ARRAY_LEN(configs); i++)
		if (s->git.type[configs[i]] == DT_REG)
			status = guard_hardlink_note(&s->twins, d->fd, guard_git_name(configs[i]),
						     false, s->e);
	return status;
}

/* Protects the parts of a git directory that are there. */
static int scan_git_dir(struct scan *s, struct walk_dir *d)
{
	int status = 0;

	strv_add(&s->g->repositories, d->path_len ? d->path : ".");
	if (s->g->repositories.failed)
		return out_of_memory(s);
	if (s->g->reviewed || !s->g->shares_git)
		return scan_view(s, d);
	if (d->path_len)
		status = guard_add_step(s->g, GUARD_PIN, d->path, true, s->e);
	for (size_t i = 0; status >= 0 && i < GIT_PROTECTED; i++) {
		auto_buf path = { 0 };
		struct walk_entry entry = { .name = guard_git_name((enum git_part)i),
					    .type = s->git.type[i] };

		if (!entry.type || s->git_hidden[i])
			continue;
		buf_printf(&path, "%s%s%s", d->path, d->path_len ? "/" : "", entry.name);
		if (path.failed)
			return out_of_memory(s);
		entry.path = path.data;
		entry.path_len = path.len;
		entry.name_at = path.len - strlen(entry.name);
		if (!guard_is_released(s->g, entry.path, entry.type == DT_DIR))
			status = protect_entry(s, d, &entry);
	}
	return status;
}

static int scan_listed(void *ctx, struct walk_dir *d)
{
	struct scan *s = ctx;
	int status = 0;

	if ((!(d->mark & IN_READONLY) || s->g->reviewed) &&
	    guard_is_git_dir(&s->git, d->path, d->path_len) &&
	    !(d->path_len && guard_is_released(s->g, d->path, true))) {
		d->mark |= GIT_DIR;
		status = scan_git_dir(s, d);
	}
	if (s->git.any) {
		s->git = (struct git_seen){ 0 };
		memset(s->git_hidden, 0, sizeof(s->git_hidden));
	}
	return status;
}

/* Records a directory for the sweep; the list is dropped when that fails. Returns its number. */
static uint32_t record_dir(struct scan *s, uint32_t parent, const char *path, size_t path_len,
			   const struct stat *st, bool is_data)
{
	const char *slash = memrchr(path, '/', path_len);
	uint32_t number = guard_dirs_add(s->g->dirs, parent, path, path_len,
					 slash ? (size_t)(slash + 1 - path) : 0, st, is_data);

	if (number != GUARD_NO_DIR)
		return number;
	guard_dirs_free(s->g->dirs);
	s->g->dirs = NULL;
	return 0;
}

static int scan_opened(void *ctx, struct walk_dir *d)
{
	struct scan *s = ctx;
	uint32_t parent = d->path_len ? d->mark >> NUMBER_SHIFT : GUARD_NO_DIR;
	struct stat st;

	if (!s->g->dirs || d->mark & IN_READONLY)
		return 0;
	if (fstat(d->fd, &st) < 0)
		return ward_fail_errno(s->e, "cannot access directory %s", d->path);
	d->mark = (d->mark & (IN_READONLY | GIT_DIR | IN_VIEW)) |
		  record_dir(s, parent, d->path, d->path_len, &st, false) << NUMBER_SHIFT;
	return 0;
}

/* Git's data is not looked into, but the sweep must know where it is. */
static void record_data(struct scan *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	struct stat st;

	if (s->g->dirs && fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		record_dir(s, d->mark >> NUMBER_SHIFT, entry->path, entry->path_len, &st, true);
}

static int scan_enter(void *ctx, const struct walk_dir *d, const struct walk_entry *entry,
		      unsigned *mark)
{
	struct scan *s = ctx;

	*mark = d->mark & ~(unsigned)GIT_DIR;
	if (d->mark & IN_VIEW && d->mark & GIT_DIR &&
	    strcmp(entry->name, guard_git_name(GIT_hooks)) == 0) {
		*mark |= IN_READONLY; /* what hooks lead to is guarded */
		return 1;
	}
	if (d->mark & IN_VIEW)
		return s->hides; /* what is hidden in it stays hidden */
	if (d->mark & GIT_DIR) {
		if (guard_is_git_data(s->g, d, entry->name)) {
			record_data(s, d, entry);
			return 0;
		}
		if (strcmp(entry->name, guard_git_name(GIT_hooks)) == 0 &&
		    !guard_is_released(s->g, entry->path, true))
			*mark |= IN_READONLY;
	}
	if (guard_is_protected(s->g, entry))
		*mark |= IN_READONLY;
	return 1;
}

/* A directory may have a list of its own; it counts below that directory, and before the lists
 * above it. */
static int scan_aiignore(void *ctx, const struct walk_dir *d)
{
	struct scan *s = ctx;
	struct ignore *list = NULL;
	int status;

	if (!d->path_len)
		return 0; /* the root's own was compiled */
	status = guard_read_aiignore(d->fd, d->path, &list, s->e);
	if (status < 0 || !list) {
		ignore_free(list);
		return status;
	}
	if (s->nested_count == s->nested_cap) {
		size_t cap = s->nested_cap ? s->nested_cap * 2 : 8;
		struct nested *grown = reallocarray(s->nested, cap, sizeof(*grown));

		if (!grown) {
			ignore_free(list);
			return out_of_memory(s);
		}
		s->nested = grown;
		s->nested_cap = cap;
	}
	s->nested[s->nested_count++] = (struct nested){ list, d->path_len };
	s->hides = true;
	return 0;
}

static int scan_leave(void *ctx, const struct walk_dir *d, const char *name)
{
	struct scan *s = ctx;
	size_t left;

	if (!s->nested_count)
		return 0;
	left = d->path_len + (d->path_len ? 1 : 0) + strlen(name);
	if (s->nested[s->nested_count - 1].base_len == left)
		ignore_free(s->nested[--s->nested_count].list);
	return 0;
}

static int scan_unreadable(void *ctx, const struct walk_dir *d unused_arg,
			   const struct walk_entry *entry)
{
	struct scan *s = ctx;

	return s->g->writable ? protect_path(s, entry->path, true) : 0;
}

/* Commands of a repository run in its worktree; of a bare one that is the git directory itself. */
static int repository_leads(struct scan *s, const char *path)
{
	bool top = strcmp(path, ".") == 0;
	auto_free char *dir = path_join(s->g->path, path), *worktree = dir ? strdup(dir) : NULL;
	size_t n = top ? 0 : strlen(path);

	if (!worktree)
		return out_of_memory(s);
	if (n == 4 && strcmp(path, ".git") == 0)
		strcpy(worktree, s->g->path);
	else if (n > 4 && strcmp(path + n - 5, "/.git") == 0)
		worktree[strlen(worktree) - 5] = '\0';
	return leads_repository(&s->follow, dir, worktree);
}

/* Guards what protected names and git configuration lead to. */
static int scan_leads(struct scan *s, const struct leads_user *user)
{
	int status = 0;

	for (size_t i = 0; i < s->g->repositories.len && status >= 0; i++)
		status = repository_leads(s, s->g->repositories.items[i]);
	for (size_t i = 0; i < s->git_files.len && status >= 0; i++)
		status = leads_git_file(&s->follow, s->git_files.items[i]);
	if (status >= 0)
		status = leads_above(&s->follow);
	if (status >= 0)
		status = leads_follow_user(user, &s->follow);
	if (status >= 0)
		status = follow_all(&s->follow);
	for (size_t i = 0; i < s->follow.callers.len && status >= 0; i++) {
		/* the list may move */
		auto_free char *path = strdup(s->follow.callers.items[i]);

		status = path ? calls_follow(&s->follow, path) : out_of_memory(s);
		if (status >= 0)
			status = follow_all(&s->follow);
	}
	return status;
}

/* Hides what hidden links lead to inside the root. */
static int scan_targets(struct scan *s)
{
	for (size_t i = 0; i < s->targets.len; i++) {
		const char *path = s->targets.items[i];
		struct ward_err gone;
		auto_fd fd = path_open_nolink(s->root_fd, path, O_PATH | O_NOFOLLOW, &gone);
		struct stat st;
		int status;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		status = guard_hardlink_note(&s->twins, fd, "", true, s->e);
		if (status >= 0)
			status = guard_add_step(s->g, GUARD_HIDE, path, S_ISDIR(st.st_mode), s->e);
		if (status < 0)
			return status;
	}
	return 0;
}

static const struct walk_ops scan_ops = {
	.opened = scan_opened,
	.peek_name = ".aiignore",
	.peek = scan_aiignore,
	.entry = scan_entry,
	.listed = scan_listed,
	.enter = scan_enter,
	.leave = scan_leave,
	.unreadable = scan_unreadable,
};

int guard_scan(struct guard_root *g, int root_fd, struct ward_err *e)
{
	struct scan s = { .g = g, .root_fd = root_fd, .e = e };
	struct leads_user user = { 0 };
	struct timespec now;
	int status;

	s.follow = follow_begin(g, root_fd, &s.twins, e);
	s.hides = !ignore_is_empty(g->hide) || !ignore_is_empty(g->aiignore);
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	g->since_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	g->dirs = g->writable ? guard_dirs_create(root_fd) : NULL;
	status = g->writable ? leads_read_user(&user, g, e) : 0;
	if (status >= 0)
		status = walk_tree(root_fd, &scan_ops, &s, g->writable ? 0 : IN_READONLY, e);
	if (status >= 0 && g->writable)
		status = scan_leads(&s, &user);
	if (status >= 0)
		status = scan_targets(&s);
	if (status >= 0)
		status = guard_hardlink_steps(g, root_fd, &s.twins, e);
	while (s.nested_count)
		ignore_free(s.nested[--s.nested_count].list);
	free(s.nested);
	free(s.twins.items);
	strv_free(&s.targets);
	strv_free(&s.git_files);
	follow_end(&s.follow);
	leads_user_free(&user);
	if (status < 0)
		return ward_wrap(e, "looking for hidden and protected names in %s", g->path);
	status = guard_finish_steps(g, e);
	strv_sort(&g->baseline);
	strv_sort(&g->repositories);
	strv_sort(&g->views);
	strv_sort(&g->links);
	strv_sort(&g->tasks);
	strv_sort(&g->steers);
	return status;
}

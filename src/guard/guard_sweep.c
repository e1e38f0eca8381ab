/*
 * The sweep. In: a tree that an agent has written to, and what was there before. Out: what was
 * planted lies in the quarantine. Runs in the supervisor once the last process of the sandbox is
 * dead, or later for a run that was killed.
 *
 * What is new and has a protected name is moved as a whole. A repository that the run made is
 * judged file by file (guard_repository.c), so that git init, clone and submodule work. A link is
 * compared with what it was. Set-id files that are not older than the run lose their bits and are
 * moved; seccomp forbids making them, this is the second wall. Directories without permissions are
 * opened by their owner's right for the time of the look.
 *
 * A directory in which no name changed has the change time that the scan saw; only the others are
 * read again, and what is new beneath them. In a tree of more than SMALL_TREE files the modes of
 * files are looked at only in such directories: a process that could change the mode of an old file
 * in place would have to get past seccomp, which is the first wall.
 *
 * A git directory that the sandbox saw as a private copy is not entered. One that it shared with
 * the host is judged by what changed in it since the scan.
 *
 * A thing that cannot be moved gets another name where it is; one that cannot even be renamed does
 * not end the sweep: the rest is still looked at, and the first failure is returned.
 */
#include "guard/guard_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "guard/guard_arrival.h"
#include "guard/guard_dirs.h"
#include "guard/guard_internal.h"
#include "guard/guard_move.h"
#include "guard/guard_repository.h"

enum { IN_DATA = 1, GIT_DIR = 2, CHANGED = 4 };

#define SMALL_TREE 1000 /* files whose modes are all looked at: a microsecond each */

struct sweep {
	const struct guard_root *g;
	int root_fd;
	const struct guard_sink *sink;
	struct strv *moved;
	struct ward_err *e;
	struct git_seen git;
	struct guard_taker taker; /* puts things into the quarantine */
	uint64_t since_ns;
	/* look at every file's mode, not only in directories that changed */
	bool every_file;
	/* the recorded directory that is being read again; GUARD_NO_DIR: none */
	uint32_t known;
	size_t known_len; /* the length of its path */
	int failure;      /* the first thing that could not be moved; *e says what */
};

static int out_of_memory(struct sweep *s)
{
	return ward_fail(s->e, ENOMEM, "out of memory");
}

/* Moves under the first free name. */
static int move_to_free_name(struct sweep *s, int dir_fd, const char *name, const char *path,
			     const char *why, struct ward_err *e)
{
	auto_buf stored = { 0 };
	int base = s->sink->open(s->sink->ctx, e);

	if (base < 0)
		return base;
	for (unsigned i = 0; i < 1000; i++) {
		const char *to_name;
		auto_fd to = -1;
		struct stat st;
		int status;

		stored.len = 0;
		buf_puts(&stored, path);
		if (i)
			buf_printf(&stored, ".%u", i);
		if (stored.failed)
			return ward_fail(e, ENOMEM, "out of memory");
		to = guard_open_parent(base, stored.data, 0700, &to_name, e);
		if (to < 0)
			return to;
		if (fstatat(to, to_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		status = s->sink->note ? s->sink->note(s->sink->ctx, path, stored.data, why, e) : 0;
		return status < 0 ? status : guard_move(dir_fd, name, to, to_name, e);
	}
	ward_fail(e, EEXIST,
		  "cannot move %s to the quarantine: too many files of that name are there", path);
	return ward_remedy(e, "ward quarantine ls shows them, ward quarantine rm removes them");
}

/* Gives a thing that cannot be moved away a name beside its own, under which nothing runs it. */
static int set_aside(int dir_fd, const char *name, struct ward_err *e)
{
	char aside[NAME_MAX + 1];
	int status = -EEXIST;

	for (unsigned i = 0; i < 1000 && status == -EEXIST; i++) {
		if (i)
			snprintf(aside, sizeof(aside), "%.200s.quarantined.%u", name, i);
		else
			snprintf(aside, sizeof(aside), "%.200s.quarantined", name);
		status = guard_move(dir_fd, name, dir_fd, aside, e);
	}
	return status;
}

/* Puts dir_fd/name into the quarantine; where that fails (an agent may plant more than the disk can
 * hold) it stays, but not under its name. A failure of that too is kept for the end. */
static int quarantine(struct sweep *s, int dir_fd, const char *name, const char *path,
		      const char *why)
{
	bool spared = s->sink->spares && s->sink->spares(s->sink->ctx, path, dir_fd, name);
	struct ward_err e = { 0 }, second;
	int status = spared ? -ENOENT : move_to_free_name(s, dir_fd, name, path, why, &e);
	bool aside = status < 0 && status != -ENOENT && set_aside(dir_fd, name, &second) >= 0;

	if (status == -ENOENT)
		return 0;
	if (status >= 0)
		strv_addf(s->moved, "%s: %s", path, why);
	else if (aside)
		strv_addf(s->moved, "%s: %s; left next to it as .quarantined, because of: %s", path,
			  why, e.why);
	else
		strv_addf(s->moved, "%s: STILL THERE, %s; it is %s", path, e.why, why);
	if (status < 0 && !aside && !s->failure) {
		*s->e = e;
		s->failure = ward_wrap(s->e, "quarantining %s", path);
	}
	return s->moved->failed ? out_of_memory(s) : 0;
}

static int quarantine_entry(struct sweep *s, const struct walk_dir *d,
			    const struct walk_entry *entry, const char *why)
{
	return quarantine(s, d->fd, entry->name, entry->path, why);
}

/* Whether a link is the one that was there before. */
static bool is_old_link(const struct sweep *s, const struct walk_dir *d,
			const struct walk_entry *entry)
{
	auto_buf text = { 0 };
	struct ward_err ignored;

	return guard_link_text(d->fd, entry, &text, &ignored) == 0 &&
	       guard_list_has(&s->g->links, text.data, text.len, '\0');
}

static bool is_lost(const struct guard_root *g, const struct walk_entry *entry)
{
	for (size_t i = 0; i < g->lost.len; i++)
		if (strcmp(g->lost.items[i], entry->path) == 0)
			/* it was put back */
			return !guard_is_held(g, entry->path, entry->path_len);
	return false;
}

static bool is_old(const struct sweep *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	if (entry->type == DT_LNK)
		return is_old_link(s, d, entry);
	if (is_lost(s->g, entry))
		return false;
	return guard_list_has(&s->g->baseline, entry->path, entry->path_len,
			      entry->type == DT_DIR ? '/' : '\0');
}

static int sweep_set_id(struct sweep *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	char why[80];
	struct stat st;

	if (!s->every_file && !(d->mark & CHANGED))
		return 0;
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & 06000))
		return 0;
	if (guard_ctime_ns(&st) < s->since_ns)
		return 0;
	snprintf(why, sizeof(why), "a set-%s file (mode %04o, owner %u)",
		 st.st_mode & 04000 ? "user-id" : "group-id", st.st_mode & 07777, st.st_uid);
	return quarantine_entry(s, d, entry, why);
}

/* Judges an entry; 1: it was taken away. */
static int sweep_arrival(struct sweep *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	struct guard_arrival a = {
		.g = s->g, .root_fd = s->root_fd, .d = d, .entry = entry, .since_ns = s->since_ns
	};
	struct guard_news *news = s->sink->news;
	auto_buf why = { 0 };
	int status = guard_judge_arrival(&a, &why, s->e);

	if (status == 1)
		status = quarantine_entry(s, d, entry, why.data) < 0 ? out_of_memory(s) : 1;
	if (status != 0 || !news)
		return status;
	if (a.leaves) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(d->fd, entry->name, target, sizeof(target) - 1);

		target[n < 0 ? 0 : n] = '\0';
		strv_addf(&news->leaving, "%s -> %s", entry->path, target);
		if (news->leaving.failed)
			return out_of_memory(s);
	}
	return entry->type == DT_REG || entry->type == DT_LNK
		       ? guard_steer_new(s->g, d, entry, &news->steers, s->e)
		       : 0;
}

/* In git's data names do not count, but what git would go on with does. */
static int sweep_data(struct sweep *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	auto_buf why = { 0 };
	int status = guard_judge_task(s->g, d, entry, &why, s->e);

	if (status == 1)
		status = quarantine_entry(s, d, entry, why.data) < 0 ? out_of_memory(s) : 1;
	return status;
}

static int sweep_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct sweep *s = ctx;
	int status;

	progress_step(s->g->progress, "looking for planted files");
	guard_git_note(&s->git, entry);
	if (d->mark & IN_DATA) {
		status = sweep_data(s, d, entry);
	} else {
		if ((guard_is_gitlink(s->g, entry) || guard_is_protected(s->g, entry)) &&
		    is_old(s, d, entry))
			return 0; /* nothing new, and nothing beneath it */
		status = sweep_arrival(s, d, entry);
	}
	if (status != 0)
		return status < 0 ? status : 0;
	if (entry->type == DT_REG)
		return sweep_set_id(s, d, entry);
	return entry->type != DT_DIR || s->known == GUARD_NO_DIR || d->path_len != s->known_len ||
	       !guard_dirs_has_child(s->g->dirs, s->known, entry->name, entry->inode);
}

static int sweep_opened(void *ctx, struct walk_dir *d)
{
	struct sweep *s = ctx;
	struct stat st;

	if (!s->every_file && (fstat(d->fd, &st) < 0 || guard_ctime_ns(&st) >= s->since_ns))
		d->mark |= CHANGED;
	return 0;
}

static int take_away(void *ctx, int dir_fd, const char *name, const char *path, const char *why)
{
	return quarantine(ctx, dir_fd, name, path, why);
}

/* Whether the host took the directory away since, so that what stands there now is new. */
static bool is_lost_dir(const struct guard_root *g, const struct walk_dir *d)
{
	for (size_t i = 0; i < g->lost.len; i++)
		if (strlen(g->lost.items[i]) == d->path_len &&
		    strncmp(g->lost.items[i], d->path, d->path_len) == 0)
			return true;
	return false;
}

static int sweep_listed(void *ctx, struct walk_dir *d)
{
	struct sweep *s = ctx;
	struct git_seen seen = s->git;
	int status;

	if (s->git.any)
		s->git = (struct git_seen){ 0 };
	if (!guard_is_git_dir(&seen, d->path, d->path_len) ||
	    (d->path_len && guard_is_released(s->g, d->path, true)))
		return 0;
	d->mark |= GIT_DIR;
	if (guard_list_has(&s->g->repositories, d->path_len ? d->path : ".",
			   d->path_len ? d->path_len : 1, '\0') &&
	    !is_lost_dir(s->g, d))
		return 0; /* judged at the end, by what changed in it */
	status = guard_judge_repository(s->g, s->root_fd, d->fd, d->path, 0, &s->taker, s->e);
	if (status == 1)
		d->mark &= ~(unsigned)GIT_DIR;
	return status < 0 ? status : 0;
}

static int sweep_enter(void *ctx, const struct walk_dir *d, const struct walk_entry *entry,
		       unsigned *mark)
{
	struct sweep *s = ctx;

	*mark = d->mark & IN_DATA;
	if (guard_in_view(s->g, entry->path, entry->path_len) && !is_lost(s->g, entry))
		return 0; /* the sandbox never saw it */
	if (d->mark & GIT_DIR)
		return 0; /* judged as a repository */
	return !guard_list_has(&s->g->baseline, entry->path, entry->path_len, '/') ||
	       is_lost(s->g, entry);
}

static int sweep_unreadable(void *ctx, const struct walk_dir *d unused_arg,
			    const struct walk_entry *entry)
{
	struct sweep *s = ctx;

	strv_addf(s->moved, "%s: NOT CHECKED (it belongs to another user and cannot be read)",
		  entry->path);
	return s->moved->failed ? out_of_memory(s) : 0;
}

static const struct walk_ops sweep_ops = {
	.opened = sweep_opened,
	.entry = sweep_entry,
	.listed = sweep_listed,
	.enter = sweep_enter,
	.unreadable = sweep_unreadable,
	.force = true,
};

/* If the clock was set back since the scan, every set-id file counts as new. */
static uint64_t set_id_since(const struct guard_root *g)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec < g->since_ns
		       ? 0
		       : g->since_ns;
}

/* Reads one recorded directory again, and what is new beneath it. */
static int sweep_changed(struct sweep *s, uint32_t i, const char *path, const struct stat *st)
{
	struct ward_err ignored;
	auto_fd fd = path_open_nolink(s->root_fd, *path ? path : ".",
				      O_RDONLY | O_DIRECTORY | O_NONBLOCK, &ignored);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0 || now.st_ino != st->st_ino || now.st_dev != st->st_dev)
		return 1; /* closed, or exchanged this moment */
	s->known = i;
	s->known_len = strlen(path);
	return walk_tree_at(fd, path, &sweep_ops, s,
			    guard_dirs_at(s->g->dirs, i)->is_data ? IN_DATA : 0, s->e);
}

/* Whether a recorded directory lies where the sandbox could not write. */
static bool is_kept_away(const struct guard_root *g, const char *path, size_t n)
{
	if (!guard_in_view(g, path, n))
		return false;
	for (size_t i = 0; i < g->lost.len; i++) {
		size_t len = strlen(g->lost.items[i]);

		if (n >= len && strncmp(path, g->lost.items[i], len) == 0 &&
		    (n == len || path[len] == '/'))
			return false;
	}
	return true;
}

/* Sweeps only directories that changed since the scan. Returns 1 when everything has to be read
 * after all. */
static int sweep_known(struct sweep *s)
{
	const struct guard_dirs *dirs = s->g->dirs;
	size_t count = guard_dirs_count(dirs);
	auto_free bool *gone = calloc(count, sizeof(*gone));
	auto_buf path = { 0 };
	int status = gone ? 0 : 1;

	for (uint32_t i = 0; i < count && status == 0; i++) {
		const struct guard_dir *d = guard_dirs_at(dirs, i);
		struct stat st;
		bool found;

		if (d->parent != GUARD_NO_DIR) {
			path.len = guard_dirs_at(dirs, d->parent)->path_len;
			if (path.len)
				buf_puts(&path, "/");
		}
		buf_puts(&path, guard_dirs_name(dirs, i));
		if (path.failed)
			return 1;
		gone[i] = d->parent != GUARD_NO_DIR && gone[d->parent];
		if (gone[i] || is_kept_away(s->g, path.data, path.len))
			continue;
		found = fstatat(s->root_fd, path.len ? path.data : ".", &st, AT_SYMLINK_NOFOLLOW) ==
			0;
		if (!found && errno == EACCES)
			return 1;
		if (!found || !S_ISDIR(st.st_mode) || st.st_ino != d->inode)
			/* the directory above it changed and shows what is there now */
			gone[i] = true;
		else if (d->is_data || guard_is_state_dir(guard_dirs_name(dirs, i)) ||
			 guard_ctime_ns(&st) != d->ctime_ns || d->ctime_ns >= s->since_ns)
			status = sweep_changed(s, i, path.data, &st);
	}
	s->known = GUARD_NO_DIR;
	return status;
}

/* Nothing can be mounted over a link, so one that was protected can be taken away. It is put back:
 * without it a policy or a list of hidden names would be gone for the next run. Where its directory
 * is gone, too, so is what it was for. */
static int restore_link(struct sweep *s, const char *text)
{
	auto_free char *path = strdup(text);
	char *target, *slash;
	struct ward_err ignored = { 0 };
	const char *name;
	struct stat st;
	auto_fd dir = -1;

	if (!path)
		return out_of_memory(s);
	target = strchr(path, '\n');
	if (!target)
		return 0;
	*target++ = '\0';
	guard_unescape(path);
	guard_unescape(target);
	for (size_t i = 0; i < s->g->lost.len; i++)
		if (strcmp(s->g->lost.items[i], path) == 0)
			return 0;
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	dir = path_open_nolink(s->root_fd, slash ? path : ".", O_PATH | O_DIRECTORY, &ignored);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    fstat(dir, &st) < 0)
		return 0;
	if (symlinkat(target, dir, name) < 0 ||
	    (geteuid() == 0 && fchownat(dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0))
		return ward_fail_errno(
			s->e, "cannot restore the link %.300s, which the sandbox removed", name);
	return 0;
}

/* Repositories of the host's in which the sandbox could write: what changed in them is judged
 * wherever it lies. */
static int sweep_shared(struct sweep *s)
{
	int status = 0;

	for (size_t i = 0; i < s->g->repositories.len && status >= 0; i++) {
		const char *path = s->g->repositories.items[i];
		struct ward_err gone;
		auto_fd fd = -1;

		if (guard_in_view(s->g, path, strlen(path)))
			continue;
		fd = path_open_nolink(s->root_fd, path, O_RDONLY | O_DIRECTORY, &gone);
		if (fd >= 0)
			status = guard_judge_repository(s->g, s->root_fd, fd,
							strcmp(path, ".") == 0 ? "" : path,
							s->since_ns, &s->taker, s->e);
	}
	return status;
}

int guard_sweep_into(const struct guard_root *g, int root_fd, const struct guard_sink *sink,
		     struct strv *moved, struct ward_err *e)
{
	struct sweep s = { .g = g,
			   .root_fd = root_fd,
			   .sink = sink,
			   .moved = moved,
			   .e = e,
			   .since_ns = set_id_since(g),
			   .known = GUARD_NO_DIR };
	bool fast = guard_dirs_usable(g->dirs) && g->file_count > SMALL_TREE;
	struct ward_err own = { 0 };
	int status, back;

	s.taker = (struct guard_taker){ .take = take_away, .ctx = &s };
	back = g->held ? guard_put_back(g, root_fd, &s.taker, moved, &own) : 0;

	if (back < 0 && !s.failure) {
		*e = own;
		s.failure = back;
	}
	if (guard_list_has(&g->views, ".", 1, '\0'))
		/* the whole tree is a git directory that the sandbox never saw */
		return s.failure;
	s.every_file = !fast;
	status = fast ? sweep_known(&s) : 1;
	if (status == 1)
		status = walk_tree(root_fd, &sweep_ops, &s, 0, e);
	if (status >= 0)
		status = sweep_shared(&s);
	if (status < 0)
		return ward_wrap(e, "looking for planted files in %s", g->path);
	status = guard_steer_judge(g, root_fd, &s.taker, e);
	if (status < 0)
		return ward_wrap(e, "judging the version files of %s", g->path);
	for (size_t i = 0; i < g->links.len && !s.failure; i++)
		s.failure = restore_link(&s, g->links.items[i]);
	if (!s.failure && sink->news)
		s.failure = guard_steer_changed(g, root_fd, &sink->news->steers, e);
	return s.failure;
}

int guard_quarantine_one(const struct guard_sink *sink, int dir_fd, const char *name,
			 const char *path, const char *why, struct strv *moved, struct ward_err *e)
{
	struct sweep s = { .sink = sink, .moved = moved, .e = e };
	int status = quarantine(&s, dir_fd, name, path, why);

	return status < 0 ? status : s.failure;
}

void guard_news_clear(struct guard_news *n)
{
	strv_free(&n->steers);
	strv_free(&n->leaving);
}

static int plain_open(void *ctx, struct ward_err *e unused_arg)
{
	return *(int *)ctx;
}

int guard_sweep(const struct guard_root *g, int root_fd, int quarantine_fd, struct strv *moved,
		struct ward_err *e)
{
	struct guard_sink sink = { .open = plain_open, .ctx = &quarantine_fd };

	return guard_sweep_into(g, root_fd, &sink, moved, e);
}

/*
 * Making a private git directory. In: a repository of the host's that a sandbox may work in. Out: a
 * copy of its references, configuration, index and state, and the list of directories that are lent
 * read-only (objects, large file stores). Runs in the supervisor with the user's rights before the
 * sandbox starts.
 *
 * The host's repository is trusted, but files in it may change meanwhile: each is opened once,
 * without following links, and only regular files are copied. Links are copied as links: inside
 * they lead nowhere but inside. Sample hooks are left out.
 *
 * Every small file is also kept in the base, so that what the sandbox did and what the host did
 * since can be told apart.
 */
#include "gitview/git_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/walk.h"

#define DEPTH_MAX 64
#define BASE_FILE_MAX (64u << 20)
#define LARGE (64 << 10)
#define COPY_MAX ((uint64_t)1 << 30)
#define ALTERNATES "../" GIT_VIEW_OBJECTS "\n"

struct copying {
	const struct git_view_source *source;
	struct strv *lent;
	int base_fd;
	struct buf base; /* what is not written yet */
	struct buf path; /* of the directory that is being copied, in the git directory */
	uint64_t bytes;
	struct ward_err *e;
};

/* Directories that are lent instead of copied: name, directly in a repository, and where the view
 * shows them. */
static const struct {
	const char *name, *shown;
} lent_dirs[] = {
	{ "objects", GIT_VIEW_OBJECTS },
	{ "lfs", "lfs" },
	{ "annex", "annex" },
};

static int out_of_memory(struct copying *c)
{
	return ward_fail(c->e, ENOMEM, "out of memory");
}

static bool is_dir(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

bool git_view_suits(int git_fd)
{
	struct stat st;

	return fstatat(git_fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       is_dir(git_fd, "objects") && is_dir(git_fd, "refs") && !is_dir(git_fd, "reftable");
}

static int give(struct copying *c, int fd)
{
	if (c->source->chown && fchown(fd, c->source->uid, c->source->gid) < 0)
		return ward_fail_errno(
			c->e, "cannot change the owner of a file in the private git directory");
	return 0;
}

/* Makes to_fd/name and opens it. */
static int make_dir(struct copying *c, int to_fd, const char *name)
{
	int fd;

	if (mkdirat(to_fd, name, 0700) < 0)
		return ward_fail_errno(c->e, "cannot make %s of the private git directory", name);
	fd = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return ward_fail_errno(c->e, "cannot open %s of the private git directory", name);
	if (give(c, fd) < 0) {
		close(fd);
		return -c->e->code;
	}
	return fd;
}

static int write_file(struct copying *c, int to_fd, const char *name, const char *bytes, size_t n,
		      mode_t mode)
{
	auto_fd fd =
		openat(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int status = fd < 0 ? -errno : io_write_all(fd, bytes, n);

	if (status < 0)
		return ward_fail(c->e, -status, "cannot write %s of the private git directory: %s",
				 name, strerror(-status));
	return give(c, fd);
}

/* Writes what was added to the base since. */
static int write_base(struct copying *c)
{
	int status = c->base.failed ? -ENOMEM
				    : io_write_all(c->base_fd, buf_text(&c->base), c->base.len);

	c->base.len = 0;
	return status < 0 ? ward_fail(c->e, -status,
				      "cannot write the base of the private git directory: %s",
				      strerror(-status))
			  : 0;
}

/* Copies the first size bytes of a file, in the kernel where it can do that. */
static int copy_bytes(struct copying *c, int from, int to, off_t size)
{
	off_t at = 0;
	ssize_t n = 1;

	while (at < size && (n > 0 || (n < 0 && errno == EINTR)))
		n = copy_file_range(from, &at, to, NULL, (size_t)(size - at), 0);
	while (at < size) {
		char bytes[65536];
		int status;

		n = pread(from, bytes,
			  size - at < (off_t)sizeof(bytes) ? (size_t)(size - at) : sizeof(bytes),
			  at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ward_fail(c->e, n == 0 ? EAGAIN : errno, "%s of the repository %s",
					 c->path.data,
					 n == 0 ? "shrank during the copy" : "cannot be read");
		status = io_write_all(to, bytes, (size_t)n);
		if (status < 0)
			return ward_fail(c->e, -status,
					 "cannot write the private git directory: %s",
					 strerror(-status));
		at += n;
	}
	return 0;
}

/* Copies a large file, an index mostly, into the view and, if it is not too large, into the
 * base. */
static int copy_large(struct copying *c, int from, int to_fd, const char *name,
		      const struct stat *st)
{
	auto_fd to = openat(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    (st->st_mode & 0777) | 0600);
	int status = 0;

	if (to < 0)
		return ward_fail_errno(c->e, "cannot make %s of the private git directory",
				       c->path.data);
	if (st->st_size <= BASE_FILE_MAX) {
		git_view_base_head(&c->base, c->path.data, (size_t)st->st_size);
		status = write_base(c);
		if (status == 0)
			status = copy_bytes(c, from, c->base_fd, st->st_size);
	}
	if (status == 0)
		status = copy_bytes(c, from, to, st->st_size);
	return status < 0 ? status : give(c, to);
}

/* Copies a file of the path c->path. Only what is too large for the base is not in it. */
static int copy_file(struct copying *c, int from_fd, int to_fd, const char *name)
{
	auto_fd from =
		openat(from_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf bytes = { 0 };
	struct stat st;
	int status;

	if (from < 0 && (errno == ENOENT || errno == ELOOP))
		return 0; /* removed this moment */
	if (from < 0 || fstat(from, &st) < 0)
		return ward_fail_errno(c->e, "cannot read %s of the repository", c->path.data);
	if (!S_ISREG(st.st_mode))
		return 0;
	c->bytes += (uint64_t)st.st_size;
	if (c->bytes > COPY_MAX)
		return ward_fail(c->e, E2BIG,
				 "the git directory has more than 1 GiB besides its objects");
	if (st.st_size > LARGE)
		return copy_large(c, from, to_fd, name, &st);
	status = io_read_all(from, BASE_FILE_MAX, &bytes);
	if (status < 0)
		return ward_fail(c->e, -status, "cannot read %s of the repository: %s",
				 c->path.data, strerror(-status));
	git_view_base_add(&c->base, c->path.data, buf_text(&bytes), bytes.len);
	status = c->base.len > LARGE ? write_base(c) : 0;
	return status < 0 ? status
			  : write_file(c, to_fd, name, buf_text(&bytes), bytes.len,
				       (st.st_mode & 0777) | 0600);
}

static int copy_link(struct copying *c, int from_fd, int to_fd, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	if (symlinkat(target, to_fd, name) < 0)
		return ward_fail_errno(c->e, "cannot make the link %s of the private git directory",
				       c->path.data);
	if (c->source->chown &&
	    fchownat(to_fd, name, c->source->uid, c->source->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail_errno(
			c->e, "cannot change the owner of a link in the private git directory");
	return 0;
}

/* The empty store of the sandbox's own objects, with the host's behind it. */
static int make_objects(struct copying *c, int to_fd)
{
	auto_fd objects = make_dir(c, to_fd, "objects"), info = -1, pack = -1;

	if (objects < 0)
		return objects;
	info = make_dir(c, objects, "info");
	if (info < 0)
		return info;
	pack = make_dir(c, objects, "pack");
	return pack < 0 ? pack
			: write_file(c, info, "alternates", ALTERNATES, sizeof(ALTERNATES) - 1,
				     0644);
}

/* 1: the directory name of a repository is lent, and its place is made. */
static int lend_dir(struct copying *c, int from_fd, int to_fd, const char *name)
{
	size_t parent = c->path.len - strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(lent_dirs); i++) {
		auto_fd point = -1;

		if (strcmp(name, lent_dirs[i].name) != 0 || !is_dir(from_fd, name))
			continue;
		point = make_dir(c, to_fd, lent_dirs[i].shown);
		if (point < 0)
			return point;
		strv_addf(c->lent, "%.*s%s\n%s", (int)parent, c->path.data, lent_dirs[i].shown,
			  c->path.data);
		if (c->lent->failed)
			return out_of_memory(c);
		return i == 0 && make_objects(c, to_fd) < 0 ? -c->e->code : 1;
	}
	return 0;
}

static bool is_left_out(const char *dir, const char *name)
{
	size_t n = strlen(name), d = strlen(dir);

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    strcmp(name, GIT_VIEW_OBJECTS) == 0)
		return true;
	return n > 7 && strcmp(name + n - 7, ".sample") == 0 && d >= 5 &&
	       strcmp(dir + d - 5, "hooks") == 0;
}

static int copy_dir(struct copying *c, int from_fd, int to_fd, unsigned depth);

static int copy_entry(struct copying *c, int from_fd, int to_fd, const struct dirent *entry,
		      bool repository, unsigned depth)
{
	const char *name = entry->d_name;
	auto_fd from = -1, to = -1;
	struct stat st;
	int status;

	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return copy_file(c, from_fd, to_fd, name);
	if (S_ISLNK(st.st_mode))
		return copy_link(c, from_fd, to_fd, name);
	if (!S_ISDIR(st.st_mode))
		return 0;
	status = repository ? lend_dir(c, from_fd, to_fd, name) : 0;
	if (status)
		return status < 0 ? status : 0;
	from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return ward_fail_errno(c->e, "cannot read %s of the repository", c->path.data);
	to = make_dir(c, to_fd, name);
	return to < 0 ? to : copy_dir(c, from, to, depth + 1);
}

static int copy_dir(struct copying *c, int from_fd, int to_fd, unsigned depth)
{
	int copy = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);
	bool repository = is_dir(from_fd, "objects") && is_dir(from_fd, "refs");
	size_t len = c->path.len;

	if (!list) {
		own_close_fd(&copy);
		return ward_fail_errno(c->e, "cannot read the repository");
	}
	if (depth > DEPTH_MAX)
		return ward_fail(c->e, ELOOP, "the git directory is too deep");
	for (struct dirent *entry = readdir(list); entry && status >= 0; entry = readdir(list)) {
		if (is_left_out(buf_text(&c->path), entry->d_name))
			continue;
		buf_printf(&c->path, "%s%s", len ? "/" : "", entry->d_name);
		status = c->path.failed ? out_of_memory(c)
					: copy_entry(c, from_fd, to_fd, entry, repository, depth);
		c->path.len = len;
		if (c->path.data)
			c->path.data[len] = '\0';
	}
	return status;
}

/* When something in the directory was changed last, by the clock that stamps files; UINT64_MAX if
 * that is unknown. Looks no further than to one that is later than enough. Looking at a file makes
 * the kernel give its next change another time. */
static uint64_t newest_change(int dir_fd, uint64_t enough, unsigned depth)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);
	uint64_t newest = !list || depth > DEPTH_MAX ? UINT64_MAX : 0;

	if (!list)
		own_close_fd(&copy);
	for (struct dirent *entry = list ? readdir(list) : NULL; entry && newest <= enough;
	     entry = readdir(list)) {
		uint64_t one = UINT64_MAX;
		struct stat st;

		if (strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			one = (uint64_t)st.st_ctim.tv_sec * 1000000000u +
			      (uint64_t)st.st_ctim.tv_nsec;
		newest = one > newest ? one : newest;
		if (newest <= enough && S_ISDIR(st.st_mode) && strcmp(entry->d_name, ".") != 0) {
			auto_fd fd = openat(dir_fd, entry->d_name,
					    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			one = fd < 0 ? UINT64_MAX : newest_change(fd, enough, depth + 1);
			newest = one > newest ? one : newest;
		}
	}
	return newest;
}

static int write_record(struct copying *c, int dir_fd, int git_fd, int view_fd)
{
	const struct git_view_source *s = c->source;
	struct git_view_record r = { .git_dir = strdup(s->git_dir),
				     .root = strdup(s->root),
				     .host_root = strdup(s->host_root),
				     .free_config = s->free_config,
				     .free_hooks = s->free_hooks };
	auto_buf text = { 0 };
	struct stat st;
	int status = 0;

	r.made_ns = newest_change(view_fd, UINT64_MAX - 1, 0);
	if (r.made_ns == UINT64_MAX || fstat(git_fd, &st) < 0)
		status = ward_fail_errno(c->e, "cannot access the repository");
	r.device = st.st_dev;
	r.inode = st.st_ino;
	r.uid = st.st_uid;
	r.gid = st.st_gid;
	r.lent = *c->lent;
	r.rules = *s->rules;
	if (r.git_dir && r.root && r.host_root && status == 0)
		git_view_record_write(&r, &text);
	else if (status == 0)
		status = out_of_memory(c);
	r.lent = r.rules = (struct strv){ 0 }; /* borrowed */
	git_view_record_clear(&r);
	if (status == 0 && text.failed)
		status = out_of_memory(c);
	return status < 0 ? status
			  : write_file(c, dir_fd, GIT_VIEW_RECORD, buf_text(&text), text.len, 0600);
}

int git_view_make(const char *dir, const struct git_view_source *s, struct strv *lent,
		  struct ward_err *e)
{
	struct copying c = { .source = s, .lent = lent, .base_fd = -1, .e = e };
	auto_fd git = open(s->git_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd view = -1;
	int status;

	if (git < 0 || at < 0)
		return ward_fail_errno(e, "cannot open %s", git < 0 ? s->git_dir : dir);
	status = view = make_dir(&c, at, GIT_VIEW_DIR);
	if (status >= 0)
		c.base_fd = openat(at, GIT_VIEW_BASE,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (status >= 0 && c.base_fd < 0)
		status = ward_fail_errno(e, "cannot make the base of the private git directory");
	if (status >= 0)
		status = copy_dir(&c, git, view, 0);
	if (status >= 0)
		status = write_base(&c);
	if (status >= 0)
		status = give(&c, c.base_fd);
	own_close_fd(&c.base_fd);
	if (status >= 0)
		status = write_record(&c, at, git, view);
	buf_free(&c.base);
	buf_free(&c.path);
	return status < 0 ? ward_wrap(e, "a private copy of %s", s->git_dir) : 0;
}

/* Reads the record of the view at dir, which stays open at *ret_fd. */
static int read_record(const char *dir, int *ret_fd, struct git_view_record *ret_record,
		       struct ward_err *e)
{
	auto_fd at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_buf text = { 0 };
	int status = at < 0 ? -errno : io_read_file(at, GIT_VIEW_RECORD, 1u << 20, &text);

	if (status == 0)
		status = git_view_record_read(buf_text(&text), text.len, ret_record);
	if (status < 0)
		return ward_fail(e, -status, "cannot read the private git directory %s: %s", dir,
				 strerror(-status));
	*ret_fd = take_fd(&at);
	return 0;
}

int git_view_is_of(const char *dir, const struct git_view_source *s, const struct stat *st,
		   struct ward_err *e)
{
	struct git_view_record r = { 0 };
	auto_fd at = -1;
	int status = read_record(dir, &at, &r, e);

	if (status == 0)
		status = strcmp(r.git_dir, s->git_dir) == 0 && strcmp(r.root, s->root) == 0 &&
			 strcmp(r.host_root, s->host_root) == 0 && r.device == st->st_dev &&
			 r.inode == st->st_ino;
	git_view_record_clear(&r);
	return status;
}

/* Replaces the record of a view: the old one counts until the new one is complete. */
static int replace_record(int at, const struct git_view_source *s, const struct git_view_record *r,
			  struct ward_err *e)
{
	struct copying c = { .source = s, .base_fd = -1, .e = e };
	auto_buf text = { 0 };
	int status;

	git_view_record_write(r, &text);
	if (text.failed)
		return out_of_memory(&c);
	if (unlinkat(at, GIT_VIEW_RECORD ".new", 0) < 0 && errno != ENOENT)
		return ward_fail_errno(e, "cannot replace the record of the view");
	status = write_file(&c, at, GIT_VIEW_RECORD ".new", buf_text(&text), text.len, 0600);
	if (status == 0 && renameat(at, GIT_VIEW_RECORD ".new", at, GIT_VIEW_RECORD) < 0)
		status = ward_fail_errno(e, "cannot replace the record of the view");
	return status;
}

/* What this run protects, and behind it what a former one did: that is not undone. */
static int join_rules(struct git_view_record *r, const struct strv *rules)
{
	struct strv old = r->rules;
	bool failed;

	r->rules = (struct strv){ 0 };
	for (size_t i = 0; i < rules->len; i++)
		strv_add(&r->rules, rules->items[i]);
	for (size_t i = 0; i < old.len; i++)
		if (old.items[i][0] != '!' && !strv_has(rules, old.items[i]))
			strv_add(&r->rules, old.items[i]);
	failed = r->rules.failed;
	strv_free(&old);
	return failed ? -ENOMEM : 0;
}

int git_view_reopen(const char *dir, const struct git_view_source *s, struct strv *lent,
		    struct ward_err *e)
{
	struct git_view_record r = { 0 };
	auto_fd at = -1;
	int status = read_record(dir, &at, &r, e);

	if (status == 0) {
		r.free_config &= s->free_config;
		r.free_hooks &= s->free_hooks;
		status = join_rules(&r, s->rules) < 0 ? ward_fail(e, ENOMEM, "out of memory")
						      : replace_record(at, s, &r, e);
	}
	for (size_t i = 0; status == 0 && i < r.lent.len; i++)
		strv_add(lent, r.lent.items[i]);
	git_view_record_clear(&r);
	if (status == 0 && lent->failed)
		status = ward_fail(e, ENOMEM, "out of memory");
	return status;
}

bool git_view_is_owned(const char *dir, uid_t uid)
{
	auto_fd at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	return at >= 0 && fstatat(at, GIT_VIEW_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid == uid;
}

struct giving {
	uid_t uid;
	gid_t gid;
};

static int give_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	const struct giving *g = ctx;

	return fchownat(d->fd, entry->name, g->uid, g->gid, AT_SYMLINK_NOFOLLOW) < 0 &&
			       errno != ENOENT
		       ? -errno
		       : 1;
}

int git_view_give(const char *dir, uid_t uid, gid_t gid, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = give_entry };
	struct giving g = { uid, gid };
	auto_fd at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int status = at < 0 ? -errno : walk_tree(at, &ops, &g, 0, e);

	return status < 0 ? ward_fail(e, -status,
				      "cannot change the owner of the private git directory %s: %s",
				      dir, strerror(-status))
			  : 0;
}

bool git_view_changed(const char *dir)
{
	auto_fd at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd view =
		at < 0 ? -1
		       : openat(at, GIT_VIEW_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct git_view_record r = { 0 };
	auto_buf text = { 0 };
	bool changed = true;

	if (view >= 0 && io_read_file(at, GIT_VIEW_RECORD, 1u << 20, &text) == 0 &&
	    git_view_record_read(buf_text(&text), text.len, &r) == 0)
		changed = newest_change(view, r.made_ns, 0) > r.made_ns;
	git_view_record_clear(&r);
	return changed;
}

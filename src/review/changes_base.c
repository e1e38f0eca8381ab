/*
 * The base of a three-way merge: the content of files when a run began. In: a review, the workspace
 * and its repository. Out: a file's content at that time, or nothing where ward cannot know it; the
 * conflict then stays. Runs with the user's rights; the sandbox sees none of it.
 *
 * The overlay's lower layer is the workspace itself, so an edit on the host overwrites the old
 * content. ward saves it at three moments:
 *
 *   when the run begins  a tracked file that git's index knows to be unchanged is in the object
 *                        store: its object's name is noted (REVIEW_TRACKED). One that is edited but
 *                        not committed is copied, up to a bound.
 *   when the run ends    what only the run changed is copied from the workspace; what the host
 *                        changed meanwhile comes from the object store.
 *   later                these copies are read: REVIEW_BASE/SHA-256 of the path.
 *
 * git runs as the repository's owner, with its configuration and lazy fetching switched off.
 */
#include "review/changes_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/content.h"
#include "base/diff.h"
#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "host/program.h"
#include "review/review_internal.h"
#include "rules/git_index.h"
#include "rules/git_link.h"

#define TRACKED_MAX 20000           /* files that are looked at when a run begins */
#define EARLY_BYTES (1u << 20)      /* of one file that is copied then */
#define EARLY_ALL_BYTES (16u << 20) /* and of all */
#define LATE_ALL_BYTES (128u << 20) /* of all that are copied when it ends */
#define LATE_FILES 5000
#define INDEX_MAX (64u << 20)
#define LIST_MAX (64u << 20)
#define EARLY ".early"
#define STORED_MAX (SHA256_HEX + sizeof(EARLY))
#define CONFIG_MAX (1u << 20)
#define HEADER "ward-tracked 1\n"

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_bases(int review_fd, bool make)
{
	if (make && mkdirat(review_fd, REVIEW_BASE, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(review_fd, REVIEW_BASE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The name of a copy; early: one that was made when the run began. */
static void name_base(const char *path, bool early, char ret[STORED_MAX])
{
	sha256_hex(path, strlen(path), ret);
	if (early)
		memcpy(ret + SHA256_HEX - 1, EARLY, sizeof(EARLY));
}

/* Copies the file at path of the workspace, if it has not changed since `since` (0: as it is, when
 * the run begins). */
static void copy_file(int workspace_fd, int bases_fd, const char *path, uint64_t since,
		      uint64_t max, uint64_t *left)
{
	const char *name;
	auto_fd dir = changes_open_parent(workspace_fd, path, &name), from = -1, to = -1;
	char stored[STORED_MAX];
	struct stat st, again;

	if (dir < 0)
		return;
	from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size > max || (uint64_t)st.st_size > *left ||
	    (since && ns_of(st.st_ctim) >= since))
		return;
	name_base(path, !since, stored);
	to = openat(bases_fd, stored, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return; /* it is there already */
	if (content_copy(from, to, (uint64_t)st.st_size) < 0 || fstat(from, &again) < 0 ||
	    ns_of(again.st_ctim) != ns_of(st.st_ctim) ||
	    fchmod(to, (st.st_mode & 0777) | 0600) < 0) {
		unlinkat(bases_fd, stored, 0);
		return;
	}
	*left -= (uint64_t)st.st_size;
}

/* ---- when a run begins ---- */

struct noting {
	int workspace_fd, bases_fd;
	const char *prefix; /* of the workspace in the repository, "" or "DIR/" */
	unsigned hash;
	uint64_t index_ns; /* when the index was written */
	uint64_t left;
	size_t seen;
	struct buf *out;
};

/* Whether the file is what the index says, as git decides without reading it. What has the index's
 * own time may have changed right behind it. */
static bool is_clean(const struct noting *n, const struct git_index_entry *entry,
		     const struct stat *st)
{
	return S_ISREG(st->st_mode) && (uint32_t)st->st_size == entry->size &&
	       (uint32_t)st->st_mtim.tv_sec == entry->mtime_s &&
	       (uint32_t)st->st_mtim.tv_nsec == entry->mtime_ns &&
	       (uint32_t)st->st_ctim.tv_sec == entry->ctime_s &&
	       (uint32_t)st->st_ctim.tv_nsec == entry->ctime_ns &&
	       ns_of(st->st_mtim) < n->index_ns && ns_of(st->st_ctim) < n->index_ns;
}

static int note_entry(void *ctx, const struct git_index_entry *entry)
{
	struct noting *n = ctx;
	size_t skip = strlen(n->prefix);
	const char *path = entry->path + skip;
	bool clean = true;
	struct stat st;

	if (strncmp(entry->path, n->prefix, skip) != 0 || entry->stage || !*path ||
	    (entry->mode != GIT_MODE_FILE && entry->mode != GIT_MODE_PROGRAM))
		return 0;
	if (++n->seen > TRACKED_MAX)
		return -E2BIG;
	if (fstatat(n->workspace_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!is_clean(n, entry, &st) || entry->assume_unchanged || entry->skip_worktree) {
		copy_file(n->workspace_fd, n->bases_fd, path, 0, EARLY_BYTES, &n->left);
		clean = false;
	}
	for (unsigned i = 0; i < n->hash; i++)
		buf_printf(n->out, "%02x", clean ? entry->id[i] : 0);
	buf_printf(n->out, " %c ", entry->mode == GIT_MODE_PROGRAM ? 'x' : '-');
	buf_add(n->out, path, strlen(path) + 1);
	return n->out->failed ? -ENOMEM : 0;
}

/* The git directory of a work tree: .git itself, or where the file of that name leads to. The
 * caller frees; NULL: there is none. */
static char *find_git_dir(const char *dir)
{
	auto_buf at = { 0 }, text = { 0 };
	const char *target;
	size_t n;
	struct stat st;

	buf_printf(&at, "%s/.git", dir);
	if (at.failed || lstat(at.data, &st) < 0)
		return NULL;
	if (S_ISDIR(st.st_mode))
		return strdup(at.data);
	if (!S_ISREG(st.st_mode) || io_read_file(AT_FDCWD, at.data, PATH_MAX, &text) < 0 ||
	    !git_link_read(buf_text(&text), text.len, &target, &n))
		return NULL;
	auto_free char *word = strndup(target, n);

	return word ? path_join(dir, word) : NULL;
}

/* Looks for the repository from the workspace upwards, as git does. */
static char *find_repository(const char *workspace, char **ret_prefix)
{
	auto_free char *dir = strdup(workspace);

	while (dir && *dir) {
		char *git_dir = find_git_dir(dir), *slash;

		if (git_dir) {
			size_t n = strlen(dir);

			if (asprintf(ret_prefix, "%s%s", workspace[n] ? workspace + n + 1 : "",
				     workspace[n] ? "/" : "") < 0) {
				*ret_prefix = NULL;
				free(git_dir);
				return NULL;
			}
			return git_dir;
		}
		slash = strrchr(dir, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return NULL;
}

bool changes_has_sha256(const char *workspace)
{
	auto_free char *prefix = NULL, *git_dir = find_repository(workspace, &prefix);
	auto_buf path = { 0 }, text = { 0 };

	if (!git_dir)
		return false;
	buf_printf(&path, "%s/config", git_dir);
	if (!path.failed && io_read_file(AT_FDCWD, path.data, CONFIG_MAX, &text) == -ENOENT) {
		path.len = 0; /* a linked work tree: its commondir is ../.. */
		buf_printf(&path, "%s/../../config", git_dir);
		if (!path.failed && io_read_file(AT_FDCWD, path.data, CONFIG_MAX, &text) < 0)
			return false;
	}
	for (const char *at = buf_text(&text); (at = strcasestr(at, "objectformat")); at++) {
		const char *value = at + strlen("objectformat");

		value += strspn(value, " \t=");
		if (strncasecmp(value, "sha256", 6) == 0)
			return true;
	}
	return false;
}

static int read_index(const char *git_dir, struct buf *ret, uint64_t *ret_ns)
{
	auto_buf path = { 0 };
	auto_fd fd = -1;
	struct stat st;

	buf_printf(&path, "%s/index", git_dir);
	if (path.failed)
		return -ENOMEM;
	fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	*ret_ns = ns_of(st.st_mtim);
	return io_read_all(fd, INDEX_MAX, ret);
}

void changes_bases_begin(int review_fd, const char *workspace)
{
	auto_free char *prefix = NULL, *git_dir = find_repository(workspace, &prefix);
	auto_fd workspace_fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC), bases = -1,
		to = -1;
	auto_buf index = { 0 }, list = { 0 };
	struct git_index_info info;
	const char *why;
	struct noting n = { .workspace_fd = workspace_fd, .prefix = prefix, .out = &list };

	if (!git_dir || workspace_fd < 0 || read_index(git_dir, &index, &n.index_ns) < 0)
		return;
	bases = open_bases(review_fd, true);
	if (bases < 0)
		return;
	n.bases_fd = bases;
	for (size_t i = 0; i < 2; i++) {
		n.hash = i ? GIT_SHA256 : GIT_SHA1;
		n.left = EARLY_ALL_BYTES;
		n.seen = 0;
		list.len = 0;
		buf_puts(&list, HEADER);
		buf_add(&list, git_dir, strlen(git_dir) + 1);
		if (git_index_read((const uint8_t *)buf_text(&index), index.len, n.hash, note_entry,
				   &n, &info, &why) == 0 &&
		    !info.split)
			break;
		if (i || n.seen > TRACKED_MAX)
			return; /* too many, or of a form that is not known */
	}
	to = openat(review_fd, REVIEW_TRACKED,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to >= 0 && io_write_all(to, list.data, list.len) < 0)
		unlinkat(review_fd, REVIEW_TRACKED, 0);
}

/* ---- the object store ---- */

struct tracked {
	const char *git_dir;
	char id[2 * GIT_HASH_MAX + 1];
	bool program;
};

bool changes_tracked_find(const char *text, size_t n, const char *path, const char **ret_git_dir,
			  char ret_id[65], bool *ret_program)
{
	size_t head = strlen(HEADER), want = strlen(path), at;

	if (n < head || memcmp(text, HEADER, head) != 0 || !memchr(text + head, '\0', n - head))
		return false;
	*ret_git_dir = text + head;
	for (at = head + strlen(text + head) + 1; at < n;) {
		const char *line = text + at, *end = memchr(line, '\0', n - at);
		size_t digits;

		if (!end)
			return false; /* cut off */
		digits = strspn(line, "0123456789abcdef");
		if ((digits == 40 || digits == 64) && (size_t)(end - line) == digits + 3 + want &&
		    memcmp(line + digits + 3, path, want) == 0) {
			memcpy(ret_id, line, digits);
			ret_id[digits] = '\0';
			*ret_program = line[digits + 1] == 'x';
			/* all zero: it was not what the repository has */
			return strspn(ret_id, "0") < digits;
		}
		at = (size_t)(end - text) + 1;
	}
	return false;
}

int changes_list_tracked(const struct review *r, struct strv *ret)
{
	auto_buf list = { 0 };
	size_t at = strlen(HEADER);

	if (io_read_file(r->dir_fd, REVIEW_TRACKED, LIST_MAX, &list) < 0 || list.len < at ||
	    memcmp(list.data, HEADER, at) != 0)
		return 0;
	for (at += strlen(list.data + at) + 1; at < list.len;) {
		const char *line = list.data + at;
		size_t digits = strspn(line, "0123456789abcdef"), n = strlen(line);

		if (n > digits + 3)
			strv_add(ret, line + digits + 3);
		at += n + 1;
	}
	strv_sort(ret);
	return ret->failed ? -ENOMEM : 0;
}

/* In the child: becomes git, as the repository's owner. */
static void become_git(const char *program, const struct tracked *t, int out_fd)
{
	char dir[PATH_MAX + 16];
	char *words[] = { (char[]){ "git" },
			  (char[]){ "-c" },
			  (char[]){ "core.hooksPath=/dev/null" },
			  (char[]){ "cat-file" },
			  (char[]){ "blob" },
			  (char *)(uintptr_t)t->id,
			  NULL };
	char *env[] = { dir,
			(char[]){ "GIT_CONFIG_GLOBAL=/dev/null" },
			(char[]){ "GIT_CONFIG_NOSYSTEM=1" },
			(char[]){ "GIT_NO_LAZY_FETCH=1" },
			(char[]){ "GIT_NO_REPLACE_OBJECTS=1" },
			(char[]){ "HOME=/nonexistent" },
			(char[]){ "LC_ALL=C" },
			NULL };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;

	snprintf(dir, sizeof(dir), "GIT_DIR=%s", t->git_dir);
	if (null_fd < 0 || stat(t->git_dir, &st) < 0)
		_exit(1);
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
	     setresuid(st.st_uid, st.st_uid, st.st_uid) < 0))
		_exit(1);
	if (dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(null_fd, 2) < 0)
		_exit(1);
	execve(program, words, env);
	_exit(127);
}

static int read_blob(const struct tracked *t, struct buf *ret)
{
	char program[PATH_MAX];
	struct ward_err ignored = { 0 };
	int ends[2], code = 0, status;
	pid_t pid;

	if (program_find_system("git", program, &ignored) < 0)
		return -ENOENT;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_git(program, t, ends[1]);
	close(ends[1]);
	status = pid < 0 ? -EAGAIN : io_read_all(ends[0], DIFF_BYTES_MAX, ret);
	close(ends[0]);
	if (pid > 0 && status < 0)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &code, 0) < 0 && errno == EINTR)
		;
	return status < 0 ? status : WIFEXITED(code) && WEXITSTATUS(code) == 0 ? 0 : -ENOENT;
}

/* ---- what it was ---- */

static int read_tracked(const struct review *r, const char *path, struct buf *ret_bytes,
			mode_t *ret_mode)
{
	auto_buf list = { 0 };
	struct tracked t = { 0 };
	int status = io_read_file(r->dir_fd, REVIEW_TRACKED, LIST_MAX, &list);

	if (status < 0)
		return status;
	if (!changes_tracked_find(buf_text(&list), list.len, path, &t.git_dir, t.id, &t.program))
		return -ENOENT;
	*ret_mode = t.program ? 0755 : 0644;
	return read_blob(&t, ret_bytes);
}

static int read_copy(int bases_fd, const char *path, bool early, struct buf *ret_bytes,
		     mode_t *ret_mode)
{
	char stored[STORED_MAX];
	auto_fd fd = -1;
	struct stat st;

	name_base(path, early, stored);
	fd = openat(bases_fd, stored, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	*ret_mode = st.st_mode & 0777;
	return io_read_all(fd, DIFF_BYTES_MAX, ret_bytes);
}

/* What was noted when the first run began; a later one may have begun with another content. */
static int read_early(const struct review *r, int bases_fd, const char *path, struct buf *ret_bytes,
		      mode_t *ret_mode)
{
	int status = r->record.start_count == 1
			     ? read_copy(bases_fd, path, true, ret_bytes, ret_mode)
			     : -EINVAL;

	return status == -ENOENT ? read_tracked(r, path, ret_bytes, ret_mode) : status;
}

int changes_base_read(const struct review *r, const char *path, struct buf *ret_bytes,
		      mode_t *ret_mode)
{
	auto_fd bases = open_bases(r->dir_fd, false);
	int status = bases < 0 ? -ENOENT : read_copy(bases, path, false, ret_bytes, ret_mode);

	return bases >= 0 && status == -ENOENT ? read_early(r, bases, path, ret_bytes, ret_mode)
					       : status;
}

void changes_base_drop(const struct review *r, const char *path)
{
	char stored[STORED_MAX];
	auto_fd bases = open_bases(r->dir_fd, false);

	for (int early = 0; early < 2 && bases >= 0; early++) {
		name_base(path, early, stored);
		unlinkat(bases, stored, 0);
	}
}

/* ---- when a run ends ---- */

/* What somebody else changed while the run went on: from the object store. */
static void keep_early(const struct review *r, int bases_fd, const char *path)
{
	auto_buf bytes = { 0 };
	char stored[STORED_MAX];
	mode_t mode;
	auto_fd to = -1;

	name_base(path, false, stored);
	if (faccessat(bases_fd, stored, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    read_early(r, bases_fd, path, &bytes, &mode) < 0)
		return;
	to = openat(bases_fd, stored, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to >= 0 &&
	    (io_write_all(to, buf_text(&bytes), bytes.len) < 0 || fchmod(to, mode | 0600) < 0))
		unlinkat(bases_fd, stored, 0);
}

void changes_bases_keep(const struct review *r, const struct changes *all)
{
	uint64_t left = LATE_ALL_BYTES;
	auto_fd bases = -1;
	size_t files = 0;

	for (size_t i = 0; i < all->len && files < LATE_FILES; i++) {
		const struct change *c = &all->items[i];

		if (c->kind != CHANGE_CONTENT || !S_ISREG(c->old_mode) || !S_ISREG(c->new_mode))
			continue;
		if (bases < 0)
			bases = open_bases(r->dir_fd, true);
		if (bases < 0)
			return;
		files++;
		if (c->conflict)
			keep_early(r, bases, c->path);
		else
			copy_file(r->workspace_fd, bases, c->path, c->ctime_ns + 1, DIFF_BYTES_MAX,
				  &left);
	}
}

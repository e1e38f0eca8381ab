/*
 * filesystem.Filesystem. In: paths of clients. Out: what the file system of the sandbox does with
 * them, with the rights of the sandbox's user: links lead where they lead for any program inside,
 * and nothing outside can be meant by a path. Errors are named as Connect names them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/remove.h"
#include "envd/call.h"
#include "envd/entry.h"
#include "envd/fs.h"

#define DEPTH_MAX 64
#define ENTRIES_MAX (64 * 1024 * 1024) /* bytes of one answer */

int fs_request_read(struct call *c, struct fs_request *r)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool fine;

	json_in_init(&j, c->message, c->message_len);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key))
			if (strcmp(key, "path") == 0 || strcmp(key, "source") == 0)
				message_string(&j, &r->path);
			else if (strcmp(key, "destination") == 0)
				message_string(&j, &r->destination);
			else if (strcmp(key, "depth") == 0)
				message_uint(&j, &r->depth);
			else if (strcmp(key, "recursive") == 0)
				message_bool(&j, &r->recursive);
			else if (message_key(key, "includeEntry"))
				message_bool(&j, &r->include_entry);
			else if (message_key(key, "watcherId"))
				message_string(&j, &r->watcher);
			else
				json_in_skip(&j);
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	return fine ? 0
		    : call_fail(c, RPC_INVALID_ARGUMENT,
				"not such a message: a value has the wrong type");
}

void fs_request_free(struct fs_request *r)
{
	buf_free(&r->path);
	buf_free(&r->destination);
	buf_free(&r->watcher);
}

int fs_path(struct call *c, const struct buf *given, char ret[PATH_MAX])
{
	int r = person_path(&c->person, buf_text(given), ret);

	return r < 0 ? call_fail(c, RPC_INVALID_ARGUMENT, "path: %s",
				 r == -EINVAL ? "it is empty" : strerror(-r))
		     : 0;
}

/* The message with one path; 0 or -1. */
static int read_path(struct call *c, char ret[PATH_MAX])
{
	struct fs_request q = { 0 };
	int r = fs_request_read(c, &q);

	if (r == 0)
		r = fs_path(c, &q.path, ret);
	fs_request_free(&q);
	return r;
}

static int answer_entry(struct call *c, const char *path)
{
	int r;

	buf_puts(&c->answer, "{\"entry\":");
	r = entry_write(path, &c->answer);
	buf_puts(&c->answer, "}");
	return r < 0 ? call_fail_path(c, -r, path) : 0;
}

int fs_stat(struct call *c)
{
	char path[PATH_MAX];

	return read_path(c, path) < 0 ? -1 : answer_entry(c, path);
}

int fs_make_dirs(const char *path, mode_t mode)
{
	char at[PATH_MAX];
	struct stat st;

	snprintf(at, sizeof(at), "%s", path);
	for (char *slash = at + 1;; slash++) {
		char was = *slash;

		if (was && was != '/')
			continue;
		*slash = '\0';
		if (mkdir(at, mode) < 0 && errno != EEXIST) {
			/* what is there may be a directory where nothing may be made */
			int error = errno;

			if (stat(at, &st) < 0 || !S_ISDIR(st.st_mode))
				return -error;
		}
		*slash = was;
		if (!was)
			break;
	}
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int fs_make_parents(const char *path)
{
	char parent[PATH_MAX], *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return 0;
	*slash = '\0';
	return fs_make_dirs(parent, 0755);
}

int fs_make_dir(struct call *c)
{
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (read_path(c, path) < 0)
		return -1;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode)
			       ? call_fail(c, RPC_ALREADY_EXISTS, "directory already exists: %s",
					   path)
			       : call_fail(c, RPC_INVALID_ARGUMENT,
					   "path already exists but it is not a directory: %s",
					   path);
	r = fs_make_dirs(path, 0755);
	return r < 0 ? call_fail_path(c, -r, path) : answer_entry(c, path);
}

int fs_move(struct call *c)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct fs_request q = { 0 };
	struct stat st;
	int r = fs_request_read(c, &q);

	if (r == 0)
		r = fs_path(c, &q.path, from);
	if (r == 0)
		r = fs_path(c, &q.destination, to);
	fs_request_free(&q);
	if (r < 0)
		return -1;
	if (lstat(from, &st) < 0)
		return call_fail_path(c, errno, from);
	r = fs_make_parents(to);
	if (r < 0)
		return call_fail_path(c, -r, to);
	if (rename(from, to) < 0)
		return errno == EXDEV
			       ? call_fail(c, RPC_FAILED_PRECONDITION,
					   "'%s' and '%s' are on different file systems; copy it "
					   "with a command",
					   from, to)
			       : call_fail_path(c, errno, to);
	return answer_entry(c, to);
}

int fs_remove(struct call *c)
{
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (read_path(c, path) < 0)
		return -1;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : call_fail_path(c, errno, path);
	r = S_ISDIR(st.st_mode) ? remove_tree(path) : unlink(path) < 0 ? -errno : 0;
	return r < 0 && r != -ENOENT ? call_fail_path(c, -r, path) : 0;
}

/* -- ListDir */

struct listing {
	struct call *call;
	unsigned depth;
	bool some;
};

/* One level; the path has room for PATH_MAX. Links below the root are not followed. */
static int list(struct listing *l, char *path, unsigned level)
{
	auto_dir d = opendir(path);
	size_t n = strlen(path);
	struct dirent *e;

	if (!d)
		return level ? 0 : -errno;
	while ((e = readdir(d))) {
		auto_buf text = { 0 };
		struct stat st;
		int r;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    n + strlen(e->d_name) + 2 > PATH_MAX)
			continue;
		snprintf(path + n, PATH_MAX - n, "%s%s", n == 1 ? "" : "/", e->d_name);
		r = entry_write(path, &text);
		if (r == 0) {
			buf_puts(&l->call->answer, l->some ? "," : "");
			buf_add(&l->call->answer, text.data, text.len);
			l->some = true;
		}
		if (l->call->answer.len > ENTRIES_MAX || l->call->answer.failed)
			r = -E2BIG;
		else
			r = 0;
		if (r == 0 && level + 1 < l->depth && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			r = list(l, path, level + 1);
		path[n] = '\0';
		if (r < 0)
			return r;
	}
	return 0;
}

int fs_list_dir(struct call *c)
{
	struct listing l = { .call = c, .depth = 1 };
	struct fs_request q = { 0 };
	char path[PATH_MAX];
	struct stat st;
	int r = fs_request_read(c, &q);

	if (r == 0)
		r = fs_path(c, &q.path, path);
	if (q.depth)
		l.depth = q.depth > DEPTH_MAX ? DEPTH_MAX : (unsigned)q.depth;
	fs_request_free(&q);
	if (r < 0)
		return -1;
	if (stat(path, &st) < 0)
		return call_fail_path(c, errno, path);
	if (!S_ISDIR(st.st_mode))
		return call_fail(c, RPC_INVALID_ARGUMENT, "path is not a directory: %s", path);
	buf_puts(&c->answer, "{\"entries\":[");
	r = list(&l, path, 0);
	buf_puts(&c->answer, "]}");
	if (r == -E2BIG)
		return call_fail(c, RPC_RESOURCE_EXHAUSTED, "'%s' has too many entries", path);
	return r < 0 ? call_fail_path(c, -r, path) : 0;
}

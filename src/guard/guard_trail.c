/*
 * Following a path. In: a directory and a path as a link, a configuration or a command line has it.
 * Out: every link on the way, every directory that ".." leaves, and where the path ends, or the
 * name that is missing. Runs in the supervisor with the user's rights, on trees that a hostile
 * project may have brought; it looks at names and reads links, opens nothing and changes nothing.
 *
 * One component is taken at a time, as the kernel takes it: ".." goes up from where the links have
 * led, not from the letters of the path; an absolute target starts again at "/"; 40 links are the
 * end. What stands in front of the current component never holds a link, so its last name can be
 * cut off for "..". The tree may change while this looks at it: the answer is a list of names to
 * guard, and whoever guards them opens them again without following links.
 */
#include "guard/guard_trail.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/path.h"

#define LINKS_MAX 40 /* as the kernel's own */

struct trail {
	struct buf at;   /* where the trail stands: absolute, without links; "" is "/" */
	struct buf rest; /* what is still to be followed */
	const struct trail_root *root;
	trail_fn *fn;
	void *ctx;
	unsigned links;
	struct stat st; /* of what stands at `at`, if known */
	bool known;
};

struct trail_root trail_root_at(const char *path, int fd)
{
	struct trail_root root = { .path = path };
	struct stat st;

	if (fstat(fd, &st) == 0) {
		root.device = st.st_dev;
		root.inode = st.st_ino;
	}
	return root;
}

static int tell(const struct trail *t, enum trail_kind kind, const char *text)
{
	struct trail_place place = {
		.kind = kind, .path = t->at.len ? t->at.data : "/", .text = text, .st = &t->st
	};

	if (t->at.failed || t->rest.failed)
		return -ENOMEM;
	return t->fn(t->ctx, &place);
}

static void cut(struct trail *t, size_t len)
{
	t->at.len = len;
	if (t->at.data)
		t->at.data[len] = '\0';
	t->known = false;
}

static int go_up(struct trail *t)
{
	const char *slash = t->at.len ? strrchr(t->at.data, '/') : NULL;
	int status = slash ? tell(t, TRAIL_BACK, "") : 0;

	if (slash)
		cut(t, (size_t)(slash - t->at.data));
	return status;
}

/* Puts a link's target in front of the rest; `before` is the length of the directory that the link
 * lies in. */
static int expand(struct trail *t, size_t before)
{
	char target[PATH_MAX];
	ssize_t n = readlink(t->at.data, target, sizeof(target) - 1);
	auto_buf longer = { 0 };
	int status;

	if (n < 0) { /* a link that only others may read, in /proc */
		status = tell(t, TRAIL_MISSING, buf_text(&t->rest));
		return status ? status : 1;
	}
	if (++t->links > LINKS_MAX)
		return 1;
	target[n] = '\0';
	status = tell(t, TRAIL_LINK, target);
	if (status)
		return status;
	buf_printf(&longer, "%s%s%s", target, t->rest.len ? "/" : "", buf_text(&t->rest));
	if (longer.failed)
		return -ENOMEM;
	buf_free(&t->rest);
	t->rest = longer;
	longer = (struct buf){ 0 };
	cut(t, *target == '/' ? 0 : before);
	return 0;
}

/* The same directory may be mounted in several places. */
static void rename_root(struct trail *t)
{
	if (!t->root || !t->root->inode || t->st.st_ino != t->root->inode ||
	    t->st.st_dev != t->root->device)
		return;
	cut(t, 0);
	buf_puts(&t->at, t->root->path);
	t->known = true;
}

/* One name. Returns 1 when the trail ends here. */
static int go_down(struct trail *t, const char *name)
{
	size_t before = t->at.len;

	buf_puts(&t->at, "/");
	buf_puts(&t->at, name);
	if (t->at.failed)
		return -ENOMEM;
	if (lstat(t->at.data, &t->st) < 0) {
		int status = tell(t, TRAIL_MISSING, buf_text(&t->rest)); /* or out of sight */

		return status ? status : 1;
	}
	t->known = true;
	if (S_ISLNK(t->st.st_mode))
		return expand(t, before);
	if (S_ISDIR(t->st.st_mode)) {
		rename_root(t);
		return 0;
	}
	if (t->rest.len) { /* a file where a directory is wanted: that can be changed */
		int status = tell(t, TRAIL_MISSING, t->rest.data);

		return status ? status : 1;
	}
	return 0;
}

/* Takes the first component off the rest. */
static int next_name(struct trail *t, char name[NAME_MAX + 1])
{
	const char *at = buf_text(&t->rest);
	size_t skip = strspn(at, "/"), n = strcspn(at + skip, "/"), all;

	if (n > NAME_MAX)
		return 1;
	memcpy(name, at + skip, n);
	name[n] = '\0';
	all = skip + n + strspn(at + skip + n, "/");
	if (t->rest.data) {
		memmove(t->rest.data, t->rest.data + all, t->rest.len - all + 1);
		t->rest.len -= all;
	}
	return 0;
}

int trail_follow(const char *from, const char *path, const struct trail_root *root, trail_fn *fn,
		 void *ctx)
{
	struct trail t = { .root = root, .fn = fn, .ctx = ctx };
	char name[NAME_MAX + 1];
	int status = 0;

	if (*path != '/' && strcmp(from, "/") != 0)
		buf_puts(&t.at, from);
	buf_puts(&t.rest, path);
	while (status == 0 && t.rest.len && !t.rest.failed) {
		status = next_name(&t, name);
		if (status || !*name || strcmp(name, ".") == 0)
			continue;
		status = strcmp(name, "..") == 0 ? go_up(&t) : go_down(&t, name);
	}
	if (status == 0 && !t.known)
		status = lstat(t.at.len ? t.at.data : "/", &t.st) < 0;
	if (status == 0)
		status = tell(&t, TRAIL_END, "");
	if (t.at.failed || t.rest.failed)
		status = -ENOMEM;
	buf_free(&t.at);
	buf_free(&t.rest);
	return status > 0 ? 0 : status;
}

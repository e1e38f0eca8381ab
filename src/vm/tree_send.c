/*
 * A tree on its way into the guest. In: a path as the native sandbox shows it. Out: records
 * (tree.h). Runs as a process of ward-vm's own inside that sandbox: what is hidden there cannot be
 * read, and stands in the guest as a file that cannot be read either. A directory that is a tree of
 * its own is empty in the one around it. What cannot be read for another reason is reported and
 * left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "vm/disk.h"
#include "vm/server.h"
#include "vm/tree_files.h"

struct sender {
	struct tree_walk walk;
	struct disk_writer out;
	char *const *paths; /* of all trees */
	size_t count;
	const char *top; /* the present tree */
};

/* Whether it went well is looked at once more, at the end. */
static int put(void *ctx, const void *bytes, size_t n)
{
	struct sender *v = ctx;

	disk_put(&v->out, bytes, n);
	return -v->out.error;
}

static int say(struct tree_walk *w, int error)
{
	const struct sender *v = w->ctx;
	auto_buf line = { 0 };

	text_escape(&line, w->len ? w->path : v->top);
	dprintf(2, "ward-vm: %s: %s: it is not in the guest\n", buf_text(&line), strerror(error));
	return 0;
}

/* Another tree that stands here goes on its own. */
static enum tree_part enter(const struct tree_walk *w, const struct stat *st)
{
	const struct sender *v = w->ctx;
	size_t n = strlen(v->top);

	(void)st;
	for (size_t i = 0; i < v->count && w->len; i++)
		if (strncmp(v->paths[i], v->top, n) == 0 && v->paths[i][n] == '/' &&
		    strcmp(v->paths[i] + n + 1, w->path) == 0)
			return TREE_EMPTY;
	return TREE_WHOLE;
}

static const struct tree_walk_how how = {
	.mode = 0777, .mounts = true, .closed = true, .put = put, .fail = say, .enter = enter
};

static int send_one(struct sender *v, const char *path, struct ward_err *e)
{
	auto_fd source = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (source < 0)
		return ward_fail_errno(e, "opening %s", path);
	v->top = path;
	return tree_walk(&v->walk, source) < 0 ? 1 : 0;
}

int tree_send(const struct tree_way *way, char *const *paths, size_t count, struct ward_err *e)
{
	auto_free struct sender *v = calloc(1, sizeof(*v));
	int r = 0;

	if (!v || disk_writer_begin(&v->out, way->out_fd, way->in_fd, way->disk_fd) < 0)
		return ward_fail(e, ENOMEM, "no memory");
	v->walk.how = &how;
	v->walk.ctx = v;
	v->paths = paths;
	v->count = count;
	for (size_t i = 0; i < count && r == 0; i++)
		r = send_one(v, paths[i], e);
	if (r < 0)
		return r; /* the guest finds that it is not complete */
	r = disk_writer_end(&v->out);
	return r < 0 ? ward_fail(e, -r, "the guest does not take it: %s", strerror(-r)) : 0;
}

/*
 * The private directories of a sandbox (/tmp, /dev/shm, a home that is not kept) on their way into
 * a checkpoint and back. In: their paths, the same and in the same order at both ends. Out: records
 * (vm/tree.h) in frames, each a length and so many bytes, an empty one at the end; or the
 * directories filled again. Runs in the sandbox with the agent's rights (and, in a user namespace
 * of the process's own, over every file of that id), so that what is read here, the process that
 * wrote it, can but become files of the sandbox. No link is followed, no other file system is
 * entered, and one file that cannot be had is the end. Sockets and pipes are left out, set-id bits
 * too, and names of one file become files of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"
#include "vm/tree_files.h"

#define FRAME_MAX 65536
#define KEPT_MODE 01777

/* ---- out ---- */

struct sender {
	struct tree_walk walk;
	int out_fd;
	uint64_t sent;
	dev_t dev;        /* of the present tree */
	const char *tree; /* its path */
	size_t held;      /* in frame */
	char frame[FRAME_MAX];
};

static int flush(struct sender *s)
{
	const uint32_t n = (uint32_t)s->held;
	int r = io_write_all(s->out_fd, &n, sizeof(n));

	if (r == 0)
		r = io_write_all(s->out_fd, s->frame, s->held);
	s->sent += sizeof(n) + s->held;
	s->held = 0;
	return r;
}

static int put(void *ctx, const void *bytes, size_t n)
{
	struct sender *s = ctx;
	const char *at = bytes;
	int r = 0;

	while (n && r == 0) {
		size_t take = FRAME_MAX - s->held < n ? FRAME_MAX - s->held : n;

		memcpy(s->frame + s->held, at, take);
		s->held += take;
		at += take;
		n -= take;
		if (s->held == FRAME_MAX)
			r = flush(s);
	}
	return r;
}

static int fail(struct tree_walk *w, int error)
{
	const struct sender *s = w->ctx;

	gvisor_say("cannot read a private file: %s/%.200s%s: %s", s->tree, w->path,
		   w->len > 200 ? "..." : "", strerror(error));
	return -error;
}

/* What is mounted there is mounted there again. */
static enum tree_part enter(const struct tree_walk *w, const struct stat *st)
{
	const struct sender *s = w->ctx;

	return st->st_dev == s->dev ? TREE_WHOLE : TREE_LEFT_OUT;
}

static const struct tree_walk_how walk_how = {
	.mode = KEPT_MODE, .put = put, .fail = fail, .enter = enter
};

static int send_one(struct sender *s, const char *path)
{
	auto_fd top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	s->tree = path;
	if (top < 0 || fstat(top, &st) < 0)
		return fail(&s->walk, errno);
	s->dev = st.st_dev;
	return tree_walk(&s->walk, top);
}

int trees_send(int out_fd, char *const *paths, size_t count, uint64_t *ret_bytes)
{
	auto_free struct sender *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->walk.how = &walk_how;
	s->walk.ctx = s;
	s->out_fd = out_fd;
	for (size_t i = 0; i < count && r == 0; i++)
		r = send_one(s, paths[i]);
	if (r == 0 && s->held)
		r = flush(s);
	if (r == 0)
		r = flush(s); /* an empty frame is the end */
	*ret_bytes = s->sent;
	return r;
}

/* ---- and in ---- */

static int lose(struct tree_maker *m, const char *name, int error)
{
	(void)m, (void)name;
	return -error;
}

static const struct tree_maker_how maker_how = { .mode = KEPT_MODE,
						 .records_max = UINT64_MAX,
						 .lose = lose };

struct taker {
	struct tree_maker maker;
	char frame[FRAME_MAX];
};

static int take_frames(struct taker *t, int in_fd)
{
	uint32_t n = 0;
	int r = 0;

	while (r == 0 && (r = io_read_exactly(in_fd, &n, sizeof(n))) == 0 && n) {
		if (n > FRAME_MAX)
			return -EPROTO;
		r = io_read_exactly(in_fd, t->frame, n);
		if (r == 0)
			r = tree_read(&t->maker.reader, t->frame, n);
	}
	return r;
}

int trees_take(int in_fd, char *const *paths, size_t count)
{
	auto_free struct taker *t = count ? calloc(1, sizeof(*t)) : NULL;
	int r, end;

	if (!t)
		return count ? -ENOMEM : -EPROTO;
	tree_make_begin(&t->maker, &maker_how, paths, count, UINT64_MAX);
	r = take_frames(t, in_fd);
	end = tree_make_end(&t->maker);
	if (r == 0)
		r = end;
	return r == -EPIPE ? -EPROTO : r;
}

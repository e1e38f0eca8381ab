/*
 * What changed in a tree, on its way back from the guest. In: records that a hostile guest wrote.
 * Out: files beneath one path (tree_make.c). Runs as a process of ward-vm's own inside the native
 * sandbox, with the rights that a command would have there: what the sandbox protects refuses, and
 * that is reported, a line for each, and counted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "vm/disk.h"
#include "vm/server.h"
#include "vm/tree_files.h"

#define LINES_MAX 100
#define RECORDS_MAX (1u << 24)

static const char *why(int error)
{
	return error == EROFS || error == EBUSY || error == EACCES || error == EPERM
		       ? "it is protected"
		       : strerror(error);
}

static int lose(struct tree_maker *m, const char *name, int error)
{
	auto_buf line = { 0 };

	if (m->lost++ >= LINES_MAX)
		return 0;
	if (m->closed || !*name)
		text_escape(&line, m->path);
	if (m->closed && *name)
		buf_puts(&line, "/");
	text_escape(&line, name);
	dprintf(2, "ward-vm: %s: %s: its change was not copied back\n", buf_text(&line),
		why(error));
	return 0;
}

static const struct tree_maker_how how = { .mode = 0777, .records_max = RECORDS_MAX, .lose = lose };

static int take_records(void *ctx, const void *bytes, size_t n)
{
	return tree_read(ctx, bytes, n);
}

int tree_take(const struct tree_way *way, char *const *paths, size_t count, uint64_t bytes_max,
	      uint64_t *ret_lost, struct ward_err *e)
{
	auto_free struct tree_maker *m = calloc(1, sizeof(*m));
	int r, end;

	if (!m)
		return ward_fail(e, ENOMEM, "no memory");
	tree_make_begin(m, &how, paths, count, bytes_max ? bytes_max : UINT64_MAX);
	r = disk_read_all(way->in_fd, way->out_fd, way->disk_fd, take_records, &m->reader);
	end = tree_make_end(m);
	if (r == 0)
		r = end;
	if (m->lost > LINES_MAX)
		dprintf(2, "ward-vm: %llu more were not copied back\n",
			(unsigned long long)(m->lost - LINES_MAX));
	*ret_lost = m->lost;
	if (r == -E2BIG)
		return ward_fail(e, E2BIG, "it exceeds what may be copied back");
	return r < 0 ? ward_fail(e, -r,
				 r == -EPIPE ? "the guest stopped during the copy"
					     : "the guest sent malformed data")
		     : 0;
}

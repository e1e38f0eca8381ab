/*
 * Answers that are kept. In: who was asked for (an agent) and about what. Out: one short line. One
 * file an answer, agents/WHO/WHAT in the state directory, which only its owner can write
 * (store_open() refuses any other); written beside and renamed, so that it is whole. Runs with the
 * user's rights, never inside a sandbox. A file that is not one short printable line counts as no
 * answer: the program then asks again.
 */
#include "state/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "state/store.h"

#define ANSWERS_DIR "agents"
#define FRESH ".new"

static bool is_name(const char *name)
{
	return *name && *name != '.' && strlen(name) <= 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
		       strlen(name);
}

/* The directory of one who is asked for; -ENOENT without *e when there is none and make is not
 * set. */
static int open_dir(const char *who, bool make, struct ward_err *e)
{
	auto_fd state_fd = store_open(e), all_fd = -1;
	int fd;

	if (state_fd < 0)
		return state_fd;
	if (!is_name(who))
		return ward_fail(e, EINVAL, "%.64s is no name that answers are kept for", who);
	if (make && mkdirat(state_fd, ANSWERS_DIR, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make the directory of answers");
	all_fd = openat(state_fd, ANSWERS_DIR, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	if (all_fd >= 0 && make && mkdirat(all_fd, who, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make the directory of answers");
	fd = all_fd < 0 ? -1 : openat(all_fd, who, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT && !make
		       ? -ENOENT
		       : ward_fail_errno(e, "cannot open the directory of answers");
}

int answers_get(const char *who, const char *what, struct buf *ret, struct ward_err *e)
{
	auto_fd dir_fd = open_dir(who, false, e), fd = -1;
	auto_buf text = { 0 };
	struct stat st;
	size_t n;

	if (dir_fd < 0)
		return e->code ? dir_fd : 0;
	fd = openat(dir_fd, what, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open a kept answer");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, ANSWER_BYTES_MAX, &text) < 0)
		return 0;
	n = strcspn(buf_text(&text), "\n");
	if (n + 1 != text.len)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return 0;
	buf_add(ret, text.data, n);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int answers_put(const char *who, const char *what, const char *answer, struct ward_err *e)
{
	auto_fd dir_fd = open_dir(who, true, e), fd = -1;
	auto_buf line = { 0 };
	int r;

	if (dir_fd < 0)
		return dir_fd;
	if (!is_name(what))
		return ward_fail(e, EINVAL, "%.64s is nothing that answers are kept about", what);
	if (!answer)
		return unlinkat(dir_fd, what, 0) == 0 || errno == ENOENT
			       ? 0
			       : ward_fail_errno(e, "cannot forget an answer");
	fd = openat(dir_fd, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return ward_fail_errno(e, "cannot keep the answer");
	buf_printf(&line, "%s\n", answer);
	r = line.failed ? -ENOMEM : io_write_all(fd, line.data, line.len);
	if (r == 0 && renameat(dir_fd, FRESH, dir_fd, what) < 0)
		r = -errno;
	return r < 0 ? ward_fail(e, -r, "cannot keep the answer: %s", strerror(-r)) : 0;
}

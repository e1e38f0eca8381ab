/*
 * ward scan --tracked: the files of a work tree that git tracks. In: a directory, and its index,
 * both opened before ward-scan locked itself up; no git is started and no setting of the repository
 * is read. Out: each file as it lies in the work tree now. Paths are opened beneath the directory
 * and through no link. The index is read by the pure functions of rules/git_index.h, fuzzed there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "rules/git_index.h"
#include "scan/scan.h"

#define INDEX_BYTES_MAX (512u << 20)
#define LINK_BYTES_MAX 4096

struct tracked {
	struct report *report;
	struct detector *detector;
	int top_fd;
	const char *top;
};

/* A linked work tree has a file that says where its part of the repository lies. */
static int open_linked(int top_fd)
{
	auto_buf text = { 0 };
	char *dir, *end;
	auto_fd dir_fd = -1;

	if (io_read_file(top_fd, ".git", LINK_BYTES_MAX, &text) < 0 ||
	    strncmp(buf_text(&text), "gitdir: ", 8) != 0)
		return -1;
	dir = text.data + 8;
	end = dir + strcspn(dir, "\n");
	*end = '\0';
	dir_fd = openat(top_fd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : openat(dir_fd, "index", O_RDONLY | O_NOCTTY | O_CLOEXEC);
}

int tracked_open(int top_fd)
{
	int fd = openat(top_fd, ".git/index", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0 ? fd : open_linked(top_fd);
}

static int at_tracked(void *ctx, const struct git_index_entry *entry)
{
	const struct open_how how = { .flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
					       O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	struct tracked *t = ctx;
	struct ward_err e = { 0 };
	auto_buf path = { 0 };
	auto_fd fd = -1;
	struct stat st;

	if ((entry->mode != GIT_MODE_FILE && entry->mode != GIT_MODE_PROGRAM) || entry->stage > 1)
		return 0;
	fd = (int)syscall(SYS_openat2, t->top_fd, entry->path, &how, sizeof(how));
	buf_printf(&path, "%s%s%s", t->top, t->top[strlen(t->top) - 1] == '/' ? "" : "/",
		   entry->path);
	if (fd < 0 || fstat(fd, &st) < 0) {
		/* not checked out, deleted since, or replaced by a link */
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			report_failure(t->report, buf_text(&path), strerror(errno));
		return 0;
	}
	if (S_ISREG(st.st_mode) &&
	    files_scan_fd(t->report, t->detector, fd, buf_text(&path), &e) < 0)
		report_failure(t->report, buf_text(&path), e.why);
	return t->report->failed;
}

int tracked_scan(struct report *r, struct detector *d, int top_fd, int index_fd, const char *top,
		 struct ward_err *e)
{
	struct tracked t = { r, d, top_fd, top };
	struct git_index_info info;
	auto_buf index = { 0 };
	const char *why = NULL;
	unsigned hash = GIT_SHA1;
	int n;

	if (index_fd < 0)
		return ward_fail(e, ENOENT, "--tracked: not the top of a git work tree");
	if (io_read_all(index_fd, INDEX_BYTES_MAX, &index) < 0)
		return ward_fail(e, EIO, "--tracked: the index cannot be read");
	/* the trailer says which hash it is: nothing is read of an index with a wrong one */
	if (git_index_read((const uint8_t *)index.data, index.len, hash, NULL, NULL, &info, &why) <
	    0)
		hash = GIT_SHA256;
	n = git_index_read((const uint8_t *)index.data, index.len, hash, NULL, NULL, &info, &why);
	if (n < 0) {
		ward_fail(e, EINVAL, "--tracked: git's index is damaged: %s", why ? why : "");
		return ward_remedy(e, "git reset makes a new index; or scan without --tracked");
	}
	if (info.split)
		return ward_fail(e, ENOTSUP,
				 "--tracked: the index is split; git update-index "
				 "--no-split-index joins it");
	n = git_index_read((const uint8_t *)index.data, index.len, hash, at_tracked, &t, &info,
			   &why);
	return n == 0 || r->failed ? 0 : ward_fail(e, EINVAL, "--tracked: the index is damaged");
}

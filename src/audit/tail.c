/*
 * Reading a journal that grows. In: STATE/audit and the id of a run. Out: its lines in order. Run
 * by ward-audit: `show -f`, `export -f`, the sinks. The writer renames its files (live/ID.jsonl
 * becomes runs/ID.N.jsonl, the last one runs/ID.jsonl), which an open descriptor does not mind;
 * that the writer is done with one is seen by its lock.
 */
#include "audit/tail.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

void tail_begin(struct tail *t, int audit_fd, const char *run)
{
	*t = (struct tail){ .audit_fd = audit_fd, .lines = { .fd = -1 } };
	snprintf(t->run, sizeof(t->run), "%s", run);
}

void tail_close(struct tail *t)
{
	if (t->open)
		lines_close(&t->lines);
	t->open = false;
}

static bool is_named(const struct tail *t, const char *name)
{
	struct stat mine, named;

	return fstat(t->lines.fd, &mine) == 0 &&
	       fstatat(t->audit_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

static bool exists(const struct tail *t, const char *name)
{
	struct stat st;

	return fstatat(t->audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The file of this segment, wherever it is just now. */
static bool open_segment(struct tail *t)
{
	char complete[PLACE_NAME], live[PLACE_NAME], last[PLACE_NAME];

	place_name(complete, PLACE_RUNS, t->run, t->segment);
	place_name(live, PLACE_LIVE, t->run, -1);
	place_name(last, PLACE_RUNS, t->run, -1);
	for (int tries = 0; tries < 10; tries++) {
		const char *name = exists(t, complete) ? complete : exists(t, live) ? live : last;

		if (lines_open(&t->lines, t->audit_fd, name) < 0)
			continue;
		/* renamed meanwhile: what has the name now may be the next segment */
		if (name == complete || !exists(t, complete) || is_named(t, complete)) {
			t->open = true;
			t->quiet = false;
			return true;
		}
		lines_close(&t->lines);
	}
	return false;
}

static bool writer_lives(const struct tail *t)
{
	if (flock(t->lines.fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	/* at once: the recovery of killed runs reads it, too */
	flock(t->lines.fd, LOCK_UN);
	return false;
}

/* The end of a file that no process writes: the next segment's turn, or the end. */
static enum tail_state after_file(struct tail *t)
{
	char complete[PLACE_NAME], last[PLACE_NAME];

	place_name(complete, PLACE_RUNS, t->run, t->segment);
	place_name(last, PLACE_RUNS, t->run, -1);
	if (!is_named(t, complete))
		return is_named(t, last) ? TAIL_END : TAIL_TORN;
	lines_close(&t->lines);
	t->open = false;
	t->segment++;
	return TAIL_LINE;
}

enum tail_state tail_next(struct tail *t, const char **ret_line, size_t *ret_len)
{
	for (;;) {
		enum tail_state state;
		int r;

		if (!t->open && !open_segment(t))
			return TAIL_LOST;
		r = lines_next(&t->lines, ret_line, ret_len);
		if (r != 0)
			return r > 0 ? TAIL_LINE : TAIL_LOST;
		if (!t->quiet) {
			if (writer_lives(t))
				return TAIL_WAIT;
			t->quiet = true; /* what it wrote before it released the file is read now */
			continue;
		}
		t->quiet = false;
		state = after_file(t);
		if (state != TAIL_LINE)
			return state;
	}
}

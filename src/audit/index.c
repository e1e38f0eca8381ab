/*
 * Writing the index. In: events. Out: lines of STATE/audit/index.jsonl, one chain for all of a
 * user's runs and verbs. Run with the user's rights by the supervisor (twice a run) and by the
 * verbs. Several write at once: each holds the file's lock while it reads the last line and appends
 * after it, in one write; the process that finds half a line removes it (its writer is dead, or its
 * disk was full) and says so in the chain.
 *
 * Who opened the file before another one renamed it away (a new segment) sees that it has another
 * name now, and opens anew.
 *
 * How far it has come is noted outside (mark.h), except for entries that others of the same run
 * follow. An index that does not come as far as its mark was cut or replaced: that is written into
 * the index itself before anything else, so that it stays known.
 */
#include "audit/index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/mark.h"
#include "base/io.h"
#include "event/event.h"

struct index {
	int audit_fd, fd;
	struct place_end end;
};

static int fail_write(int code, struct ward_err *e)
{
	errno = code;
	ward_fail_errno(e, "cannot write the journal index");
	return ward_remedy(e, code == ETIMEDOUT ? "find the process that holds its lock (lslocks)"
						: "free some space, or check the directory audit "
						  "in ward's state directory");
}

static int write_lines(struct index *x, const char *bytes, size_t n, struct ward_err *e)
{
	int r = io_write_all(x->fd, bytes, n);

	if (r == 0) {
		x->end.bytes += n;
		return 0;
	}
	(void)!ftruncate(x->fd, (off_t)x->end.bytes); /* all or nothing */
	return fail_write(-r, e);
}

static int write_event(struct index *x, struct ward_event *v, struct ward_err *e)
{
	/* not on the stack, whose pages would all be touched */
	auto_free char *line = malloc(EVENT_LINE_MAX);
	struct chain before = x->end.chain;
	int r;

	if (!line)
		return fail_write(ENOMEM, e);
	if (!v->time_us)
		v->time_us = event_now_us();
	r = write_lines(x, line, chain_add(&x->end.chain, v, line), e);
	if (r < 0)
		x->end.chain = before;
	return r;
}

/* Opens and locks the file that has the name now. */
static int open_locked(struct index *x, struct ward_err *e)
{
	for (int tries = 0; tries < 100; tries++) {
		struct stat mine, named;
		int r;

		x->fd = openat(x->audit_fd, PLACE_INDEX,
			       O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = x->fd < 0 ? -errno : place_lock(x->fd);
		if (r < 0)
			return fail_write(-r, e);
		if (fstat(x->fd, &mine) == 0 &&
		    fstatat(x->audit_fd, PLACE_INDEX, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
			return 0;
		close(x->fd);
		x->fd = -1;
	}
	return fail_write(ELOOP, e);
}

static int mend(struct index *x, struct ward_err *e)
{
	struct ward_event v = event_make(EVENT_JOURNAL_RECOVER, ACTION_LOG, PLACE_INDEX);
	uint64_t torn = x->end.torn;

	if (ftruncate(x->fd, (off_t)x->end.bytes) < 0)
		return fail_write(errno, e);
	x->end.torn = 0;
	event_number(&v, FIELD_BYTES, torn);
	return write_event(x, &v, e);
}

/* The file is long enough: the chain goes on in a new one. */
static int next_segment(struct index *x, struct ward_err *e)
{
	struct ward_event v = event_make(EVENT_JOURNAL_SEGMENT, ACTION_LOG, PLACE_INDEX);
	char name[PLACE_NAME], prev[2 * CHAIN_BYTES + 1];
	struct place_end end = { .chain = x->end.chain };
	int segment = 0;
	struct stat st;

	do
		snprintf(name, sizeof(name), "index.%d.jsonl", segment++);
	while (fstatat(x->audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	if (renameat(x->audit_fd, PLACE_INDEX, x->audit_fd, name) < 0)
		return fail_write(errno, e);
	close(x->fd);
	x->fd = openat(x->audit_fd, PLACE_INDEX,
		       O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (x->fd < 0 || place_lock(x->fd) < 0)
		return fail_write(errno, e);
	x->end = end;
	chain_hex(end.chain.head, prev);
	event_number(&v, FIELD_SEGMENT, (uint64_t)segment);
	event_text(&v, FIELD_PREV, prev);
	return write_event(x, &v, e);
}

/* Entries that were written before are not there. */
static int tell_loss(struct index *x, struct ward_err *e)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, PLACE_INDEX);
	struct chain mark;

	if (mark_get(x->audit_fd, &mark) < 0 || mark.seq < x->end.chain.seq ||
	    (mark.seq == x->end.chain.seq &&
	     memcmp(mark.head, x->end.chain.head, CHAIN_BYTES) == 0))
		return 0;
	event_text(&v, FIELD_WHY,
		   "the index was truncated or replaced: an earlier entry is missing");
	event_number(&v, FIELD_LOST, mark.seq > x->end.chain.seq ? mark.seq - x->end.chain.seq : 1);
	if (write_event(x, &v, e) < 0)
		return -e->code;
	mark_put(x->audit_fd, &x->end.chain); /* it is reported once */
	return 0;
}

static int open_index(struct index *x, struct ward_err *e)
{
	int r = open_locked(x, e);

	if (r < 0)
		return r;
	r = place_read_end(x->fd, &x->end);
	if (r == -EBADMSG) {
		ward_fail(e, EBADMSG, "the last line of the journal index is not a journal entry");
		return ward_remedy(e, "ward audit verify --all shows details; to start a new "
				      "index, move index.jsonl out of ward's state directory");
	}
	if (r < 0)
		return fail_write(-r, e);
	if (x->end.torn)
		r = mend(x, e);
	if (r == 0)
		r = tell_loss(x, e);
	if (r == 0 && x->end.bytes > INDEX_SEGMENT_MAX)
		r = next_segment(x, e);
	return r;
}

int index_append(int audit_fd, struct ward_event *events, size_t count, struct ward_err *e)
{
	struct index x = { .audit_fd = audit_fd, .fd = -1 };
	int r = open_index(&x, e);

	for (size_t i = 0; i < count && r == 0; i++)
		r = write_event(&x, &events[i], e);
	if (r == 0 && count && events[count - 1].kind != EVENT_JOURNAL_BEGIN &&
	    events[count - 1].kind != EVENT_JOURNAL_HEAD)
		mark_put(audit_fd, &x.end.chain);
	own_close_fd(&x.fd);
	return r;
}

int index_append_with(int audit_fd,
		      int (*fill)(const struct chain *c, void *with, struct ward_event *ret,
				  struct ward_err *e),
		      void (*done)(int audit_fd, void *with), void *with, struct ward_err *e)
{
	struct index x = { .audit_fd = audit_fd, .fd = -1 };
	struct ward_event v;
	int r = open_index(&x, e);

	if (r == 0)
		r = fill(&x.end.chain, with, &v, e);
	if (r == 0)
		r = write_event(&x, &v, e);
	if (r == 0) {
		mark_put(audit_fd, &x.end.chain);
		done(audit_fd, with);
	}
	own_close_fd(&x.fd);
	return r;
}

int index_report(struct ward_event *v, struct ward_err *e)
{
	auto_fd audit = place_open(true, e);

	return audit < 0 ? audit : index_append(audit, v, 1, e);
}

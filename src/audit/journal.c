/*
 * The journal's writer. In: events of one run. Out: lines of STATE/audit/live/ID.jsonl, which
 * becomes runs/ID.jsonl at the end; begin, heads and end go to the index. Runs in the supervisor
 * with the user's rights; no other process writes the file, and its lock says that its writer
 * lives.
 *
 * Events are gathered and written together, once for each turn of the supervisor's loop. A write
 * that fails is undone as a whole: the chain goes back to the last line that is in the file, the
 * lost ones are counted, and what the policy says happens: the run ends (audit.on_full: stop), or
 * goes on, and the first line that can be written again is a journal.gap with the count. No write
 * is waited for with fsync: after a power failure the last seconds may be missing, which the index
 * tells.
 *
 * How much is written is the sandbox's choice, and no limit of its own counts it: a journal that
 * has filled its first file leaves the last of the disk to others, and counts as one that cannot be
 * written until there is more.
 *
 * Times come from the wall clock; when that was set (it moves differently from the clock since
 * boot), a line says so.
 */
#include "audit/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "audit/index.h"
#include "base/io.h"
#include "event/event.h"
#include "state/store.h"

#define BUFFER (5 * EVENT_LINE_MAX)
/* beyond it there is room for an event and the gap that is reported before it */
#define FULL (2 * EVENT_LINE_MAX)
#define JUMP_US 1000000
/* bytes of a disk, or a twentieth of it, that a long journal leaves to others */
#define LEFT_MOST (1ULL << 30)
#define MARK_EVENTS 10000          /* so often a journal's position goes into the index, */
#define MARK_US (300 * 1000000ULL) /* or so often if something was written */

struct journal {
	struct event_sink sink;
	char run[48];
	int audit_fd, fd;
	bool go_on;
	bool ending; /* the run is over: no more events come */
	unsigned segment;
	struct chain chain, written;                /* with what is in the buffer, without it */
	uint64_t bytes;                             /* of the file */
	uint64_t lost, lost_recorded, lost_pending; /* all, on record, in the buffer */
	int error;                                  /* errno of the last failure, 0: none */
	uint64_t wall_us, boot_us;      /* when the last event was taken, by both clocks */
	uint64_t marked_seq, marked_us; /* what the index knows */
	/* events (without what the journal itself tells) and bytes in the buffer */
	size_t gathered, len;
	char buffer[BUFFER];
};

static uint64_t boot_us(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* -- the file */

static int fail(struct journal *j, int code, struct ward_err *e)
{
	j->error = code;
	if (j->go_on)
		return 0;
	errno = code;
	ward_fail_errno(e, "cannot write the journal");
	return ward_remedy(e, "free some space in ward's state directory, or let runs continue "
			      "without a journal: --set audit.on_full=continue");
}

/* The buffer's lines are not in the file and never will be. */
static void drop_buffer(struct journal *j)
{
	j->lost += j->gathered;
	j->lost_pending = j->lost_recorded;
	j->chain = j->written;
	j->gathered = j->len = 0;
}

/* A journal that is long already would take the last of the disk. How a run ended, and what is
 * missing, are a few lines. */
static bool is_tight(const struct journal *j)
{
	struct statvfs v;
	unsigned long long whole, left;

	if (j->ending || (!j->segment && j->bytes <= JOURNAL_SEGMENT_MAX) ||
	    fstatvfs(j->audit_fd, &v) < 0)
		return false;
	whole = (unsigned long long)v.f_blocks * v.f_frsize;
	left = (unsigned long long)v.f_bavail * v.f_frsize;
	return left < (whole / 20 < LEFT_MOST ? whole / 20 : LEFT_MOST);
}

static int write_buffer(struct journal *j)
{
	struct stat st;
	int r;

	if (!j->len)
		return 0;
	if (j->fd < 0)
		return -(j->error ? j->error : EBADF);
	if (fstat(j->fd, &st) < 0 || st.st_nlink == 0)
		return -ENOENT; /* removed: what is written now goes nowhere */
	if ((uint64_t)st.st_size != j->bytes)
		return -EBADMSG; /* another process has written, or taken away */
	if (is_tight(j))
		return -ENOSPC;
	r = io_write_all(j->fd, j->buffer, j->len);
	if (r < 0) {
		(void)!ftruncate(j->fd, (off_t)j->bytes);
		return r;
	}
	j->bytes += j->len;
	j->written = j->chain;
	j->lost_recorded = j->lost_pending;
	j->gathered = j->len = 0;
	j->error = 0;
	return 0;
}

static void add(struct journal *j, struct ward_event *v)
{
	v->run = j->run;
	j->len += chain_add(&j->chain, v, j->buffer + j->len);
}

/* Missing events are reported by the first line that can be written again. */
static void add_gap(struct journal *j)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "journal");

	v.time_us = event_now_us();
	event_text(&v, FIELD_WHY, strerror(j->error));
	event_number(&v, FIELD_LOST, j->lost - j->lost_pending);
	j->lost_pending = j->lost;
	add(j, &v);
}

static int make_file(struct journal *j)
{
	char name[PLACE_NAME];

	place_name(name, PLACE_LIVE, j->run, -1);
	j->fd = openat(j->audit_fd, name,
		       O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (j->fd < 0 && errno == ENOENT) {
		struct ward_err ignored;
		auto_fd live = store_open_dir(j->audit_fd, PLACE_LIVE, &ignored);
		auto_fd runs = store_open_dir(j->audit_fd, PLACE_RUNS, &ignored);

		if (live >= 0 && runs >= 0)
			j->fd = openat(j->audit_fd, name,
				       O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW |
					       O_CLOEXEC,
				       0600);
	}
	if (j->fd < 0)
		return -errno;
	j->bytes = 0;
	return place_lock(j->fd);
}

/* Until the file is locked, the process that ends the journals of killed runs could take it for one
 * of those. */
static int open_file(struct journal *j)
{
	int r = place_share(j->audit_fd);

	if (r < 0)
		return r;
	r = make_file(j);
	flock(j->audit_fd, LOCK_UN);
	return r;
}

/* -- the index */

static int tell_index(struct journal *j, enum event_kind kind, struct ward_err *e)
{
	struct ward_event v = event_make(kind, ACTION_LOG, j->run);
	char head[2 * CHAIN_BYTES + 1];

	v.run = j->run;
	chain_hex(j->written.head, head);
	if (kind != EVENT_JOURNAL_BEGIN) {
		event_number(&v, FIELD_SEGMENT, j->segment);
		event_number(&v, FIELD_BYTES, j->bytes);
		event_number(&v, FIELD_EVENTS, j->written.seq);
		event_text(&v, FIELD_HEAD, head);
		if (j->lost > j->lost_recorded)
			event_number(&v, FIELD_LOST, j->lost - j->lost_recorded);
	}
	j->marked_seq = j->written.seq;
	j->marked_us = boot_us();
	return index_append(j->audit_fd, &v, 1, e);
}

/* -- segments */

/* The file is complete: it gets its number, and the chain goes on in the next. */
static int next_segment(struct journal *j, const char *dir, struct ward_err *e)
{
	struct ward_event v = event_make(EVENT_JOURNAL_SEGMENT, ACTION_LOG, j->run);
	char from[PLACE_NAME], to[PLACE_NAME], prev[2 * CHAIN_BYTES + 1];
	int r;

	place_name(from, dir, j->run, -1);
	place_name(to, PLACE_RUNS, j->run, (int)j->segment);
	r = place_move(j->audit_fd, from, to);
	if (r < 0)
		return r;
	own_close_fd(&j->fd);
	j->fd = -1;
	j->segment++;
	r = open_file(j);
	if (r < 0)
		return r;
	chain_hex(j->chain.head, prev);
	v.time_us = event_now_us();
	event_number(&v, FIELD_SEGMENT, j->segment);
	event_text(&v, FIELD_PREV, prev);
	add(j, &v);
	return tell_index(j, EVENT_JOURNAL_HEAD, e);
}

/* A run that is continued has the id of the one before: its journal goes on. */
static int resume(struct journal *j, struct ward_err *e)
{
	char name[PLACE_NAME];
	struct place_end end = { 0 };
	struct stat st;
	auto_fd old = -1;
	int r;

	place_name(name, PLACE_RUNS, j->run, -1);
	old = openat(j->audit_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (old < 0)
		return errno == ENOENT ? open_file(j) : -errno;
	r = place_read_end(old, &end);
	if (r < 0)
		return r;
	j->chain = j->written = end.chain;
	for (place_name(name, PLACE_RUNS, j->run, 0);
	     fstatat(j->audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;)
		place_name(name, PLACE_RUNS, j->run, (int)++j->segment);
	return next_segment(j, PLACE_RUNS, e);
}

/* -- the sink */

static int begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	struct journal *j = (struct journal *)(void *)s;
	struct ward_err own = { 0 };
	int r;

	snprintf(j->run, sizeof(j->run), "%s", run);
	j->audit_fd = place_open(true, &own);
	r = j->audit_fd < 0 ? j->audit_fd : resume(j, &own);
	if (r == 0)
		r = tell_index(j, EVENT_JOURNAL_BEGIN, &own);
	if (r == 0)
		return 0;
	j->error = -r;
	if (j->go_on)
		return 0;
	if (!own.code)
		return fail(j, -r, e);
	*e = own;
	ward_wrap(e, "journal");
	return ward_remedy(
		e, "%.300s; or let runs continue without a journal: --set audit.on_full=continue",
		own.remedy[0] ? own.remedy : "free some space in ward's state directory");
}

static int flush(struct event_sink *s, struct ward_err *e)
{
	struct journal *j = (struct journal *)(void *)s;
	struct ward_err ignored = { 0 };
	int r = write_buffer(j);

	if (r < 0) {
		drop_buffer(j);
		return fail(j, -r, e);
	}
	if (j->error && !j->go_on)
		return fail(j, j->error, e);
	if (j->fd >= 0 && j->bytes > JOURNAL_SEGMENT_MAX)
		r = next_segment(j, PLACE_LIVE, &ignored);
	else if (j->fd >= 0 &&
		 (j->written.seq - j->marked_seq >= MARK_EVENTS ||
		  (j->written.seq > j->marked_seq && boot_us() - j->marked_us >= MARK_US)))
		r = tell_index(j, EVENT_JOURNAL_HEAD, &ignored);
	return r < 0 ? fail(j, -r, e) : 0;
}

static void add_jump(struct journal *j, uint64_t inner, uint64_t boot)
{
	struct ward_event v = event_make(EVENT_JOURNAL_CLOCK, ACTION_LOG, "clock");
	uint64_t expected = j->wall_us + (boot - j->boot_us);
	bool back = inner < expected;

	v.time_us = inner;
	event_number(&v, FIELD_JUMP_MS,
		     ((back ? expected - inner : inner - expected) + 500) / 1000);
	if (back)
		event_flag(&v, FIELD_BACKWARDS);
	add(j, &v);
}

static void take(struct event_sink *s, const struct ward_event *taken)
{
	struct journal *j = (struct journal *)(void *)s;
	struct ward_event v;
	struct ward_err later = { 0 }; /* an error is kept in j, and reported by the next flush */
	uint64_t boot = boot_us(), inner = event_now_us(),
		 expected = j->wall_us + (boot - j->boot_us);

	memcpy(&v, taken, offsetof(struct ward_event, values) + taken->count * sizeof(v.values[0]));
	if (j->len > FULL)
		(void)!flush(s, &later);
	if (j->error && !j->go_on) {
		j->lost++;
		return;
	}
	if (j->lost_pending < j->lost)
		add_gap(j);
	if (j->wall_us && (inner > expected + JUMP_US || inner + JUMP_US < expected))
		add_jump(j, inner, boot);
	j->wall_us = inner;
	j->boot_us = boot;
	v.time_us = inner;
	add(j, &v);
	j->gathered++;
	j->ending |= v.kind == EVENT_RUN_END;
}

/* -- its life */

/* Of one that was closed, for the next. To give that much back to the kernel takes a word with
 * every processor, in the last moment of a run. */
static struct journal *left;

/* finds what is used after it was freed, not what is kept */
#ifdef __SANITIZE_ADDRESS__
#define KEEP false
#else
#define KEEP true
#endif

struct journal *journal_create(bool go_on)
{
	struct journal *j = left ? left : malloc(sizeof(*j));

	left = NULL;
	if (!j)
		return NULL;
	/* the buffer's pages are touched when they are used */
	memset(j, 0, offsetof(struct journal, buffer));
	j->sink = (struct event_sink){ .begin = begin, .take = take, .flush = flush };
	j->audit_fd = j->fd = -1;
	j->go_on = go_on;
	return j;
}

struct event_sink *journal_sink(struct journal *j)
{
	return &j->sink;
}

int journal_directory(const struct journal *j)
{
	return j->audit_fd;
}

uint64_t journal_events(const struct journal *j)
{
	return j->written.seq;
}

uint64_t journal_lost(const struct journal *j, const char **ret_why)
{
	*ret_why = j->error ? strerror(j->error) : "for a while the journal could not be written";
	return j->lost;
}

/* The journal of a run that began goes where those of ended runs are. */
static int finish(struct journal *j, struct ward_err *e)
{
	char from[PLACE_NAME], to[PLACE_NAME];
	int r = flush(&j->sink, e), moved;

	if (j->fd < 0)
		return r < 0 ? r : 0;
	place_name(from, PLACE_LIVE, j->run, -1);
	place_name(to, PLACE_RUNS, j->run, -1);
	if (r == 0)
		r = tell_index(j, EVENT_JOURNAL_END, e);
	moved = place_move(j->audit_fd, from, to);
	if (moved < 0 && r == 0)
		r = ward_fail(e, -moved, "cannot move the journal to the others: %s",
			      strerror(-moved));
	return r;
}

int journal_close(struct journal *j, bool *ret_due, struct ward_err *e)
{
	int r;

	*ret_due = false;
	if (!j)
		return 0;
	r = j->run[0] ? finish(j, e) : 0;
	if (j->audit_fd >= 0)
		*ret_due = journal_seal_due(j->audit_fd);
	own_close_fd(&j->fd);
	own_close_fd(&j->audit_fd);
	free(left);
	left = KEEP ? j : NULL;
	if (!KEEP)
		free(j);
	return r;
}

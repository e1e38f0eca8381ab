/*
 * A sink: delivers the events of one run. In: the journal, as it grows. Out: what a kind of sink
 * makes of it (sink_ops). Run by ward-audit, in a process of its own for each sink, locked up
 * (sink_confine.c) with the user's rights otherwise. The journal is the queue: a run never waits
 * for a sink, nothing is kept in memory, and after a break it is read again from the last event
 * that is known to be delivered. So an event can come twice, with the same id, and never not at
 * all: what is left at the end stays on record (sink_state.c) and is sent later.
 *
 * Delivered means: taken by the file system; answered by the collector; for a stream, read by the
 * other side: the kernel says that nothing is unread two seconds after it was sent, or the other
 * side has closed after us. A connection that breaks before that is made anew, and the events are
 * sent again. A datagram that was sent counts as delivered.
 */
#include "audit/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "base/io.h"
#include "event/event.h"

#define BATCH_BYTES (256 << 10)
#define CONFIRM_MS 2000
#define BACKOFF_MS 100
#define BACKOFF_MAX_MS 5000
#define BACKOFF_ENDING_MS 300
#define IDLE_MS 20
#define IDLE_MAX_MS 500

static const struct sink_ops *ops_of(const struct sink *s)
{
	static const struct sink_ops *const all[] = {
		[SINK_FILE] = &sink_file,     [SINK_COMMAND] = &sink_command,
		[SINK_UNIX] = &sink_datagram, [SINK_UDP] = &sink_datagram,
		[SINK_TCP] = &sink_stream,    [SINK_TLS] = &sink_stream,
		[SINK_HTTP] = &sink_otlp,     [SINK_HTTPS] = &sink_otlp,
	};

	return all[s->policy->way];
}

static void confirm(struct sink *s, uint64_t seq)
{
	char text[24];

	if (seq <= s->shared->confirmed)
		return;
	s->shared->confirmed = seq;
	snprintf(text, sizeof(text), "%020" PRIu64 "\n", seq);
	/* what fails: events are sent twice after a kill */
	(void)!pwrite(s->state_fd, text, 21, 0);
}

/* So many of the events that were sent are delivered. */
static void count(struct sink *s, uint64_t events)
{
	s->shared->sent += events;
	s->unsure -= events;
	s->shared->why[0] = '\0';
}

/* Waits, at most so long, for the end of the run; true: for news of the connection, too, which have
 * come. */
static bool wait_ms(struct sink *s, unsigned ms, bool connection)
{
	struct pollfd polled[2] = { { .fd = s->ending ? -1 : s->wake_fd, .events = POLLIN },
				    { .fd = connection ? s->fd : -1, .events = POLLIN } };

	if (poll(polled, 2, (int)ms) > 0 && polled[0].revents)
		s->ending = true;
	return polled[1].revents != 0;
}

/* -- reading the journal */

static void put_record(struct sink *s, const struct ward_event *v)
{
	const bool frame = s->policy->way == SINK_TCP || s->policy->way == SINK_TLS,
		   otlp = s->policy->format == EXPORT_OTLP;

	s->record.len = 0;
	if (s->policy->way >= SINK_UNIX && s->policy->way <= SINK_TLS)
		export_syslog_carry(&s->from, v, (enum export_format)s->policy->format, &s->record);
	else
		export_event((enum export_format)s->policy->format, &s->from, v, &s->record);
	if (frame)
		/* octet counting, RFC 6587 and 5425 */
		buf_printf(&s->batch, "%zu ", s->record.len);
	if (otlp && !s->count)
		export_otlp_begin(&s->from, &s->batch);
	buf_puts(&s->batch, otlp && s->count ? "," : "");
	buf_add(&s->batch, buf_text(&s->record), s->record.len);
	if (s->policy->way == SINK_FILE || s->policy->way == SINK_COMMAND)
		buf_puts(&s->batch, "\n");
	s->ends[s->count++] = (uint32_t)s->batch.len;
}

/* Fills the batch. Returns why there is no more. */
static enum tail_state gather(struct sink *s)
{
	static char scratch[EVENT_LINE_MAX];
	enum tail_state state = TAIL_LINE;
	struct ward_event v;
	const char *line;
	size_t n;

	s->batch.len = 0;
	s->count = 0;
	s->last = s->position;
	while (s->count < ARRAY_LEN(s->ends) && s->batch.len < BATCH_BYTES &&
	       (state = tail_next(&s->tail, &line, &n)) == TAIL_LINE) {
		if (!event_decode(line, n, scratch, &v, NULL) || v.seq <= s->position)
			continue; /* ward audit verify tells of what is no event */
		s->last = v.seq;
		if (event_severity(&v) >= s->policy->severity)
			put_record(s, &v);
	}
	if (s->count && s->policy->format == EXPORT_OTLP)
		export_otlp_end(&s->batch);
	return state;
}

/* From the last event on that is delivered for sure. */
static void rewind_journal(struct sink *s)
{
	ops_of(s)->close(s);
	tail_close(&s->tail);
	tail_begin(&s->tail, s->audit_fd, s->run);
	s->position = s->last = s->shared->confirmed;
	s->mark_seq = s->unsure = 0;
}

/* -- sending */

static void fail(struct sink *s, const struct ward_err *e, unsigned *backoff_ms)
{
	unsigned most = s->ending ? BACKOFF_ENDING_MS : BACKOFF_MAX_MS, ms;

	snprintf(s->shared->why, sizeof(s->shared->why), "%.250s", e->why);
	if (!s->shared->stuck_ms)
		s->shared->stuck_ms = io_now_ms();
	ops_of(s)->close(s);
	*backoff_ms = *backoff_ms ? *backoff_ms * 2 : BACKOFF_MS;
	if (*backoff_ms > most)
		*backoff_ms = most;
	ms = s->wait_more_ms > *backoff_ms && !s->ending ? s->wait_more_ms : *backoff_ms;
	s->wait_more_ms = 0;
	wait_ms(s, ms, false);
}

static int deliver(struct sink *s, struct ward_err *e)
{
	const struct sink_ops *ops = ops_of(s);
	int r = s->fd < 0 ? ops->open(s, e) : 0;

	return r < 0 ? r : ops->send(s, e);
}

/* A stream: whether what was sent a while ago has been read meanwhile. */
static void look_at_marks(struct sink *s)
{
	uint64_t now = io_now_ms();
	int64_t unread;

	if (!ops_of(s)->stream || s->fd < 0 || s->position <= s->shared->confirmed)
		return;
	if (!s->mark_seq) {
		s->mark_seq = s->position;
		s->mark_bytes = s->bytes;
		s->mark_ms = now;
		s->mark_unsure = s->unsure;
		return;
	}
	unread = ops_of(s)->unread(s);
	if (now - s->mark_ms < CONFIRM_MS || unread < 0 ||
	    s->bytes - (uint64_t)unread < s->mark_bytes)
		return;
	confirm(s, s->mark_seq);
	count(s, s->mark_unsure);
	s->mark_seq = 0;
}

/* The other side of a stream has something to say: most often that it goes. What it read last may
 * not be kept yet. */
static void look_at_connection(struct sink *s)
{
	struct ward_err e = { 0 };
	char bytes[512];
	ssize_t n = sink_read(s, bytes, sizeof(bytes), 0, &e);

	if (n <= 0 && n != -ETIMEDOUT)
		rewind_journal(s);
}

/* The batch goes out, however long it takes. False: from the beginning again. */
static bool send_batch(struct sink *s, unsigned *backoff_ms)
{
	struct ward_err e = { 0 };

	if (!s->shared->stuck_ms)
		s->shared->stuck_ms = io_now_ms();
	while (deliver(s, &e) < 0) {
		fail(s, &e, backoff_ms);
		if (ops_of(s)->stream) {
			rewind_journal(s);
			return false;
		}
	}
	s->shared->stuck_ms = 0;
	s->unsure += s->count;
	if (!ops_of(s)->stream)
		count(s, s->unsure);
	*backoff_ms = 0;
	return true;
}

/* After the run's end, and everything was sent. */
static bool finish(struct sink *s, unsigned *backoff_ms)
{
	struct ward_err e = { 0 };

	if (s->fd < 0 || ops_of(s)->finish(s, &e) == 0) {
		confirm(s, s->position);
		count(s, s->unsure);
		return true;
	}
	fail(s, &e, backoff_ms);
	rewind_journal(s);
	return false;
}

int sink_run(struct sink *s)
{
	unsigned backoff_ms = 0, idle_ms = IDLE_MS;

	s->fd = -1;
	s->position = s->shared->confirmed;
	tail_begin(&s->tail, s->audit_fd, s->run);
	for (;;) {
		enum tail_state state = gather(s);

		if (s->batch.failed || s->record.failed)
			return SINK_BROKEN;
		if (s->last > s->position) {
			if (s->count && !send_batch(s, &backoff_ms))
				continue;
			s->position = s->last;
			if (!ops_of(s)->stream || s->fd < 0)
				confirm(s, s->position);
			look_at_marks(s);
			idle_ms = IDLE_MS;
			continue;
		}
		if (state == TAIL_LOST)
			return SINK_JOURNAL_LOST;
		if (state == TAIL_END && s->ending) {
			if (finish(s, &backoff_ms))
				return SINK_ALL;
			continue;
		}
		if (wait_ms(s, s->ending ? IDLE_MS : idle_ms,
			    ops_of(s)->stream && s->policy->way != SINK_COMMAND))
			look_at_connection(s);
		look_at_marks(s);
		idle_ms = idle_ms * 2 < IDLE_MAX_MS ? idle_ms * 2 : IDLE_MAX_MS;
	}
}

/*
 * ward-audit forward RUN FROM: feeds the sinks of a run; ward audit send: what was left. In: the
 * sinks as lines, the run's journal, a socket to ward. Out: a process for each sink (audit/sink.c)
 * and, at the end, what could not be delivered: to ward, into the index, and on record for later.
 * Not a verb for people. Started by ward when a policy has sinks, after the sandbox; if ward is
 * killed its socket ends, and this does a moment later. Sinks that die are started again. What
 * earlier runs left is tried, too.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "audit/forward.h"
#include "audit/index.h"
#include "audit/sink.h"
#include "audit/sink_state.h"
#include "base/io.h"
#include "event/event.h"

#define LOOK_MS 200
#define AGAIN_MS 1000 /* before a sink that died is started again */
#define EARLIER_MAX 8 /* records of earlier runs that one run takes along */

struct feed {
	char name[64], run[48];
	struct policy_sink policy;
	struct sink_shared *shared;
	int state_fd, wake_fd; /* wake: closed at the end of the run */
	pid_t pid;             /* 0: it has ended */
	uint64_t again_ms;
	bool own, done, reported; /* own: of this run */
};

struct forwarding {
	int audit_fd, socket_fd;
	struct feed feeds[SINKS_MAX + EARLIER_MAX];
	size_t count;
	char host[256];
	bool ending;
	uint64_t until_ms;
};

static int child_main(struct forwarding *f, struct feed *feed, int wake_fd)
{
	struct sink s = { .policy = &feed->policy,
			  .shared = feed->shared,
			  .from = { .host = f->host },
			  .run = feed->run,
			  .audit_fd = f->audit_fd,
			  .state_fd = feed->state_fd,
			  .wake_fd = wake_fd,
			  .fd = -1,
			  .tail = { .lines = { .fd = -1 } } };
	struct ward_err e = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sink_prepare(&s, &e) == 0 && sink_confine(&s, &e) == 0)
		return sink_run(&s);
	snprintf(feed->shared->why, sizeof(feed->shared->why), "%.250s", e.why);
	if (!feed->shared->stuck_ms)
		feed->shared->stuck_ms = io_now_ms();
	return SINK_BROKEN;
}

static void start(struct forwarding *f, struct feed *feed)
{
	int ends[2];

	feed->again_ms = io_now_ms() + AGAIN_MS;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	feed->pid = fork();
	if (feed->pid == 0) {
		own_close_fd(&f->socket_fd);
		for (size_t i = 0; i < f->count; i++)
			own_close_fd(&f->feeds[i].wake_fd);
		close(ends[1]);
		_exit(child_main(f, feed, ends[0]));
	}
	close(ends[0]);
	own_close_fd(&feed->wake_fd);
	feed->wake_fd = ends[1];
	if (feed->pid < 0)
		feed->pid = 0;
	if (f->ending || !feed->own) {
		own_close_fd(&feed->wake_fd);
		feed->wake_fd = -1;
	}
}

/* line NULL: one that an earlier run left. */
static int add_feed(struct forwarding *f, const char *name, const char *line, uint64_t from,
		    struct ward_err *e)
{
	struct feed *feed = &f->feeds[f->count]; /* not touched when all are taken */
	auto_free char *kept = NULL;
	uint64_t seq = 0;
	int r;

	if (f->count == ARRAY_LEN(f->feeds))
		return ward_fail(e, E2BIG, "too many sinks");
	*feed = (struct feed){ .state_fd = -1, .wake_fd = -1, .own = line != NULL };
	snprintf(feed->name, sizeof(feed->name), "%.60s", name);
	if (!sink_state_run(name, feed->run))
		return ward_fail(e, EINVAL, "not a sink: %.60s", name);
	r = sink_state_open(f->audit_fd, name, line, from, &feed->state_fd, &seq,
			    line ? NULL : &kept, e);
	if (r == 0)
		r = policy_sink_read(line ? line : kept, &feed->policy, e);
	if (r < 0) {
		own_close_fd(&feed->state_fd);
		return r;
	}
	feed->shared = mmap(NULL, sizeof(*feed->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (feed->shared == MAP_FAILED) {
		policy_sink_clear(&feed->policy);
		own_close_fd(&feed->state_fd);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	feed->shared->confirmed = seq;
	f->count++;
	return 0;
}

static void add_earlier(struct forwarding *f, size_t most)
{
	struct ward_err ignored = { 0 };
	auto_strv names = { 0 };
	char run[48];

	sink_state_list(f->audit_fd, &names);
	for (size_t i = 0; i < names.len && most > 0 && f->count < ARRAY_LEN(f->feeds); i++)
		if (sink_state_run(names.items[i], run) &&
		    !(f->count && strcmp(run, f->feeds[0].run) == 0) &&
		    add_feed(f, names.items[i], NULL, 0, &ignored) == 0)
			most--;
}

/* -- what came of it */

static void tell_index(struct forwarding *f, const struct feed *feed, uint64_t left)
{
	struct ward_event v = event_make(EVENT_JOURNAL_SINK, ACTION_LOG, feed->policy.to);
	struct ward_err ignored = { 0 };

	v.run = feed->run;
	event_text(&v, FIELD_WHY, feed->shared->why[0] ? feed->shared->why : NULL);
	if (left)
		event_number(&v, FIELD_LEFT, left);
	if (feed->shared->dropped)
		event_number(&v, FIELD_LOST, feed->shared->dropped);
	(void)!index_append(f->audit_fd, &v, 1, &ignored);
}

static void tell_ward(const struct forwarding *f, const struct feed *feed, enum forward_op op,
		      uint64_t left)
{
	struct forward_message m = { .op = op, .left = left };

	if (f->socket_fd < 0)
		return;
	if (feed) {
		m.dropped = feed->shared->dropped;
		snprintf(m.to, sizeof(m.to), "%.190s", feed->policy.to);
		snprintf(m.why, sizeof(m.why), "%.250s", feed->shared->why);
	}
	(void)!send(f->socket_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void lose_journal(struct feed *feed)
{
	snprintf(feed->shared->why, sizeof(feed->shared->why), "its journal is gone");
	feed->shared->dropped++; /* how many events that were is not known any more */
	feed->done = true;
}

/* Returns how many events are left. */
static uint64_t settle(struct forwarding *f, struct feed *feed)
{
	enum sink_record record =
		feed->done ? RECORD_COMPLETE : sink_state_journal(f->audit_fd, feed->run);
	uint64_t left;

	if (record == RECORD_GONE)
		lose_journal(feed); /* its process had no time to say so */
	left = feed->done ? 0 : sink_state_left(f->audit_fd, feed->run, feed->shared->confirmed);
	/* the recovery of a killed run adds events to its journal */
	if (!left && record != RECORD_LIVE)
		sink_state_remove(f->audit_fd, feed->name);
	if (left || feed->shared->dropped) {
		if (left && !feed->shared->why[0])
			snprintf(feed->shared->why, sizeof(feed->shared->why), "out of time");
		tell_index(f, feed, left);
		if (feed->own)
			tell_ward(f, feed, FORWARD_LEFT, left);
	}
	return left;
}

/* A sink's process has ended. */
static void reap(struct forwarding *f, pid_t pid, int status)
{
	for (size_t i = 0; i < f->count; i++) {
		struct feed *feed = &f->feeds[i];
		int code = WIFEXITED(status) ? WEXITSTATUS(status) : SINK_BROKEN;

		if (feed->pid != pid)
			continue;
		feed->pid = 0;
		feed->done = code == SINK_ALL;
		if (code == SINK_JOURNAL_LOST)
			lose_journal(feed);
		if (!feed->done && !feed->shared->why[0])
			snprintf(feed->shared->why, sizeof(feed->shared->why),
				 "the sink's process exited");
	}
}

static void look_at_children(struct forwarding *f)
{
	uint64_t now = io_now_ms();
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		reap(f, pid, status);
	for (size_t i = 0; i < f->count; i++) {
		struct feed *feed = &f->feeds[i];

		if (!feed->pid && !feed->done && now >= feed->again_ms)
			start(f, feed);
		if (feed->own && feed->policy.stop && !feed->reported && feed->shared->stuck_ms &&
		    now - feed->shared->stuck_ms > feed->policy.wait_ms) {
			feed->reported = true;
			tell_ward(f, feed, FORWARD_STOP, 0);
		}
	}
}

static void begin_end(struct forwarding *f)
{
	uint64_t longest = 0;

	f->ending = true;
	for (size_t i = 0; i < f->count; i++) {
		if (f->feeds[i].own && f->feeds[i].policy.wait_ms > longest)
			longest = f->feeds[i].policy.wait_ms;
		own_close_fd(&f->feeds[i].wake_fd);
		f->feeds[i].wake_fd = -1;
	}
	f->until_ms = io_now_ms() + longest;
}

/* Whether one whose end is waited for still has work. */
static bool is_busy(const struct forwarding *f, bool all)
{
	for (size_t i = 0; i < f->count; i++)
		if (!f->feeds[i].done && (all || f->feeds[i].own))
			return true;
	return false;
}

static void serve(struct forwarding *f, bool all)
{
	while (!f->ending || (is_busy(f, all) && io_now_ms() < f->until_ms)) {
		struct pollfd polled = { .fd = f->ending ? -1 : f->socket_fd, .events = POLLIN };
		struct forward_message m;

		look_at_children(f);
		if (f->ending && !is_busy(f, all))
			break;
		if (poll(&polled, 1, f->ending ? 10 : LOOK_MS) > 0 &&
		    (recv(f->socket_fd, &m, sizeof(m), MSG_DONTWAIT) <= 0 || m.op == FORWARD_END))
			begin_end(f);
	}
}

static uint64_t end_all(struct forwarding *f)
{
	uint64_t left = 0;

	for (size_t i = 0; i < f->count; i++) {
		struct feed *feed = &f->feeds[i];

		if (feed->pid > 0) {
			kill(feed->pid, SIGKILL);
			waitpid(feed->pid, NULL, 0);
		}
		left += settle(f, feed);
	}
	tell_ward(f, NULL, FORWARD_DONE, 0);
	return left;
}

static void clear(struct forwarding *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct feed *feed = &f->feeds[i];

		policy_sink_clear(&feed->policy);
		munmap(feed->shared, sizeof(*feed->shared));
		own_close_fd(&feed->state_fd);
		own_close_fd(&feed->wake_fd);
	}
	f->count = 0;
}

int audit_forward(struct options *o, unused_arg int audit_fd)
{
	struct forwarding f = { .audit_fd = FORWARD_AUDIT_FD, .socket_fd = FORWARD_SOCKET_FD };
	struct ward_err e = { 0 };
	auto_buf lines = { 0 };
	char *line, *rest;
	unsigned k = 0;

	gethostname(f.host, sizeof(f.host) - 1);
	fcntl(FORWARD_SOCKET_FD, F_SETFD, FD_CLOEXEC);
	fcntl(FORWARD_AUDIT_FD, F_SETFD, FD_CLOEXEC);
	if (o->word_count != 3 || !place_is_id(o->words[1]) ||
	    io_read_all(FORWARD_SINKS_FD, SINKS_MAX * SINK_LINE_MAX, &lines) < 0 || !lines.data)
		return EXIT_USAGE;
	close(FORWARD_SINKS_FD);
	rest = lines.data;
	while ((line = strsep(&rest, "\n"))) {
		char name[64];

		snprintf(name, sizeof(name), "%.40s.%u", o->words[1], k++);
		if (*line && add_feed(&f, name, line, strtoull(o->words[2], NULL, 10), &e) < 0) {
			struct forward_message m = { .op = FORWARD_STOP };

			snprintf(m.why, sizeof(m.why), "%.250s", e.why);
			(void)!send(f.socket_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
		}
	}
	add_earlier(&f, EARLIER_MAX);
	serve(&f, false);
	end_all(&f);
	clear(&f);
	return EXIT_FINE;
}

int audit_send(struct options *o, int audit_fd)
{
	struct forwarding f = { .audit_fd = audit_fd, .socket_fd = -1, .ending = true };
	uint64_t left = 0, sent = 0;
	auto_buf out = { 0 };

	gethostname(f.host, sizeof(f.host) - 1);
	add_earlier(&f, ARRAY_LEN(f.feeds));
	for (size_t i = 0; i < f.count; i++)
		if (f.feeds[i].policy.wait_ms > f.until_ms)
			f.until_ms = f.feeds[i].policy.wait_ms;
	f.until_ms += io_now_ms();
	serve(&f, true);
	left = end_all(&f);
	for (size_t i = 0; i < f.count; i++)
		sent += f.feeds[i].shared->sent;
	buf_printf(&out,
		   o->json ? "{\"sent\":%" PRIu64 ",\"left\":%" PRIu64 "}\n"
			   : "%" PRIu64 " events sent, %" PRIu64 " left\n",
		   sent, left);
	for (size_t i = 0; i < f.count && !o->json; i++)
		if (!f.feeds[i].done)
			buf_printf(&out, "%s: %s\n", f.feeds[i].policy.to,
				   forward_why(f.feeds[i].policy.to, f.feeds[i].shared->why));
	clear(&f);
	return say_out(&out, left ? EXIT_FINDINGS : EXIT_FINE);
}

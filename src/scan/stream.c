/*
 * Standard output of a sandbox, on its way (credentials.scan_output). In: what the command writes,
 * by a pipe of the supervisor's. Out: the same, on the caller's own descriptor, with secrets
 * overwritten (redact), up to the first one (block), or as it is (log, and on a terminal, where
 * nothing is written here at all). At the end one line "KIND COUNT" for each kind that was found,
 * and "stopped" where the rest was held back, into the supervisor's pipe: never a secret.
 *
 * What could be the beginning of a secret waits for more, but not longer than FLUSH_MS: a program
 * that talks to the reader line by line must not wait for its own words.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "confine/confine.h"
#include "scan/scan.h"
#include "scan/scrub.h"

#define FLUSH_MS 100
#define CHUNK 65536

struct stream {
	bool block, silent;
	struct scrub *scrub;
	uint64_t *counts; /* by rule */
	uint8_t bytes[CHUNK];
};

static void found(void *ctx, const struct scrub_hit *hit)
{
	struct stream *s = ctx;

	s->counts[hit->rule]++;
}

/* The descriptor is the caller's: it may be one that does not wait. */
static bool write_out(const struct buf *out)
{
	size_t at = 0;

	while (at < out->len) {
		ssize_t n = write(SCAN_FD_OUT, out->data + at, out->len - at);
		struct pollfd p = { .fd = SCAN_FD_OUT, .events = POLLOUT };

		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			(void)!poll(&p, 1, -1);
		else if (n < 0 && errno != EINTR)
			return false;
	}
	return true;
}

/* 1: go on; 0: the end; -errno. */
static int move(struct stream *s, struct ward_err *e)
{
	struct pollfd p = { .fd = SCAN_FD_IN, .events = POLLIN };
	auto_buf out = { 0 };
	bool waits = !s->silent && scrub_held(s->scrub) > 0;
	int ready = waits ? poll(&p, 1, FLUSH_MS) : 1, r;
	ssize_t n;

	if (ready == 0) {
		scrub_flush(s->scrub, &out);
		return write_out(&out);
	}
	n = read(SCAN_FD_IN, s->bytes, sizeof(s->bytes));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	r = scrub_take(s->scrub, s->bytes, (size_t)n, n == 0, s->silent ? NULL : &out, e);
	if (r < 0)
		return r;
	if (s->block && scrub_count(s->scrub))
		return 0;
	return write_out(&out) && n > 0;
}

static int tell(const struct stream *s)
{
	auto_buf out = { 0 };

	for (size_t i = 0; i < detect_rule_count(); i++)
		if (s->counts[i])
			buf_printf(&out, "%s %llu\n", detect_rule(i)->id,
				   (unsigned long long)s->counts[i]);
	if (s->block && scrub_count(s->scrub))
		buf_puts(&out, "stopped\n");
	buf_puts(&out, "end\n");
	return out.failed ? -ENOMEM : io_write_all(SCAN_FD_SAY, out.data, out.len);
}

int stream_run(const struct scan_options *o, struct ward_err *e)
{
	struct detect_rules *rules = NULL;
	struct stream *s = calloc(1, sizeof(*s));
	struct ward_err later;
	int r = detect_rules_new(DETECT_SECRET | (o->pii ? DETECT_PII : 0u), &rules, e);

	if (r == 0 && s) {
		s->block = o->mode && strcmp(o->mode, "block") == 0;
		s->silent = o->mode && strcmp(o->mode, "silent") == 0;
		s->counts = calloc(detect_rule_count(), sizeof(*s->counts));
	}
	if (r == 0 && (!s || !s->counts))
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = scrub_new(rules, o->redact, found, s, &s->scrub, e);
	if (r == 0)
		r = confine_enter(PROC_SCAN_STREAM, NULL, e);
	if (r == 0) {
		do
			r = move(s, e);
		while (r > 0);
		close(SCAN_FD_IN);
		if (tell(s) < 0 && r == 0)
			r = ward_fail(&later, EIO, "cannot report");
	}
	if (s) {
		scrub_free(s->scrub);
		free(s->counts);
		free(s);
	}
	detect_rules_free(rules);
	return r;
}

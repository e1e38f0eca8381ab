/*
 * ward audit ls and prune: which journals there are, and which go. In: the journals; rules of age,
 * size and number. Out: a list; files that are removed, each of which the index tells first, so
 * that verify knows that no other process did it. Journals of runs that go on are never removed.
 * Run by ward-audit.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/index.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "event/event.h"
#include "policy/units.h"

#define RULE "retention"

struct journal_info {
	char *run; /* borrowed */
	uint64_t began_us, ended_us, events, bytes;
	bool live;
};

static void look(int audit_fd, char *run, struct journal_info *ret)
{
	char scratch[EVENT_LINE_MAX];
	auto_strv files = { 0 };
	struct ward_event v;

	*ret = (struct journal_info){ .run = run };
	if (audit_first(audit_fd, run, scratch, &v))
		ret->began_us = v.time_us;
	lines_files(audit_fd, run, &files, &ret->live);
	for (size_t i = 0; i < files.len; i++) {
		auto_fd fd = openat(audit_fd, files.items[i],
				    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		struct place_end end = { 0 };
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		ret->bytes += (uint64_t)st.st_size;
		ret->ended_us = (uint64_t)st.st_mtim.tv_sec * 1000000;
		if (place_read_end(fd, &end) == 0)
			ret->events = end.chain.seq;
	}
	if (!ret->began_us)
		ret->began_us = ret->ended_us;
}

static void put_row(int audit_fd, const struct journal_info *i, struct buf *out)
{
	char scratch[EVENT_LINE_MAX], time[EVENT_TIME_TEXT];
	auto_buf command = { 0 };
	const struct event_value *argv;
	struct ward_event v;

	event_time_text(i->began_us, time);
	buf_printf(out, "%-23s %.19s %8" PRIu64 " %10" PRIu64 "  ", i->run, time, i->events,
		   i->bytes);
	argv = audit_first(audit_fd, i->run, scratch, &v) ? event_get(&v, FIELD_ARGV) : NULL;
	for (size_t at = 0; argv && at < argv->len; at += strlen(argv->text + at) + 1) {
		buf_puts(&command, at ? " " : "");
		text_escape(&command, argv->text + at);
	}
	buf_printf(out, "%s%.80s\n", i->live ? "(live) " : "", buf_text(&command));
}

int audit_ls(struct options *o, int audit_fd)
{
	struct ward_err e = { 0 };
	auto_strv runs = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (lines_runs(audit_fd, &runs, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json)
		json_begin_array(&j, NULL);
	else
		buf_printf(&out, "%-23s %-19s %8s %10s  %s\n", "RUN", "BEGAN (UTC)", "EVENTS",
			   "BYTES", "COMMAND");
	for (size_t i = 0; i < runs.len; i++) {
		struct journal_info info;
		char time[EVENT_TIME_TEXT];

		look(audit_fd, runs.items[i], &info);
		if (!o->json) {
			put_row(audit_fd, &info, &out);
			continue;
		}
		event_time_text(info.began_us, time);
		json_begin_object(&j, NULL);
		json_string(&j, "run", info.run);
		json_string(&j, "began", time);
		json_uint(&j, "events", info.events);
		json_uint(&j, "bytes", info.bytes);
		json_bool(&j, "live", info.live);
		json_end_object(&j);
	}
	if (o->json) {
		json_end_array(&j);
		buf_puts(&out, "\n");
	}
	return say_out(&out, EXIT_FINE);
}

/* -- prune */

struct rule {
	uint64_t older_ms, bytes, keep; /* 0: no such rule */
};

static int read_rule(const char *older, const char *size, const char *keep, struct rule *ret,
		     struct ward_err *e)
{
	*ret = (struct rule){ 0 };
	/* what goes does not come back: nothing is guessed */
	if (older && *older && strspn(older, "0123456789.") == strlen(older)) {
		ward_fail(e, EINVAL, "--older %.60s: the unit is missing", older);
		return ward_remedy(
			e, "--older %.60sd for days; h, m and s are hours, minutes and seconds",
			older);
	}
	if (older && (units_parse_seconds(older, &ret->older_ms) < 0 || !ret->older_ms)) {
		ward_fail(e, EINVAL, "--older %.60s: not a time", older);
		return ward_remedy(e, "for instance 90d");
	}
	if (size && (units_parse_size(size, &ret->bytes) < 0 || !ret->bytes)) {
		ward_fail(e, EINVAL, "--max-size %.60s: not a size", size);
		return ward_remedy(e, "for instance 1Gi");
	}
	if (keep && (units_parse_uint(keep, &ret->keep) < 0 || !ret->keep))
		return ward_fail(e, EINVAL, "--keep %.60s: not a number of at least 1", keep);
	if (older || size || keep)
		return 0;
	ward_fail(e, EINVAL, "no rule given; prune needs at least one");
	return ward_remedy(e, "--older 90d, --max-size 1Gi, --keep 1000, or several of them");
}

static int remove_journal(int audit_fd, const struct journal_info *i, struct ward_err *e)
{
	struct ward_event v = event_make(EVENT_JOURNAL_PRUNE, ACTION_LOG, i->run);
	auto_strv files = { 0 };
	bool live;
	int r;

	v.run = i->run;
	event_number(&v, FIELD_BYTES, i->bytes);
	event_number(&v, FIELD_EVENTS, i->events);
	event_number(&v, FIELD_UID, (uint64_t)getuid());
	r = index_append(audit_fd, &v, 1, e);
	lines_files(audit_fd, i->run, &files, &live);
	for (size_t k = 0; k < files.len && r == 0; k++)
		if (unlinkat(audit_fd, files.items[k], 0) < 0 && errno != ENOENT)
			r = ward_fail_errno(e, "cannot remove %s", files.items[k]);
	return r;
}

/* The newest stay: from there on downwards the rules count. Returns how many went, *out names
 * them. */
static int prune(int audit_fd, const struct rule *rule, bool dry, struct buf *out,
		 struct ward_err *e)
{
	uint64_t now = event_now_us(), bytes = 0, kept = 0;
	auto_strv runs = { 0 };
	int gone = 0, r = lines_runs(audit_fd, &runs, e);

	if (r < 0)
		return r;
	for (size_t i = runs.len; i-- > 0;) {
		struct journal_info info;

		look(audit_fd, runs.items[i], &info);
		bytes += info.bytes;
		kept++;
		if (info.live ||
		    !((rule->older_ms && info.ended_us + rule->older_ms * 1000 < now) ||
		      (rule->bytes && bytes > rule->bytes) || (rule->keep && kept > rule->keep)))
			continue;
		kept--;
		bytes -= info.bytes;
		r = dry ? 0 : remove_journal(audit_fd, &info, e);
		if (r < 0)
			return r;
		gone++;
		buf_printf(out, "%s %s, %" PRIu64 " events\n", dry ? "would remove" : "removed",
			   info.run, info.events);
	}
	return gone;
}

static int keep_rule(int audit_fd, const struct options *o, struct ward_err *e)
{
	auto_fd fd =
		openat(audit_fd, RULE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	auto_buf text = { 0 };

	buf_printf(&text, "%s\n%s\n%s\n", o->older ? o->older : "", o->max_size ? o->max_size : "",
		   o->keep ? o->keep : "");
	if (fd < 0 || text.failed || io_write_all(fd, text.data, text.len) < 0)
		return ward_fail_errno(e, "cannot save the rule");
	return 0;
}

void audit_prune_by_rule(int audit_fd)
{
	auto_buf text = { 0 }, out = { 0 };
	struct ward_err ignored = { 0 };
	char *words[3], *rest;
	struct rule rule;

	if (io_read_file(audit_fd, RULE, 1024, &text) < 0 || !text.data)
		return;
	rest = text.data;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		char *word = strsep(&rest, "\n");

		words[i] = word && *word ? word : NULL;
	}
	if (read_rule(words[0], words[1], words[2], &rule, &ignored) == 0)
		(void)!prune(audit_fd, &rule, false, &out, &ignored);
}

int audit_prune(struct options *o, int audit_fd)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct rule rule;
	int gone;

	if (read_rule(o->older, o->max_size, o->keep, &rule, &e) < 0)
		return say_error(&e, o->json, EXIT_USAGE);
	if (o->always && keep_rule(audit_fd, o, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	gone = prune(audit_fd, &rule, o->dry_run, &out, &e);
	if (gone < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		out.len = 0;
		buf_printf(&out, "{\"removed\":%d}\n", gone);
	}
	return say_out(&out, EXIT_FINE);
}

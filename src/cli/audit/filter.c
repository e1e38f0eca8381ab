/*
 * What of a journal is asked for, and which run is meant. In: options, the journals. Out: a filter,
 * an id. Run by ward-audit; matching is pure.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "policy/units.h"
#include "state/store.h"

/* Whether word, of len bytes, is one of a list with commas; group: or what stands before its dot
 * is. */
static bool in_list(const char *list, const char *word, bool group)
{
	size_t all = strlen(word), before = strcspn(word, ".");

	while (*list) {
		size_t n = strcspn(list, ",");

		if ((n == all && strncmp(list, word, n) == 0) ||
		    (group && n == before && strncmp(list, word, n) == 0))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* Whether every entry of a list is a known name: count of names, each by name(i). */
static int check_list(const char *list, const char *option, unsigned count,
		      const char *(*name)(unsigned i), bool group, struct ward_err *e)
{
	while (*list) {
		size_t n = strcspn(list, ",");
		unsigned i = 0, distance = UINT_MAX;
		const char *best = NULL;
		char word[32];

		snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1),
			 list);
		for (; i < count && !(n < sizeof(word) && in_list(word, name(i), group)); i++)
			text_nearest(word, name(i), &best, &distance);
		if (i == count) {
			ward_fail(e, EINVAL, "%s: there is no %s", option, word);
			return best ? ward_remedy(e, "did you mean %s?", best)
				    : ward_remedy(e, "docs/events.md lists them");
		}
		list += n + (list[n] == ',');
	}
	return 0;
}

static const char *kind_name(unsigned i)
{
	return event_kind_name((enum event_kind)i);
}

static const char *action_name(unsigned i)
{
	return event_action_name((enum event_action)i);
}

/* "10m": so long ago; "2026-11-15", "2026-11-15T15:04", "2026-11-15T15:04:05": then, UTC. */
static int read_time(const char *text, const char *option, uint64_t *ret_us, struct ward_err *e)
{
	static const char rest[] = "0000-00-00T00:00:00.000000Z";
	char whole[EVENT_TIME_TEXT];
	size_t n = strlen(text);
	uint64_t ago_ms, now = event_now_us();

	if (n == 10 || n == 16 || n == 19) {
		memcpy(whole, rest, sizeof(whole));
		memcpy(whole, text, n);
		if (n > 10 && whole[10] == ' ')
			whole[10] = 'T';
		if (event_time_read(whole, EVENT_TIME_TEXT - 1, ret_us))
			return 0;
	}
	if (units_parse_seconds(text, &ago_ms) == 0) {
		*ret_us = ago_ms < now / 1000 ? now - ago_ms * 1000 : 1;
		return 0;
	}
	ward_fail(e, EINVAL, "%s %.60s: not a time", option, text);
	return ward_remedy(e, "for instance 10m (ago), 2026-11-15 or 2026-11-15T15:04 (UTC)");
}

int audit_filter_read(const struct options *o, struct audit_filter *ret, struct ward_err *e)
{
	int r = 0;

	*ret = (struct audit_filter){ .kinds = o->kinds, .actions = o->actions, .host = o->host };
	if (o->kinds)
		r = check_list(o->kinds, "--kind", EVENT_KINDS, kind_name, true, e);
	if (r == 0 && o->actions)
		r = check_list(o->actions, "--action", EVENT_ACTIONS, action_name, false, e);
	if (r == 0 && o->since)
		r = read_time(o->since, "--since", &ret->since_us, e);
	if (r == 0 && o->until)
		r = read_time(o->until, "--until", &ret->until_us, e);
	return r;
}

/* A name, or *.suffix. */
static bool matches_host(const char *wanted, const struct ward_event *v)
{
	const struct event_value *host = event_get(v, FIELD_HOST);
	size_t n = strlen(wanted);

	if (!host || !host->text)
		return false;
	if (wanted[0] == '*' && wanted[1] == '.')
		return host->len >= n - 1 &&
		       strncasecmp(host->text + host->len - (n - 1), wanted + 1, n - 1) == 0;
	return host->len == n && strncasecmp(host->text, wanted, n) == 0;
}

bool audit_filter_passes(const struct audit_filter *f, const struct ward_event *v)
{
	if (f->kinds && !in_list(f->kinds, event_kind_name((enum event_kind)v->kind), true))
		return false;
	if (f->actions &&
	    !in_list(f->actions, event_action_name((enum event_action)v->action), false))
		return false;
	if (f->host && !matches_host(f->host, v))
		return false;
	return (!f->since_us || v->time_us >= f->since_us) &&
	       (!f->until_us || v->time_us <= f->until_us);
}

bool audit_first(int audit_fd, const char *run, char scratch[EVENT_LINE_MAX],
		 struct ward_event *ret)
{
	auto_strv files = { 0 };
	const char *line;
	struct lines l;
	size_t n;
	bool live, found;

	lines_files(audit_fd, run, &files, &live);
	if (!files.len || lines_open(&l, audit_fd, files.items[0]) < 0)
		return false;
	found = lines_next(&l, &line, &n) > 0 && event_decode(line, n, scratch, ret, NULL);
	lines_close(&l);
	return found;
}

/* Whether the directory lies in the run's workspace, as ward finds the project from below. */
static bool is_of_workspace(int audit_fd, const char *run, const char *here)
{
	char scratch[EVENT_LINE_MAX];
	struct ward_event v;
	const struct event_value *found =
		audit_first(audit_fd, run, scratch, &v) ? event_get(&v, FIELD_WORKSPACE) : NULL;
	auto_free char *workspace = found && found->len ? strndup(found->text, found->len) : NULL;

	return workspace && path_is_beneath(here, workspace);
}

/* When the run that this file begins with was started; 0: the file only goes on with the one
 * before. */
static uint64_t started_in(int audit_fd, const char *file)
{
	char scratch[EVENT_LINE_MAX];
	struct ward_event v;
	const char *line;
	struct lines l;
	uint64_t began = 0;
	size_t n;

	if (lines_open(&l, audit_fd, file) < 0)
		return 0;
	/* journal.segment comes first */
	for (int i = 0; i < 2 && !began && lines_next(&l, &line, &n) > 0; i++)
		if (event_decode(line, n, scratch, &v, NULL) && v.kind == EVENT_RUN_START)
			began = v.time_us * 1000;
	lines_close(&l);
	return began;
}

/* When the run last began: its id says it, unless it was continued, which its journal did in a new
 * file. */
static uint64_t began_ns(int audit_fd, const char *run)
{
	auto_strv files = { 0 };
	uint64_t began = 0;
	bool live;

	lines_files(audit_fd, run, &files, &live);
	for (size_t i = files.len; i-- > 1 && !began;)
		began = started_in(audit_fd, files.items[i]);
	return began ? began : store_id_ns(run);
}

static bool means(const char *run, const char *word)
{
	size_t all = strlen(run), n = strlen(word);

	return n <= all && (strncmp(run, word, n) == 0 || strcmp(run + all - n, word) == 0);
}

/* The last one of this directory. Runs come in the order of their ids, so those that began earlier
 * count only if continued. */
static const char *find_here(int audit_fd, const struct strv *runs, const char *here)
{
	const char *found = NULL;
	uint64_t latest = 0;

	for (size_t i = runs->len; i-- > 0;) {
		uint64_t began = began_ns(audit_fd, runs->items[i]);

		if ((!found || began > latest) && is_of_workspace(audit_fd, runs->items[i], here)) {
			latest = began;
			found = runs->items[i];
		}
	}
	return found;
}

int audit_find_run(int audit_fd, const char *word, char **ret_run, struct ward_err *e)
{
	char here[PATH_MAX] = "";
	auto_strv runs = { 0 };
	const char *found = NULL;
	int r = lines_runs(audit_fd, &runs, e);

	if (r < 0)
		return r;
	if (!word && !getcwd(here, sizeof(here)))
		return ward_fail_errno(e, "cannot determine the current directory");
	if (!word)
		found = find_here(audit_fd, &runs, here);
	for (size_t i = runs.len; word && i-- > 0;) {
		if (!means(runs.items[i], word))
			continue;
		if (strcmp(runs.items[i], word) != 0 && found) {
			ward_fail(e, EINVAL, "%.60s can be %s or %s", word, found, runs.items[i]);
			return ward_remedy(e, "ward audit ls lists them");
		}
		found = runs.items[i];
	}
	if (!found) {
		ward_fail(e, ENOENT,
			  word ? "there is no journal for run %.60s"
			       : "there is no journal for a run in %s",
			  word ? word : here);
		return ward_remedy(e, "ward audit ls lists them");
	}
	*ret_run = strdup(found);
	return *ret_run ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

/*
 * What a run asked for. In: its journal: files that it missed (file.missing), names and connections
 * (net.*), refused system calls, programs. Out: struct learn_needs, each thing once. The journal is
 * ward's own, but what stands in it was chosen by the sandbox: every text is taken as a text and
 * judged later.
 */
#include "cli/learn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/lines.h"
#include "event/event.h"
#include "observe/missing.h"

#define THINGS_MAX 4096 /* of each sort */

static const char *text_of(const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);

	return value ? value->text : "";
}

static void add_pair(struct strv *first, struct strv *second, const char *a, const char *b)
{
	if (!*a || strv_has(first, a) || first->len >= THINGS_MAX)
		return;
	strv_add(first, a);
	strv_add(second, b);
}

static void add_way(struct learn_needs *n, const struct ward_event *v)
{
	const struct event_value *port = event_get(v, FIELD_PORT);
	const char *host = text_of(v, FIELD_HOST), *reason = text_of(v, FIELD_REASON);
	struct learn_way w = { .port = port ? (unsigned)port->number : 0 };

	if (!*host || n->way_count == THINGS_MAX)
		return;
	snprintf(w.mode, sizeof(w.mode), "%s",
		 v->action == ACTION_ALLOW ? text_of(v, FIELD_MODE) : "");
	snprintf(w.reason, sizeof(w.reason), "%s",
		 v->action == ACTION_DENY ? *reason ? reason : "not_listed" : "");
	for (size_t i = 0; i < n->way_count; i++)
		if (strcmp(n->ways[i].host, host) == 0 && n->ways[i].port == w.port &&
		    strcmp(n->ways[i].reason, w.reason) == 0 &&
		    strcmp(n->ways[i].mode, w.mode) == 0)
			return;
	if (n->way_count == n->way_cap) {
		struct learn_way *grown = reallocarray(n->ways, n->way_cap + 64, sizeof(*grown));

		if (!grown)
			return;
		n->ways = grown;
		n->way_cap += 64;
	}
	w.host = strdup(host);
	if (w.host)
		n->ways[n->way_count++] = w;
}

static void add_event(struct learn_needs *n, const struct ward_event *v)
{
	const struct event_value *lost = event_get(v, FIELD_LOST);
	const char *object = text_of(v, FIELD_OBJECT);

	switch (v->kind) {
	case EVENT_FILE_MISSING:
		if (!missing_is_noise(object))
			add_pair(&n->missing, &n->hosts_path, object, text_of(v, FIELD_PATH));
		break;
	case EVENT_SYSCALL:
		add_pair(&n->calls, &n->call_remedies, object, text_of(v, FIELD_REMEDY));
		break;
	case EVENT_EXEC:
		if (event_get(v, FIELD_OBSERVED) && *object == '/' && access(object, X_OK) == 0 &&
		    !strv_has(&n->programs, object) && n->programs.len < THINGS_MAX)
			strv_add(&n->programs, object);
		break;
	case EVENT_DNS:
		if (v->action == ACTION_DENY)
			add_way(n, v);
		else if (*object && !strv_has(&n->names, object) && n->names.len < THINGS_MAX)
			strv_add(&n->names, object);
		break;
	case EVENT_CONNECT:
		add_way(n, v);
		break;
	case EVENT_JOURNAL_GAP:
		n->lost += lost ? lost->number : 1;
		break;
	default:
		break;
	}
}

int learn_read(const char *run, struct learn_needs *ret, struct ward_err *e)
{
	auto_fd audit_fd = place_open(false, e);
	auto_strv files = { 0 };
	auto_free char *scratch = malloc(EVENT_LINE_MAX);
	bool live;

	*ret = (struct learn_needs){ 0 };
	if (audit_fd < 0)
		return audit_fd;
	if (!scratch)
		return ward_fail(e, ENOMEM, "out of memory");
	lines_files(audit_fd, run, &files, &live);
	if (!files.len)
		return ward_fail(e, ENOENT,
				 "run %s has no journal, so ward learn cannot learn from it", run);
	for (size_t i = 0; i < files.len; i++) {
		struct ward_event v;
		const char *line;
		struct lines l;
		size_t len;

		if (lines_open(&l, audit_fd, files.items[i]) < 0)
			return ward_fail(e, EIO, "cannot read the journal %s", files.items[i]);
		while (lines_next(&l, &line, &len) > 0)
			if (event_decode(line, len, scratch, &v, NULL))
				add_event(ret, &v);
		lines_close(&l);
	}
	return 0;
}

void learn_needs_clear(struct learn_needs *n)
{
	for (size_t i = 0; i < n->way_count; i++)
		free(n->ways[i].host);
	free(n->ways);
	strv_free(&n->missing);
	strv_free(&n->hosts_path);
	strv_free(&n->calls);
	strv_free(&n->call_remedies);
	strv_free(&n->programs);
	strv_free(&n->names);
	*n = (struct learn_needs){ 0 };
}

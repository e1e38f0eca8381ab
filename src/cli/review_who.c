/*
 * Who made the changes of a review. In: the journal of its run (file.change, audit.level: full).
 * Out: lines, JSON, or trailers for a commit. All names in it were chosen by a sandbox: they are
 * escaped, each stays on its line, and a trailer's value cannot begin another one. The answers were
 * observed, not proven.
 */
#include "cli/review_who.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "audit/lines.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"

#define SHOWN_MAX 160 /* of a command, in a line */

static char *text_of(const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);

	return strdup(value ? value->text : "");
}

static void add_words(struct strv *to, const struct event_value *value)
{
	for (size_t at = 0; value && at < value->len; at += strlen(value->text + at) + 1)
		strv_add(to, value->text + at);
}

static void writer_clear(struct who_writer *w)
{
	free(w->path);
	free(w->exe);
	free(w->change);
	free(w->seen);
	strv_free(&w->argv);
	strv_free(&w->hosts);
}

/* One more; what the same process did to the same path before is replaced. */
static int add(struct who *w, const struct ward_event *v, const char *path)
{
	const struct event_value *pid = event_get(v, FIELD_PID);
	struct who_writer n = { .path = strdup(path),
				.exe = text_of(v, FIELD_EXE),
				.change = text_of(v, FIELD_CHANGE),
				.seen = text_of(v, FIELD_SEEN),
				.pid = pid ? pid->number : 0 };

	add_words(&n.argv, event_get(v, FIELD_ARGV));
	add_words(&n.hosts, event_get(v, FIELD_HOSTS));
	for (size_t i = 0; i < w->len; i++)
		if (n.pid == w->items[i].pid && n.path && strcmp(w->items[i].path, n.path) == 0) {
			writer_clear(&w->items[i]);
			w->items[i] = n;
			return n.exe && n.change && n.seen ? 0 : -ENOMEM;
		}
	if (w->len == w->cap) {
		struct who_writer *grown =
			reallocarray(w->items, w->cap ? 2 * w->cap : 64, sizeof(*grown));

		if (grown) {
			w->items = grown;
			w->cap = w->cap ? 2 * w->cap : 64;
		}
	}
	if (w->len == w->cap || !n.path || !n.exe || !n.change || !n.seen) {
		writer_clear(&n);
		return -ENOMEM;
	}
	w->items[w->len++] = n;
	return 0;
}

static int read_file(const struct review *r, int audit_fd, const char *name, bool *full,
		     struct who *ret)
{
	auto_free char *scratch = malloc(EVENT_LINE_MAX);
	size_t prefix = strlen(r->record.workspace), n;
	struct ward_event v;
	const char *line;
	struct lines l;
	int status = 0;

	if (!scratch || lines_open(&l, audit_fd, name) < 0)
		return -EIO;
	while (status == 0 && lines_next(&l, &line, &n) > 0) {
		const struct event_value *object, *level;

		if (!event_decode(line, n, scratch, &v, NULL))
			continue;
		object = event_get(&v, FIELD_OBJECT);
		level = event_get(&v, FIELD_LEVEL);
		if (v.kind == EVENT_RUN_START)
			*full |= level && strcmp(level->text, "full") == 0;
		if (v.kind == EVENT_FILE_CHANGE && object &&
		    path_is_beneath(object->text, r->record.workspace) && object->text[prefix])
			status = add(ret, &v, object->text + prefix + 1);
	}
	lines_close(&l);
	return status;
}

int who_read(const struct review *r, struct who *ret, struct ward_err *e)
{
	auto_fd audit_fd = place_open(false, e);
	auto_strv files = { 0 };
	bool live, full = false;
	int status = 0;

	*ret = (struct who){ 0 };
	if (audit_fd < 0)
		return audit_fd;
	lines_files(audit_fd, r->id, &files, &live);
	for (size_t i = 0; i < files.len && status == 0; i++)
		status = read_file(r, audit_fd, files.items[i], &full, ret);
	if (status == 0 && full)
		return 0;
	who_clear(ret);
	if (status < 0)
		return ward_fail(e, -status, "cannot read the journal of %s: %s", r->id,
				 strerror(-status));
	ward_fail(e, ENODATA,
		  "ward did not record which process changed which file: the run %s was not at "
		  "audit.level: full",
		  r->id);
	return ward_remedy(e, "run it with --set audit.level=full");
}

void who_clear(struct who *w)
{
	for (size_t i = 0; i < w->len; i++)
		writer_clear(&w->items[i]);
	free(w->items);
	*w = (struct who){ 0 };
}

static void put_words(const struct strv *words, const char *between, size_t most, struct buf *out)
{
	auto_buf all = { 0 };

	for (size_t i = 0; i < words->len && all.len <= most; i++) {
		buf_puts(&all, i ? between : "");
		text_escape(&all, words->items[i]);
	}
	if (all.len > most) {
		for (all.len = most; all.len && ((unsigned char)all.data[all.len] & 0xc0) == 0x80;
		     all.len--)
			; /* not within a character */
		buf_puts(&all, "...");
	}
	buf_add(out, buf_text(&all), all.len);
}

void who_put(const struct who *w, const char *path, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < w->len; i++) {
		const struct who_writer *p = &w->items[i];

		if (strcmp(p->path, path) != 0)
			continue;
		any = true;
		buf_printf(out, "    %s by ", p->change);
		text_escape(out, p->exe);
		buf_printf(out, ", pid %" PRIu64 ", %s: ", p->pid, p->seen);
		put_words(&p->argv, " ", SHOWN_MAX, out);
		buf_puts(out, "\n");
		if (p->hosts.len) {
			buf_puts(out, "      may have read from: ");
			put_words(&p->hosts, ", ", SIZE_MAX / 2, out);
			buf_puts(out, "\n");
		}
	}
	if (!any)
		buf_puts(out, "    no process was observed\n");
}

static void put_list(struct json *j, const char *key, const struct strv *words)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < words->len; i++)
		json_string(j, NULL, words->items[i]);
	json_end_array(j);
}

void who_json(const struct who *w, const char *path, struct json *j)
{
	json_begin_array(j, "who");
	for (size_t i = 0; i < w->len; i++) {
		const struct who_writer *p = &w->items[i];

		if (strcmp(p->path, path) != 0)
			continue;
		json_begin_object(j, NULL);
		json_uint(j, "pid", p->pid);
		json_string(j, "exe", p->exe);
		put_list(j, "argv", &p->argv);
		json_string(j, "change", p->change);
		json_string(j, "seen", p->seen);
		put_list(j, "hosts", &p->hosts);
		json_end_object(j);
	}
	json_end_array(j);
}

void who_trailer(const struct who *w, const char *path, struct buf *out)
{
	auto_strv hosts = { 0 };
	const char *before = " by ";

	buf_puts(out, "Ward-Change: ");
	text_escape(out, path);
	for (size_t i = 0; i < w->len; i++) {
		if (strcmp(w->items[i].path, path) != 0)
			continue;
		buf_puts(out, before);
		text_escape(out, w->items[i].exe);
		buf_printf(out, " (pid %" PRIu64 ")", w->items[i].pid);
		before = ", ";
		for (size_t k = 0; k < w->items[i].hosts.len; k++)
			if (!strv_has(&hosts, w->items[i].hosts.items[k]))
				strv_add(&hosts, w->items[i].hosts.items[k]);
	}
	if (hosts.len) {
		buf_puts(out, "; may have read from ");
		put_words(&hosts, ", ", SIZE_MAX / 2, out);
	}
	buf_puts(out, "\n");
}

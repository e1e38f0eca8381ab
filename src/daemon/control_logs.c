/*
 * What happened to a sandbox, for its owner. In: lines that the front keeps of each sandbox, the
 * last 16 KiB of them; a new server begins with none. Out: E2B's two forms of a log. What programs
 * inside print is not in it: that goes to the clients that started them.
 */
#include <string.h>

#include "daemon/front.h"
#include "envd/query.h"

#define KEPT_MAX (16 * 1024)
#define LIMIT_MAX 1000

static const char *const levels[] = { "debug", "info", "warn", "error" };

void sandbox_note(struct sandbox *s, bool bad, const char *text)
{
	char line[320];
	const char *end;

	snprintf(line, sizeof(line), "%lld %d %.280s", (long long)front_now_ms(), bad ? 3 : 1,
		 text);
	line[strcspn(line, "\n")] = '\0';
	buf_puts(&s->notes, line);
	buf_puts(&s->notes, "\n");
	end = s->notes.len > KEPT_MAX ? memchr(s->notes.data + KEPT_MAX / 4, '\n', KEPT_MAX) : NULL;
	if (!end)
		return;
	end++;
	s->notes.len -= (size_t)(end - s->notes.data);
	memmove(s->notes.data, end, s->notes.len);
}

struct wanted {
	int64_t cursor;
	unsigned most, level;
	bool backward, has_cursor;
	struct buf search;
};

struct note {
	int64_t ms;
	unsigned level;
	char text[288];
};

static bool number(const struct conn *c, const char *name, int64_t *ret)
{
	auto_buf text = { 0 };
	char *end;
	int r = query_get(c->http.req.query.s, c->http.req.query.n, name, &text);

	if (r <= 0 || !text.len)
		return r >= 0;
	if (*text.data < '0' || *text.data > '9' || text.len > 15)
		return false;
	*ret = strtoll(text.data, &end, 10);
	return !*end;
}

/* One of the words, by its number; the default where it is not there. False: another word. */
static bool word(const struct conn *c, const char *name, const char *const *words, unsigned n,
		 unsigned *ret)
{
	auto_buf text = { 0 };
	int r = query_get(c->http.req.query.s, c->http.req.query.n, name, &text);

	if (r <= 0 || !text.len)
		return r >= 0;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(text.data, words[i]) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

static bool read_wanted(const struct conn *c, struct wanted *w)
{
	static const char *const ways[] = { "forward", "backward" };
	unsigned way = 0;
	int64_t most = LIMIT_MAX;

	*w = (struct wanted){ .cursor = -1 };
	if (!number(c, c->verb == ROUTE_logs_v1 ? "start" : "cursor", &w->cursor) ||
	    !number(c, "limit", &most) || !word(c, "direction", ways, 2, &way) ||
	    !word(c, "level", levels, ARRAY_LEN(levels), &w->level) || most < 0 ||
	    query_get(c->http.req.query.s, c->http.req.query.n, "search", &w->search) < 0)
		return false;
	w->most = most > LIMIT_MAX ? LIMIT_MAX : (unsigned)most;
	w->backward = way == 1;
	w->has_cursor = w->cursor >= 0;
	return true;
}

static bool is_wanted(const struct wanted *w, const struct note *n)
{
	if (n->level < w->level || (w->search.len && !strstr(n->text, w->search.data)))
		return false;
	return !w->has_cursor || (w->backward ? n->ms <= w->cursor : n->ms >= w->cursor);
}

static size_t collect(const struct sandbox *s, const struct wanted *w, struct note *ret)
{
	const char *at = buf_text(&s->notes), *end = at + s->notes.len;
	size_t n = 0;

	while (at < end) {
		size_t len = (size_t)((const char *)memchr(at, '\n', (size_t)(end - at)) - at);
		char line[sizeof(ret->text) + 32];
		long long ms;

		snprintf(line, sizeof(line), "%.*s", (int)len, at);
		at += len + 1;
		if (sscanf(line, "%lld %u %287[^\n]", &ms, &ret[n].level, ret[n].text) != 3)
			continue;
		ret[n].ms = ms;
		n += is_wanted(w, &ret[n]);
	}
	return n;
}

static void show(const struct note *n, bool entry, struct json *j)
{
	json_begin_object(j, NULL);
	show_time(j, "timestamp", n->ms);
	if (entry) {
		json_string(j, "level", levels[n->level < 4 ? n->level : 3]);
		json_string(j, "message", n->text);
		json_begin_object(j, "fields");
		json_end_object(j);
	} else {
		json_string(j, "line", n->text);
	}
	json_end_object(j);
}

static void show_all(const char *name, const struct note *all, size_t n, const struct wanted *w,
		     bool entry, struct json *j)
{
	json_begin_array(j, name);
	for (size_t i = 0; i < n && i < w->most; i++)
		show(&all[w->backward ? n - 1 - i : i], entry, j);
	json_end_array(j);
}

void control_logs(struct conn *c)
{
	/* a line has at least 18 characters */
	struct note *all = calloc(KEPT_MAX / 16 + 2, sizeof(*all));
	struct sandbox *s = control_find_mine(c);
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	struct wanted w;
	size_t n;

	if (s && all && read_wanted(c, &w)) {
		n = collect(s, &w, all);
		json_begin_object(&j, NULL);
		show_all("logs", all, n, &w, c->verb == ROUTE_logs_v2, &j);
		if (c->verb == ROUTE_logs_v1)
			show_all("logEntries", all, n, &w, true, &j);
		json_end_object(&j);
		conn_answer(c, 200, "application/json", &body, NULL);
		buf_free(&w.search);
	} else if (s) {
		conn_refuse(c, 400, "the query cannot be understood");
	}
	free(all);
}

/*
 * Findings of other scanners. In: what a scanner has written to its standard output, SARIF or
 * lines. Out: findings, their texts escaped and cut. A scanner reads files that a sandbox made and
 * may be deceived or taken over by them: nothing it says is obeyed, and what it says amiss is an
 * error, not "no findings". Pure. Fuzzed (fuzz/look_other.c).
 */
#include "review/look_other.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/text.h"
#include "rules/json_in.h"

#define TEXT_MAX 200

struct said {
	struct buf rule, level, message, uri;
	uint64_t line;
};

static void said_clear(struct said *s)
{
	buf_free(&s->rule);
	buf_free(&s->level);
	buf_free(&s->message);
	buf_free(&s->uri);
	*s = (struct said){ 0 };
}

/* Its first line, escaped; long text is cut. */
static char *escaped(const char *text, size_t n)
{
	auto_free char *line = strndup(text, n);
	auto_buf out = { 0 };

	if (!line)
		return NULL;
	line[strcspn(line, "\r\n")] = '\0';
	text_escape(&out, line);
	return out.failed ? NULL : strndup(buf_text(&out), TEXT_MAX);
}

static int add(struct look_findings *f, enum look_severity severity, const char *scanner,
	       const char *rule, size_t rule_len, const char *path, size_t path_len, uint64_t line,
	       const char *title)
{
	auto_free char *name = escaped(rule, rule_len), *where = escaped(path, path_len),
		       *what = escaped(title, strlen(title));
	auto_buf whole = { 0 };

	if (!name || !where || !what)
		return -ENOMEM;
	buf_printf(&whole, "%s: %s", scanner, *name ? name : "finding");
	return whole.failed ? -ENOMEM
			    : look_add(f, &(struct look_finding){ .severity = severity,
								  .line = line,
								  .rule = whole.data,
								  .path = where,
								  .title = what });
}

/* Without a scheme and the directory that was scanned. */
static const char *relative(const char *path, const char *dir)
{
	size_t n = strlen(dir + 1);

	if (strncmp(path, "file://", 7) == 0)
		path += 7;
	path += strspn(path, "/");
	return strncmp(path, dir + 1, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

/* -- SARIF */

static void take_string(struct json_in *j, struct buf *out)
{
	if (json_in_peek(j) != '"' || out->len)
		json_in_skip(j);
	else
		json_in_string(j, out);
}

static uint64_t take_line(struct json_in *j)
{
	uint64_t value = 0;
	const uint8_t *at;

	(void)json_in_peek(j);
	at = j->at;
	json_in_skip(j);
	for (; !j->bad && at < j->at && *at >= '0' && *at <= '9' && value < 1000000000; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

/* The member of an object, walked into: the others are skipped. */
static bool find_member(struct json_in *j, struct json_level *l, const char *name)
{
	const char *key;

	if (json_in_peek(j) != '{' || !json_in_open(j, '{', l)) {
		json_in_skip(j);
		return false;
	}
	while (json_in_next(j, l, &key)) {
		if (strcmp(key, name) == 0)
			return true;
		json_in_skip(j);
	}
	return false;
}

/* The rest of that object. */
static void leave(struct json_in *j, struct json_level *l)
{
	const char *key;

	while (json_in_next(j, l, &key))
		json_in_skip(j);
}

static void take_place(struct json_in *j, struct said *s)
{
	struct json_level l, inner;
	const char *key;

	if (json_in_peek(j) != '{' || !json_in_open(j, '{', &l)) {
		json_in_skip(j);
		return;
	}
	while (json_in_next(j, &l, &key)) {
		bool file = strcmp(key, "artifactLocation") == 0,
		     region = strcmp(key, "region") == 0;

		if (!file && !region) {
			json_in_skip(j);
		} else if (find_member(j, &inner, file ? "uri" : "startLine")) {
			if (file)
				take_string(j, &s->uri);
			else
				s->line = take_line(j);
			leave(j, &inner);
		}
	}
}

/* The first place counts. */
static void take_places(struct json_in *j, struct said *s)
{
	struct json_level l, place;
	const char *key;

	if (json_in_peek(j) != '[' || !json_in_open(j, '[', &l)) {
		json_in_skip(j);
		return;
	}
	while (json_in_next(j, &l, &key)) {
		if (s->uri.len)
			json_in_skip(j);
		else if (find_member(j, &place, "physicalLocation")) {
			take_place(j, s);
			leave(j, &place);
		}
	}
}

static void take_result(struct json_in *j, struct said *s)
{
	struct json_level l, inner;
	const char *key;

	if (json_in_peek(j) != '{' || !json_in_open(j, '{', &l)) {
		j->bad = true;
		return;
	}
	while (json_in_next(j, &l, &key)) {
		if (strcmp(key, "ruleId") == 0) {
			take_string(j, &s->rule);
		} else if (strcmp(key, "level") == 0) {
			take_string(j, &s->level);
		} else if (strcmp(key, "locations") == 0) {
			take_places(j, s);
		} else if (strcmp(key, "message") != 0) {
			json_in_skip(j);
		} else if (find_member(j, &inner, "text")) {
			take_string(j, &s->message);
			leave(j, &inner);
		}
	}
}

/* SARIF's default is "warning". */
static enum look_severity severity_of(const char *level)
{
	return strcmp(level, "error") == 0                                ? LOOK_HIGH
	       : strcmp(level, "note") == 0 || strcmp(level, "none") == 0 ? LOOK_LOW
									  : LOOK_MEDIUM;
}

static int take_results(struct json_in *j, const char *scanner, const char *dir,
			struct look_findings *f)
{
	struct json_level l;
	const char *key;
	int r = 0;

	if (!json_in_open(j, '[', &l))
		return -EINVAL;
	while (r == 0 && json_in_next(j, &l, &key)) {
		struct said s = { 0 };
		const char *path;

		take_result(j, &s);
		path = relative(buf_text(&s.uri), dir);
		if (!j->bad)
			r = add(f, severity_of(buf_text(&s.level)), scanner, buf_text(&s.rule),
				s.rule.len, path, strlen(path), s.line,
				s.message.len ? buf_text(&s.message) : "no message");
		said_clear(&s);
	}
	return r;
}

/* All of its runs; *ret_some: there was one with results. */
static int take_runs(struct json_in *j, const char *scanner, const char *dir,
		     struct look_findings *f, bool *ret_some)
{
	struct json_level l, run;
	const char *key;
	int r = 0;

	if (!json_in_open(j, '[', &l))
		return -EINVAL;
	while (r == 0 && json_in_next(j, &l, &key)) {
		if (!find_member(j, &run, "results"))
			continue;
		*ret_some = true;
		r = take_results(j, scanner, dir, f);
		if (r == 0)
			leave(j, &run);
	}
	return r;
}

int look_other_sarif(const uint8_t *bytes, size_t n, const char *scanner, const char *dir,
		     struct look_findings *ret)
{
	struct look_findings f = { 0 };
	struct json_level l;
	struct json_in j;
	bool some = false;
	int r = -EINVAL;

	json_in_init(&j, bytes, n);
	if (find_member(&j, &l, "runs")) {
		r = take_runs(&j, scanner, dir, &f, &some);
		if (r == 0)
			leave(&j, &l);
	}
	if (r == 0 && (j.bad || !some || !json_in_end(&j)))
		r = -EINVAL;
	json_in_free(&j);
	if (r < 0)
		look_clear(&f);
	else
		*ret = f;
	return r;
}

/* -- lines */

int look_other_lines(const uint8_t *bytes, size_t n, const char *scanner, const char *dir,
		     struct look_findings *ret)
{
	static const char found[] = " FOUND";
	struct look_findings f = { 0 };
	int r = 0;

	for (const char *at = (const char *)bytes, *end = at + n, *next; at < end && r == 0;
	     at = next) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *stop = nl ? nl : end;
		auto_free char *line = strndup(at, (size_t)(stop - at));
		size_t len = line ? strlen(line) : 0;
		char *name = NULL;

		next = stop + 1;
		if (!line)
			r = -ENOMEM;
		if (len < strlen(found) || strcmp(line + len - strlen(found), found) != 0)
			continue;
		line[len - strlen(found)] = '\0';
		for (char *c = strstr(line, ": "); c; c = strstr(c + 1, ": "))
			name = c; /* a path may hold such signs, a name holds none */
		if (name) {
			const char *path = relative(line, dir);

			r = add(&f, LOOK_HIGH, scanner, name + 2, strlen(name + 2), path,
				path < name ? (size_t)(name - path) : 0, 0,
				"found by its signature");
		}
	}
	if (r < 0)
		look_clear(&f);
	else
		*ret = f;
	return r;
}

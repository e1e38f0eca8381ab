/*
 * Decoys. In: a path and random bytes; events of a run, whose texts a sandbox may have chosen. Out:
 * the content of a decoy, by the forms of tables/canaries.def, and whether an event shows that one
 * was used. Pure. A value is found in any text of an event: a name that was looked up, a URL, the
 * words of a command, in each form that rules/canary_find.c knows.
 */
#include "alarm/canary.h"

#include <string.h>
#include <strings.h>

#include "event/event.h"

static const struct decoy {
	const char *ending, *content;
} decoys[] = {
#define DECOY(ending, content) { ending, content },
#include "canaries.def"
}, variables[] = {
#define DECOY_VARIABLE(ending, content) { ending, content },
#include "canaries.def"
};

void canary_token(const uint8_t random[CANARY_TOKEN], char ret[CANARY_TOKEN + 1])
{
	for (unsigned i = 0; i < CANARY_TOKEN; i++)
		ret[i] = "abcdefghijklmnopqrstuvwxyz234567"[random[i] % 32];
	ret[CANARY_TOKEN] = '\0';
}

static void put_key_id(const char *token, struct buf *out)
{
	buf_puts(out, "AKIA");
	for (unsigned i = 0; i < CANARY_FOUND; i++) { /* a key id has no more */
		char c = token[i] >= 'a' ? (char)(token[i] - 'a' + 'A') : token[i];

		buf_add(out, &c, 1);
	}
}

/* Writes the first row whose ending fits; the last one fits all. */
static void put_decoy(const struct decoy *row, const char *name, const char *token, struct buf *out)
{
	size_t n = strlen(name), m;

	for (; *row->ending; row++) {
		m = strlen(row->ending);
		if (n >= m && strcmp(name + n - m, row->ending) == 0)
			break;
	}
	for (const char *at = row->content; *at; at++) {
		if (strncmp(at, "@T@", 3) == 0) {
			buf_puts(out, token);
			at += 2;
		} else if (strncmp(at, "@A@", 3) == 0) {
			put_key_id(token, out);
			at += 2;
		} else {
			buf_add(out, at, 1);
		}
	}
}

void canary_content(const char *path, const char *token, struct buf *out)
{
	put_decoy(decoys, path, token, out);
}

void canary_variable(const char *name, const char *token, struct buf *out)
{
	put_decoy(variables, name, token, out);
}

int canary_in_event(const struct canary_finder *f, const struct ward_event *v)
{
	for (unsigned i = 0; i < v->count; i++) {
		enum event_type type = event_field_type((enum event_field)v->values[i].field);
		struct canary_stream s = { 0 };
		int found;

		if ((type != EVENT_TEXT && type != EVENT_LIST) || !v->values[i].text)
			continue;
		found = canary_find(f, &s, v->values[i].text, v->values[i].len);
		if (found >= 0)
			return found;
	}
	return -1;
}

bool canary_is_host(const struct ward_event *v, const char *host)
{
	bool wide = host[0] == '*' && host[1] == '.';
	const char *suffix = wide ? host + 1 : host;
	const struct event_value *name;
	size_t n = strlen(suffix), len;

	if (v->kind != EVENT_DNS && v->kind != EVENT_CONNECT && v->kind != EVENT_HTTP)
		return false;
	name = event_get(v, FIELD_HOST);
	if (!name)
		name = event_get(v, FIELD_OBJECT);
	if (!name || !name->text)
		return false;
	len = name->len;
	if (len && name->text[len - 1] == '.')
		len--;
	return (wide ? len > n : len == n) && strncasecmp(name->text + len - n, suffix, n) == 0;
}

/* Fuzzer of the exporters. Bytes become the texts of an event; whatever they are, what comes out
 * must be one record of its format: OCSF and OTLP strict JSON, CEF with seven fields of header and
 * keys that are ours, RFC 5424 with one element of structured data. Valid UTF-8 everywhere, and
 * nothing that acts on a terminal. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/escape.h"
#include "audit/export.h"
#include "base/text.h"
#include "event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_harmless(const struct buf *b)
{
	for (size_t i = 0; i < b->len;) {
		unsigned point = 0;
		size_t length = text_utf8((const unsigned char *)b->data + i, &point);

		if (!length || text_acts(point))
			abort();
		i += length;
	}
}

/* -- JSON, strictly: aborts where it is none */

static const char *json_value(const char *s);

static const char *json_text(const char *s)
{
	if (*s++ != '"')
		abort();
	for (; *s != '"'; s++) {
		if ((unsigned char)*s < 0x20)
			abort();
		if (*s != '\\')
			continue;
		s++;
		if (!*s || !strchr("\"\\/bfnrtu", *s))
			abort();
		for (int i = 1; *s == 'u' && i <= 4; i++)
			if (!isxdigit((unsigned char)s[i]))
				abort();
	}
	return s + 1;
}

static const char *json_items(const char *s, char end, int keys)
{
	s++;
	if (*s == end)
		return s + 1;
	for (;; s++) {
		if (keys) {
			s = json_text(s);
			if (*s++ != ':')
				abort();
		}
		s = json_value(s);
		if (*s == end)
			return s + 1;
		if (*s != ',')
			abort();
	}
}

static const char *json_value(const char *s)
{
	if (*s == '{')
		return json_items(s, '}', 1);
	if (*s == '[')
		return json_items(s, ']', 0);
	if (*s == '"')
		return json_text(s);
	if (strncmp(s, "true", 4) == 0)
		return s + 4;
	if (!isdigit((unsigned char)*s))
		abort();
	return s + strspn(s, "0123456789");
}

static void check_json(const struct buf *b)
{
	if (json_value(b->data) != b->data + b->len)
		abort();
}

/* -- CEF */

/* Up to the next unescaped end. */
static const char *cef_skip(const char *s, char end)
{
	for (; *s && *s != end; s++)
		if (*s == '\\' && !*++s)
			abort();
	return s;
}

static void check_cef(const struct buf *b)
{
	const char *s = b->data, *space;

	if (strncmp(s, "CEF:0|", 6) != 0)
		abort();
	for (int i = 0; i < 7; i++) {
		s = cef_skip(s, '|');
		if (*s++ != '|')
			abort();
	}
	/* each unescaped = has a key of ours before it */
	while (*s) {
		const char *equals = cef_skip(s, '=');

		if (*equals != '=')
			break;
		for (space = equals; space > s && space[-1] != ' ';)
			space--;
		for (; space < equals; space++)
			if (!isalnum((unsigned char)*space))
				abort();
		s = equals + 1;
	}
	if (strchr(b->data, '\n') || strchr(b->data, '\r'))
		abort();
}

/* -- RFC 5424 */

static void check_syslog(const struct buf *b)
{
	const char *s = b->data;

	if (b->len > EXPORT_SYSLOG_MAX || *s++ != '<')
		abort();
	s += strspn(s, "0123456789");
	if (strncmp(s, ">1 ", 3) != 0)
		abort();
	s += 3;
	for (int i = 0; i < 5; i++) { /* time host app procid msgid */
		size_t n = strcspn(s, " ");

		if (!n)
			abort();
		s += n + 1;
	}
	if (strncmp(s, "[ward@32473 ", 12) != 0)
		abort();
	for (s += 11; *s == ' ';) {
		s++;
		s += strspn(s, "abcdefghijklmnopqrstuvwxyz_");
		if (strncmp(s, "=\"", 2) != 0)
			abort();
		for (s += 2; *s != '"'; s++)
			if (!*s || *s == ']' || (*s == '\\' && !strchr("\"\\]", *++s)))
				abort();
		s++;
	}
	if (strncmp(s, "] ", 2) != 0 || strchr(s, '\n'))
		abort();
}

static void check_event(const struct ward_event *v, const char *host)
{
	static void (*const checks[EXPORT_FORMATS])(const struct buf *b) = {
		check_json, check_json, check_cef, check_syslog, check_json
	};
	const struct export_from from = { .host = host };

	for (unsigned f = 0; f < EXPORT_FORMATS; f++) {
		auto_buf out = { 0 };

		export_event((enum export_format)f, &from, v, &out);
		if (out.failed || !out.len)
			abort();
		checks[f](&out);
		check_harmless(&out);
	}
}

static void check_escapes(const char *text, size_t n)
{
	static void (*const escapes[])(struct buf * out, const char *t,
				       size_t len) = { escape_html, escape_label, escape_line };

	for (size_t i = 0; i < 3; i++) {
		auto_buf out = { 0 };

		escapes[i](&out, text, n);
		check_harmless(&out);
		if (i == 0 && out.data && strpbrk(out.data, "<>\"'"))
			abort();
		for (const char *s = i == 1 && out.data ? out.data : ""; *s; s++)
			if (*s == '"' || (*s == '\\' && !strchr("\\\"n", *++s)))
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event v;
	char host[64] = "";
	size_t third;

	check_escapes((const char *)bytes, n);
	if (event_decode((const char *)bytes, n, scratch, &v, NULL))
		check_event(&v, "host");
	if (n < 24)
		return 0;
	v = event_make((enum event_kind)(bytes[0] % EVENT_KINDS),
		       (enum event_action)(bytes[1] % EVENT_ACTIONS), NULL);
	memcpy(&v.seq, bytes, 8);
	memcpy(&v.time_us, bytes + 8, 8);
	memcpy(host, bytes + 3, 20);
	v.run = n % 2 ? "20261115-150455-abcdef" : NULL;
	third = n / 3;
	event_bytes(&v, FIELD_OBJECT, (const char *)bytes, third);
	event_list(&v, FIELD_ARGV, (const char *)bytes + third, third);
	event_bytes(&v, FIELD_WHY, (const char *)bytes + 2 * third, n - 2 * third);
	for (unsigned f = bytes[2] % EVENT_FIELDS; f < EVENT_FIELDS; f += 1 + bytes[3] % 7)
		if (event_field_type((enum event_field)f) == EVENT_TEXT)
			event_bytes(&v, (enum event_field)f, (const char *)bytes, third);
		else if (event_field_type((enum event_field)f) == EVENT_NUMBER)
			event_number(&v, (enum event_field)f, v.seq);
	/* words are ended by a NUL, as event_decode() hands them out */
	if (v.values[0].field == FIELD_ARGV || event_get(&v, FIELD_ARGV)) {
		static char words[8192];
		size_t len = third < sizeof(words) - 1 ? third : sizeof(words) - 1;

		memcpy(words, bytes + third, len);
		words[len] = '\0';
		event_list(&v, FIELD_ARGV, words, len + 1);
	}
	check_event(&v, host);
	return 0;
}

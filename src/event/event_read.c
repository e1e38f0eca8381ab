/*
 * A line of a journal as an event. In: bytes that may have been changed. Out: struct ward_event
 * whose texts lie in the caller's scratch, or a no. Pure, no allocation. One spelling is taken, the
 * encoder's (event_line.c): keys in their order, each once, no spaces, escapes only where they are
 * needed. So two lines that differ are two events that differ, and what was read can be written
 * again.
 */
#include "event/event.h"

#include <string.h>

#include "base/text.h"

struct in {
	const char *at, *end;
	char *scratch; /* where the next text goes */
};

static bool take(struct in *in, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(in->end - in->at) < n || memcmp(in->at, text, n) != 0)
		return false;
	in->at += n;
	return true;
}

static bool take_number(struct in *in, uint64_t *ret)
{
	const char *began = in->at;

	*ret = 0;
	for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
		if (__builtin_mul_overflow(*ret, 10U, ret) ||
		    __builtin_add_overflow(*ret, (unsigned)(*in->at - '0'), ret))
			return false;
	return in->at > began && (*began != '0' || in->at == began + 1);
}

static bool take_unit(struct in *in, unsigned *ret)
{
	static const char digits[] = "0123456789abcdef";

	*ret = 0;
	if (in->end - in->at < 6 || in->at[0] != '\\' || in->at[1] != 'u')
		return false;
	for (int i = 2; i < 6; i++) {
		const char *digit = in->at[i] ? strchr(digits, in->at[i]) : NULL;

		if (!digit)
			return false;
		*ret = *ret << 4 | (unsigned)(digit - digits);
	}
	in->at += 6;
	return true;
}

static void put_point(struct in *in, unsigned point)
{
	unsigned char *out = (unsigned char *)in->scratch;
	unsigned n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (unsigned i = n; i-- > 1; point >>= 6)
		out[i] = (unsigned char)(0x80 | (point & 0x3f));
	out[0] = (unsigned char)(heads[n] | point);
	in->scratch += n;
}

/* What the encoder escapes, and only that. */
static bool take_escape(struct in *in)
{
	unsigned point, low;

	if (in->end - in->at >= 2 && (in->at[1] == '"' || in->at[1] == '\\')) {
		*in->scratch++ = in->at[1];
		in->at += 2;
		return true;
	}
	if (!take_unit(in, &point))
		return false;
	if (point >= 0xd800 && point < 0xdc00) {
		if (!take_unit(in, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
	}
	if (!text_acts(point))
		return false;
	put_point(in, point);
	return true;
}

static bool take_character(struct in *in)
{
	unsigned char whole[5] = { 0 };
	unsigned point = 0;
	size_t left = (size_t)(in->end - in->at), n;

	memcpy(whole, in->at, left < 4 ? left : 4);
	n = text_utf8(whole, &point);
	if (!n || n > left || text_acts(point))
		return false;
	memcpy(in->scratch, in->at, n);
	in->scratch += n;
	in->at += n;
	return true;
}

/* A quoted text; it lies at *ret, with a NUL behind it. */
static bool take_text(struct in *in, const char **ret, size_t *ret_len)
{
	*ret = in->scratch;
	if (!take(in, "\""))
		return false;
	while (in->at < in->end && *in->at != '"') {
		unsigned char c = (unsigned char)*in->at;
		bool ok = true;

		if (c == '\\')
			ok = take_escape(in);
		else if (c >= 0x20 && c < 0x7f)
			*in->scratch++ = *in->at++;
		else
			ok = take_character(in);
		if (!ok)
			return false;
	}
	*ret_len = (size_t)(in->scratch - *ret);
	*in->scratch++ = '\0';
	return take(in, "\"");
}

/* A NUL within a word would make two of it. */
static bool take_list(struct in *in, const char **ret, size_t *ret_len)
{
	const char *word;
	size_t len;

	*ret = in->scratch;
	if (!take(in, "["))
		return false;
	while (!take(in, "]")) {
		if (in->scratch != *ret && !take(in, ","))
			return false;
		if (!take_text(in, &word, &len) || memchr(word, '\0', len))
			return false;
	}
	*ret_len = (size_t)(in->scratch - *ret);
	return true;
}

static bool take_value(struct in *in, struct ward_event *v, enum event_field f)
{
	const char *text;
	uint64_t number;
	size_t len;

	switch (event_field_type(f)) {
	case EVENT_NUMBER:
		if (!take_number(in, &number))
			return false;
		event_number(v, f, number);
		return true;
	case EVENT_FLAG:
		event_flag(v, f);
		return take(in, "true");
	case EVENT_LIST:
		if (!take_list(in, &text, &len))
			return false;
		event_list(v, f, text, len);
		return true;
	case EVENT_TEXT:
		if (!take_text(in, &text, &len))
			return false;
		event_bytes(v, f, text, len);
		return true;
	}
	return false;
}

/* The field whose key stands here, not before from; EVENT_FIELDS: none. */
static enum event_field take_key(struct in *in, unsigned from)
{
	const char *key = in->at + 2, *quote;

	if (in->end - in->at < 4 || in->at[0] != ',' || in->at[1] != '"')
		return EVENT_FIELDS;
	quote = memchr(key, '"', (size_t)(in->end - key));
	if (!quote || quote + 1 >= in->end || quote[1] != ':')
		return EVENT_FIELDS;
	for (unsigned f = from; f < EVENT_FIELDS; f++) {
		const char *name = event_field_name((enum event_field)f);

		if (strncmp(name, key, (size_t)(quote - key)) == 0 && name[quote - key] == '\0') {
			in->at = quote + 2;
			return (enum event_field)f;
		}
	}
	return EVENT_FIELDS;
}

static bool take_head(struct in *in, struct ward_event *v)
{
	const char *text;
	size_t len;

	if (!take(in, "{\"seq\":") || !take_number(in, &v->seq) || !take(in, ",\"time\":") ||
	    !take_text(in, &text, &len) || !event_time_read(text, len, &v->time_us))
		return false;
	if (take(in, ",\"run\":")) {
		if (!take_text(in, &v->run, &len) || len > 64 || memchr(v->run, '\0', len))
			return false;
	}
	if (!take(in, ",\"kind\":") || !take_text(in, &text, &len))
		return false;
	v->kind = (uint8_t)event_kind_find(text, len);
	if (!take(in, ",\"action\":") || !take_text(in, &text, &len))
		return false;
	v->action = (uint8_t)event_action_find(text, len);
	return v->kind < EVENT_KINDS && v->action < EVENT_ACTIONS;
}

static bool take_tail(struct in *in, const char **ret_hash)
{
	static const char digits[] = "0123456789abcdef";

	*ret_hash = NULL;
	if (take(in, ",\"hash\":\"")) {
		*ret_hash = in->at;
		if (in->end - in->at < EVENT_HASH_TEXT)
			return false;
		for (size_t i = 0; i < EVENT_HASH_TEXT; i++)
			if (!in->at[i] || !strchr(digits, in->at[i]))
				return false;
		in->at += EVENT_HASH_TEXT;
		if (!take(in, "\""))
			return false;
	}
	return take(in, "}") && (in->at == in->end || (take(in, "\n") && in->at == in->end));
}

bool event_decode(const char *line, size_t n, char scratch[EVENT_LINE_MAX], struct ward_event *ret,
		  const char **ret_hash)
{
	struct in in = { .at = line, .end = line + n, .scratch = scratch };
	struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, NULL);
	const char *hash;
	unsigned from = 0;

	if (n >= EVENT_LINE_MAX || !take_head(&in, &v))
		return false;
	for (;;) {
		enum event_field f = take_key(&in, from);

		if (f == EVENT_FIELDS)
			break;
		if (v.count == EVENT_VALUES_MAX || !take_value(&in, &v, f))
			return false;
		from = (unsigned)f + 1;
	}
	if (!take_tail(&in, &hash))
		return false;
	if (ret_hash)
		*ret_hash = hash;
	*ret = v;
	return true;
}

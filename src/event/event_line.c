/*
 * An event as a line, and a line as an event. In: struct ward_event with texts of any bytes, or
 * bytes of a journal that may have been changed. Out: one line of JSON in one spelling only, or
 * struct ward_event. Pure functions, no allocation.
 *
 * The line: {"seq":N,"time":"...","run":"...","kind":"...","action":"...", then the fields in the
 * order of the table}. There is exactly one spelling of each event, so that what is read back and
 * written again is the same line: the decoder refuses every other. Characters that act (control
 * characters, marks that turn text around) are \u escapes, bytes that are not UTF-8 become U+FFFD;
 * no text can end its own quotes, its line, or the escapes of the terminal that shows it.
 *
 * Bounds: a text takes at most TEXT_MAX bytes of a line, a list LIST_MAX, and none so many that
 * what follows would lack room.
 */
#include "event/event.h"

#include <string.h>

#include "base/text.h"

#define TEXT_MAX 4096
#define LIST_MAX 8192
#define ROOM_EACH 64 /* a key of 20, a number of 20, quotes; or an empty text */
#define ROOM_END 128 /* "cut":true, the tail of a journal */
#define US_PER_DAY (86400ULL * 1000000)
#define TIME_MAX_US (253402300800ULL * 1000000) /* the year 10000 */

/* -- writing */

struct out {
	char *at;
	bool cut;
};

/* Each field as it stands in a line, and how long that is: so many bytes are always copied, because
 * a copy of a fixed size is two instructions, and what is too much is written over next. */
#define KEY_BYTES 24
static const char keys[][KEY_BYTES] = {
#define FIELD(id, name, type, help) ",\"" name "\":",
#include "events.def"
};

static const uint8_t key_lengths[] = {
#define FIELD(id, name, type, help) sizeof(",\"" name "\":") - 1,
#include "events.def"
};

static void put(struct out *o, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) /* a few: a call would cost more */
		o->at[i] = bytes[i];
	o->at += n;
}

static void put_field(struct out *o, enum event_field f)
{
	memcpy(o->at, keys[f], KEY_BYTES);
	o->at += key_lengths[f];
}

static void put_number(struct out *o, uint64_t number)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[sizeof(digits) - ++n] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	put(o, digits + sizeof(digits) - n, n);
}

/* A text of ours, which has nothing to be escaped. */
static void put_known(struct out *o, const char *before, size_t n, const char *text)
{
	put(o, before, n);
	while (*text)
		*o->at++ = *text++;
	*o->at++ = '"';
}

static size_t escape(char *out, unsigned unit)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'u';
	for (unsigned i = 0; i < 4; i++)
		out[2 + i] = digits[unit >> (12 - 4 * i) & 15];
	return 6;
}

/* One character that is not plain: into at most 12 bytes. *ret_used: how many bytes of s it was. */
static size_t spell(const unsigned char *s, size_t left, char out[12], size_t *ret_used)
{
	unsigned char whole[5] = { 0 };
	unsigned point = 0;
	size_t n;

	memcpy(whole, s, left < 4 ? left : 4);
	n = text_utf8(whole, &point);
	*ret_used = n ? n : 1;
	if (n > left || !n) {
		*ret_used = 1;
		memcpy(out, "\xef\xbf\xbd", 3);
		return 3;
	}
	if (point == '"' || point == '\\') {
		out[0] = '\\';
		out[1] = (char)point;
		return 2;
	}
	if (!text_acts(point)) {
		memcpy(out, s, n);
		return n;
	}
	if (point < 0x10000)
		return escape(out, point);
	escape(out, 0xd800 + ((point - 0x10000) >> 10));
	escape(out + 6, 0xdc00 + ((point - 0x10000) & 0x3ff));
	return 12;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* A quoted text whose content ends before limit. */
static void put_quoted(struct out *o, const char *text, size_t len, const char *limit)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;

	*o->at++ = '"';
	while (s < end) {
		size_t room, n, used;
		char spelt[12];

		while (s < end && o->at < limit && is_plain(*s))
			*o->at++ = (char)*s++;
		if (s == end)
			break;
		if (is_plain(*s)) {
			o->cut = true;
			break;
		}
		room = o->at < limit ? (size_t)(limit - o->at) : 0;
		n = spell(s, (size_t)(end - s), spelt, &used);
		if (n > room) {
			o->cut = true;
			break;
		}
		put(o, spelt, n);
		s += used;
	}
	*o->at++ = '"';
}

static void put_list(struct out *o, const char *words, size_t len, const char *limit)
{
	const char *end = words + len;

	*o->at++ = '[';
	for (bool first = true; words < end; first = false) {
		size_t left = (size_t)(end - words), n = strnlen(words, left);

		if (o->at + 4 > limit) {
			o->cut = true;
			break;
		}
		if (!first)
			*o->at++ = ',';
		put_quoted(o, words, n, limit - 3);
		words += n < left ? n + 1 : n;
	}
	*o->at++ = ']';
}

static void put_value(struct out *o, const struct event_value *value, const char *end)
{
	enum event_type type = event_field_type((enum event_field)value->field);
	const char *limit;

	put_field(o, (enum event_field)value->field);
	limit = o->at + (type == EVENT_LIST ? LIST_MAX : TEXT_MAX);
	if (limit > end)
		limit = end;
	if (type == EVENT_NUMBER)
		put_number(o, value->number);
	else if (type == EVENT_FLAG)
		put(o, "true", 4);
	else if (type == EVENT_LIST)
		put_list(o, value->text, value->len, limit);
	else
		put_quoted(o, value->text, value->len, limit);
}

size_t event_encode(const struct ward_event *v, char out[EVENT_LINE_MAX])
{
	struct out o = { .at = out };
	char time[EVENT_TIME_TEXT];
	const size_t has_cut = event_get(v, FIELD_CUT) != NULL, count = v->count - has_cut;

	put(&o, "{\"seq\":", 7);
	put_number(&o, v->seq);
	event_time_text(v->time_us, time);
	put_known(&o, ",\"time\":\"", 9, time);
	if (v->run) {
		put(&o, ",\"run\":", 7);
		put_quoted(&o, v->run, strnlen(v->run, 64), out + TEXT_MAX);
	}
	put_known(&o, ",\"kind\":\"", 9, event_kind_name((enum event_kind)v->kind));
	put_known(&o, ",\"action\":\"", 11, event_action_name((enum event_action)v->action));
	for (size_t i = 0; i < count; i++)
		put_value(&o, &v->values[i],
			  out + EVENT_LINE_MAX - ROOM_END - ROOM_EACH * (count - i));
	if (o.cut || has_cut) {
		put_field(&o, FIELD_CUT);
		put(&o, "true", 4);
	}
	put(&o, "}\n", 2);
	return (size_t)(o.at - out);
}

/* -- time: days from 1970 by the rule of the calendar, without a library's tables */

static void put_digits(char *out, unsigned number, unsigned n)
{
	while (n--) {
		out[n] = (char)('0' + number % 10);
		number /= 10;
	}
}

void event_time_text(uint64_t time_us, char ret[EVENT_TIME_TEXT])
{
	uint64_t us = time_us < TIME_MAX_US ? time_us : TIME_MAX_US - 1, rest = us % US_PER_DAY;
	unsigned days = (unsigned)(us / US_PER_DAY) + 719468, era = days / 146097,
		 doe = days % 146097;
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
		 doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	unsigned mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9;

	memcpy(ret, "0000-00-00T00:00:00.000000Z", EVENT_TIME_TEXT);
	put_digits(ret, yoe + era * 400 + (month <= 2), 4);
	put_digits(ret + 5, month, 2);
	put_digits(ret + 8, doy - (153 * mp + 2) / 5 + 1, 2);
	put_digits(ret + 11, (unsigned)(rest / 3600000000), 2);
	put_digits(ret + 14, (unsigned)(rest / 60000000 % 60), 2);
	put_digits(ret + 17, (unsigned)(rest / 1000000 % 60), 2);
	put_digits(ret + 20, (unsigned)(rest % 1000000), 6);
}

static unsigned get_digits(const char *text, unsigned n)
{
	unsigned number = 0;

	for (unsigned i = 0; i < n; i++)
		number = number * 10 + (unsigned)(unsigned char)text[i] - '0';
	return number;
}

bool event_time_read(const char *text, size_t n, uint64_t *ret_us)
{
	static const char shape[] = "0000-00-00T00:00:00.000000Z";
	char again[EVENT_TIME_TEXT];
	unsigned year, month, era, yoe, doy;

	if (n != EVENT_TIME_TEXT - 1)
		return false;
	for (size_t i = 0; i < n; i++)
		if (shape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
			return false;
	year = get_digits(text, 4);
	month = get_digits(text + 5, 2);
	if (year < 1970 || month < 1 || month > 12)
		return false;
	year -= month <= 2;
	era = year / 400;
	yoe = year % 400;
	doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + get_digits(text + 8, 2) - 1;
	*ret_us = (uint64_t)(era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468) *
			  US_PER_DAY +
		  (uint64_t)(get_digits(text + 11, 2) * 3600 + get_digits(text + 14, 2) * 60 +
			     get_digits(text + 17, 2)) *
			  1000000 +
		  get_digits(text + 20, 6);
	event_time_text(*ret_us, again); /* a 31st of February is another day */
	return memcmp(again, text, n) == 0;
}

/*
 * CEF and RFC 5424. In: an event. Out: one line. Pure. CEF: the header says what, the extension has
 * the fields under the keys of tables/export.def. RFC 5424: the fields are one element of
 * structured data under their own names, the message is for people; what would make it longer than
 * receivers take is left out, and it says so.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "audit/escape.h"
#include "audit/export.h"
#include "event/event.h"

#define VALUE_MAX 1024
#define SD_MAX 5120
#define FACILITY 10 /* authpriv: security, not for everybody's eyes */
#define SD_ID "ward@32473"

static const struct {
	uint8_t field;
	const char *key, *label;
} keys[] = {
#define CEF(field, key, label) { FIELD_##field, key, label },
#include "export.def"
};

/* A value as bytes, lists joined by spaces. */
static void plain_value(const struct event_value *value, struct buf *out)
{
	enum event_type type = event_field_type((enum event_field)value->field);

	if (type == EVENT_NUMBER) {
		buf_printf(out, "%" PRIu64, value->number);
	} else if (type == EVENT_FLAG) {
		buf_puts(out, "true");
	} else if (type == EVENT_TEXT) {
		buf_add(out, value->text, value->len);
	} else {
		for (size_t at = 0; at < value->len; at += strlen(value->text + at) + 1) {
			buf_puts(out, at ? " " : "");
			buf_puts(out, value->text + at);
		}
	}
}

/* "memory_peak_bytes" -> "wardMemoryPeakBytes": letters and digits only. */
static void put_own_key(const char *name, struct buf *out)
{
	bool upper = true;

	buf_puts(out, "ward");
	for (; *name; name++) {
		char c = upper ? (char)toupper((unsigned char)*name) : *name;

		upper = *name == '_';
		if (!upper)
			buf_add(out, &c, 1);
	}
}

static void put_extension(const struct event_value *value, struct buf *out)
{
	auto_buf plain = { 0 };
	size_t i = 0;

	while (i < ARRAY_LEN(keys) && keys[i].field != value->field)
		i++;
	buf_puts(out, " ");
	if (i < ARRAY_LEN(keys))
		buf_puts(out, keys[i].key);
	else
		put_own_key(event_field_name((enum event_field)value->field), out);
	buf_puts(out, "=");
	plain_value(value, &plain);
	escape_cef_value(out, buf_text(&plain), plain.len);
	if (i < ARRAY_LEN(keys) && keys[i].label[0])
		buf_printf(out, " %sLabel=%s", keys[i].key, keys[i].label);
}

/* The object has a key of its own kind; elsewhere it is part of the message. */
static const char *object_key(unsigned class)
{
	return class == 1001   ? "fname"
	       : class == 1007 ? "dproc"
	       : class == 4003 ? "dhost"
			       : "wardObject";
}

static const char *outcome(const struct ward_event *v)
{
	static const char names[][10] = { "logged", "allowed", "blocked", "asked", "approved" };

	_Static_assert(ARRAY_LEN(names) == EVENT_ACTIONS, "each action");
	return names[v->action];
}

void export_cef(const struct export_from *from, const struct ward_event *v, struct buf *out)
{
	static const uint8_t severities[] = { 0, 1, 3, 6, 8, 10 };
	const char *kind = event_kind_name((enum event_kind)v->kind);
	const struct event_value *object = event_get(v, FIELD_OBJECT);
	const unsigned class = event_ocsf_class((enum event_kind)v->kind);
	auto_buf message = { 0 };
	char uid[96];

	export_uid(v, uid);
	export_message(v, &message);
	buf_puts(out, "CEF:0|ward|ward|");
	escape_cef_header(out, WARD_VERSION, strlen(WARD_VERSION));
	buf_printf(out, "|%s|", kind);
	escape_cef_header(out, kind, strlen(kind));
	buf_printf(out, " %s|%u|rt=%" PRIu64 " act=%s outcome=%s cat=%s externalId=%s dvchost=",
		   event_action_name((enum event_action)v->action), severities[event_severity(v)],
		   v->time_us / 1000, outcome(v), v->action == ACTION_DENY ? "failure" : "success",
		   kind, uid);
	escape_cef_value(out, from->host, strlen(from->host));
	if (v->run) {
		buf_puts(out, " cs2=");
		escape_cef_value(out, v->run, strlen(v->run));
		buf_puts(out, " cs2Label=run");
	}
	if (object) {
		buf_printf(out, " %s=", object_key(class));
		escape_cef_value(out, object->text, object->len);
	}
	for (size_t i = 0; i < v->count; i++)
		if (v->values[i].field != FIELD_OBJECT &&
		    !(class == 4003 && v->values[i].field == FIELD_HOST))
			put_extension(&v->values[i], out);
	buf_puts(out, " msg=");
	escape_cef_value(out, buf_text(&message), message.len);
}

/* -- RFC 5424 */

/* At most n bytes that end where a character does. */
static size_t fitting(const char *text, size_t len, size_t n)
{
	if (len <= n)
		return len;
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* False: it has no room. */
static bool put_param(const char *name, const struct event_value *value, size_t until,
		      struct buf *out)
{
	auto_buf plain = { 0 }, quoted = { 0 };
	size_t n;

	plain_value(value, &plain);
	n = fitting(buf_text(&plain), plain.len, VALUE_MAX);
	escape_sd(&quoted, buf_text(&plain), n);
	if (out->len + quoted.len + strlen(name) + 4 > until)
		return false;
	buf_printf(out, " %s=\"", name);
	buf_add(out, buf_text(&quoted), quoted.len);
	buf_puts(out, "\"");
	return n == plain.len;
}

/* HOSTNAME is printable ASCII without spaces. */
static void put_host(const char *host, struct buf *out)
{
	size_t n = 0;

	for (; n < 255 && host[n]; n++) {
		char c = host[n] > 0x20 && host[n] < 0x7f ? host[n] : '_';

		buf_add(out, &c, 1);
	}
	if (!n)
		buf_puts(out, "-");
}

/* Up to MSGID and a space. */
static void put_head(const struct export_from *from, const struct ward_event *v, struct buf *out)
{
	static const uint8_t severities[] = { 6, 6, 5, 4, 3, 2 };
	char time[EVENT_TIME_TEXT];

	event_time_text(v->time_us, time);
	buf_printf(out, "<%u>1 %s ", FACILITY * 8U + severities[event_severity(v)], time);
	put_host(from->host, out);
	buf_printf(out, " ward - %s ", event_kind_name((enum event_kind)v->kind));
}

void export_syslog_carry(const struct export_from *from, const struct ward_event *v,
			 enum export_format f, struct buf *out)
{
	if (f == EXPORT_SYSLOG) {
		export_syslog(from, v, out);
		return;
	}
	put_head(from, v, out);
	buf_puts(out, "- "); /* no structured data */
	export_event(f, from, v, out);
}

void export_syslog(const struct export_from *from, const struct ward_event *v, struct buf *out)
{
	const size_t until = out->len + SD_MAX;
	auto_buf message = { 0 };
	bool cut = false;

	export_message(v, &message);
	put_head(from, v, out);
	buf_printf(out, "[" SD_ID " seq=\"%" PRIu64 "\"", v->seq);
	if (v->run) {
		buf_puts(out, " run=\"");
		escape_sd(out, v->run, strlen(v->run));
		buf_puts(out, "\"");
	}
	buf_printf(out, " action=\"%s\" severity=\"%s\"",
		   event_action_name((enum event_action)v->action),
		   event_severity_name(event_severity(v)));
	for (size_t i = 0; i < v->count; i++)
		if (v->values[i].field != FIELD_CUT &&
		    !put_param(event_field_name((enum event_field)v->values[i].field),
			       &v->values[i], until, out))
			cut = true;
	if (cut || event_get(v, FIELD_CUT))
		buf_puts(out, " cut=\"true\"");
	buf_puts(out, "] ");
	/* a byte takes at most 7 in what a line is made of */
	escape_line(out, buf_text(&message), fitting(buf_text(&message), message.len, 256));
}

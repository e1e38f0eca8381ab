/*
 * OTLP logs as JSON. In: an event. Out: one log record, and what stands around many. Pure. Numbers
 * of 64 bits are texts, as proto3's JSON wants them.
 */
#include <inttypes.h>
#include <string.h>

#include "audit/escape.h"
#include "audit/export.h"
#include "event/event.h"

static const struct {
	uint8_t field;
	const char *name;
} attributes[] = {
#define OTLP(field, name) { FIELD_##field, name },
#include "export.def"
};

static void put_text(struct buf *out, const char *key, const char *text, size_t n)
{
	buf_printf(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
	escape_json(out, text, n);
	buf_puts(out, "}}");
}

static void put_key(struct buf *out, enum event_field f)
{
	size_t i = 0;

	while (i < ARRAY_LEN(attributes) && attributes[i].field != f)
		i++;
	buf_printf(out, "{\"key\":\"%s%s\",\"value\":", i < ARRAY_LEN(attributes) ? "" : "ward.",
		   i < ARRAY_LEN(attributes) ? attributes[i].name : event_field_name(f));
}

static void put_list(struct buf *out, const struct event_value *value)
{
	buf_puts(out, "{\"arrayValue\":{\"values\":[");
	for (size_t at = 0; at < value->len; at += strlen(value->text + at) + 1) {
		buf_puts(out, at ? ",{\"stringValue\":" : "{\"stringValue\":");
		escape_json(out, value->text + at, strlen(value->text + at));
		buf_puts(out, "}");
	}
	buf_puts(out, "]}}");
}

static void put_attribute(struct buf *out, const struct event_value *value)
{
	enum event_field f = (enum event_field)value->field;

	buf_puts(out, ",");
	put_key(out, f);
	if (event_field_type(f) == EVENT_NUMBER) {
		buf_printf(out, "{\"intValue\":\"%" PRIu64 "\"}",
			   value->number > INT64_MAX ? (uint64_t)INT64_MAX : value->number);
	} else if (event_field_type(f) == EVENT_FLAG) {
		buf_puts(out, "{\"boolValue\":true}");
	} else if (event_field_type(f) == EVENT_LIST) {
		put_list(out, value);
	} else {
		buf_puts(out, "{\"stringValue\":");
		escape_json(out, value->text, value->len);
		buf_puts(out, "}");
	}
	buf_puts(out, "}");
}

void export_otlp(unused_arg const struct export_from *from, const struct ward_event *v,
		 struct buf *out)
{
	static const struct {
		uint8_t number;
		char text[6];
	} severities[] = { { 9, "INFO" },  { 9, "INFO" },   { 10, "INFO2" },
			   { 13, "WARN" }, { 17, "ERROR" }, { 21, "FATAL" } };
	const char *kind = event_kind_name((enum event_kind)v->kind),
		   *action = event_action_name((enum event_action)v->action);
	const unsigned severity = event_severity(v);
	auto_buf message = { 0 };
	char uid[96];

	export_uid(v, uid);
	export_message(v, &message);
	buf_printf(out,
		   "{\"timeUnixNano\":\"%" PRIu64 "000\",\"observedTimeUnixNano\":\"%" PRIu64
		   "000\",\"severityNumber\":%u,\"severityText\":\"%s\",\"eventName\":\"ward.%s\","
		   "\"body\":{\"stringValue\":",
		   v->time_us, v->time_us, severities[severity].number, severities[severity].text,
		   kind);
	escape_json(out, buf_text(&message), message.len);
	buf_puts(out, "},\"attributes\":[");
	put_text(out, "ward.kind", kind, strlen(kind));
	buf_puts(out, ",");
	put_text(out, "ward.action", action, strlen(action));
	buf_puts(out, ",");
	put_text(out, "log.record.uid", uid, strlen(uid));
	if (v->run) {
		buf_puts(out, ",");
		put_text(out, "container.id", v->run, strlen(v->run));
	}
	for (size_t i = 0; i < v->count; i++)
		put_attribute(out, &v->values[i]);
	buf_puts(out, "]}");
}

void export_otlp_begin(const struct export_from *from, struct buf *out)
{
	buf_puts(out, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[");
	put_text(out, "service.name", "ward", 4);
	buf_puts(out, ",");
	put_text(out, "service.version", WARD_VERSION, strlen(WARD_VERSION));
	buf_puts(out, ",");
	put_text(out, "host.name", from->host, strlen(from->host));
	buf_puts(out, "]},\"scopeLogs\":[{\"scope\":{\"name\":\"ward\",\"version\":\"" WARD_VERSION
		      "\"},\"logRecords\":[");
}

void export_otlp_end(struct buf *out)
{
	buf_puts(out, "]}]}]}");
}

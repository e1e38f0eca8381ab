/*
 * Events in the formats of others: what the formats share. In: struct ward_event whose texts may
 * hold any bytes. Out: text. Pure functions, run by ward-audit: `ward audit export` and the sinks
 * (sink.c) use the same ones. Every text goes through escape.c.
 */
#include "audit/export.h"

#include <inttypes.h>
#include <string.h>

#include "audit/escape.h"
#include "event/event.h"

const char *export_format_name(enum export_format f)
{
	static const char names[][8] = { "json", "ocsf", "cef", "syslog", "otlp" };

	_Static_assert(ARRAY_LEN(names) == EXPORT_FORMATS, "each format has a name");
	return f < EXPORT_FORMATS ? names[f] : "";
}

enum export_format export_format_find(const char *name)
{
	unsigned f = 0;

	while (f < EXPORT_FORMATS && strcmp(export_format_name((enum export_format)f), name) != 0)
		f++;
	return (enum export_format)f;
}

void export_message(const struct ward_event *v, struct buf *out)
{
	const struct event_value *object = event_get(v, FIELD_OBJECT),
				 *why = event_get(v, FIELD_WHY);

	buf_printf(out, "%s %s", event_action_name((enum event_action)v->action),
		   event_kind_name((enum event_kind)v->kind));
	if (object && object->len) {
		buf_puts(out, " ");
		buf_add(out, object->text, object->len);
	}
	if (why && why->len) {
		buf_puts(out, ": ");
		buf_add(out, why->text, why->len);
	}
}

void export_uid(const struct ward_event *v, char ret[96])
{
	snprintf(ret, 96, "%.64s:%" PRIu64, v->run ? v->run : "index", v->seq);
}

static void export_json(unused_arg const struct export_from *from, const struct ward_event *v,
			struct buf *out)
{
	auto_free char *line = malloc(EVENT_LINE_MAX);

	if (line)
		buf_add(out, line, event_encode(v, line) - 1);
	else
		out->failed = true;
}

void export_event(enum export_format f, const struct export_from *from, const struct ward_event *v,
		  struct buf *out)
{
	static void (*const formats[])(const struct export_from *from, const struct ward_event *v,
				       struct buf *out) = {
		[EXPORT_JSON] = export_json, [EXPORT_OCSF] = export_ocsf,
		[EXPORT_CEF] = export_cef,   [EXPORT_SYSLOG] = export_syslog,
		[EXPORT_OTLP] = export_otlp,
	};

	formats[f](from, v, out);
}

/* Events in the formats of others. Pure functions over struct ward_event; what stands where is
 * tables/export.def. */
#ifndef WARD_AUDIT_EXPORT_H
#define WARD_AUDIT_EXPORT_H

#include "base/buf.h"
#include "model/event.h"

enum export_format {
	EXPORT_JSON,
	EXPORT_OCSF,
	EXPORT_CEF,
	EXPORT_SYSLOG,
	EXPORT_OTLP,
	EXPORT_FORMATS
};

#define EXPORT_SYSLOG_MAX 7168 /* a message never is longer: receivers cut at 8 KiB */

/* What is the same in all events of this machine. Texts are borrowed. */
struct export_from {
	const char *host;
};

const char *export_format_name(enum export_format f);
/* EXPORT_FORMATS: there is none of that name. */
enum export_format export_format_find(const char *name);

/* Appends one record without a newline: OCSF and OTLP one object (of OTLP the log record alone),
 * CEF and RFC 5424 one line, JSON the journal's own without its hash. */
void export_event(enum export_format f, const struct export_from *from, const struct ward_event *v,
		  struct buf *out);

/* What stands around the log records of an ExportLogsServiceRequest; they are separated by
 * commas. */
void export_otlp_begin(const struct export_from *from, struct buf *out);
void export_otlp_end(struct buf *out);

/* "deny net.connect api.example.com:443: why", any bytes in it. */
void export_message(const struct ward_event *v, struct buf *out);
/* "RUN:SEQ": the same event sent twice can be recognized by it. Events of no run: "index:SEQ". */
void export_uid(const struct ward_event *v, char ret[96]);

/* Each format. */
void export_ocsf(const struct export_from *from, const struct ward_event *v, struct buf *out);
void export_cef(const struct export_from *from, const struct ward_event *v, struct buf *out);
/* RFC 5424 with another format (or its own) as what it carries. */
void export_syslog_carry(const struct export_from *from, const struct ward_event *v,
			 enum export_format f, struct buf *out);
void export_syslog(const struct export_from *from, const struct ward_event *v, struct buf *out);
void export_otlp(const struct export_from *from, const struct ward_event *v, struct buf *out);

#endif

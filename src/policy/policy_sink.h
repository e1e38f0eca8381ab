/* A sink of a policy, taken apart: where events go besides the journal. */
#ifndef WARD_POLICY_POLICY_SINK_H
#define WARD_POLICY_POLICY_SINK_H

#include "policy/policy.h"

enum sink_way {
	SINK_FILE,
	SINK_COMMAND,
	SINK_UNIX,
	SINK_UDP,
	SINK_TCP,
	SINK_TLS,
	SINK_HTTP,
	SINK_HTTPS
};

#define SINKS_MAX 16 /* of one policy */

/* Texts are owned; what is not said is NULL. */
struct policy_sink {
	enum sink_way way;
	char *to;   /* as it was written */
	char *host; /* of an address; IPv6 without brackets */
	unsigned port;
	char *path;        /* of a file, socket or URL */
	struct strv words; /* of a command */
	/* of a file or program: found, without links; NULL: as a policy has it */
	char *place;
	unsigned format;   /* json, ocsf, cef, syslog, otlp: as enum export_format */
	unsigned severity; /* as enum event_severity */
	char *ca, *cert, *key, *token;
	uint64_t max_bytes, keep, wait_ms;
	bool stop; /* on_lag */
};

/* Takes apart one line of canonical JSON, as struct policy holds sinks. -EINVAL with *e; *ret is
 * empty then. */
must_check int policy_sink_read(const char *line, struct policy_sink *ret, struct ward_err *e);
/* The line again, with place, ca, cert, key and token as s has them. */
must_check int policy_sink_write(const char *line, const struct policy_sink *s, struct buf *out,
				 struct ward_err *e);
void policy_sink_clear(struct policy_sink *s);

/* "tcp://host:514", "unix:/dev/log", "https://host/path" and so on. False: it is none. Pure. */
bool sink_split(const char *type, const char *to, struct policy_sink *ret);

#endif

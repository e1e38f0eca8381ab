/*
 * What a person should see in changes before they are applied: secrets and the constructs of
 * tables/look.def. ward-scan looks, locked up; here is what it says.
 */
#ifndef WARD_REVIEW_LOOK_H
#define WARD_REVIEW_LOOK_H

#include "base/buf.h"
#include "base/json.h"

enum look_severity { LOOK_LOW, LOOK_MEDIUM, LOOK_HIGH, LOOK_SEVERITIES };

/* One finding; texts are owned, the path is escaped. */
struct look_finding {
	enum look_severity severity;
	bool secret;   /* not a construct */
	uint64_t line; /* 0: the file as a whole */
	char *rule, *path, *title;
};

struct look_findings {
	struct look_finding *items;
	size_t len, cap;
};

/* What ward-scan is to look through. */
struct look_request {
	int new_fd, old_fd; /* directories, borrowed; old_fd -1: there is nothing to compare with */
	const char *paths;  /* beneath new_fd, each ended by NUL */
	size_t path_bytes;
	uint64_t since_ns; /* not 0: every file that has changed since, for secrets only */
	bool personal;
	uint64_t timeout_ms; /* 0: as long as it takes */
};

/* Starts ward-scan and reads what it says. The caller frees with look_clear(). */
must_check int look_run(const struct look_request *q, struct look_findings *ret,
			struct ward_err *e);
/* Reads what ward-scan has written. A pure function; -EINVAL: it is not whole. */
must_check int look_read(const char *bytes, size_t n, struct look_findings *ret);
/* Adds a copy of a finding. -ENOMEM: also for more of them than a person reads. */
must_check int look_add(struct look_findings *f, const struct look_finding *x);
void look_clear(struct look_findings *f);

const char *look_severity_name(enum look_severity s);
/* False: it is none of low, medium, high. */
bool look_severity_read(const char *text, enum look_severity *ret);
/* How many are at least that severe. */
size_t look_count(const struct look_findings *f, enum look_severity least);

#endif

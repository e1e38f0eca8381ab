/*
 * Looking for secrets in a stream of bytes, by the rows of tables/scan.def. The caller reads into
 * the detector's own window; what lies at the end of a window is looked at with the bytes that
 * follow, so a secret is found wherever pieces begin and end.
 */
#ifndef WARD_SCAN_DETECT_H
#define WARD_SCAN_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH };

enum detect_kind { DETECT_SECRET = 1, DETECT_PII = 2 };

/* A row of the table. */
struct detect_rule {
	const char *id, *title, *source, *date;
	enum detect_kind kind;
	enum severity severity;
};

size_t detect_rule_count(void);
const struct detect_rule *detect_rule(size_t i);
/* The row's number, or -1. */
int detect_find_rule(const char *id, size_t n);
const char *detect_severity(enum severity s);

/* All rows of some kinds, compiled: for any number of detectors and scrubs of one thread. */
struct detect_rules;
must_check int detect_rules_new(unsigned kinds, struct detect_rules **ret, struct ward_err *e);
/* The same from what detect_rules_serialize() made of the same kinds. */
must_check int detect_rules_load(unsigned kinds, const void *serial, size_t n,
				 struct detect_rules **ret, struct ward_err *e);
/* The database as bytes, for any processor; free() them. */
must_check int detect_rules_serialize(unsigned kinds, char **ret, size_t *ret_n,
				      struct ward_err *e);
void detect_rules_free(struct detect_rules *r);

struct detect_hit {
	size_t rule;
	uint64_t offset;       /* of the secret in the stream */
	uint64_t line;         /* from 1 */
	uint64_t column;       /* in bytes, from 1; counted at most over the window */
	const uint8_t *secret; /* borrowed, valid during the call only */
	size_t secret_bytes;
};

/* Called once for each hit, in order. */
typedef void detect_found(void *ctx, const struct detect_hit *hit);

struct detector;
must_check int detector_new(const struct detect_rules *r, detect_found *found, void *ctx,
			    struct detector **ret, struct ward_err *e);
void detector_free(struct detector *d);
/* Begins a new stream. It is binary where its first bytes have a NUL: rows for texts are left out
 * then. */
void detector_begin(struct detector *d);
bool detector_is_binary(const struct detector *d);
/* Where the next bytes are to be read to, and how many there is room for (never 0). */
uint8_t *detector_room(struct detector *d, size_t *ret_bytes);
/* So many bytes were read there; 0: the stream has ended. -errno: vectorscan failed. */
must_check int detector_fill(struct detector *d, size_t bytes, struct ward_err *e);

#endif

/* What the files of the engine share: the rows, and the judgement about one place. */
#ifndef WARD_SCAN_DETECT_INTERNAL_H
#define WARD_SCAN_DETECT_INTERNAL_H

#include <hs/hs_common.h>
#include <hs/hs_runtime.h>

#include "scan/check.h"
#include "scan/detect.h"
#include "scan/pattern.h"

/* Bytes that a pattern may need behind a text, and in front of it. */
#define AHEAD 9216
#define BEHIND 512

enum { CASELESS = 1, TEXT = 2, QUOTED = 4, INNER = 8, OPEN = 16 };

/* A row of tables/scan.def. */
struct row {
	struct detect_rule rule;
	const char *seek, *pattern;
	unsigned flags, back, entropy;
	enum check check;
};

enum {
#define RULE(...) +1
	ROWS = 0
#include "scan.def"
};
extern const struct row detect_rows[ROWS];

/* A text that vectorscan looks for; its place in the list is the number that it reports. */
struct detect_text {
	const char *text; /* not NUL-terminated */
	unsigned short row, bytes;
};

struct detect_rules {
	hs_database_t *database;
	hs_scratch_t *scratch; /* of the scrubs, which run one after the other */
	struct pattern patterns[ROWS];
	size_t text_count;
	struct detect_text *texts;
	size_t bare[ROWS], bare_count; /* rows without a text */
};

/* All but the database. */
must_check int detect_rules_prepare(unsigned kinds, struct detect_rules **ret, struct ward_err *e);

/* With a database: what is needed beside it. */
must_check int detect_rules_finish(struct detect_rules *r, struct ward_err *e);

struct found {
	size_t rule, start, end; /* of the secret */
	size_t from;             /* where the match begins */
};

enum place { PLACE_NOTHING, PLACE_FOUND, PLACE_UNSURE };

/* Whether a hit may begin within these bytes. */
bool detect_begins_word(const uint8_t *bytes, size_t at);
/* Whether the row's text at `at` is part of a hit. UNSURE: more bytes could change that; only
 * ret->from is set then. */
enum place detect_judge(const struct detect_rules *r, size_t row, const uint8_t *bytes, size_t n,
			size_t at, bool final, struct found *ret);
/* Sorts hits and drops what overlaps something better; the number that is left. */
size_t detect_settle(struct found *hits, size_t n);

#endif

/*
 * Parts of something larger (Range, 206) over a connection that is looked through. A process that
 * may say where a part begins and ends can have a secret cut in two, and see each half. So more is
 * asked for on either side than a secret is long, all of it is looked through, and only what was
 * asked for goes on. Several parts at once are not asked for: a server may always answer with the
 * whole. Only reading is asked for otherwise: what is written goes where it was meant to, and no
 * part comes back. Other units than bytes are none of ours. Pure; fuzzed (fuzz/part.c).
 */
#ifndef WARD_KEYS_PART_H
#define WARD_KEYS_PART_H

#include "base/buf.h"

/* PART_UNITS: of something that is not counted in bytes. PART_WHOLE: no part may come. */
enum part_kind { PART_NONE, PART_BETWEEN, PART_FROM, PART_LAST, PART_UNITS, PART_WHOLE };

#define PART_NAMES 3
/* of the fields that ask for one, in lower case */
extern const char *const part_names[PART_NAMES];

struct part {
	uint8_t kind;      /* enum part_kind */
	uint8_t gone;      /* bits: fields of part_names that were taken out */
	uint64_t from, to; /* first and last byte; of PART_LAST `from` is how many */
};

/* Of the body of an answer only these bytes go on. */
struct part_window {
	bool on;
	uint64_t skip, left;
};

/* Rewrites a request's head (lines of HTTP/1.1, the first its request line), so that margin bytes
 * more are asked for on either side; what was asked for is in *ret. reads: the request changes
 * nothing; others stay as they are. False: out of memory. */
must_check bool part_request(struct buf *head, size_t margin, bool reads, struct part *ret);

enum part_say { PART_FINE, PART_BEYOND, PART_ODD };
/* Rewrites the fields of an answer of status 206 to such a request: *ret is its window. lines: they
 * end in CRLF or LF, and may have a status line in front and an empty line behind. PART_BEYOND:
 * what was asked for begins behind its end; PART_ODD: it is another part, or not understood. */
enum part_say part_answer(struct buf *lines, const struct part *p, struct part_window *ret);

/* Of the next n bytes of the body those from *ret_from on go on; returns how many. */
size_t part_pass(struct part_window *w, size_t n, size_t *ret_from);

#endif

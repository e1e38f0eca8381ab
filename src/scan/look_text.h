/*
 * Constructs that a person should see before a change is applied: the rows of tables/look.def. Pure
 * functions over bytes that anyone may have written.
 */
#ifndef WARD_SCAN_LOOK_TEXT_H
#define WARD_SCAN_LOOK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scan/detect.h"

#define LOOK_LINE_MAX 8192 /* a longer line is looked at in pieces */

/* A row, whichever kind it is. */
struct look_rule {
	const char *id, *title;
	enum severity severity;
};

size_t look_rule_count(void);
const struct look_rule *look_rule(size_t i);
/* The number of a row, which is there. */
size_t look_find(const char *id);

typedef void look_found(void *ctx, size_t rule);

/* The file at this path is new or has changed. */
void look_path(const char *path, look_found *found, void *ctx);
/* The first bytes of a file. */
void look_begin(const uint8_t *bytes, size_t n, look_found *found, void *ctx);
/* A line that was not there before; n is at most LOOK_LINE_MAX. first: of the file. */
void look_line(const char *path, const uint8_t *line, size_t n, bool first, look_found *found,
	       void *ctx);

#endif

/* What the tables of sandboxes share. */
#ifndef WARD_CLI_PS_H
#define WARD_CLI_PS_H

#include "cli/boxes.h"

/* "12s", "5m", "3h", "2d" */
void ps_format_age(uint64_t since_ms, uint64_t now_ms, char *out, size_t n);
/* How wide a table may be: the terminal's width, at least 80. */
size_t ps_columns(void);
/* Appends the command, escaped, cut off or filled up to the width; last: ends the row. */
void ps_put_command(const struct box_info *i, size_t width, bool last, struct buf *out);

#endif

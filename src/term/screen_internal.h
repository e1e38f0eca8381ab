/* What the files of the screen model share. */
#ifndef WARD_TERM_SCREEN_INTERNAL_H
#define WARD_TERM_SCREEN_INTERNAL_H

#include "term/screen.h"

#define SCREEN_NUMBERS_MAX 40

struct sequence {
	char prefix, intermediate, final;
	unsigned numbers[SCREEN_NUMBERS_MAX];
	bool joined[SCREEN_NUMBERS_MAX]; /* by ':' to the number before it */
	size_t count;
};

/* Cells (screen_cells.c). Rows and columns are inclusive and within the screen. */
struct cell *screen_line(struct screen *s, unsigned row);
void screen_erase(struct screen *s, unsigned row, unsigned first, unsigned last);
void screen_scroll(struct screen *s, unsigned top, unsigned bottom, int lines);
void screen_insert_cells(struct screen *s, unsigned row, unsigned col, unsigned count);
void screen_delete_cells(struct screen *s, unsigned row, unsigned col, unsigned count);
/* Shows one character at the cursor. */
void screen_put(struct screen *s, uint32_t code);
void screen_line_feed(struct screen *s);

/* Sequences (screen_csi.c). */
void screen_csi(struct screen *s, const struct sequence *q);
bool screen_switches(const struct screen *s, const struct sequence *q);
void screen_save(struct screen *s);
void screen_restore(struct screen *s);
/* CSI m (screen_pen.c). */
void screen_pen(struct pen *pen, const struct sequence *q);

#endif

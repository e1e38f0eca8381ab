/* Painting a question over the screen of a program, and the screen again after it. Pure: from the
 * model and the texts to bytes for the operator's terminal. */
#ifndef WARD_TERM_BAR_H
#define WARD_TERM_BAR_H

#include "term/screen.h"

#define BAR_ROWS 4
#define BAR_SMALL_BELOW 8 /* a screen with fewer rows has a bar of one */

/* What the bar says: printable text that came escaped; what is too long is cut. */
struct bar {
	const char *lines[BAR_ROWS];
	const char *one; /* all of it, where there is one row */
};

/* What is needed to give the normal screen back. */
struct bar_before {
	struct screen_state state;
	struct cell edge; /* the cell under a cursor that is beyond the last column */
	bool alternate;
};

unsigned bar_rows(const struct screen *s);
/* Appends what shows the bar; *ret_before is for bar_hide(). */
void bar_show(struct screen *s, const struct bar *b, struct bar_before *ret_before,
	      struct buf *out);
/* Appends all of it once more, for a terminal that another program has used meanwhile. */
void bar_again(struct screen *s, const struct bar *b, struct buf *out);
/* Appends the rows that have changed, and the bar. */
void bar_repaint(struct screen *s, const struct bar *b, struct buf *out);
/* Appends what gives the screen back, except for the modes that terminal_redo() brings back. On the
 * normal screen it is as it was at bar_show(), and the caller sends what the program has written
 * since then; on the alternate screen it is as the model has it now. moved: the window has had
 * another size since then, so that places on the normal screen are not known. */
void bar_hide(struct screen *s, const struct bar_before *before, bool moved, struct buf *out);

#endif

/*
 * Colours and emphasis of the screen model. In: the numbers of CSI m. Out: the pen. Keeps how a
 * colour was written: terminals may show 36 and 38;5;6 differently. Unknown numbers are ignored, as
 * terminals do it. Pure.
 */
#include "term/screen_internal.h"

/* The numbers behind 38, 48 or 58 at `at`. Returns how many belong to it. */
static size_t read_colour(struct colour *c, const struct sequence *q, size_t at)
{
	size_t left = q->count - at - 1, joined = 0, first = at + 2;
	unsigned form = left ? q->numbers[at + 1] : 0;

	while (at + 1 + joined < q->count && q->joined[at + 1 + joined])
		joined++;
	if (joined) /* 38:2::R:G:B has an empty colour space, 38:2:R:G:B has not */
		left = joined;
	if (form == 5 && left >= 2) {
		*c = (struct colour){ COLOUR_NUMBER, { (uint8_t)q->numbers[first], 0, 0 } };
		return joined ? joined : 2;
	}
	if (form == 2 && left >= 4) {
		if (joined >= 5)
			first++;
		*c = (struct colour){ COLOUR_RGB,
				      { (uint8_t)q->numbers[first], (uint8_t)q->numbers[first + 1],
					(uint8_t)q->numbers[first + 2] } };
		return joined ? joined : 4;
	}
	return joined ? joined : left;
}

static bool short_colour(struct pen *pen, unsigned number)
{
	unsigned base = number >= 90 ? 90 : 30, bright = number >= 90 ? 8 : 0;
	unsigned digit = (number - base) % 10;
	struct colour c = { COLOUR_SHORT, { (uint8_t)(digit + bright), 0, 0 } };

	if (number < 30 || (number > 49 && number < 90) || number > 107 || digit > 7)
		return false;
	if ((number - base) / 10 == 0)
		pen->text = c;
	else
		pen->back = c;
	return true;
}

static const struct {
	uint8_t number;
	uint16_t set, clear;
} flag_rows[] = {
	{ 1, CELL_BOLD, 0 },      { 2, CELL_DIM, 0 },     { 3, CELL_ITALIC, 0 },
	{ 5, CELL_BLINK, 0 },     { 6, CELL_BLINK, 0 },   { 7, CELL_REVERSE, 0 },
	{ 8, CELL_HIDDEN, 0 },    { 9, CELL_STRUCK, 0 },  { 22, 0, CELL_BOLD | CELL_DIM },
	{ 23, 0, CELL_ITALIC },   { 25, 0, CELL_BLINK },  { 27, 0, CELL_REVERSE },
	{ 28, 0, CELL_HIDDEN },   { 29, 0, CELL_STRUCK }, { 53, CELL_OVERLINE, 0 },
	{ 55, 0, CELL_OVERLINE },
};

static void set_flag(struct pen *pen, unsigned number)
{
	for (size_t i = 0; i < ARRAY_LEN(flag_rows); i++)
		if (flag_rows[i].number == number)
			pen->flags =
				(uint16_t)((pen->flags | flag_rows[i].set) & ~flag_rows[i].clear);
}

void screen_pen(struct pen *pen, const struct sequence *q)
{
	if (q->count == 0)
		*pen = (struct pen){ 0 };
	for (size_t i = 0; i < q->count; i++) {
		unsigned number = q->numbers[i];

		if (number == 0)
			*pen = (struct pen){ 0 };
		else if (number == 38)
			i += read_colour(&pen->text, q, i);
		else if (number == 48)
			i += read_colour(&pen->back, q, i);
		else if (number == 58)
			i += read_colour(&pen->under, q, i);
		else if (number == 39)
			pen->text = (struct colour){ 0 };
		else if (number == 49)
			pen->back = (struct colour){ 0 };
		else if (number == 59)
			pen->under = (struct colour){ 0 };
		else if (number == 21)
			pen->underline = 2;
		else if (number == 24)
			pen->underline = 0;
		else if (number == 4)
			pen->underline = i + 1 < q->count && q->joined[i + 1]
						 ? (uint8_t)(q->numbers[i + 1] % 6)
						 : 1;
		else if (!short_colour(pen, number))
			set_flag(pen, number);
		while (i + 1 < q->count && q->joined[i + 1])
			i++;
	}
}

/*
 * Fuzzes websockets: frames of either side, in pieces or at once, are the same messages; and what
 * is made of them again is read as the same ones.
 */
#include <assert.h>
#include <string.h>

#include "keys/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* All messages and control frames of some bytes, one behind the other; frames for the other side in
 * again (NULL: none). */
static void read_all(struct ws *w, const uint8_t *bytes, size_t n, struct buf *said,
		     struct buf *held, struct buf *again, bool *bad)
{
	while (n && !*bad) {
		size_t used;
		enum ws_say say = ws_take(w, bytes, n, held, &used);

		assert(used <= n && (used || say == WS_BAD));
		*bad = say == WS_BAD;
		if (say == WS_CONTROL) {
			buf_printf(said, "<control %u %u>", w->head[0], w->control_len);
			buf_add(said, w->control, w->control_len);
			if (again)
				ws_give_control(w, again);
		}
		if (say == WS_MESSAGE) {
			buf_printf(said, "<message %u %zu>", w->type, held->len);
			buf_add(said, held->data, held->len);
			if (again) {
				size_t half = held->len / 2;

				ws_give(w, (const uint8_t *)held->data, half, false, again);
				ws_give(w, (const uint8_t *)held->data + half, held->len - half,
					true, again);
			}
			held->len = 0;
		}
		bytes += used;
		n -= used;
	}
}

static bool is_equal(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf one = { 0 }, two = { 0 }, three = { 0 }, held = { 0 }, held_two = { 0 },
		 held_three = { 0 }, again = { 0 };
	struct ws whole = { 0 }, pieces = { 0 }, other = { 0 };
	bool bad = false, bad_two = false, bad_three = false;
	size_t cut;

	if (n < 2)
		return 0;
	whole.masked = pieces.masked = other.masked = data[0] & 1;
	cut = data[1] % n;
	read_all(&whole, data, n, &one, &held, &again, &bad);
	read_all(&pieces, data, cut, &two, &held_two, NULL, &bad_two);
	read_all(&pieces, data + cut, n - cut, &two, &held_two, NULL, &bad_two);
	assert(bad == bad_two && is_equal(&one, &two) && is_equal(&held, &held_two));
	read_all(&other, (const uint8_t *)again.data, again.len, &three, &held_three, NULL,
		 &bad_three);
	assert(!bad_three && is_equal(&one, &three) && !held_three.len);
	return 0;
}

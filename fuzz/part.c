/* Frames of event streams, heads of answers, and parts of something: whatever is asked for and
 * comes, a window lies within what came, and a head that is made is read again as one part. */
#include <assert.h>
#include <string.h>

#include "keys/answer_head.h"
#include "keys/eventstream.h"
#include "keys/part.h"

/* In pieces or at once, frames end in the same places. */
static void check_frames(const uint8_t *data, size_t n, size_t cut)
{
	struct eventstream all = { 0 }, parts = { 0 };
	size_t last = eventstream_take(&all, data, n), early = eventstream_take(&parts, data, cut),
	       late = eventstream_take(&parts, data + cut, n - cut);

	assert(last <= n && last == (late ? cut + late : early));
	assert(all.bad == parts.bad && all.left == parts.left && all.have == parts.have);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t cut = n ? data[0] % n : 0, from, passed = 0;
	auto_buf head = { 0 }, again = { 0 }, lines = { 0 };
	struct part p, second;
	struct part_window w;

	if (n < 2)
		return 0;
	check_frames(data, n, cut);
	buf_add(&head, data + 1, cut);
	buf_add(&lines, data + 1 + cut, n - 1 - cut);
	assert(answer_hides(&lines, true) <=
	       answer_hides(&lines, false)); /* one line less can only hide less */
	(void)answer_has(&lines, "x");
	assert(part_request(&head, 64, n % 4, &p));
	buf_add(&again, head.data, head.len);
	assert(part_request(&again, 0, n % 4, &second) &&
	       (second.kind == p.kind || p.kind == PART_WHOLE));
	if (part_answer(&lines, &p, &w) != PART_FINE)
		return 0;
	assert(p.kind == PART_UNITS ? !w.on : w.on && w.left);
	for (unsigned i = 0; i < 50; i++) {
		size_t some = part_pass(&w, i * 37, &from);

		assert(from + some <= i * 37);
		passed += some;
	}
	(void)passed;
	return 0;
}

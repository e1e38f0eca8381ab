/* Fuzzes the scanner: whatever the bytes and however they are cut into pieces, the hits are the
 * same, lie within the stream, and come in order. */
#include <assert.h>
#include <string.h>

#include "scan/detect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
	uint64_t count, last_end, sum;
	size_t bytes;
};

static void found(void *ctx, const struct detect_hit *hit)
{
	struct seen *s = ctx;

	assert(hit->rule < detect_rule_count() && hit->line && hit->column && hit->secret_bytes);
	assert(hit->offset >= s->last_end && hit->offset + hit->secret_bytes <= s->bytes);
	s->last_end = hit->offset + hit->secret_bytes;
	s->count++;
	s->sum = s->sum * 31 + hit->offset + hit->rule;
}

static void feed(struct detector *d, const uint8_t *data, size_t n, size_t piece)
{
	struct ward_err e;

	detector_begin(d);
	for (size_t at = 0; at < n;) {
		size_t room, take = n - at < piece ? n - at : piece;
		uint8_t *to = detector_room(d, &room);

		assert(room);
		take = take < room ? take : room;
		memcpy(to, data + at, take);
		assert(detector_fill(d, take, &e) == 0);
		at += take;
	}
	assert(detector_fill(d, 0, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct detect_rules *rules;
	struct seen whole = { .bytes = n }, pieces = { .bytes = n };
	struct detector *d;
	struct ward_err e;

	if (!rules)
		assert(detect_rules_new(DETECT_SECRET | DETECT_PII, &rules, &e) == 0);
	assert(detector_new(rules, found, &whole, &d, &e) == 0);
	feed(d, data, n, SIZE_MAX);
	detector_free(d);
	assert(detector_new(rules, found, &pieces, &d, &e) == 0);
	feed(d, data, n, n ? data[0] % 64 + 1u : 1);
	detector_free(d);
	assert(whole.count == pieces.count && whole.sum == pieces.sum);
	return 0;
}

/* Fuzzes the look at passing bytes: however a stream is cut into pieces, all of it comes out, in
 * order and as long as it was, the same secrets are found, and nothing else is overwritten. */
#include <assert.h>
#include <string.h>

#include "scan/scrub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
	uint64_t sum, last_end;
	size_t bytes, secrets;
	const uint8_t *data;
	uint8_t *expected;
};

static void found(void *ctx, const struct scrub_hit *hit)
{
	struct seen *s = ctx;

	assert(hit->rule < detect_rule_count() && hit->bytes);
	assert(hit->offset >= s->last_end && hit->offset + hit->bytes <= s->bytes);
	s->last_end = hit->offset + hit->bytes;
	s->secrets++;
	s->sum = s->sum * 31 + hit->offset + hit->rule;
	memset(s->expected + hit->offset, '*', hit->bytes);
}

static void feed(const struct detect_rules *rules, const uint8_t *data, size_t n, size_t piece,
		 struct seen *s)
{
	auto_buf out = { 0 }, expected = { 0 };
	struct scrub *scrub;
	struct ward_err e;

	buf_add(&expected, data, n);
	s->bytes = n;
	s->expected = (uint8_t *)expected.data;
	assert(scrub_new(rules, true, found, s, &scrub, &e) == 0);
	for (size_t at = 0; at < n;) {
		size_t take = n - at < piece ? n - at : piece;

		assert(scrub_take(scrub, data + at, take, false, &out, &e) == 0);
		at += take;
		assert(out.len + scrub_held(scrub) == at);
	}
	assert(scrub_take(scrub, "", 0, true, &out, &e) == 0);
	assert(out.len == n && scrub_held(scrub) == 0 && scrub_count(scrub) == s->secrets);
	assert(!n || memcmp(out.data, expected.data, n) == 0);
	scrub_free(scrub);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct detect_rules *rules;
	struct seen whole = { 0 }, pieces = { 0 };
	struct ward_err e;

	if (!rules)
		assert(detect_rules_new(DETECT_SECRET | DETECT_PII, &rules, &e) == 0);
	feed(rules, data, n, SIZE_MAX, &whole);
	feed(rules, data, n, n ? data[0] % 64 + 1u : 1, &pieces);
	assert(whole.secrets == pieces.secrets && whole.sum == pieces.sum);
	return 0;
}

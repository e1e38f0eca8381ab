/* Fuzzes the upstream proxy: its URL (up to the first NUL), then its answers; what it says opens
 * the way or does not, cut anywhere. */
#include <assert.h>
#include <string.h>

#include "rules/upstream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* How a talk ends when the proxy's bytes come in pieces; *ret_used in all. */
static enum upstream_say talk(const struct upstream *u, const uint8_t *bytes, size_t n,
			      size_t piece, size_t *ret_used)
{
	struct host target = { .kind = HOST_NAME, .len = 9, .name = "a.example" };
	enum upstream_say say = UPSTREAM_MORE;
	struct upstream_talk t;
	size_t have = 0, used = 0;

	upstream_begin(&t, u, &target, 443);
	assert(t.out_len && t.out_len <= sizeof(t.out));
	while (say == UPSTREAM_MORE || say == UPSTREAM_SEND) {
		if (say == UPSTREAM_MORE && have == n)
			break;
		if (say == UPSTREAM_MORE)
			have += n - have < piece ? n - have : piece;
		say = upstream_take(&t, u, bytes + used, have - used);
		assert(t.used <= have - used && t.out_len <= sizeof(t.out));
		assert((say == UPSTREAM_SEND) == (t.out_len > 0));
		used += say == UPSTREAM_MORE ? 0 : t.used;
	}
	*ret_used = say == UPSTREAM_OPEN ? used : 0;
	return say;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *nul = n ? memchr(data, '\0', n) : NULL;
	size_t whole_used, cut_used;
	struct ward_err e = { 0 };
	struct upstream u;
	enum upstream_say whole;

	if (!nul || upstream_parse((const char *)data, &u, &e) < 0)
		return 0;
	assert(u.port && u.host.kind != HOST_NONE && !memchr(u.user, '\n', u.user_len));
	n -= (size_t)(nul + 1 - data);
	whole = talk(&u, nul + 1, n, n + 1, &whole_used);
	assert(talk(&u, nul + 1, n, 1, &cut_used) == whole || n > UPSTREAM_ANSWER_MAX);
	assert(whole_used == cut_used || n > UPSTREAM_ANSWER_MAX);
	return 0;
}

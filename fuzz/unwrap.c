/*
 * Fuzzes readings without line breaks and escapes: they only leave out, and say where each byte
 * stands; a base64 text that is broken into lines in any of the usual ways is read as one.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "keys/unwrap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(reading_make *make, const uint8_t *data, size_t n, bool same)
{
	static uint8_t bytes[4096];
	static uint32_t at[4096];
	struct reading r = { .bytes = bytes, .at = at, .room = UNWRAP_ROOM_LEAST + n % 1024 };

	make(data, n, &r);
	assert(r.len <= r.room && r.used <= n && r.len <= r.used &&
	       (r.used == n || r.len == r.room));
	for (size_t i = 0; i < r.len; i++) {
		assert(at[i] < r.used && (!i || at[i] > at[i - 1]));
		assert(!same || bytes[i] == data[at[i]]);
	}
	assert(r.differs || memcmp(bytes, data, r.len) == 0);
}

/* A text of letters, broken where data says. */
static void check_broken(const uint8_t *data, size_t n)
{
	static const char *const breaks[] = { "\n",   "\r\n",     "\\n",     "\\r\\n",
					      "%0A",  "%0d%0a",   "\\u000A", "&#10;",
					      "\n  ", "\ndata: ", "=\r\n" };
	uint8_t broken[2048], bytes[2048];
	uint32_t at[2048];
	struct reading r = { .bytes = bytes, .at = at, .room = sizeof(bytes) };
	size_t len = 0, letters = n < 64 ? n : 64;

	for (size_t i = 0; i < letters; i++) {
		const char *text = breaks[data[i] % (sizeof(breaks) / sizeof(*breaks))];

		broken[len++] = (uint8_t)('A' + i % 26);
		if (data[i] & 128 && i + 1 < letters) {
			memcpy(broken + len, text, strlen(text));
			len += strlen(text);
		}
	}
	reading_unwrap(broken, len, &r);
	assert(r.len == letters);
	for (size_t i = 0; i < letters; i++)
		assert(bytes[i] == 'A' + i % 26 && broken[at[i]] == bytes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (!n)
		return 0;
	check(reading_unwrap, data, n, true);
	check(reading_unescape, data, n, false);
	assert(unwrap_end(data, n) <= n && unwrap_end(data, n));
	check_broken(data, n);
	return 0;
}

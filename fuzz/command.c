/* Fuzzer of command lines: no word is empty, none is longer than the text, and a text without
 * expansions is clear. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct seen {
	size_t len;
	bool expanded;
};

static int see(void *ctx, const struct command_word *word)
{
	struct seen *s = ctx;

	if (!*word->text || strlen(word->text) > s->len)
		abort();
	s->expanded |= word->is_expanded;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct seen s = { .len = n };
	bool opaque = false;

	if (command_words((const char *)bytes, n, see, &s, &opaque) != 0)
		abort();
	if (!opaque && memchr(bytes, '$', n) && !memchr(bytes, '\\', n) && !memchr(bytes, '\0', n))
		abort();
	return 0;
}

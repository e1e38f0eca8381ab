/* Fuzzes the counter of tokens: how an answer is cut must not matter, and prices never overflow. */
#include <assert.h>
#include <string.h>

#include "rules/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct price p = { .model = "gpt*",
			   .input = UINT64_MAX,
			   .output = UINT64_MAX,
			   .cache_read = 1,
			   .cache_write = 1 };
	struct tokens whole, cut;

	if (n < 2)
		return 0;
	if (data[0] & 2) {
		tokens_begin_request(&whole);
		tokens_begin_request(&cut);
	} else {
		tokens_begin(&whole, data[0] & 1);
		tokens_begin(&cut, data[0] & 1);
	}
	tokens_take(&whole, data + 2, n - 2);
	for (size_t at = 2, piece = (size_t)data[1] % 17 + 1; at < n; at += piece)
		tokens_take(&cut, data + at, n - at < piece ? n - at : piece);
	tokens_end(&whole);
	tokens_end(&cut);
	assert(whole.input == cut.input && whole.output == cut.output &&
	       whole.cache_read == cut.cache_read);
	assert(whole.odd == cut.odd && whole.whole == cut.whole && whole.most == cut.most &&
	       whole.choices == cut.choices);
	assert(whole.text_bytes == cut.text_bytes && whole.text_bytes <= n &&
	       whole.events_seen == cut.events_seen && whole.events_seen <= n);
	assert(strcmp(whole.model, cut.model) == 0 && strlen(whole.model) < TOKENS_MODEL);
	(void)price_find(&p, 1, whole.model);
	assert(price_of(&p, &whole) <= UINT64_MAX);
	return 0;
}

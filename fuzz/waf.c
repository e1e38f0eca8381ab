/* Fuzzes what front and the firewall believe of each other: texts are counted as they are walked,
 * messages end. */
#include <assert.h>
#include <string.h>

#include "rules/waf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct waf_ask ask;
	struct waf_said said;
	struct waf_match match;

	waf_match_text((const char *)data, n, &match);
	assert(strnlen(match.text, sizeof(match.text)) < sizeof(match.text) &&
	       !strchr(match.text, '('));
	if (n >= sizeof(said)) {
		memcpy(&said, data, sizeof(said));
		if (waf_said_is_sound(&said))
			for (unsigned i = 0; i < said.count; i++)
				assert(strlen(said.matches[i].text) < sizeof(said.matches[i].text));
	}
	if (n < sizeof(ask))
		return 0;
	memcpy(&ask, data, sizeof(ask));
	ask.text_bytes = (uint32_t)(n - sizeof(ask));
	if (waf_ask_is_sound(&ask) && waf_text_is_sound(&ask, data + sizeof(ask))) {
		size_t at = 0, texts = 0;

		while (waf_next_text(data + sizeof(ask), ask.text_bytes, &at))
			texts++;
		assert(texts == 2 + 2 * (size_t)ask.fields && at == ask.text_bytes);
	}
	return 0;
}

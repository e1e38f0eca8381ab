/* Fuzzes the quoting of texts for policy documents: whatever the text, the document that holds it
 * reads back as that text and nothing else. */
#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy.h"
#include "policy/quote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = strndup((const char *)data, n);
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	auto_buf document = { 0 };
	struct policy p;

	assert(text && policy_defaults(&p, &e) == 0);
	buf_puts(&document, "filesystem:\n  host_mounts:\n    - path: ");
	if (policy_quote(&document, text)) {
		buf_puts(&document, "\n      mode: read_only\n");
		if (policy_read(&p, "ward.yaml", (const uint8_t *)document.data, document.len,
				POLICY_FILE, &errors) == 0) {
			assert(p.fs_host_mounts.len == 1);
			assert(strcmp(p.fs_host_mounts.items[0].path, text) == 0);
		} else {
			assert(!*text); /* the one text that is no path */
		}
	} else {
		assert(!text_is_utf8(text));
	}
	strv_free(&errors.lines);
	policy_clear(&p);
	free(text);
	return 0;
}

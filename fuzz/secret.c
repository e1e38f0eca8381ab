/* Fuzzes --secret: whatever is typed becomes a grant in JSON that the policy reads or refuses, or
 * an error that does not repeat what stands where a source should. */
#include <assert.h>
#include <string.h>

#include "policy/policy_grant.h"
#include "policy/policy_secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ward_err e = { 0 };
	auto_buf grant = { 0 };
	auto_grant g = { 0 };
	char *text;

	if (n > 4096)
		return 0;
	text = strndup((const char *)data, n);
	assert(text);
	if (secret_option_read(text, &grant, &e) < 0) {
		assert(e.code && e.why[0]);
	} else {
		assert(strchr(text, '@') && buf_text(&grant)[0] == '{');
		if (policy_grant_parse(buf_text(&grant), &g, NULL, &e) < 0)
			assert(e.code && e.why[0]);
		else
			assert(g.hosts.len && g.variables.len == 1);
	}
	free(text);
	return 0;
}

/* Fuzzes --set: the first byte chooses the field, the second whether it is appended, the rest is
 * the value. */
#include <assert.h>
#include <string.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ward_err e = { 0 };
	struct policy p;
	char *value, *text;
	enum policy_field field;

	if (n < 2)
		return 0;
	value = strndup((const char *)data + 2, n - 2);
	assert(value && policy_defaults(&p, &e) == 0);
	field = (enum policy_field)(data[0] % POLICY_FIELDS);
	if (policy_set(&p, policy_row(field)->path, value, data[1] & 1, POLICY_CLI, &e) < 0)
		assert(e.code && e.why[0]);
	text = policy_text(&p, field);
	assert(text);
	free(text);
	/* as a name too; the search for the nearest one is slow for long ones */
	if (n < 32 && policy_set(&p, value, "1", false, POLICY_CLI, &e) < 0)
		assert(e.code && e.why[0]);
	policy_clear(&p);
	free(value);
	return 0;
}

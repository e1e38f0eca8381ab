/* Fuzzes JSON-RPC bodies. What a narrow rule allows a wider one does too; what is allowed is JSON
 * to the policy's reader, too, where that reads so much. */
#include <assert.h>
#include <string.h>

#include "policy/node.h"
#include "rules/body_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char narrow[] = "jtools/list\0jtools/call:a*\0", wide[] = "j*\0";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ward_err e;
	struct reader reader = { .name = "body", .e = &e };
	struct asked a, b;
	bool few = rpc_body_fits(narrow, sizeof(narrow) - 1, data, n, &a),
	     all = rpc_body_fits(wide, sizeof(wide) - 1, data, n, &b);

	assert(!few || all);
	assert(all == !b.wrong);
	assert(strlen(a.text) < sizeof(a.text) && strlen(b.text) < sizeof(b.text));
	/* which it reads otherwise: no NUL in any value */
	if (all && !memmem(data, n, "\\u", 2)) {
		auto_node root = json_read(&reader, data, n);

		assert(root || strstr(e.why, "levels deep"));
	}
	return 0;
}

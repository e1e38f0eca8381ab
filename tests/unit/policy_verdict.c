/* Says "ok" or the first error for each document on a line of standard input: policy_schema.py asks
 * it. */
#include <string.h>

#include "policy/policy.h"

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct policy_errors errors = { 0 };
		struct ward_err e;
		struct policy p;

		if (policy_defaults(&p, &e) < 0)
			return 1;
		if (policy_read(&p, "document", (const uint8_t *)line, (size_t)n, POLICY_FILE,
				&errors) == 0)
			puts("ok");
		else
			puts(errors.lines.items[0]);
		policy_clear(&p);
		strv_free(&errors.lines);
	}
	free(line);
	return 0;
}

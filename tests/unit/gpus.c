/* What NVIDIA's driver says of a processor: read whatever its shape. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "host/gpus.h"

static void test_facts(void **state)
{
	static const struct {
		const char *text, *model;
		int minor; /* -1: refused */
	} rows[] = {
		{ "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nDevice Minor: \t 3\nGPU Excluded:\t "
		  "No\n",
		  "NVIDIA H200", 3 },
		{ "Device Minor:12", "", 12 },
		{ "Model:\nDevice Minor: 0 \t\n", "", 0 },
		{ "Model: x\n", "x", -1 },
		{ "", "", -1 },
		{ "Device Minor: 12345\n", "", -1 },
		{ "Device Minor: 1x\n", "", -1 },
		{ "Device Minor:\n7\n", "", -1 },
		{ "No Device Minor: 7\n", "", -1 },
		{ "Model: 0123456789abcdefghij\nDevice Minor: 1", "0123456789abcde", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].text);
		/* what is behind the text is nobody's */
		char *exact = malloc(n ? n : 1), model[16];
		unsigned minor = 99;

		assert_non_null(exact);
		memcpy(exact, rows[i].text, n);
		assert_int_equal(gpu_read_facts(exact, n, model, sizeof(model), &minor),
				 rows[i].minor >= 0);
		assert_string_equal(model, rows[i].model);
		if (rows[i].minor >= 0)
			assert_int_equal(minor, rows[i].minor);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_facts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

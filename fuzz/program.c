/* Fuzzes the first bytes of program files (process.commands). What is found is a text with an end;
 * a form that names a helper has one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "rules/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_free uint8_t *exact = n ? malloc(n) : NULL;
	struct program p;

	if (!n)
		return 0;
	memcpy(exact, data, n);
	program_read(exact, n, &p);
	assert(memchr(p.helper, '\0', sizeof(p.helper)));
	assert(memchr(p.argument, '\0', sizeof(p.argument)));
	assert((p.form == PROGRAM_OTHER || p.form == PROGRAM_STATIC) || p.helper[0] ||
	       p.form == PROGRAM_DYNAMIC);
	return 0;
}

/* Fuzzes what programs inside want to have signed with a gpg key. What is a commit or a tag begins
 * like one, is not both, has no NUL; and a byte in front of it makes it neither. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rules/git_signed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n + 1);
	enum git_signed is;

	assert(copy);
	if (n)
		memcpy(copy + 1, data, n);
	copy[0] = 'x';
	is = git_signed_read(copy + 1, n);
	if (is != GIT_SIGNED_OTHER) {
		const char *head = is == GIT_SIGNED_COMMIT ? "tree " : "object ";

		assert(n > 40 && n <= GIT_SIGNED_MAX && memcmp(data, head, strlen(head)) == 0);
		assert(!memchr(data, '\0', n));
		assert(memmem(data, n, is == GIT_SIGNED_COMMIT ? "\ncommitter " : "\ntagger ",
			      is == GIT_SIGNED_COMMIT ? 11 : 8));
		assert(memmem(data, n, "\n\n", 2));
		if (is == GIT_SIGNED_TAG)
			assert(!memmem(data, n, "\n-----BEGIN ", 12));
		assert(git_signed_read(copy, n + 1) == GIT_SIGNED_OTHER);
	}
	free(copy);
	return 0;
}

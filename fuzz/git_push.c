/* Fuzzes what is read of a push: pkt-lines, whole and byte by byte with the same result; the answer
 * to it; the same compressed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/git_push.h"
#include "inspect/gunzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void report(const struct git_push *p, const uint8_t *data)
{
	const char *whys[GIT_COMMANDS_MAX];
	auto_buf out = { 0 };

	for (unsigned i = 0; i < p->count; i++) {
		const struct git_command *c = &p->commands[i];

		whys[i] = "no";
		assert(c->ref + c->ref_len <= p->at && c->ref_len > 5 &&
		       memcmp(data + c->ref, "refs/", 5) == 0);
		assert(!(c->create && c->delete) && !memchr(data + c->ref, '\0', c->ref_len) &&
		       !memchr(data + c->ref, '\n', c->ref_len));
	}
	git_push_report(p, data, whys, "no", &out);
	assert(!out.failed && out.len >= 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct git_push whole = { 0 }, pieces = { 0 };
	struct gunzip *zip = gunzip_new();
	auto_buf plain = { 0 };
	int r = git_push_take(&whole, data, n), k = 0;

	for (size_t i = 0; i <= n && k == 0; i++) {
		uint8_t *copy = malloc(i ? i : 1); /* so that one byte too far is seen */

		if (copy && i)
			memcpy(copy, data, i);
		k = git_push_take(&pieces, copy, i);
		free(copy);
		if (n > 2000)
			i += 100 < n - i ? 100 : 0;
	}
	assert(r == k || n > 2000);
	assert(r != 1 || (whole.at <= n && whole.count <= GIT_COMMANDS_MAX));
	if (r == 1)
		report(&whole, data);
	if (zip)
		(void)!gunzip_take(zip, data, n, 100000, &plain);
	assert(plain.len <= 100000);
	gunzip_free(zip);
	git_push_free(&whole);
	git_push_free(&pieces);
	return 0;
}

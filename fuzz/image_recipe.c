/* Fuzzes recipes of images: what is accepted has clean paths and whole variables. */
#include <assert.h>
#include <string.h>

#include "image/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct policy_errors errors = { 0 };
	struct recipe r;

	if (recipe_read("recipe", data, n, &r, &errors) == 0) {
		assert(r.from);
		for (size_t i = 0; i < r.file_count; i++)
			assert(r.files[i].from[0] != '/' && r.files[i].to[0] &&
			       r.files[i].to[0] != '/' && strncmp(r.files[i].to, "../", 3) != 0);
		for (size_t i = 0; i < r.wish.env.len; i++)
			assert(strchr(r.wish.env.items[i], '=') > r.wish.env.items[i]);
		recipe_clear(&r);
	} else {
		assert(errors.lines.len);
	}
	strv_free(&errors.lines);
	return 0;
}

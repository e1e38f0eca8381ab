/* Fuzzes what other scanners say: SARIF and lines. Every text of a finding can be shown, and is of
 * bounded length. */
#include <assert.h>
#include <string.h>

#include "review/look_other.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(struct look_findings *f)
{
	for (size_t i = 0; i < f->len; i++) {
		const char *const texts[] = { f->items[i].rule, f->items[i].path,
					      f->items[i].title };

		assert(f->items[i].severity < LOOK_SEVERITIES);
		for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
			assert(texts[k] && strlen(texts[k]) <= 256);
			for (const char *c = texts[k]; *c; c++)
				assert((unsigned char)*c >= ' ' && *c != 0x7f);
		}
	}
	look_clear(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct look_findings f = { 0 };

	if (look_other_sarif(data, n, "scanner", "/srv/changes", &f) == 0)
		check(&f);
	f = (struct look_findings){ 0 };
	if (look_other_lines(data, n, "scanner", "/srv/changes", &f) == 0)
		check(&f);
	return 0;
}

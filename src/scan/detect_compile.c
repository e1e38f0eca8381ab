/*
 * Compiling the texts of the rows for vectorscan. In: the rows. Out: a database, for this processor
 * or for any. Of the engine only ward-scan and the program that runs when ward is built have this
 * half of vectorscan.
 */
#include <errno.h>
#include <hs/hs_compile.h>
#include <stdlib.h>

#include "base/buf.h"
#include "scan/detect_internal.h"

static int compile(struct detect_rules *r, const hs_platform_info_t *platform, struct ward_err *e)
{
	hs_compile_error_t *error = NULL;
	auto_strv expressions = { 0 };
	unsigned *flags = calloc(r->text_count + 1, sizeof(*flags)),
		 *ids = calloc(r->text_count + 1, sizeof(*ids));
	int result = 0;

	for (size_t i = 0; flags && ids && i < r->text_count; i++) {
		auto_buf expression = { 0 }; /* in which nothing is special */

		for (size_t k = 0; k < r->texts[i].bytes; k++)
			buf_printf(&expression, "\\x%02x", (unsigned char)r->texts[i].text[k]);
		strv_add(&expressions, buf_text(&expression));
		flags[i] = detect_rows[r->texts[i].row].flags & CASELESS ? HS_FLAG_CASELESS : 0;
		ids[i] = (unsigned)i;
	}
	if (!flags || !ids || !r->text_count || expressions.failed)
		result = ward_fail(e, ENOMEM, "out of memory");
	else if (hs_compile_multi((const char *const *)expressions.items, flags, ids,
				  (unsigned)r->text_count, HS_MODE_BLOCK, platform, &r->database,
				  &error) != HS_SUCCESS)
		result = ward_fail(e, EINVAL, "vectorscan cannot compile the rules: %.200s",
				   error ? error->message : "unknown error");
	hs_free_compile_error(error);
	free(flags);
	free(ids);
	return result;
}

static int new_rules(unsigned kinds, const hs_platform_info_t *platform, struct detect_rules **ret,
		     struct ward_err *e)
{
	struct detect_rules *r = NULL;
	int result = detect_rules_prepare(kinds, &r, e);

	if (result == 0)
		result = compile(r, platform, e);
	if (result == 0)
		result = detect_rules_finish(r, e);
	if (result < 0)
		detect_rules_free(r);
	else
		*ret = r;
	return result;
}

int detect_rules_new(unsigned kinds, struct detect_rules **ret, struct ward_err *e)
{
	return new_rules(kinds, NULL, ret, e);
}

int detect_rules_serialize(unsigned kinds, char **ret, size_t *ret_n, struct ward_err *e)
{
	static const hs_platform_info_t any = { .tune = HS_TUNE_FAMILY_GENERIC };
	struct detect_rules *r = NULL;
	int result = new_rules(kinds, &any, &r, e);

	if (result == 0 && hs_serialize_database(r->database, ret, ret_n) != HS_SUCCESS)
		result = ward_fail(e, ENOMEM, "vectorscan cannot write the rules");
	detect_rules_free(r);
	return result;
}

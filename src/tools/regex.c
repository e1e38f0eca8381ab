/*
 * Regular expressions. In: a pattern and a text, both untrusted. Out: whether it matches. PCRE2
 * reads what ECMAScript does (lookaheads, \d, \p{L}, \uXXXX), with bounded steps and memory, so
 * that no pattern can hold up a check; what runs out of them is refused, not passed. Callouts and
 * (*VERB)s that would lift the bounds are off. A pure function.
 */
#include "tools/regex.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define PATTERN_MAX 4096
#define STEPS_MAX 200000
#define DEPTH_MAX 2000
#define HEAP_KIB_MAX 4096

static void free_code(pcre2_code **code)
{
	pcre2_code_free(*code);
}

static pcre2_code *compile(const char *pattern, enum regex_way way, int *ret_error)
{
	uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
			   PCRE2_MATCH_UNSET_BACKREF | PCRE2_ALLOW_EMPTY_CLASS |
			   PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UCP;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_SIZE where;
	pcre2_code *code;

	if (!context)
		return NULL;
	if (way == REGEX_WHOLE)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
	pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
	pcre2_set_parens_nest_limit(context, 64);
	code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, ret_error, &where,
			     context);
	pcre2_compile_context_free(context);
	return code;
}

static int match(const pcre2_code *code, const char *text)
{
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	int r = PCRE2_ERROR_NOMEMORY;

	if (context && data) {
		pcre2_set_match_limit(context, STEPS_MAX);
		pcre2_set_depth_limit(context, DEPTH_MAX);
		pcre2_set_heap_limit(context, HEAP_KIB_MAX);
		r = pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, context);
	}
	pcre2_match_data_free(data);
	pcre2_match_context_free(context);
	return r >= 0 ? 1 : r == PCRE2_ERROR_NOMATCH ? 0 : -ERANGE;
}

int regex_match(const char *pattern, enum regex_way way, const char *text, char ret_why[128])
{
	__attribute__((cleanup(free_code))) pcre2_code *code = NULL;
	int error = 0;

	if (ret_why)
		snprintf(ret_why, 128, "it is too long, or begins with (*");
	if (strlen(pattern) > PATTERN_MAX || strncmp(pattern, "(*", 2) == 0)
		return -EINVAL;
	code = compile(pattern, way, &error);
	if (!code) {
		if (ret_why)
			pcre2_get_error_message(error, (PCRE2_UCHAR *)ret_why, 128);
		return -EINVAL;
	}
	return match(code, text);
}

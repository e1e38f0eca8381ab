/* The words of ward-wasm, and what it looks at in a module. */
#include "wasm/wasm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *read_words(struct wasm_job *job, const char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return wasm_words(argc, (char **)(uintptr_t)argv, job);
}

#define WORDS(job, ...) read_words(job, (const char *[]){ __VA_ARGS__, NULL })

static void test_words(void **state)
{
	struct wasm_job job;

	(void)state;
	assert_null(WORDS(&job, "--runtime", "library", "--file", "/l", "--dir", "/a", "--dir-ro",
			  "/b", "--pages", "65536", "--fuel", "18446744073709551615", "--network",
			  "--aot", "/c", "--aot-digest", "d", "--", "--dir", "x"));
	assert_int_equal(job.dir_count, 2);
	assert_true(job.dirs[0].writable && !job.dirs[1].writable && job.network && !job.metered);
	assert_string_equal(job.dirs[1].path, "/b");
	assert_int_equal(job.pages, 65536);
	assert_true(job.fuel == UINT64_MAX);
	assert_string_equal(job.words[0], "--dir");
	assert_string_equal(job.words[1], "x");
	assert_null(job.words[2]);
}

static void test_words_that_are_wrong(void **state)
{
	struct wasm_job job;

	(void)state;
	assert_string_equal(WORDS(&job, "--runtime", "library"), "no runtime is named");
	assert_string_equal(WORDS(&job, "--runtime", "library", "--file"), "a value is missing");
	assert_string_equal(WORDS(&job, "--runtime", "library", "--file", "/l", "tool.wasm"),
			    "an unknown word");
	assert_string_equal(WORDS(&job, "--runtime", "library", "--file", "/l", "--aot", "/c"),
			    "compiled code goes with a digest");
	assert_string_equal(WORDS(&job, "--pages", "65537"), "a number is wrong");
	assert_string_equal(WORDS(&job, "--pages", "-1"), "a number is wrong");
	assert_string_equal(WORDS(&job, "--fuel", "18446744073709551616"), "a number is wrong");
	assert_string_equal(WORDS(&job, "--fuel", "1x"), "a number is wrong");
	assert_string_equal(WORDS(&job, "--fuel", ""), "a number is wrong");
}

static void test_many_directories(void **state)
{
	const char *argv[2 * WASM_DIRS_MAX + 5] = { "--runtime", "library", "--file", "/l" };
	struct wasm_job job;
	size_t n = 4;

	(void)state;
	for (size_t i = 0; i < WASM_DIRS_MAX - 1; i++) {
		argv[n++] = "--dir";
		argv[n++] = "/d";
	}
	assert_null(read_words(&job, argv));
	assert_null(wasm_add_cwd(&job, "/d/e"));
	assert_int_equal(job.dir_count, WASM_DIRS_MAX);
	argv[n++] = "--dir-ro";
	argv[n] = "/d";
	assert_string_equal(read_words(&job, argv), "too many directories");
}

static void test_the_working_directory(void **state)
{
	struct wasm_job job;

	(void)state;
	assert_null(WORDS(&job, "--runtime", "library", "--file", "/l", "--dir", "/ws", "--dir-ro",
			  "/ws/ro", "--dir", "/tmp"));
	assert_null(wasm_add_cwd(&job, "/ws/ro/deep"));
	assert_int_equal(job.dir_count, 4);
	assert_string_equal(job.dirs[0].name, ".");
	assert_string_equal(job.dirs[0].path, "."); /* what it is called may change */
	assert_false(job.dirs[0].writable);         /* the inner directory decides */
	assert_string_equal(job.dirs[1].name, "/ws");
	assert_null(WORDS(&job, "--runtime", "library", "--file", "/l", "--dir", "/ws"));
	assert_null(wasm_add_cwd(&job, "/wsx"));
	assert_int_equal(job.dir_count, 1); /* not beneath: there is none */
	assert_null(WORDS(&job, "--runtime", "library", "--file", "/l", "--dir", "/w:s"));
	assert_non_null(wasm_add_cwd(&job, "/"));
}

#define HEAD "\0asm\1\0\0\0"

static const struct {
	const char *bytes;
	size_t n;
	enum wasm_kind kind;
} kinds[] = {
	{ "\0asm\1\0\0\0", 8, WASM_MODULE },
	{ "\0asm\1\0\0", 7, WASM_NONE },
	{ "\0asm\2\0\0\0", 8, WASM_NEWER },
	{ "\0asm\x0d\0\1\0", 8, WASM_COMPONENT },
	{ "(module)", 8, WASM_TEXT },
	{ "", 0, WASM_NONE },
	{ "\x7f"
	  "ELF\2\1\1\0",
	  8, WASM_NONE },
	{ "#!/bin/sh", 9, WASM_NONE },
	/* sections */
	{ HEAD "\0\5\4name\1\1\0", 8 + 10, WASM_MODULE },
	{ HEAD "\0\x85\x80\x80\x80\0\4name", 8 + 11, WASM_MODULE },
	{ HEAD "\1\x0a\0\x09\x08wasmedge", 8 + 12, WASM_MODULE },
	{ HEAD "\0\x0a\x08wasmedgeX", 8 + 12, WASM_NATIVE },
	{ HEAD "\1\1\0\0\x0d\x88\x80\x80\x80\0wasmedge", 8 + 3 + 15, WASM_NATIVE },
	{ HEAD "\0\x0a\x09wasmedgeX", 8 + 12, WASM_MODULE },
	{ HEAD "\1", 9, WASM_DAMAGED },
	{ HEAD "\1\x99", 10, WASM_DAMAGED },
	{ HEAD "\1\2\0", 11, WASM_DAMAGED },
	{ HEAD "\0\0", 10, WASM_DAMAGED },
	{ HEAD "\0\1\1\0", 12, WASM_DAMAGED },
	/* each once, in their order; tags and the number of data segments stand out of it */
	{ HEAD "\1\1\0\1\1\0", 14, WASM_DAMAGED },
	{ HEAD "\3\1\0\1\1\0", 14, WASM_DAMAGED },
	{ HEAD "\5\1\0\x0d\1\0\6\1\0", 17, WASM_MODULE },
	{ HEAD "\x0c\1\0\x0a\1\0\x0b\1\0", 17, WASM_MODULE },
	{ HEAD "\x0a\1\0\x0c\1\0", 14, WASM_DAMAGED },
	{ HEAD "\1\0", 10, WASM_DAMAGED },
	{ HEAD "\x0e\0\x0e\0", 12, WASM_MODULE },
	/* how much they hold: 1000000 types are taken, one more is not; a function of 7654322
	 * bytes */
	{ HEAD "\1\3\xc0\x84\x3d", 13, WASM_MODULE },
	{ HEAD "\1\3\xc1\x84\x3d", 13, WASM_LARGE },
	{ HEAD "\x0b\3\xc1\x84\x3d", 13, WASM_LARGE },
	{ HEAD "\x0a\4\1\2\0\x0b", 14, WASM_MODULE },
	{ HEAD "\x0a\4\1\3\0\x0b", 14, WASM_DAMAGED },
	{ HEAD "\x0a\4\2\2\0\x0b", 14, WASM_DAMAGED },
	{ HEAD "\1\x80\x80\x80\x80\x10", 14, WASM_DAMAGED },
	{ HEAD "\1\x80\x80\x80\x80\x80\0", 15, WASM_DAMAGED },
};

static void test_kinds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		assert_int_equal(wasm_kind((const uint8_t *)kinds[i].bytes, kinds[i].n),
				 kinds[i].kind);
}

/* Sizes that only large files have. */
static void test_large(void **state)
{
	/* one function of 7654322 bytes */
	static const uint8_t code[] = HEAD "\x0a\xb7\x97\xd3\3\1\xb2\x97\xd3\3";
	size_t n = sizeof(code) - 1 + 7654322, customs = 10000;
	uint8_t *bytes = calloc(1, n);

	(void)state;
	assert_non_null(bytes);
	memcpy(bytes, code, sizeof(code) - 1);
	assert_int_equal(wasm_kind(bytes, n), WASM_LARGE);
	bytes[9]--;
	bytes[14]--;
	assert_int_equal(wasm_kind(bytes, n - 1), WASM_MODULE);
	for (size_t i = 0; i <= customs; i++)
		memcpy(bytes + 8 + 3 * i, "\0\1", 3);
	assert_int_equal(wasm_kind(bytes, 8 + 3 * customs), WASM_MODULE);
	assert_int_equal(wasm_kind(bytes, 8 + 3 * (customs + 1)), WASM_LARGE);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words),
					    cmocka_unit_test(test_words_that_are_wrong),
					    cmocka_unit_test(test_many_directories),
					    cmocka_unit_test(test_the_working_directory),
					    cmocka_unit_test(test_kinds),
					    cmocka_unit_test(test_large) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Taking the compiler out of a library: small libraries that need one (fuzz/corpus/wasm-trim) are
 * trimmed, then opened by the real loader where no compiler is. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "wasm/wasm.h"

static uint8_t *read_seed(const char *name, size_t *ret_n)
{
	uint8_t *bytes = calloc(1, 65536);
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/../../fuzz/corpus/wasm-trim/%s", getenv("WARD_TEST_DATA"),
		 name);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(bytes);
	*ret_n = fread(bytes, 1, 65536, f);
	assert_true(*ret_n > 1000 && *ret_n < 65536);
	fclose(f);
	return bytes;
}

static void *open_bytes(const uint8_t *bytes, size_t n)
{
	char path[] = "/tmp/ward-test-trim.XXXXXX";
	int fd = mkstemp(path);
	void *library;

	assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	return library;
}

static void test_it_opens_without_its_compiler(void **state)
{
	/* where the compiler's versions stand; by either way of hashing */
	static const char *const names[] = { "first", "last" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t n;
		uint8_t *bytes = read_seed(names[i], &n);
		int (*run)(int);
		void *(*compiler)(void), *(*data)(void), *library;

		assert_null(open_bytes(bytes, n)); /* there is no such compiler here */
		assert_null(wasm_trim(bytes, n));
		library = open_bytes(bytes, n);
		if (!library)
			fail_msg("%s", dlerror());
		*(void **)&run = dlsym(library, "WasmEdge_run");
		*(void **)&compiler = dlsym(library, "WasmEdge_compiler");
		*(void **)&data = dlsym(library, "WasmEdge_data");
		assert_int_equal(run(0), i == 0 ? getpid() : getppid());
		assert_null(compiler());
		assert_null(data());
		assert_string_equal(wasm_trim(bytes, n), "it has no compiler in it");
		dlclose(library);
		free(bytes);
	}
}

static void test_others_are_refused(void **state)
{
	size_t n;
	uint8_t *bytes = read_seed("none", &n);

	(void)state;
	assert_string_equal(wasm_trim(bytes, n), "it has no compiler in it");
	free(bytes);
	bytes = read_seed("unversioned", &n);
	assert_string_equal(wasm_trim(bytes, n), "the compiler's library has no versions");
	free(bytes);
	assert_string_equal(wasm_trim((uint8_t[]){ "\x7f"
						   "ELF" },
				      4),
			    "not a library for this processor");
	assert_string_equal(wasm_trim(NULL, 0), "not a library for this processor");
}

/* Cut at every place, and with every byte of the tables changed: refused, or changed within its
 * bounds (which a sanitizer sees). */
static void test_what_is_cut_or_changed(void **state)
{
	size_t n;
	uint8_t *bytes = read_seed("first", &n), *copy;

	(void)state;
	for (size_t cut = 0; cut < n; cut += 7) {
		copy = malloc(cut + 1);
		assert_non_null(copy);
		memcpy(copy, bytes, cut);
		wasm_trim(copy, cut);
		free(copy);
	}
	copy = malloc(n);
	assert_non_null(copy);
	for (size_t at = 0; at < n; at++) {
		memcpy(copy, bytes, n);
		copy[at] ^= 0xff;
		wasm_trim(copy, n);
	}
	free(copy);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_it_opens_without_its_compiler),
					    cmocka_unit_test(test_others_are_refused),
					    cmocka_unit_test(test_what_is_cut_or_changed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

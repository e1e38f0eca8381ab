/* Unit test of musl/heap.c, under other names beside the real heap. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/own.h"

#undef malloc
#undef calloc
#undef realloc
#undef free
#define malloc heap_malloc
#define calloc heap_calloc
#define realloc heap_realloc
#define free heap_free
void *heap_malloc(size_t n);
void *heap_calloc(size_t count, size_t size);
void *heap_realloc(void *p, size_t n);
void heap_free(void *p);
#include "../../musl/heap.c"

static void test_every_size(unused_arg void **state)
{
	size_t last_class = 0, last_bytes = 0;

	for (size_t n = 1; n <= LARGEST; n++) {
		size_t bytes, again, class = class_of(n, &bytes);

		assert_true(class < CLASSES && bytes >= n && bytes % STEP == 0);
		assert_true(class >= last_class && class <= last_class + 1 && bytes >= last_bytes);
		assert_true((class == last_class) == (bytes == last_bytes || n == 1));
		assert_true(bytes - n < STEP || bytes - n < n / 4); /* what is wasted */
		assert_int_equal(class_of(bytes, &again), class);
		assert_int_equal(again, bytes);
		last_class = class;
		last_bytes = bytes;
	}
	assert_int_equal(last_class, CLASSES - 1);
	assert_int_equal(last_bytes, LARGEST);
}

static void fill(unsigned char *p, size_t n, size_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(seed + i * 7);
}

static void check(const unsigned char *p, size_t n, size_t seed)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], (unsigned char)(seed + i * 7));
}

/* Many blocks that come, grow, shrink and go; no one may touch another. */
static void test_blocks_do_not_meet(unused_arg void **state)
{
	static struct {
		unsigned char *p;
		size_t n;
	} held[200];
	uint64_t random = 12345;

	for (size_t round = 0; round < 60000; round++) {
		size_t i, n;

		random = random * 6364136223846793005u + 1442695040888963407u;
		i = (random >> 33) % ARRAY_LEN(held);
		n = (random >> 20) % (random >> 60 == 0 ? 300000 : random >> 62 ? 200 : 9000);
		check(held[i].p, held[i].n, i);
		if (random >> 59 & 1) {
			held[i].p = realloc(held[i].p, n);
			check(held[i].p, held[i].n < n ? held[i].n : n, i);
		} else if (free(held[i].p), random >> 58 & 1) {
			held[i].p = calloc(n, 1);
			for (size_t k = 0; k < n; k++)
				assert_int_equal(held[i].p[k], 0);
		} else {
			held[i].p = malloc(n);
		}
		assert_non_null(held[i].p);
		assert_int_equal((uintptr_t)held[i].p % 16, 0);
		held[i].n = n;
		fill(held[i].p, n, i);
	}
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		check(held[i].p, held[i].n, i);
		free(held[i].p);
	}
}

static void test_too_much(unused_arg void **state)
{
	void *p = malloc(100);

	assert_null(malloc(SIZE_MAX));
	assert_null(malloc(PTRDIFF_MAX));
	assert_null(calloc(SIZE_MAX / 2, 3));
	errno = 0;
	assert_null(realloc(p, SIZE_MAX - 8));
	assert_int_equal(errno, ENOMEM);
	free(p);
	free(NULL);
}

static void free_twice(char *p)
{
	free(p);
	free(p);
}

static void free_the_middle(char *p)
{
	free(p + 16);
}

static void write_over_the_next(char *p)
{
	char *next = malloc(40);

	while (next != p + 48 + HEADER) {
		p = next;
		next = malloc(40);
	}
	memset(p, 'x', 60);
	free(next);
}

static void write_after_free(char *p)
{
	free(p);
	memset(p, 'x', 8); /* the link */
	(void)!malloc(40);
	(void)!malloc(40);
}

static void test_misuse_is_the_end(unused_arg void **state)
{
	static void (*const misuses[])(char *) = { free_twice, free_the_middle, write_over_the_next,
						   write_after_free };

	for (size_t i = 0; i < ARRAY_LEN(misuses); i++) {
		char *p = malloc(40);
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
			signal(SIGABRT, SIG_DFL);
			signal(SIGSEGV, SIG_DFL);
			signal(SIGBUS, SIG_DFL);
			misuses[i](p);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* a link that was written over may also lead nowhere */
		assert_true(WIFSIGNALED(status) &&
			    (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGSEGV ||
			     WTERMSIG(status) == SIGBUS));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_blocks_do_not_meet),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_misuse_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

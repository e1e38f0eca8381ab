/*
 * The heap of the static program, in place of musl's: that one gives every larger block back to the
 * kernel as soon as it is free, and while the child that builds a sandbox shares this memory on
 * another processor, each such call stops both.
 *
 * A block is a header and a payload of one of 44 sizes, four to a doubling, up to 64 KiB. It is cut
 * from a region that is never given back; freed blocks wait in a list of their size. What is larger
 * is a mapping of its own. A header holds the size, and a check that depends on size, state,
 * address and a random number: a block that was freed twice, never given or written over is
 * abort(), and so is a list whose links were.
 *
 * A usual start fits into one region, page by page as it is used. What needs a second one is large
 * (a policy with thousands of rules), and from there on all pages of a mapping come at once: one at
 * a time, faults take longer than what is done with the pages.
 *
 * ward has no threads; the child between clone and exec and ward-init use no heap.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define STEP 16
#define SMALL 128 /* up to here each multiple of STEP is a size */
#define LARGEST (64 * 1024)
#define CLASSES (SMALL / STEP + 4 * 9) /* 128 doubles nine times */
#define REGION_BYTES (256 * 1024)

enum { GIVEN = 0x6769, FREED = 0x6672 };

struct block {
	uint64_t check;
	uint64_t bytes;     /* of the payload; more than LARGEST: a mapping */
	struct block *next; /* mixed; only while it is free, the payload begins here */
};

#define HEADER offsetof(struct block, next)

static struct {
	uint64_t secret;
	char *at, *end; /* what is left of the region */
	bool large;     /* it is not the first one */
	struct block *freed[CLASSES];
} heap;

static uint64_t check_of(const struct block *b, uint64_t state)
{
	return (heap.secret ^ (uintptr_t)b ^ b->bytes) + state;
}

static void must_be(const struct block *b, uint64_t state)
{
	if (b->check != check_of(b, state))
		abort();
}

static struct block *mix(const struct block *at, struct block *next)
{
	return (struct block *)((uintptr_t)next ^ (uintptr_t)heap.secret ^ (uintptr_t)at >> 4);
}

/* The class of at least n bytes, 0 < n <= LARGEST, and how many bytes it has. */
static size_t class_of(size_t n, size_t *ret_bytes)
{
	size_t half = SMALL, class = SMALL / STEP, step;

	if (n <= SMALL) {
		*ret_bytes = (n + STEP - 1) / STEP * STEP;
		return *ret_bytes / STEP - 1;
	}
	for (; n > 2 * half; half *= 2)
		class += 4;
	step = (n - half + half / 4 - 1) / (half / 4);
	*ret_bytes = half + step * (half / 4);
	return class + step - 1;
}

static void *map(size_t n)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (heap.large ? MAP_POPULATE : 0);
	void *at = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static struct block *give(struct block *b, uint64_t bytes)
{
	if (!b)
		return NULL;
	b->bytes = bytes;
	b->check = check_of(b, GIVEN);
	return b;
}

/* A new block from the region. */
static struct block *cut(size_t bytes)
{
	struct block *b;

	if ((size_t)(heap.end - heap.at) < HEADER + bytes) {
		char *region;

		heap.large = heap.end != NULL;
		region = map(REGION_BYTES);
		if (!region)
			return NULL;
		heap.at = region;
		heap.end = region + REGION_BYTES;
	}
	b = (struct block *)(void *)heap.at;
	heap.at += HEADER + bytes;
	return give(b, bytes);
}

static struct block *take(size_t n, bool *ret_zero)
{
	struct block *b;
	size_t bytes, class;

	if (!heap.secret)
		memcpy(&heap.secret, (const char *)getauxval(AT_RANDOM) + 8, sizeof(heap.secret));
	*ret_zero = true;
	if (n > LARGEST)
		return n > PTRDIFF_MAX - HEADER ? NULL : give(map(HEADER + n), n);
	class = class_of(n ? n : 1, &bytes);
	b = heap.freed[class];
	if (!b)
		return cut(bytes);
	must_be(b, FREED);
	heap.freed[class] = mix(b, b->next);
	*ret_zero = false;
	return give(b, bytes);
}

static void *payload(struct block *b)
{
	if (b)
		return &b->next;
	errno = ENOMEM;
	return NULL;
}

static struct block *block_of(void *p)
{
	struct block *b = (struct block *)(void *)((char *)p - HEADER);

	must_be(b, GIVEN);
	return b;
}

void *malloc(size_t n)
{
	bool zero;

	return payload(take(n, &zero));
}

void *calloc(size_t count, size_t size)
{
	bool zero = true;
	size_t n;
	void *p = payload(__builtin_mul_overflow(count, size, &n) ? NULL : take(n, &zero));

	return p && !zero ? memset(p, 0, n) : p;
}

void free(void *p)
{
	int error = errno;
	size_t bytes, class;
	struct block *b;

	if (!p)
		return;
	b = block_of(p);
	if (b->bytes > LARGEST) {
		munmap(b, HEADER + b->bytes);
		errno = error;
		return;
	}
	class = class_of(b->bytes, &bytes);
	b->check = check_of(b, FREED);
	b->next = mix(b, heap.freed[class]);
	heap.freed[class] = b;
}

void *realloc(void *p, size_t n)
{
	struct block *b, *moved;
	void *new;

	if (!p)
		return malloc(n);
	b = block_of(p);
	if (n <= b->bytes && (b->bytes <= LARGEST || n > b->bytes / 2))
		return p;
	if (b->bytes > LARGEST && n > LARGEST && n <= PTRDIFF_MAX - HEADER) {
		moved = mremap(b, HEADER + b->bytes, HEADER + n, MREMAP_MAYMOVE);
		return payload(moved == MAP_FAILED ? NULL : give(moved, n));
	}
	new = malloc(n);
	if (new) {
		memcpy(new, p, n < b->bytes ? n : b->bytes);
		free(p);
	}
	return new;
}

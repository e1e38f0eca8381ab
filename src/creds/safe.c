/*
 * Locked memory. In: sizes. Out: pieces of one area that is locked (never in swap), left out of
 * core dumps and empty in a forked child. First fit over granules of 64 bytes: there are few
 * pieces, and they live long. Runs in ward-secrets and ward-keys, before they have a secret.
 */
#include "creds/safe.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define GRANULE 64
#define LEAST (64 * 1024)
#define PAGE_BYTES 4096ul
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* since Linux 5.18; where it is not known the pages stay */
#endif

/* A page is locked when it is first written: most never are. A sanitizer's mlock() does nothing, so
 * the call itself is made. */
static bool lock(void *area, size_t n)
{
	return syscall(SYS_mlock2, area, n, MLOCK_ONFAULT) == 0 ||
	       (errno == ENOSYS && syscall(SYS_mlock, area, n) == 0);
}

int safe_open(struct safe *s, size_t at_most, struct ward_err *e)
{
	void *area = MAP_FAILED;
	size_t n;

	for (n = at_most; n >= LEAST; n /= 2) {
		area = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (area == MAP_FAILED || lock(area, n))
			break;
		munmap(area, n);
		area = MAP_FAILED;
	}
	if (area == MAP_FAILED) {
		ward_fail(e, ENOMEM, "cannot lock memory for secrets (%s)", strerror(errno));
		return ward_remedy(e, "allow at least 64 KiB of locked memory: ulimit -l 64");
	}
	s->used = calloc(n / GRANULE, 1);
	if (!s->used || madvise(area, n, MADV_DONTDUMP) < 0 ||
	    madvise(area, n, MADV_WIPEONFORK) < 0) {
		free(s->used);
		munmap(area, n);
		return ward_fail_errno(e, "cannot protect the memory for secrets");
	}
	s->area = area;
	s->bytes = n;
	s->granules = n / GRANULE;
	return 0;
}

void safe_close(struct safe *s)
{
	if (!s->area)
		return;
	explicit_bzero(s->area, s->bytes);
	munmap(s->area, s->bytes);
	free(s->used);
	*s = (struct safe){ 0 };
}

void *safe_take(struct safe *s, size_t n)
{
	size_t need = n / GRANULE + 1, run = 0;

	if (n > s->bytes)
		return NULL;
	for (size_t i = 0; i < s->granules; i++) {
		run = s->used[i] ? 0 : run + 1;
		if (run < need)
			continue;
		memset(s->used + i + 1 - need, 1, need);
		s->used[i] = 2;
		return s->area + (i + 1 - need) * GRANULE;
	}
	return NULL;
}

void safe_shrink(struct safe *s, void *p, size_t n)
{
	size_t first = (size_t)((unsigned char *)p - s->area) / GRANULE, last = first + n / GRANULE,
	       i = last;

	while (s->used[i] == 1)
		i++;
	memset(s->used + last, 0, i + 1 - last);
	s->used[last] = 2;
}

/* Pages of which nothing is used any more are the kernel's again. */
static void release(const struct safe *s, size_t first, size_t last)
{
	size_t from = (first * GRANULE + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1),
	       to = (last * GRANULE) & ~(PAGE_BYTES - 1);

	if (from < to)
		(void)!madvise(s->area + from, to - from, MADV_DONTNEED_LOCKED);
}

void safe_give(struct safe *s, void *p)
{
	size_t first = p ? (size_t)((unsigned char *)p - s->area) / GRANULE : 0, i = first;

	if (!p)
		return;
	while (s->used[i] == 1)
		i++;
	explicit_bzero(p, (i + 1 - first) * GRANULE);
	memset(s->used + first, 0, i + 1 - first);
	release(s, first, i + 1);
}

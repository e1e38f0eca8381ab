/*
 * Sleeping with little memory. A supervisor of an idle sandbox sleeps for hours, and there may be
 * hundreds of them: before it does, it gives back the heap that is free, the stack below what is in
 * use, and the pages of its own program, which the kernel reads from the file again when they are
 * needed. Only segments that are never written are dropped: of others the kernel would restore the
 * file's content, not ours. The pages go last, right before the system call that sleeps, and by
 * code that calls nothing: each function on the way to sleep would bring its neighbourhood of
 * sixteen pages back.
 */
#include "base/trim_memory.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/raw.h"

#ifdef __SANITIZE_ADDRESS__ /* which has its own idea of the stack */
#define SANITIZED true
#else
#define SANITIZED false
#endif
#define PAGE_BYTES 4096ul
#define STACK_DEEP (512ul << 10)
#define RANGES_MAX 32

struct ranges {
	struct {
		uintptr_t from, to;
	} items[RANGES_MAX + 1];
	size_t count;
};

static int add_program(struct dl_phdr_info *info, size_t size, void *data)
{
	struct ranges *r = data;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum && r->count < RANGES_MAX; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_LOAD || h->p_flags & PF_W)
			continue;
		r->items[r->count].from = at & ~(PAGE_BYTES - 1);
		r->items[r->count++].to = (at + h->p_memsz + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	}
	return 0; /* its libraries follow */
}

static __attribute__((noinline)) long drop_and_poll(const struct ranges *r, struct pollfd *polled,
						    nfds_t count, int timeout_ms)
{
	for (size_t i = 0; i < r->count; i++)
		raw_call(SYS_madvise, r->items[i].from, r->items[i].to - r->items[i].from,
			 MADV_DONTNEED);
	return raw_call(SYS_poll, polled, count, timeout_ms);
}

int trim_memory_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
	struct ranges r = { 0 };
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0) & ~(PAGE_BYTES - 1);
	long n;

#ifdef __GLIBC__ /* the heap that goes with musl gives nothing back */
	malloc_trim(0);
#endif
	if (!SANITIZED) {
		dl_iterate_phdr(add_program, &r);
		/* two pages below this frame are for the calls that follow */
		r.items[r.count].from = stack - STACK_DEEP;
		r.items[r.count++].to = stack - 2 * PAGE_BYTES;
	}
	n = drop_and_poll(&r, polled, count, timeout_ms);
	if (n >= 0)
		return (int)n;
	errno = (int)-n;
	return -1;
}

void trim_memory_now(void)
{
	struct ranges r = { 0 };

#ifdef __GLIBC__
	malloc_trim(0);
#endif
	if (!SANITIZED)
		dl_iterate_phdr(add_program, &r);
	for (size_t i = 0; i < r.count; i++)
		raw_call(SYS_madvise, r.items[i].from, r.items[i].to - r.items[i].from,
			 MADV_DONTNEED);
}

"""Hides memory from its limit in pipes: one page of a huge one is lent to a pipe, which keeps all
of it when the process has unmapped it.

layer: limits, seccomp
control: without a sandbox it gets it
"""
from harness.kernel_memory import PRELUDE, holds

OPTIONS = ["--memory", "64M"]
C = "#define PATIENCE 5\n" + PRELUDE + r"""
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define HUGE ((size_t)2 << 20)

int main(void)
{
	began();
	for (int i = 0; i < 8; i++) {
		int ends[2];

		if (pipe(ends) < 0)
			break;
		for (int k = 0; k < 14; k++) {
			char *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			char *at = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
			struct iovec page = { at, 4096 };
			struct rusage before, after;

			madvise(at, HUGE, MADV_HUGEPAGE);
			getrusage(RUSAGE_SELF, &before);
			for (size_t o = 0; o < HUGE; o += 4096)
				at[o] = 1;
			getrusage(RUSAGE_SELF, &after);
			if (vmsplice(ends[1], &page, 1, SPLICE_F_NONBLOCK) == 4096 &&
			    after.ru_minflt - before.ru_minflt < 8)
				held(HUGE);
			munmap(p, 2 * HUGE);
		}
	}
	return done();
}
"""


def scene(s):
    if "[never]" in s.t.read("/sys/kernel/mm/transparent_hugepage/enabled"):
        s.t.skip("this machine has no huge pages")


escaped = holds(161)

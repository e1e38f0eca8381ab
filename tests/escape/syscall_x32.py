"""Makes system calls with the x32 bit, whose numbers a filter that looks for equal numbers does not
know.

layer: seccomp
control: without a sandbox the kernel answers (with ENOSYS where it has no x32); inside the process
must be killed
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
C = r"""
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	write(2, "[attack began]\n", 15);
	syscall(0x40000000 | SYS_getpid);
	write(1, "the kernel answered\n", 20);
	return 0;
}
"""


def escaped(s, r):
    return "the kernel answered" in r.out

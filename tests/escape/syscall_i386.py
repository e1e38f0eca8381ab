"""Makes 32-bit system calls with int 0x80, whose numbers a 64-bit filter would misread.

layer: seccomp
control: without a sandbox the call is answered
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
C = r"""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	long result;
	write(2, "[attack began]\n", 15);
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");	/* getpid */
	if (result > 0)
		write(1, "answered\n", 9);
	return 0;
}
"""


def escaped(s, r):
    return "answered" in r.out

"""A module never ends and never waits: it computes for ever, past its time.

layer: limits
control: the same C as a program without a sandbox goes on for as long as it likes
"""
OPTIONS = ["--timeout", "1"]
WASM = r"""
#include <time.h>
int main(int argc, char **argv)
{
	time_t end = time(NULL) + 3;
	volatile unsigned long n = 0;

	began();
	for (;;) {
		for (int i = 0; i < 100000; i++)
			n += i;
		if (time(NULL) >= end)
			break;
	}
	puts("WENT ON");
	return 0;
}
"""


def escaped(s, r):
    return "WENT ON" in r.out or (not s.control and r.rc != 124)

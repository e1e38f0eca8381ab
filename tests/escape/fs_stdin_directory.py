"""Gets a directory as its standard input, `ward run -- ... < /some/dir`, and opens files below it.

layer: stdio
control: the same user without a sandbox opens them
"""
import os

REFUSED = True
C = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char text[100];
	write(2, "[attack began]\n", 15);
	int fd = openat(0, "secret.txt", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text));
	if (n > 0)
		write(1, text, (size_t)n);
	return 0;
}
"""


def scene(s):
    s.secret()
    s.stdin = os.open(s.outside, os.O_RDONLY)


def escaped(s, r):
    os.close(s.stdin)
    return s.token in r.out or (not s.control and r.rc != 125)

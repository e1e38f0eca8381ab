"""A module uses descriptors that are not its own: those that the caller of ward left open, by
number, and its own directories moved onto other numbers.

layer: the runtime's own table of descriptors, descriptors closed at the start
control: the same C as a program without a sandbox inherits them
"""
import fcntl
import os

WASM = r"""
#ifdef __wasi__
#include <wasi/api.h>
#endif
static void try(int fd)
{
	char bytes[100];
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	n = read(fd, bytes, sizeof(bytes));
	if (n > 0)
		fwrite(bytes, 1, (size_t)n, stdout);
	fd = openat(fd, "../../../../../../../../../../proc/self/environ", O_RDONLY);
	n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	if (n > 0)
		printf("OPENED %d\n", fd);
}

int main(int argc, char **argv)
{
	began();
	for (int fd = 3; fd < 1024; fd++)
		try(fd);
	try(-1);
	try(-100);
	try(0x7fffffff);
#ifdef __wasi__
	for (unsigned fd = 3; fd < 8;
	     fd++) /* a directory becomes standard input, and what was standard input a directory */
		if (__wasi_fd_renumber(fd, 0) == 0)
			try(0);
	for (int i = 0; i < 64; i++)
		try(open(".", O_RDONLY));
#endif
	return 0;
}
"""


def scene(s):
    path = s.secret()
    low = os.open(path, os.O_RDONLY)
    high = fcntl.fcntl(low, fcntl.F_DUPFD, 700)
    s.pass_fds = (low, high)
    s.t.defer(os.close, low)
    s.t.defer(os.close, high)


def escaped(s, r):
    return s.token in r.out or "OPENED" in r.out

"""Somebody who may write in the workspace swaps a directory for a link to the outside, again and
again, while a module opens a file in it: a runtime that follows paths by itself looks first and
opens later.

layer: Landlock, mount namespace
control: the same C as a program without a sandbox
"""
import os
import time

TIMEOUT = 120
WASM = r"""
int main(int argc, char **argv)
{
	began();
	for (int i = 0; i < 20000; i++) {
		char bytes[100];
		int fd = open(i % 2 ? "sub/secret.txt" : "sub/../sub/./secret.txt", O_RDONLY);
		ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

		if (n > 0 && bytes[0] == 'T') {
			fwrite(bytes, 1, (size_t)n, stdout);
			return 0;
		}
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
"""


def swap(ws, outside):
    os.chdir(ws)
    while True:
        os.symlink(outside, "next")
        os.rename("sub", "old")
        os.rename("next", "sub")
        time.sleep(0.0002)
        os.unlink("sub")
        os.rename("old", "sub")
        time.sleep(0.0002)


def scene(s):
    s.secret()
    s.t.write(s.ws, {"sub/secret.txt": "nothing\n"})
    s.t.background(swap, s.ws, s.outside)

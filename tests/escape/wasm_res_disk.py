"""A module fills the disk: by writing, and by asking for room (fd_allocate), which writes nothing.

layer: limits
control: the same C as a program without a sandbox gets it
"""
import os

OPTIONS = ["--disk", "16M"]
WASM = r"""
int main(int argc, char **argv)
{
	static char bytes[65536];
	char name[32];

	began();
	memset(bytes, 'x', sizeof(bytes));
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "room%d", i);
		posix_fallocate(open(name, O_RDWR | O_CREAT, 0644), 0, 32 << 20);
	}
	for (int i = 0; i < 640; i++) {
		int fd;

		snprintf(name, sizeof(name), "small%d", i);
		fd = open(name, O_WRONLY | O_CREAT, 0644);
		write(fd, bytes, sizeof(bytes));
		close(fd);
	}
	puts("written");
	return 0;
}
"""


def escaped(s, r):
    return sum(e.stat().st_blocks * 512 for e in os.scandir(s.ws)) > 80 << 20

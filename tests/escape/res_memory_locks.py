"""Hides memory from its limit in locks of files: one descriptor can have any number of them, and no
cgroup counts one.

layer: limits (watch)
control: without a sandbox it gets it
"""
from harness.kernel_memory import ENGINES, ENGINES_WHY, OPTIONS, PRELUDE, escaped

C = PRELUDE + r"""
#define LOCKS 500
int main(void)
{
	int more = 1;

	began();
	for (int file = 0; more && file < 3000; file++) {
		int fd = open("lock", O_CREAT | O_RDWR, 0600);

		if (fd < 0)
			break;
		unlink("lock");
		for (int i = LOCKS; i > 0 && more; i--) {
			struct flock l = { .l_type = F_RDLCK,
					   .l_whence = SEEK_SET,
					   .l_start = 2 * i,
					   .l_len = 1 };

			if (fcntl(fd, F_OFD_SETLK, &l) < 0)
				return done();
			more = held(200);
		}
	}
	return done();
}
"""
__all__ = ["ENGINES", "ENGINES_WHY", "OPTIONS", "escaped"]

"""Hides memory from its limit in extended attributes of a file on a tmpfs, which take none of its
blocks.

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import ENGINES, ENGINES_WHY, OPTIONS, PRELUDE, escaped

C = PRELUDE + r"""
#include <sys/xattr.h>
int main(void)
{
	static char value[60000];
	int fd = open("/dev/shm/ward-attack-attributes", O_CREAT | O_RDWR, 0600), more = 1;

	began();
	unlink("/dev/shm/ward-attack-attributes");
	for (int i = 0; more && i < 10000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "user.a%d", i);
		if (fsetxattr(fd, name, value, sizeof(value), 0) < 0)
			break;
		more = held(sizeof(value));
	}
	return done();
}
"""
__all__ = ["ENGINES", "ENGINES_WHY", "OPTIONS", "escaped"]

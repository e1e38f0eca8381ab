"""Hides memory from its limit in Landlock rules: a set of them is one descriptor, and may have any
number.

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import ENGINES, ENGINES_WHY, OPTIONS, PRELUDE, escaped

C = PRELUDE + r"""
#include <sys/syscall.h>
int main(void)
{
	int more = 1;

	began();
	while (more) {
		unsigned long long handled[2] = { 0, 3 };
		long fd = syscall(444, handled, sizeof(handled),
				  0); /* landlock_create_ruleset: network rules only */

		for (unsigned long long port = 0; more && port < 65536; port++) {
			unsigned long long rule[2] = { 1, port };

			if (syscall(445, fd, 2, rule, 0) < 0)	/* landlock_add_rule */
				return done();
			more = held(64);
		}
	}
	return done();
}
"""
__all__ = ["ENGINES", "ENGINES_WHY", "OPTIONS", "escaped"]

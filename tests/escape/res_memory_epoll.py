"""Hides memory from its limit in epoll sets: each pair of a set and a descriptor is an entry in the
kernel.

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import ENGINES, ENGINES_WHY, OPTIONS, PRELUDE, escaped

C = PRELUDE + r"""
#include <sys/epoll.h>
#include <sys/eventfd.h>
#define FDS 400
int main(void)
{
	int fds[FDS], more = 1;

	began();
	for (int i = 0; i < FDS; i++)
		fds[i] = eventfd(0, 0);
	for (int k = 0; more && k < 2500; k++) {
		int set = epoll_create1(0);

		for (int i = 0; more && i < FDS; i++) {
			struct epoll_event e = { .events = EPOLLIN };

			if (epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &e) < 0)
				return done();
			more = held(200);
		}
	}
	return done();
}
"""
__all__ = ["ENGINES", "ENGINES_WHY", "OPTIONS", "escaped"]

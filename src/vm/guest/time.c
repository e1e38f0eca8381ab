/*
 * The clock and the random numbers of a guest that was cloned: its memory is a copy of another's,
 * so both are those of another machine until the host sets them, which it does before anything
 * else. Runs as the guest's root.
 */
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vm/guest/agent.h"

void time_set(const struct vm_time *t)
{
	struct timespec now = { .tv_sec = t->s, .tv_nsec = t->ns };
	struct {
		int entropy_count, buf_size;
		uint8_t bytes[sizeof(t->seed)];
	} pool = { .entropy_count = 8 * sizeof(t->seed), .buf_size = sizeof(t->seed) };
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	clock_settime(CLOCK_REALTIME, &now);
	if (fd < 0)
		return;
	memcpy(pool.bytes, t->seed, sizeof(pool.bytes));
	/* a libc takes the request as int, or as unsigned long */
	syscall(SYS_ioctl, fd, RNDADDENTROPY, &pool);
	syscall(SYS_ioctl, fd, RNDRESEEDCRNG, 0);
	close(fd);
}

"""What the attacks have in common that hide memory in the kernel: a C beginning, and how they are judged.

The program fills step by step, calls held() with what it has by its own count, and done() at the end; there it waits some seconds, inside, for whoever holds the limit.
"""
OPTIONS = ["--memory", "16M"]
ENOUGH_MIB = 45

PRELUDE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ENOUGH (48L << 20)
static long bytes_held;
static int held(long more)
{
	bytes_held += more;
	return bytes_held < ENOUGH;
}
static void began(void)
{
	write(2, "[attack began]\n", 15);
}
static int done(void)
{
	if (bytes_held < ENOUGH)
		printf("stopped: %s\n", strerror(errno));
	fflush(stdout);
	for (int i = 0; getenv("WARD") && i < 40; i++)	/* whoever holds the limit ends this */
		usleep(200000);
	printf("held: %ld MiB\n", bytes_held >> 20);
	return 0;
}
"""


def escaped(_scene, r):
    """Whether it had far more than its limit, and nobody ended it."""
    return "held:" in r.out and int(r.out.split("held:")[1].split()[0]) >= ENOUGH_MIB

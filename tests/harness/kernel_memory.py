"""What the attacks on a memory limit share: how they are judged, and the beginning of those in C.

A program in C calls began(), fills step by step, calls held() with what it has by its own count,
and done() at the end: inside, if it holds enough, it waits there for ward to end it, PATIENCE times
a fifth of a second.
"""
OPTIONS = ["--memory", "16M"]
ENOUGH_MIB = 45
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"

PRELUDE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ENOUGH (48L << 20)
#ifndef PATIENCE
#define PATIENCE 40
#endif
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
	/* with less it has lost already */
	for (int i = 0; getenv("WARD") && bytes_held >> 20 >= 45 && i < PATIENCE; i++)
		usleep(200000);
	printf("held: %ld MiB\n", bytes_held >> 20);
	return 0;
}
"""


def held_mib(r):
    """What the attack says at its end that it holds; 0: it did not reach its end."""
    return int(r.out.split("held:")[1].split()[0]) if "held:" in r.out else 0


def holds(mib):
    """The escaped() of an attack that has won when it holds so much at its end."""
    return lambda _scene, r: held_mib(r) >= mib


escaped = holds(ENOUGH_MIB)

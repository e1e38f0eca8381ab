/*
 * Prints ward's own system call filter as an array of struct sock_filter, the form that bwrap's
 * --seccomp reads: so that the peer in `make bench` installs a filter of the same size. Without a
 * listener: nobody would answer.
 *
 *	bench-filter strict|default|build > FILE
 */
#include <stdio.h>
#include <string.h>

#include "engine/native/seccomp.h"

int main(int argc, char **argv)
{
	/* as in policy.def */
	static const char *const sets[] = { "strict", "default", "build" };
	static struct sock_filter code[SECCOMP_PROGRAM_MAX];
	size_t len = 0;

	for (unsigned i = 0; argc == 2 && i < ARRAY_LEN(sets); i++)
		if (strcmp(argv[1], sets[i]) == 0 &&
		    seccomp_program(i, SECCOMP_NO_LISTENER, code, ARRAY_LEN(code), &len) == 0)
			return fwrite(code, sizeof(*code), len, stdout) == len ? 0 : 1;
	fputs("usage: bench-filter strict|default|build > FILE\n", stderr);
	return 2;
}

/* What musl 1.2.3 lacks of stdio.h. */
#ifndef WARD_MUSL_STDIO_H
#define WARD_MUSL_STDIO_H

#include_next <stdio.h>

#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2

static inline int renameat2(int from_fd, const char *from, int to_fd, const char *to,
			    unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}
#endif

#endif

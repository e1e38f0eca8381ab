/* What musl 1.2.3 lacks of sys/stat.h: statx. */
#ifndef WARD_MUSL_SYS_STAT_H
#define WARD_MUSL_SYS_STAT_H

#include_next <sys/stat.h>

#ifndef STATX_BASIC_STATS
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *found)
{
	return (int)syscall(SYS_statx, dir_fd, path, flags, mask, found);
}
#endif

#endif

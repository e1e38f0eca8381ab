/*
 * statx with the fields of the kernel's header. musl 1.2.3 has none; from 1.2.5 on it has one that
 * ends before mount ids and lacks their flags. Its names are moved aside, and the kernel's are
 * used.
 */
#ifndef WARD_MUSL_SYS_STAT_H
#define WARD_MUSL_SYS_STAT_H

#define statx musl_statx
#define statx_timestamp musl_statx_timestamp
#include_next <sys/stat.h>
#undef statx
#undef statx_timestamp

#undef STATX_TYPE
#undef STATX_MODE
#undef STATX_NLINK
#undef STATX_UID
#undef STATX_GID
#undef STATX_ATIME
#undef STATX_MTIME
#undef STATX_CTIME
#undef STATX_INO
#undef STATX_SIZE
#undef STATX_BLOCKS
#undef STATX_BASIC_STATS
#undef STATX_BTIME
#undef STATX_ALL

#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *found)
{
	return (int)syscall(SYS_statx, dir_fd, path, flags, mask, found);
}

#endif

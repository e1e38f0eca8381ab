/* In glibc getdents64() takes any buffer; from musl 1.2.4 on neither it nor its struct has that
 * name. */
#ifndef WARD_MUSL_DIRENT_H
#define WARD_MUSL_DIRENT_H

#include_next <dirent.h>

#include <sys/types.h>

#undef getdents64
#ifndef dirent64
#define dirent64 dirent
#endif

static inline ssize_t getdents64(int fd, void *entries, size_t size)
{
	return getdents(fd, (struct dirent *)entries, size);
}

#endif

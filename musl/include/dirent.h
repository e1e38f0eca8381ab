/* In glibc getdents64() takes any buffer. */
#ifndef WARD_MUSL_DIRENT_H
#define WARD_MUSL_DIRENT_H

#include_next <dirent.h>

#include <sys/types.h>

#undef getdents64

static inline ssize_t getdents64(int fd, void *entries, size_t size)
{
	return getdents(fd, (struct dirent *)entries, size);
}

#endif

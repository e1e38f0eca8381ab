/* What musl 1.2.3 lacks of sys/uio.h. */
#ifndef WARD_MUSL_SYS_UIO_H
#define WARD_MUSL_SYS_UIO_H

#include_next <sys/uio.h>

#ifndef RWF_NOWAIT
#include <sys/syscall.h>
#include <unistd.h>

#define RWF_NOWAIT 8

/* The offset is passed in two halves; on a machine of 64 bits the second is not looked at. */
static inline ssize_t pwritev2(int fd, const struct iovec *data, int count, off_t offset, int flags)
{
	return syscall(SYS_pwritev2, fd, data, count, offset, 0, flags);
}
#endif

#endif

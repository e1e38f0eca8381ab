/*
 * Makes package managers believe that they are root while they fill an image. Loaded in front of a
 * libc (LD_PRELOAD) in the sandbox of `packages:`, any libc: it uses none. No process gets rights
 * by it. Owners are not kept by images, so chown has nothing to do, and set-id bits are dropped
 * from every image, so chmod leaves them out.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/raw.h"

#define seen __attribute__((visibility("default")))
#define KEPT 01777u /* of a mode: all but set-id bits */

/* of whichever libc there is; NOLINT(readability-redundant-declaration): musl's header has none */
int *__errno_location(void);

static int answer(long result)
{
	if (result >= 0)
		return (int)result;
	*__errno_location() = (int)-result;
	return -1;
}

seen uid_t getuid(void)
{
	return 0;
}

seen uid_t geteuid(void)
{
	return 0;
}

seen gid_t getgid(void)
{
	return 0;
}

seen gid_t getegid(void)
{
	return 0;
}

seen int chown(const char *path, uid_t uid, gid_t gid)
{
	(void)path, (void)uid, (void)gid;
	return 0;
}

seen int lchown(const char *path, uid_t uid, gid_t gid)
{
	(void)path, (void)uid, (void)gid;
	return 0;
}

seen int fchown(int fd, uid_t uid, gid_t gid)
{
	(void)fd, (void)uid, (void)gid;
	return 0;
}

seen int fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags)
{
	(void)fd, (void)path, (void)uid, (void)gid, (void)flags;
	return 0;
}

seen int chmod(const char *path, mode_t mode)
{
	return answer(raw_call(SYS_fchmodat, AT_FDCWD, path, mode & KEPT));
}

seen int fchmod(int fd, mode_t mode)
{
	return answer(raw_call(SYS_fchmod, fd, mode & KEPT));
}

/* The kernel's own call knows no flags; the mode of a link is nothing that an image keeps. */
seen int fchmodat(int fd, const char *path, mode_t mode, int flags)
{
	return flags & AT_SYMLINK_NOFOLLOW ? 0
					   : answer(raw_call(SYS_fchmodat, fd, path, mode & KEPT));
}

seen int mkdir(const char *path, mode_t mode)
{
	return answer(raw_call(SYS_mkdirat, AT_FDCWD, path, mode & KEPT));
}

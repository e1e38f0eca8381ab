/*
 * ward-vm-ram.so, loaded into QEMU before 8.2 when it restores a template. That QEMU opens the file
 * with the guest's memory for writing even where it maps it privately; in the sandbox the file is
 * read-only, so that no guest can touch the memory that the next one begins with. In: QEMU's open()
 * of the one path that WARD_VM_RAM names. Out: the same file, read-only. Every other call goes
 * through.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int ward_open(const char *path, int flags, ...) __asm__("open");
int ward_open64(const char *path, int flags, ...) __asm__("open64");
/* what a fortified program calls */
int ward_open_2(const char *path, int flags) __asm__("__open_2");
int ward_open64_2(const char *path, int flags) __asm__("__open64_2");

static int open_either(const char *path, int flags, unsigned mode)
{
	const char *ram = getenv("WARD_VM_RAM");

	if (ram && strcmp(path, ram) == 0)
		flags = (flags & ~O_ACCMODE) | O_RDONLY;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static unsigned mode_of(int flags, va_list more)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, unsigned) : 0;
}

__attribute__((visibility("default"))) int ward_open(const char *path, int flags, ...)
{
	unsigned mode;
	va_list more;

	va_start(more, flags);
	mode = mode_of(flags, more);
	va_end(more);
	return open_either(path, flags, mode);
}

__attribute__((visibility("default"))) int ward_open64(const char *path, int flags, ...)
{
	unsigned mode;
	va_list more;

	va_start(more, flags);
	mode = mode_of(flags, more);
	va_end(more);
	return open_either(path, flags, mode);
}

__attribute__((visibility("default"))) int ward_open_2(const char *path, int flags)
{
	return open_either(path, flags, 0);
}

__attribute__((visibility("default"))) int ward_open64_2(const char *path, int flags)
{
	return open_either(path, flags, 0);
}

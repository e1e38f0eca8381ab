/* The least program: it ends. No libc, so that what its start costs is the kernel's and whoever
 * starts it. Static, for bench/vm.py's guests. */
void _start(void) __attribute__((noreturn));

void _start(void)
{
	__asm__ volatile("syscall" ::"a"(231 /* exit_group */), "D"(0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

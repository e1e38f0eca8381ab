/*
 * ward's stand-in for the dynamic loader, for runs with process.commands.allow.
 *
 * In: the stack that the kernel gives to a program, or to the interpreter that a program names.
 * Out: the real loader, mapped from /.ward/loader, runs as if the kernel had mapped it. Runs
 * inside, in every process that starts a dynamic program, without a libc, with the rights of that
 * program.
 *
 * The kernel needs the right to execute the loader in two cases that it does not distinguish: as
 * the interpreter of an allowed program, and as a program of its own. In the second case the
 * loader would map and run any file that can be read: "ld.so /usr/bin/curl". So this file is what
 * lies at the loader's path. Landlock gives it the right to be executed and gives none to the real
 * loader, which can only be mapped. The kernel says in the auxiliary vector which case it is:
 * AT_BASE is where it mapped an interpreter, and 0 without one. Nothing inside writes that vector
 * before this code reads it. In the second case, and if anything is wrong with the real loader,
 * the process ends with status 126.
 *
 * Position independent, without relocations: there is no loader to apply them.
 */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/raw.h"

#define LOADER "/.ward/loader"
#define PAGE 4096UL
#define PHDRS_MAX 16

unsigned long loader_main(unsigned long *stack);

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rbx\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call loader_main\n"
	"	mov %rbx, %rsp\n"
	"	xor %ebx, %ebx\n"
	"	xor %edx, %edx\n"
	"	jmp *%rax\n");

static __attribute__((noreturn)) void refuse(const char *why, size_t n)
{
	raw_call(SYS_write, 2, why, n);
	for (;;)
		raw_call(SYS_exit_group, 126);
}

#define REFUSE(text) refuse(text "\n", sizeof(text))

/* The entry of the auxiliary vector, behind the arguments and the environment. NULL: none. */
static unsigned long *find_aux(unsigned long *stack, unsigned long type)
{
	unsigned long *at = stack + 1 + stack[0] + 1;

	while (*at)
		at++;
	for (at++; at[0] != AT_NULL; at += 2)
		if (at[0] == type)
			return at + 1;
	return NULL;
}

static unsigned long down(unsigned long x)
{
	return x & ~(PAGE - 1);
}

static unsigned long up(unsigned long x)
{
	return down(x + PAGE - 1);
}

static int protection(unsigned flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

/* One segment, in the place that was reserved; what the file lacks of it is zero. */
static void map_segment(int fd, unsigned long base, const Elf64_Phdr *p)
{
	unsigned long start = base + down(p->p_vaddr), file_end = base + p->p_vaddr + p->p_filesz,
		      end = up(base + p->p_vaddr + p->p_memsz);
	long r = raw_call(SYS_mmap, start, up(file_end) - start, protection(p->p_flags),
			  MAP_PRIVATE | MAP_FIXED, fd, down(p->p_offset));

	if (r == (long)start && end > up(file_end) &&
	    raw_call(SYS_mmap, up(file_end), end - up(file_end), protection(p->p_flags),
		     MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != (long)up(file_end))
		r = -1;
	if (r != (long)start)
		REFUSE("ward: cannot map the dynamic loader");
	if (p->p_flags & PF_W)
		for (volatile char *at = (char *)file_end; at < (char *)up(file_end); at++)
			*at = 0;
}

/* Maps the real loader; *ret_base is where. Returns its entry. */
static unsigned long map_loader(unsigned long *ret_base)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr parts[PHDRS_MAX];
	} elf;
	long fd = raw_call(SYS_openat, AT_FDCWD, LOADER, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? fd : raw_call(SYS_pread64, fd, &elf, sizeof(elf), 0), place;
	unsigned long end = 0;

	if (n != (long)sizeof(elf) || elf.head.e_type != ET_DYN || elf.head.e_phnum > PHDRS_MAX ||
	    elf.head.e_phoff != sizeof(elf.head) || elf.head.e_phentsize != sizeof(Elf64_Phdr))
		REFUSE("ward: cannot read the dynamic loader");
	for (unsigned i = 0; i < elf.head.e_phnum; i++)
		if (elf.parts[i].p_type == PT_LOAD)
			end = up(elf.parts[i].p_vaddr + elf.parts[i].p_memsz);
	place = raw_call(SYS_mmap, 0, end, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (place < 0)
		REFUSE("ward: no memory for the dynamic loader");
	for (unsigned i = 0; i < elf.head.e_phnum; i++)
		if (elf.parts[i].p_type == PT_LOAD)
			map_segment((int)fd, (unsigned long)place, &elf.parts[i]);
	raw_call(SYS_close, fd);
	*ret_base = (unsigned long)place;
	return (unsigned long)place + elf.head.e_entry;
}

unsigned long loader_main(unsigned long *stack)
{
	unsigned long *base = find_aux(stack, AT_BASE);

	if (!base || !*base)
		REFUSE("ward: process.commands: the dynamic loader does not start programs here");
	return map_loader(base);
}

/*
 * clone3 with an own stack. The few instructions between the system call and the child's function
 * cannot be written in C: the child wakes up on another stack, where no local variable of the
 * caller's exists.
 */
#include "base/clone.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>

#include "base/raw.h"

__asm__(".pushsection .text.clone_call, \"ax\"\n"
	".type clone_call, @function\n"
	".hidden clone_call\n"
	".globl clone_call\n"
	"clone_call:\n"
	"	endbr64\n"
	"	push %r12\n"
	"	push %r13\n"
	"	mov %r9, %r12\n"      /* fn */
	"	mov 24(%rsp), %r13\n" /* argument */
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	xor %r8d, %r8d\n"
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	ret\n"
	"1:	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	mov %r13, %rdi\n"
	"	call *%r12\n"
	"	mov %eax, %edi\n"
	"	mov $231, %eax\n" /* exit_group */
	"	syscall\n"
	"	hlt\n"
	".size clone_call, . - clone_call\n"
	".popsection\n");

long clone_start(struct clone_child *c)
{
	struct clone_args args = {
		.flags = c->flags,
		.pidfd = (uintptr_t)&c->pid_fd,
		.child_tid = (uintptr_t)c->child_tid,
		.exit_signal = c->quiet ? 0 : SIGCHLD,
		.stack = (uintptr_t)c->stack,
		.stack_size = c->stack_bytes,
		.cgroup = c->flags & CLONE_INTO_CGROUP ? (unsigned)c->cgroup_fd : 0,
	};
	long pid = clone_call(SYS_clone3, RAW_ARG(&args), sizeof(args), 0, 0, c->main, c->argument);

	/* older containers' filters answer EPERM to what they do not know; if it is the kernel's
	 * own, it says it again */
	if ((pid == -ENOSYS || pid == -EPERM) && !(c->flags & CLONE_INTO_CGROUP))
		pid = clone_call(SYS_clone, RAW_ARG(c->flags | (c->quiet ? 0 : SIGCHLD)),
				 RAW_ARG((char *)c->stack + c->stack_bytes), RAW_ARG(&c->pid_fd),
				 RAW_ARG(c->child_tid), c->main, c->argument);
	return pid;
}

/*
 * Whether KVM here runs guests in hardware. In: /dev/kvm. Out: yes, or why not and what to do.
 * Making a machine proves nothing: there are hosts (guests of a cloud, mostly) whose KVM emulates
 * every instruction of a guest's kernel, a thousand times slower, and not all of them. So a
 * throw-away guest of one page of code counts down a register some ten thousand times in its most
 * privileged 64-bit mode and then executes what kernels do and emulators lack, as far as KVM says
 * that guests have it; the time that takes decides, and what it left in its memory. The loop ends
 * by itself, so the time is bound: a tenth of a second or two where every instruction is emulated.
 * Runs in the supervisor with the user's rights, only where a virtual machine is wanted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/own.h"
#include "host/vm_kvm.h"
#include "host/vm_kvm.h"

#define ROUNDS 50000
/* hardware takes some ten thousand, and on the busiest machine ten million; emulation of two
 * instructions a round at least 70 ms */
#define MOST_NS 40000000
#define TRIES 5 /* a busy machine takes the processor away now and then */
#define CPUID_MAX 256

/* Where things are in the guest. */
#define AT_CODE 0
#define AT_TABLES 0x1000 /* three pages: the first 2 MiB, mapped one to one */
#define AT_DATA 0x4000
#define GUEST_BYTES 0x5000

/* mov ecx, ROUNDS; l: dec ecx; jnz l */
static const uint8_t loop[] = { 0xb9, ROUNDS & 0xff, ROUNDS >> 8 & 0xff, 0, 0, 0xff, 0xc9,
				0x75, 0xfc };
static const uint8_t halt = 0xf4;

/* What a kernel executes. Each leaves a value in the data. */
static const struct piece {
	const char *name;
	uint32_t leaf, bit;
	bool in_ebx; /* else in ecx */
	uint8_t len;
	uint8_t code[32];
	uint16_t at;
	uint32_t value;
} pieces[] = {
	/* mov edi, DATA; xor eax, eax; xor edx, edx; mov ebx, 1; mov ecx, 2; lock cmpxchg16b
	 * [rdi] */
	{ "cmpxchg16b",
	  1,
	  13,
	  false,
	  24,
	  { 0xbf, 0x00, 0x40, 0, 0, 0x31, 0xc0, 0x31, 0xd2, 0xbb, 1,    0,
	    0,    0,    0xb9, 2, 0, 0,    0,    0xf0, 0x48, 0x0f, 0xc7, 0x0f },
	  0,
	  1 },
	/* xor ecx, ecx; xor edx, edx; mov eax, 3; xsetbv; hlt; mov edi, DATA + 0x40; xsave64 [rdi];
	 * xrstor64 [rdi]: MXCSR as it is after reset. It halts in between, because there are
	 * emulated processors whose guests have another XCR0 after an exit */
	{ "xrstor",
	  1,
	  26,
	  false,
	  26,
	  { 0x31, 0xc9, 0x31, 0xd2, 0xb8, 3,    0,    0,    0,    0x0f, 0x01, 0xd1, 0xf4,
	    0xbf, 0x40, 0x40, 0,    0,    0x48, 0x0f, 0xae, 0x27, 0x48, 0x0f, 0xae, 0x2f },
	  0x40 + 24,
	  0x1f80 },
	/* mov eax, 5; mov ecx, 4; shlx eax, eax, ecx; mov [DATA + 0x10], eax */
	{ "shlx",
	  7,
	  8,
	  true,
	  22,
	  { 0xb8, 5,    0,    0,    0,    0xb9, 4,    0,    0,    0, 0xc4,
	    0xe2, 0x71, 0xf7, 0xc0, 0x89, 0x04, 0x25, 0x10, 0x40, 0, 0 },
	  0x10,
	  0x50 },
};

/* What CPUID reports to the guest. */
struct features {
	uint32_t nent, padding; /* as in struct kvm_cpuid2 */
	struct kvm_cpuid_entry2 entries[CPUID_MAX];
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool has(const struct features *f, const struct piece *p)
{
	for (uint32_t i = 0; i < f->nent && i < CPUID_MAX; i++)
		if (f->entries[i].function == p->leaf && f->entries[i].index == 0)
			return (p->in_ebx ? f->entries[i].ebx : f->entries[i].ecx) >> p->bit & 1;
	return false;
}

static void write_guest(uint8_t *memory, const struct features *f)
{
	uint64_t *tables = (uint64_t *)(void *)(memory + AT_TABLES);
	size_t n = sizeof(loop);

	memset(memory, 0, GUEST_BYTES);
	tables[0] = (AT_TABLES + 0x1000) | 3;
	tables[512] = (AT_TABLES + 0x2000) | 3;
	tables[1024] = 0x83;
	memcpy(memory + AT_CODE, loop, n);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		if (has(f, &pieces[i])) {
			memcpy(memory + AT_CODE + n, pieces[i].code, pieces[i].len);
			n += pieces[i].len;
		}
	memory[AT_CODE + n] = halt;
}

/* The most privileged 64-bit mode, without interrupts. */
static int set_registers(int cpu, bool xsave)
{
	struct kvm_segment code = {
		.limit = 0xffffffff, .selector = 8, .type = 11, .present = 1, .s = 1, .l = 1, .g = 1
	};
	struct kvm_segment data = { .limit = 0xffffffff,
				    .selector = 16,
				    .type = 3,
				    .present = 1,
				    .s = 1,
				    .db = 1,
				    .g = 1 };
	struct kvm_regs regs = { .rip = AT_CODE, .rsp = GUEST_BYTES, .rflags = 2 };
	struct kvm_sregs s;

	if (ioctl(cpu, KVM_GET_SREGS, &s) < 0)
		return -errno;
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.cr0 = 0x80000033; /* paging, protection, the coprocessor as it is now */
	s.cr3 = AT_TABLES;
	s.cr4 = 0x620 | (xsave ? 0x40000 : 0); /* PAE, SSE, XSAVE */
	s.efer = 0x500;                        /* long mode */
	return ioctl(cpu, KVM_SET_SREGS, &s) < 0 || ioctl(cpu, KVM_SET_REGS, &regs) < 0 ? -errno
											: 0;
}

/* What it has left behind. */
static int judge(const uint8_t *memory, const struct features *f, const struct kvm_run *run,
		 struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		uint32_t value;

		memcpy(&value, memory + AT_DATA + pieces[i].at, sizeof(value));
		if (has(f, &pieces[i]) && value != pieces[i].value)
			return ward_fail(e, ENOTSUP,
					 "this host's KVM does not execute %s for a guest's kernel "
					 "(exit reason %u)",
					 pieces[i].name, run->exit_reason);
	}
	return run->exit_reason == KVM_EXIT_HLT ? 0
						: ward_fail(e, ENOTSUP,
							    "this host's KVM does not run a guest "
							    "to completion (exit reason %u)",
							    run->exit_reason);
}

/* One guest, from its making to its end. Its time in *ret_ns. */
static int run_guest(int kvm, uint8_t *memory, const struct features *f, int64_t *ret_ns,
		     struct ward_err *e)
{
	auto_fd vm = ioctl(kvm, KVM_CREATE_VM, 0), cpu = -1;
	struct kvm_userspace_memory_region region = { .memory_size = GUEST_BYTES,
						      .userspace_addr = (uintptr_t)memory };
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), r = 0;
	struct kvm_run *run;
	int64_t began;

	if (vm < 0 || size <= 0 || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return ward_fail_errno(e, "KVM cannot create a machine");
	cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (cpu < 0 || ioctl(cpu, KVM_SET_CPUID2, f) < 0 ||
	    set_registers(cpu, has(f, &pieces[1])) < 0)
		return ward_fail_errno(e, "KVM cannot create a virtual CPU");
	run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	if (run == MAP_FAILED)
		return ward_fail_errno(e, "KVM cannot read the state of a virtual CPU");
	write_guest(memory, f);
	began = now_ns();
	for (int halts = 1 + has(f, &pieces[1]); halts > 0; halts--) {
		while ((r = ioctl(cpu, KVM_RUN, 0)) < 0 && errno == EINTR)
			;
		if (r < 0 || run->exit_reason != KVM_EXIT_HLT)
			break;
	}
	*ret_ns = now_ns() - began;
	r = r < 0 ? ward_fail_errno(e, "KVM cannot run a machine") : judge(memory, f, run, e);
	munmap(run, (size_t)size);
	return r;
}

int vm_measure_kvm(int kvm, struct ward_err *e)
{
	struct features *f = calloc(1, sizeof(*f));
	uint8_t *memory =
		mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int64_t least = INT64_MAX;
	int r = 0;

	if (!f || memory == MAP_FAILED)
		r = ward_fail(e, ENOMEM, "out of memory");
	else
		f->nent = CPUID_MAX;
	if (r == 0 && ioctl(kvm, KVM_GET_SUPPORTED_CPUID, f) < 0)
		r = ward_fail_errno(e, "KVM does not report the CPU features of its guests");
	for (int i = 0; i < TRIES && r == 0 && least > MOST_NS; i++) {
		int64_t ns = 0;

		r = run_guest(kvm, memory, f, &ns, e);
		least = ns < least ? ns : least;
	}
	if (r == 0 && least > MOST_NS)
		r = ward_fail(e, ENOTSUP,
			      "this host's KVM emulates guests (%lld us for %d rounds of a loop)",
			      (long long)(least / 1000), ROUNDS);
	if (memory != MAP_FAILED)
		munmap(memory, GUEST_BYTES);
	free(f);
	return r;
}

/* Why it cannot be opened, and what helps. */
static int no_device(int error, struct ward_err *e)
{
	struct stat st;

	if (error == EACCES && stat(VM_KVM, &st) == 0) {
		ward_fail(e, error, VM_KVM " may not be opened (mode %04o, owner %u, group %u)",
			  st.st_mode & 07777, st.st_uid, st.st_gid);
		return ward_remedy(e,
				   st.st_mode & 0060 && st.st_gid
					   ? "as root: usermod -aG %s USER, then log in again"
					   : "as root: chgrp %s " VM_KVM " && chmod 0660 " VM_KVM,
				   "kvm");
	}
	ward_fail(e, error, VM_KVM " cannot be opened: %s", strerror(error));
	return ward_remedy(e,
			   "as root: modprobe kvm_amd or kvm_intel; virtualization must be enabled "
			   "in the firmware, or for nested virtualization on the outer host");
}

static int with_field(struct ward_err *e)
{
	const struct ward_err inner = *e;

	ward_fail(e, inner.code, "vm.accel: kvm: %s", inner.why);
	return ward_remedy(e, "%s", inner.remedy);
}

int vm_open_kvm(struct ward_err *e)
{
	int kvm;

	if (access("/sys/module/kvm_pvm", F_OK) == 0)
		return ward_fail(e, ENOTSUP,
				 "this host's KVM is kvm_pvm, which emulates the kernels of "
				 "ordinary guests");
	kvm = open(VM_KVM, O_RDWR | O_CLOEXEC);
	return kvm < 0 ? no_device(errno, e) : kvm;
}

int vm_probe_kvm(struct ward_err *e)
{
	auto_fd kvm = vm_open_kvm(e);

	return kvm < 0 || vm_measure_kvm(kvm, e) < 0 ? with_field(e) : 0;
}

/*
 * Whether KVM here runs guests in hardware. In: /dev/kvm. Out: yes, or why not. Making a machine proves nothing: there are hosts (guests of a cloud, mostly) whose KVM emulates every instruction of a guest's kernel, a thousand times slower, and not
 * all of them. So a guest counts down a register a few thousand times in its most privileged mode, and the time that takes decides. Runs in the supervisor with the user's rights, only where a policy wants a virtual machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/own.h"
#include "lib/vm.h"

#define ROUNDS 20000
#define MOST_NS 10000000	/* hardware takes some ten thousand; emulation of two instructions a round at least 20 ms */
#define PAGE 4096

/* 16-bit code: mov ecx, ROUNDS; l: dec ecx; jnz l; hlt */
static const unsigned char code[] = { 0x66, 0xb9, ROUNDS & 0xff, ROUNDS >> 8 & 0xff, 0, 0, 0x66, 0x49, 0x75, 0xfc, 0xf4 };

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int set_registers(int cpu)
{
	struct kvm_sregs special;
	struct kvm_regs regs = { .rip = 0, .rflags = 2 };

	if (ioctl(cpu, KVM_GET_SREGS, &special) < 0)
		return -errno;
	special.cs.base = 0;
	special.cs.selector = 0;
	return ioctl(cpu, KVM_SET_SREGS, &special) < 0 || ioctl(cpu, KVM_SET_REGS, &regs) < 0 ? -errno : 0;
}

/* Returns how long the guest took, or -errno. */
static int64_t time_guest(int kvm, void *page)
{
	auto_fd vm = ioctl(kvm, KVM_CREATE_VM, 0), cpu = -1;
	struct kvm_userspace_memory_region memory = { .memory_size = PAGE, .userspace_addr = (uintptr_t)page };
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_run *run;
	int64_t began, r;

	memcpy(page, code, sizeof(code));
	if (vm < 0 || size <= 0 || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &memory) < 0)
		return -errno;
	cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (cpu < 0 || set_registers(cpu) < 0)
		return -EIO;
	run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	if (run == MAP_FAILED)
		return -errno;
	began = now_ns();
	r = ioctl(cpu, KVM_RUN, 0) < 0 ? -errno : run->exit_reason == KVM_EXIT_HLT ? now_ns() - began : -EIO;
	munmap(run, (size_t)size);
	return r;
}

int vm_probe_kvm(struct ward_err *e)
{
	auto_fd kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int64_t least = INT64_MAX;
	void *page;

	if (kvm < 0)
		return ward_fail_errno(e, "vm.accel: kvm: /dev/kvm cannot be opened");
	if (access("/sys/module/kvm_pvm", F_OK) == 0)
		return ward_fail(e, ENOTSUP, "vm.accel: kvm: this host's KVM is kvm_pvm, which emulates the kernels of ordinary guests");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return ward_fail(e, ENOMEM, "out of memory");
	for (int i = 0; i < 3 && least > MOST_NS; i++) {
		int64_t ns = time_guest(kvm, page);

		if (ns < 0) {
			munmap(page, PAGE);
			return ward_fail(e, (int)-ns, "vm.accel: kvm: a guest could not be run: %s", strerror((int)-ns));
		}
		least = ns < least ? ns : least;
	}
	munmap(page, PAGE);
	if (least > MOST_NS)
		return ward_fail(e, ENOTSUP, "vm.accel: kvm: this host's KVM emulates guests (%lld us for %d rounds of a loop)", (long long)(least / 1000), ROUNDS);
	return 0;
}

/*
 * Which processor a guest gets under KVM. In: /dev/kvm, as the sandbox shows it. Out: QEMU's words.
 * It is the host's own, so that a kernel knows what it runs on, but without virtualization of its
 * own: machines within the machine are the largest part of KVM that a guest could attack. Some
 * hosts, guests themselves, name the register IA32_ARCH_CAPABILITIES and do not let it be set, and
 * QEMU 7 gives up there: so it is tried here, and left out where it fails. Runs in ward-vm inside
 * the native sandbox.
 */
#include "vm/kvm_cpu.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/own.h"

#define HOST "host,-svm,-vmx"
#define ARCH_CAPABILITIES 0x10a
#define CPUID_MAX 256

struct features {
	uint32_t nent, padding; /* as in struct kvm_cpuid2 */
	struct kvm_cpuid_entry2 entries[CPUID_MAX];
};

struct one_msr {
	uint32_t nmsrs, padding; /* as in struct kvm_msrs */
	struct kvm_msr_entry entry;
};

static bool names_register(const struct features *f)
{
	for (uint32_t i = 0; i < f->nent && i < CPUID_MAX; i++)
		if (f->entries[i].function == 7 && f->entries[i].index == 0)
			return f->entries[i].edx >> 29 & 1;
	return false;
}

/* Whether a processor of a guest takes the value that KVM itself says it has. What else fails here
 * says nothing about that: QEMU says why. */
static bool takes_register(int kvm, const struct features *f)
{
	struct one_msr msr = { .nmsrs = 1, .entry = { .index = ARCH_CAPABILITIES } };
	auto_fd vm = ioctl(kvm, KVM_CREATE_VM, 0),
		cpu = vm < 0 ? -1 : ioctl(vm, KVM_CREATE_VCPU, 0);

	if (cpu < 0 || ioctl(kvm, KVM_GET_MSRS, &msr) != 1 || ioctl(cpu, KVM_SET_CPUID2, f) < 0)
		return true;
	return ioctl(cpu, KVM_SET_MSRS, &msr) == 1;
}

const char *kvm_cpu_model(void)
{
	auto_fd kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	auto_free struct features *f = calloc(1, sizeof(*f));

	if (kvm < 0 || !f)
		return HOST; /* QEMU says why */
	f->nent = CPUID_MAX;
	if (ioctl(kvm, KVM_GET_SUPPORTED_CPUID, f) < 0 || !names_register(f) ||
	    takes_register(kvm, f))
		return HOST;
	return HOST ",-arch-capabilities";
}

/* The processor of a machine that KVM runs. */
#ifndef WARD_VM_KVM_CPU_H
#define WARD_VM_KVM_CPU_H

/* QEMU's words for it: the host's own, less what must not or cannot be given. Static. */
const char *kvm_cpu_model(void);

#endif

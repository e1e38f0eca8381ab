/* Whether this machine has KVM that runs guests. */
#ifndef WARD_HOST_VM_KVM_H
#define WARD_HOST_VM_KVM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define VM_KVM "/dev/kvm"
/* Whether this machine's KVM really runs guests in hardware; else why not, and perhaps a remedy.
 * Opening /dev/kvm proves nothing. */
must_check int vm_probe_kvm(struct ward_err *e);
/* The two halves of it, whose errors name no field of a policy: opens /dev/kvm; measures what is
 * open there. */
must_check int vm_open_kvm(struct ward_err *e);
must_check int vm_measure_kvm(int kvm, struct ward_err *e);

#endif

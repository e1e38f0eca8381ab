/* The vm engine: a virtual machine inside a native sandbox. */
#ifndef WARD_ENGINE_VM_VM_H
#define WARD_ENGINE_VM_VM_H

#include "plan/inner.h"

extern const struct inner inner_vm;

/* Where its files are inside. */
#define VM_IN_RUNNER "/.ward/ward-vm"
#define VM_IN_KERNEL "/.ward/vm/vmlinux"
#define VM_IN_INITRD "/.ward/vm/initrd"
#define VM_IN_ROOT "/.ward/vm/root"
#define VM_IN_RAM "/.ward/vm/ram"
#define VM_IN_STATE "/.ward/vm/state"
/* a tmpfs of this sandbox's own, in which ward-vm makes its socket (vm/main.c) */
#define VM_IN_IO "/.ward/vm-io"
#define VM_IN_DISK VM_IN_IO "/disk"
#define VM_IN_SHIM "/.ward/vm/ward-vm-ram.so"

/* Adds the binds of all that. A step of the planner. */
must_check int vm_add_mounts(struct plan *p, struct ward_err *e);
/* Refuses trees (is_tree: one for each mount of the plan) that a machine of so much memory has no
 * room for. */
must_check int vm_check_room(const struct plan *p, const bool *is_tree, uint64_t memory,
			     struct ward_err *e);
/* Writes the words of ward-vm. */
must_check int vm_fill_words(struct plan *p, struct ward_err *e);

#endif

/* Where the vm engine keeps what machines are made of, in the state directory below vm/: shared by
 * ward, which only reads it, and ward-vm-tool, which fills it. */
#ifndef WARD_STATE_VM_H
#define WARD_STATE_VM_H

#include <stdint.h>

#include "state/images.h"

#define VM_DIR "vm"
/* names the kernel in use: HEX of a directory boot-HEX with vmlinux, initrd and info */
#define VM_BOOT "boot"
#define VM_BOOT_PREFIX "boot-"
#define VM_ROOTS "roots"         /* HEX.erofs for each root */
#define VM_TEMPLATES "templates" /* HEX/ with ram, state and info */
#define VM_WORK "work-"          /* what is being made; locked while a process does */

#define VM_WORDS_ROOT "ward.root=/dev/vda ward.disk=/dev/vdb"
/* what the monitor plays: address, way out, names */
#define VM_WORDS_NET "ward.net=10.0.2.15/24,10.0.2.2,10.0.2.3"

#define VM_MEMORY_DEFAULT (UINT64_C(512) << 20)
/* counted up when the machine's devices change (vm/qemu.c): no template of before fits */
#define VM_DEVICES 4
/* what QEMU itself needs beside the guest's memory, with one processor, its stacks and address
 * space included: RLIMIT_DATA counts them */
#define VM_UPPER_OVERHEAD (256 * UINT64_C(1048576))
#define VM_STACK_BYTES (8 * UINT64_C(1048576)) /* of the thread that is one more processor */

/* A kernel that guests boot. */
struct vm_boot {
	char id[SHA256_HEX];
	char *kernel, *initrd; /* absolute */
	char release[64];
};

/* What a machine is made of: two that are equal in all of it can be clones of one template. */
struct vm_kind {
	const char *boot_id, *root_key, *accel, *program;
	uint64_t memory_bytes;
	unsigned cpus;
	bool network;
};

/* STATE/vm/REST; the caller frees. */
must_check int vm_path(const char *rest, char **ret_path, struct ward_err *e);
/* The kernel in use. -ENOENT: there is none, or it was made with another ward; *e says how to get
 * it. */
must_check int vm_boot_find(struct vm_boot *ret, struct ward_err *e);
void vm_boot_clear(struct vm_boot *b);
/* What names the guest's init in a kernel's info: another one is another text. The caller frees. */
must_check int vm_init_stamp(const char *init_path, char **ret_text, struct ward_err *e);

/* The name of the root that is made of an image, or of the host's own directories (NULL). */
must_check int vm_root_key(const struct image *image, char ret_hex[SHA256_HEX], struct ward_err *e);
/* The file of that root, whether it is there or not; the caller frees. */
must_check int vm_root_path(const char *key, char **ret_path, struct ward_err *e);

/* The name of the template that fits. -errno: the monitor's program cannot be looked at. */
must_check int vm_template_key(const struct vm_kind *k, char ret_hex[SHA256_HEX],
			       struct ward_err *e);

/* What a sandbox must have for such a machine, at least. */
uint64_t vm_upper_bytes(uint64_t memory, unsigned cpus);

/* Finds QEMU beneath /usr, where every sandbox sees it; the caller frees. */
must_check int vm_find_qemu(char **ret_path, struct ward_err *e);
/* what ward is called in whose sandbox a template is made: its command is ward-vm itself, and has
 * /dev/kvm (engine/vm/inner.c) */
#define VM_TEMPLATE_PROGRAM "ward-vm-template"

#endif

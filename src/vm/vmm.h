/* What runs virtual machines: one row of functions for each program that can. Everything is started
 * inside a native sandbox, as a process of its own that ends with the caller. */
#ifndef WARD_VM_VMM_H
#define WARD_VM_VMM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* A virtual machine as the caller wants it. Texts are borrowed. */
struct vm_config {
	const char *program; /* of the monitor, absolute */
	const char *accel;   /* "kvm" or "tcg" */
	uint64_t memory_bytes;
	unsigned cpus;
	const char *kernel, *initrd; /* uncompressed; not needed to restore */
	const char *words;           /* more words for the kernel, NULL: none */
	const char *root;            /* erofs image, becomes /dev/vda read-only; NULL: none */
	/* file of DISK_BYTES (disk.h), becomes the next device; NULL: none */
	const char *disk;
	const char *ram; /* file that holds the guest's memory; NULL: anonymous */
	/* of a template: the machine is restored from it, its memory copied on write; NULL: it
	 * boots */
	const char *state;
	/* library that opens `ram` read-only for a program that cannot, NULL: none is needed */
	const char *shim;
	const char *console; /* file that the kernel's messages go to, NULL: nowhere */
	/* a card whose connections are made by the monitor's own process */
	bool network;
	bool control; /* with a channel for snapshot */
};

/* One that runs; vm_close() frees it. */
struct vm {
	pid_t pid;
	int pid_fd;
	int port_fd;         /* the guest's port: a stream */
	int control_fd;      /* -1: none */
	int words_fd;        /* what the monitor says on standard error, not blocking */
	struct buf received; /* of the control channel, not yet read */
};

struct vmm {
	const char *name;
	/* Starts it, booting or restored. */
	int (*start)(const struct vm_config *c, struct vm *ret, struct ward_err *e);
	/* Stops the guest and writes what is not in config.ram to state_fd, which must be empty. */
	int (*snapshot)(struct vm *v, int state_fd, struct ward_err *e);
};

extern const struct vmm vmm_qemu;

/* Ends the machine, whatever it does, and waits for that. */
void vm_close(struct vm *v);
/* Fills *e with what the monitor said last, behind `what`. Returns -EIO. */
int vm_fail_with_words(const struct vm *v, const char *what, struct ward_err *e);

#endif

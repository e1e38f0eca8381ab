/* The host's side of the vm engine's guest: ward-vm drives it with these. */
#ifndef WARD_VM_SERVE_H
#define WARD_VM_SERVE_H

#include "base/err.h"
#include "vm/wire.h"

/*
 * What the guest's init (ward-vm-init, /init of the initramfs) expects:
 *   /modules/NN-NAME.ko      kernel modules, not compressed, loaded in the order of their names
 *   virtserialport ward.0    the port that all of this goes over
 *   ward.root=/dev/vda the device of the root; none: the root is empty but for /dev, /proc, /sys,
 *   /tmp, /run
 *   ward.fs=erofs            its file system
 *   ward.disk=/dev/vdb the device of DISK_BYTES over which trees go; none: they go over the port
 *   ward.upper=SIZE most that may be written into the root, as tmpfs has it (size=); default: half
 *   of the memory
 *   ward.net=ADDRESS/PREFIX,GATEWAY,DNS   the address of eth0; none: loopback alone
 * All of that is done before it says VM_READY; then it waits, and can be snapshotted and cloned.
 */

/* A file or directory that the guest shall have at the same path. */
struct vm_tree {
	const char *path;
	bool writable; /* what changed in it comes back */
};

struct vm_setup {
	int argc;
	char **argv, **envp;
	const char *cwd;
	uint32_t uid, gid; /* in the guest */
	const struct vm_tree *trees;
	size_t tree_count;
	uint64_t pids, memory_bytes, files; /* 0: as the guest has it */
	const char *hostname;               /* NULL: "ward" */
	/* where `ward-vm exec` and `copy` find this guest; NULL: nowhere */
	const char *socket_path;
	/* most that comes back of all trees; 0: no limit but the disk's */
	uint64_t copy_max_bytes;
	int qemu_pid_fd; /* readable when the machine has ended; -1: not known */
	/* say on standard error when what happened: for measurements */
	bool tell_times;
	/* what the guest has as ward.disk: DISK_BYTES (disk.h); -1: it has none */
	int disk_fd;
};

/* Waits until the guest says VM_READY and reads nothing behind that. Not for a clone: it has said
 * it already. */
must_check int vm_wait_ready(int serial_fd, int timeout_ms, struct ward_err *e);

/* Tells the guest time, randomness and limits, copies the trees in, runs the command with this
 * process's 0-2, terminal and signals, serves `ward-vm exec` and `copy` meanwhile, ends everything
 * inside when the command has ended, and copies back what changed. The caller's QEMU must be in a
 * session of its own. Returns the command's wait status (125 as an exit code: it went well, but not
 * all of its files came back; with VM_EXIT_SPENT: the machine had no memory left), or -errno with
 * *e. */
must_check int vm_serve(int serial_fd, const struct vm_setup *setup, struct ward_err *e);

/* `ward-vm exec` and `ward-vm copy`: the same for one more command (the environment and working
 * directory are the caller's), and for words of `ward cp`. Return the wait status, or -errno with
 * *e. */
must_check int vm_exec_client(const char *socket_path, int argc, char **argv, char **envp,
			      struct ward_err *e);
must_check int vm_copy_client(const char *socket_path, int argc, char **argv, struct ward_err *e);

/* Ends this process the way the command ended. */
_Noreturn void vm_end_like(int status);

#endif

/* The oci engine: the plan as a bundle, which an OCI runtime (runc) carries out. ward-init is the container's first process. */
#ifndef WARD_ENGINE_OCI_OCI_H
#define WARD_ENGINE_OCI_OCI_H

#include "lib/engine.h"

extern const struct engine engine_oci;

#define OCI_INIT "/.ward/init"		/* the sixth letter is its role: guest/init.c */
#define OCI_FILTER "/.ward/filter"	/* the exact system call filter, which ward-init puts on */
#define OCI_ROOTFS "rootfs"		/* in the bundle */

/* What the supervisor and its child that becomes the runtime know of each other. */
struct oci_place {
	const struct plan *plan;
	const char *base;	/* a tmpfs in a mount namespace of its own is mounted there: bundle, root and the runtime's state */
	const char *runtime;	/* the program */
	pid_t supervisor;
	int control_fd;		/* becomes 3 */
	int log_fd;		/* what the runtime says when it fails */
	int stdio_fds[3];
	struct buf config;	/* config.json */
	struct buf filter;	/* of OCI_FILTER */
};

/* The directory to build over; NULL: none is free. */
const char *oci_choose_base(const struct plan *p);
/* Writes config.json. */
must_check int oci_config(const struct plan *p, const char *base, struct buf *out, struct ward_err *e);
/* In the child: builds the bundle and becomes the runtime. */
_Noreturn void oci_become_runtime(const struct oci_place *o);

#endif

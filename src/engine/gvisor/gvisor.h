/* gVisor as the inner runtime of a native sandbox: runsc, found and asked once, and started there
 * by ward-gvisor (src/gvisor). */
#ifndef WARD_ENGINE_GVISOR_GVISOR_H
#define WARD_ENGINE_GVISOR_GVISOR_H

#include "plan/inner.h"

extern const struct inner inner_gvisor;

/* runsc as it is installed here. */
struct gvisor_runtime {
	const char *path; /* static, or the environment's */
	uint32_t date;    /* of its version, 20240729 */
	/* ward-gvisor can start kernel and gofer without `runsc run` */
	bool known;
};

/* Finds it; else why not, and the remedy. Its version is asked for once and kept in the state
 * directory for as long as the file stays the same. */
must_check int gvisor_find(struct gvisor_runtime *ret_runtime, struct ward_err *e);
/* The date in what `runsc --version` prints; 0: there is none. A pure function. */
uint32_t gvisor_version_date(const char *text, size_t n);
/* Whether that version knows the platform systrap. */
bool gvisor_has_systrap(const struct gvisor_runtime *r);
/* Whether that is, word for word, what a version prints whose inside ward-gvisor knows. A pure
 * function. */
bool gvisor_is_known(const char *text, size_t n);

/* Writes what was found out into a file of the state directory, whole or not at all. */
void gvisor_keep(int dir_fd, const char *name, const char *line);
/* Whether gVisor's kernel can run programs by KVM here, with this runsc; else why not, and perhaps
 * a remedy. Measured once for each boot and /dev/kvm, and kept in the state directory. */
must_check int gvisor_probe_kvm(const struct gvisor_runtime *r, struct ward_err *e);

/* Whether /dev/shm inside the inner runtime is the native sandbox's: gVisor's own has no limit of
 * names, but a checkpoint can keep deleted files in it. */
bool gvisor_shares_shm(const struct plan *p);

/* Checkpoints (snapshot.c): the inner runtime's row; "key: value" of what they depend on, into
 * p->inner_same; how many trees and which, for `ward-gvisor restore`, and the image. */
must_check int gvisor_snapshot(const struct plan *p, struct strv *words, struct ward_err *e);
void gvisor_add_same(struct plan *p, const struct gvisor_runtime *r, const char *platform);
must_check int gvisor_add_image(struct plan *p, struct ward_err *e);
void gvisor_add_restore(const struct plan *p, struct strv *words);

#endif

/* The oci engine: the plan as a bundle, which an OCI runtime (runc or crun) carries out. ward-init
 * is the container's first process. */
#ifndef WARD_ENGINE_OCI_OCI_H
#define WARD_ENGINE_OCI_OCI_H

#include "engine/native/native.h"

extern const struct engine engine_oci;

#define OCI_INIT "/.ward/init" /* the sixth letter is its role: guest/init.c */
#define OCI_ROOT "root"        /* in the bundle */
#define OCI_STATE "state"      /* in the bundle: the runtime's own files */

/* A runtime that was found, and how it is spoken to. */
struct oci_runtime {
	char path[64];
	bool crun;
};

enum { OCI_AUTO, OCI_RUNC, OCI_CRUN }; /* oci.runtime */

/* Finds the runtime that the policy names, or the first that is there. */
must_check int oci_find_runtime(unsigned wanted, struct oci_runtime *ret, struct ward_err *e);
/* The words that start the container, into *texts; bundle is the directory of config.json. */
must_check int oci_runtime_words(const struct oci_runtime *r, const char *bundle, const char *id,
				 struct strv *texts, struct ward_err *e);
/* The bundle's directory: one that no source of the plan lies in. NULL: none is free. */
const char *oci_choose_dir(const struct plan *p, const struct oci_runtime *r);

/* Writes config.json for a root whose mounts are made: the runtime adds /proc. */
must_check int oci_config(const struct plan *p, const char *bundle, const struct oci_runtime *r,
			  struct buf *out, struct ward_err *e);

/* The child: builds the root and the way to the gateway, becomes ward-outer, which runs the
 * runtime. */
int oci_child_main(void *child);
/* "name", "help" pairs, NULL-terminated. */
const char *const *oci_stage_names(void);

#endif

/* What this host can give, by trying it: each layer is asked for in a child that ends at once. For
 * ward doctor. */
#ifndef WARD_HOST_PROBE_H
#define WARD_HOST_PROBE_H

#include "base/buf.h"
#include "model/facts.h"

enum probe_need {
	PROBE_MUST, /* no run on the namespaces level without it */
	PROBE_USED, /* used when there, reported when not */
	PROBE_LATER /* nothing in this build uses it yet */
};

enum probe_state { PROBE_ABSENT, PROBE_PRESENT, PROBE_UNNEEDED };

enum probe_id {
#define PROBE(id, ...) PROBE_ID_##id,
#include "probes.def"
	PROBES
};

struct probe {
	enum probe_state state;
	char why[256];    /* what was found, or why it is absent */
	char remedy[512]; /* the command that grants it; "" where there is none */
};

/* Tries everything; probes[PROBES] is filled. cgroup: what cgroup_probe() says. Takes some
 * milliseconds and changes nothing. */
void probe_host(struct probe *probes, enum cgroup_kind cgroup);
/* Fills *p for a host that refused a user namespace with err: why, and the command that grants
 * it. */
void probe_explain_user(struct probe *p, int err);
/* Whether this process is root and does not have the capability (CAP_*), as in many containers. */
bool probe_root_without(unsigned capability);
/* What to do where a step of building the sandbox failed with err. Static. */
const char *probe_step_remedy(int err);
/* Text of the table's row. Static. */
const char *probe_name(enum probe_id id);
const char *probe_help(enum probe_id id);
enum probe_need probe_need(enum probe_id id);
/* Whether a run could use the Landlock level now. */
bool probe_namespaces_level(const struct probe *probes);
bool probe_landlock_level(const struct probe *probes);

#endif

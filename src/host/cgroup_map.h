/* Where the caller's cgroups are. */
#ifndef WARD_HOST_CGROUP_MAP_H
#define WARD_HOST_CGROUP_MAP_H

#include "base/err.h"
#include "base/own.h"

/* The hierarchies that matter. v1: one each, or several in one when they are mounted together. */
enum cgroup_place {
	CG_FREEZER, /* first: it thaws what must die */
	CG_MEMORY,
	CG_PIDS,
	CG_CPU,
	CG_CPUACCT,
	CG_UNIFIED,
	CG_PLACES
};

/* The caller's own cgroup in each hierarchy, as absolute paths; NULL: not mounted or not
 * reachable. */
struct cgroup_map {
	char *dir[CG_PLACES];   /* owned */
	char *mount[CG_PLACES]; /* the mount point it lies below; owned */
};

/* Fills *m from the texts of /proc/self/mountinfo and /proc/self/cgroup. A pure function.
 * -ENOMEM only. */
must_check int cgroup_map_parse(struct cgroup_map *m, const char *mountinfo,
				const char *self_cgroup);
must_check int cgroup_map_read(struct cgroup_map *m, struct ward_err *e);
void cgroup_map_clear(struct cgroup_map *m);

#endif

/* What this host can give. host/facts.c reads it. */
#ifndef WARD_MODEL_FACTS_H
#define WARD_MODEL_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* before it, links and renames between directories could not be allowed */
#define LANDLOCK_ABI_MIN 2

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct facts {
	uid_t uid;
	gid_t gid;
	uint64_t memory_bytes; /* of the machine */
	unsigned cpus;
	int landlock_abi;        /* 0: none; used from LANDLOCK_ABI_MIN on */
	enum cgroup_kind cgroup; /* what limits could be held by */
	/* host ids that this user namespace has beyond the first 65536, 0 if none */
	uint32_t id_first, id_count;
	bool nested; /* ward (or another filter) is around us already */
};

#endif

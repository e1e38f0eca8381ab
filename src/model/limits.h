/* Limits and layers of a run, and what it has used. */
#ifndef WARD_MODEL_LIMITS_H
#define WARD_MODEL_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limit {
#define LIMIT(id, ...) LIMIT_##id,
#include "limits.def"
	LIMITS
};

enum layer {
#define LAYER(id, ...) LAYER_##id,
#include "layers.def"
	LAYERS
};

enum held_by { HELD_NONE, HELD_CGROUP1, HELD_CGROUP2, HELD_RLIMIT, HELD_TMPFS, HELD_WATCH };

struct plan_limit {
	uint64_t value; /* POLICY_NONE: off */
	enum held_by held_by;
};

/* What a run has used so far. */
struct usage {
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t cpu_ms, cpu_throttled_ms;
	uint64_t inside_pids;        /* in an inner runtime that counts them; 0: none does */
	uint64_t pids, pids_refused; /* refused: forks, where the kernel counts them */
	bool pids_storm;             /* it goes on and on */
	uint64_t disk_bytes, inodes; /* growth of the writable trees, 0 where they shrank */
	/* where the disk limit was hit: what the sandbox left in its trees at the end */
	uint64_t disk_left_bytes;
	uint64_t disk_removed_bytes; /* and what of it was removed, in trees of ward's own */
	size_t disk_removed_files;
	/* the memory limit that was reached is the one inside the inner runtime, vm.memory */
	bool guest_spent;
	/* the memory limit counts as reached because the machine has none left */
	bool machine_short;
	bool hit[LIMITS]; /* reached: an OOM kill, a refused fork, trees that grew too far */
};

#endif

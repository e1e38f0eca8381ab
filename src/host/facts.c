/*
 * Facts about the host. In: a few system calls that answer at once. Out: struct facts. Nothing is
 * changed and nothing is tried that could fail the run later; what can only be known by trying
 * (user namespaces, idmapped mounts) is probed where it is needed.
 */
#include "host/facts.h"

#include <linux/landlock.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "base/io.h"

/* The ids beyond the 65536 that people and services use: systemd leaves them free on every host. */
#define FREE_IDS_FIRST 1879048192u
#define FREE_IDS_NEEDED (1u << 22) /* one per possible pid */

/* In a container only some ids exist: take the upper end of what there is. */
static void read_ids(struct facts *f)
{
	auto_buf text = { 0 };
	unsigned inside, outside, count;
	const char *at;

	if (io_read_file(-1, "/proc/self/uid_map", 65536, &text) < 0)
		return;
	for (at = buf_text(&text); sscanf(at, "%u %u %u", &inside, &outside, &count) == 3; at++) {
		if (inside <= FREE_IDS_FIRST &&
		    count - (FREE_IDS_FIRST - inside) > FREE_IDS_NEEDED) {
			f->id_first = FREE_IDS_FIRST;
			f->id_count = FREE_IDS_NEEDED;
			return;
		}
		if (inside + count > 60000 && count > 4096 && f->id_count == 0) {
			/* not none: the last one */
			f->id_first = inside + count - 2048 - 2;
			f->id_count = 2048;
		}
		at = strchr(at, '\n');
		if (!at)
			return;
	}
}

unsigned facts_count(const cpu_set_t *cpus)
{
	unsigned long words[sizeof(*cpus) / sizeof(long)];
	unsigned count = 0;

	memcpy(words, cpus, sizeof(words));
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		for (unsigned long left = words[i]; left; left &= left - 1)
			count++;
	return count;
}

void facts_read(struct facts *f)
{
	struct sysinfo info;
	cpu_set_t cpus;
	long abi;

	*f = (struct facts){ .uid = geteuid(), .gid = getegid(), .cpus = 1 };
	if (sysinfo(&info) == 0)
		f->memory_bytes = (uint64_t)info.totalram * info.mem_unit;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		f->cpus = facts_count(&cpus);
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	f->landlock_abi = abi > 0 ? (int)abi : 0;
	f->nested = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0;
	if (f->uid == 0)
		read_ids(f);
}

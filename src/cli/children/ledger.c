/*
 * What children may use together. In: the limits of each child that starts. Out: whether there is
 * room for one more. All children that run, together, may use as much memory, processors, processes
 * and disk as their parent may itself. What a child could have written to the disk stays counted
 * for the rest of the run. Pure functions.
 */
#include <errno.h>
#include <inttypes.h>

#include "cli/children/parts.h"

#define STARTED_MAX 1000 /* in a run: each leaves a journal */

static bool fits(uint64_t used, uint64_t more, uint64_t most)
{
	uint64_t sum;

	return most == POLICY_NONE ||
	       (more != POLICY_NONE && !__builtin_add_overflow(used, more, &sum) && sum <= most);
}

static uint64_t plus(uint64_t used, uint64_t more)
{
	uint64_t sum;

	return more == POLICY_NONE || __builtin_add_overflow(used, more, &sum) ? used : sum;
}

static int check_count(const struct ledger *l, const struct policy *p, struct ward_err *e)
{
	if (l->started >= STARTED_MAX)
		return ward_fail(e, EAGAIN, "the sandbox has started %d children already",
				 STARTED_MAX);
	if (l->running < p->proc_children)
		return 0;
	ward_fail(e, EAGAIN, "%u children run already (process.children: %" PRIu64 ")", l->running,
		  p->proc_children);
	return ward_remedy(e, "wait until one of them has ended");
}

int ledger_add(struct ledger *l, const struct parent *parent, const struct policy *p,
	       struct child *c, struct ward_err *e)
{
	const struct policy *own = &parent->policy;
	const char *over = NULL;
	int r = check_count(l, own, e);

	if (r < 0)
		return r;
	c->memory = child_limit(p->res_memory, parent->memory_bytes);
	c->pids = p->res_pids;
	c->cpu = p->res_cpu;
	c->disk = p->res_disk;
	c->inodes = p->res_inodes;
	for (size_t i = 0; i < p->fs_host_mounts.len; i++)
		c->writes |= p->fs_host_mounts.items[i].writable;
	if (!fits(l->memory, c->memory, child_limit(own->res_memory, parent->memory_bytes)))
		over = "--memory (resources.memory_limit)";
	else if (!fits(l->pids, c->pids, own->res_pids))
		over = "--pids (resources.pids_limit)";
	else if (!fits(l->cpu, c->cpu, own->res_cpu))
		over = "--cpus (resources.cpu_limit)";
	else if (!fits(l->disk, c->disk, own->res_disk))
		over = "--disk (resources.disk_limit)";
	else if (!fits(l->inodes, c->inodes, own->res_inodes))
		over = "--set resources.inode_limit";
	if (over) {
		ward_fail(e, EACCES, "%s: the children would together have more than their parent",
			  over);
		return ward_remedy(e, "give this one less, or wait until another one has ended");
	}
	l->memory = plus(l->memory, c->memory);
	l->pids = plus(l->pids, c->pids);
	l->cpu = plus(l->cpu, c->cpu);
	l->disk = plus(l->disk, c->disk);
	l->inodes = plus(l->inodes, c->inodes);
	l->running++;
	l->started++;
	return 0;
}

static uint64_t minus(uint64_t used, uint64_t less)
{
	return less == POLICY_NONE || less > used ? used : used - less;
}

void ledger_remove(struct ledger *l, const struct child *c)
{
	l->memory = minus(l->memory, c->memory);
	l->pids = minus(l->pids, c->pids);
	l->cpu = minus(l->cpu, c->cpu);
	if (!c->writes) {
		l->disk = minus(l->disk, c->disk);
		l->inodes = minus(l->inodes, c->inodes);
	}
	l->running--;
}

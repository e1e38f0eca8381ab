/*
 * Which mechanism holds which limit. In: the policy's numbers and what the host can give. Out:
 * one row of p->limits each, the rlimits of the sandbox, and the judgement when usage ends a
 * run. Runs in the supervisor while the plan is compiled; limits_decide(), limits_rlimits() and
 * limits_stop() ask nothing of the host but the caller's own rlimits.
 *
 * Each limit lists its holders from the strongest to the weakest; the first that the host has
 * is taken. require.limits sets a floor below which a holder is not accepted, for the limits
 * that the holder exists for: no kernel can hold the disk limit of a direct workspace by
 * cgroup, so `cgroup` asks the watch for it. What nothing can hold is refused where the policy
 * (file or option) names that limit; a built-in default that cannot be held becomes a note in
 * the plan, except where require.limits asks for more than `none`: then memory and processes
 * must be held.
 *
 * RLIMIT_NPROC does not bind uid 0 of the host, so there processes are counted by the watch. The
 * kernel does not report a fork that it refused, and exactly as many processes as allowed are no
 * offence. So RLIMIT_NPROC is one more than the limit: that one in the list is the fork too many.
 * The limit counts ward-init, the command itself never has more than the limit. RLIMIT_DATA stops
 * the one process that takes too much with ENOMEM before the watch has to kill; the `build` set
 * goes without, for sanitizers reserve terabytes of shadow. RLIMIT_FSIZE is the disk limit and a
 * little more, so that the watch sees which limit it was: no file can be larger than what all files
 * together may be, and one fallocate() cannot fill the disk between two ticks.
 */
#include "limit/limits.h"
#include "model/inner.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#define MEMLOCK_BYTES (8ULL << 20)
#define SIGPENDING                                                                                 \
	4096 /* queued signals and message queues are counted for the host's user, too  \
			 */
#define MSGQUEUE_BYTES (200u << 10)
#define FSIZE_MARGIN (1u << 20)
#define WALL_PIDS 64
#define STORM_REFUSED 256 /* refused forks within STORM_WINDOW_MS that end a sandbox */
#define STORM_WINDOW_MS 10000
#define STORM_AT_LIMIT_MS 5000 /* at the limit for so long, pauses count half */

/* Who could hold a limit here: asked for in the order of the table. */
enum holder {
	BY_NOBODY,
	BY_CGROUP,
	BY_CGROUP_CPU,
	BY_RLIMIT,
	BY_NPROC,
	BY_TMPFS,
	BY_WATCH,
	BY_INODE_WATCH,
	BY_SUPERVISOR
};

static const struct {
	const char *name;
	enum policy_field field;
	enum holder holders[4]; /* the strongest first */
	unsigned floor_watch;   /* require.limits: watch insists on this limit */
	unsigned floor_cgroup;  /* require.limits: cgroup insists on a cgroup for it */
	bool ticks;             /* when the watch holds it, the watch must run */
} rules[LIMITS] = {
	[LIMIT_MEMORY] = { "memory", POLICY_F_res_memory, { BY_CGROUP, BY_WATCH }, 1, 1, true },
	[LIMIT_CPU] = { "cpu", POLICY_F_res_cpu, { BY_CGROUP_CPU, BY_WATCH }, 1, 1, true },
	[LIMIT_PIDS] = { "pids", POLICY_F_res_pids, { BY_CGROUP, BY_NPROC, BY_WATCH }, 1, 1, true },
	[LIMIT_DISK] = { "disk", POLICY_F_res_disk, { BY_TMPFS, BY_WATCH }, 1, 0, true },
	[LIMIT_INODES] = { "inode", POLICY_F_res_inodes, { BY_TMPFS, BY_INODE_WATCH }, 0, 0, true },
	[LIMIT_OPEN_FILES] = { "open files", POLICY_F_res_open_files, { BY_RLIMIT }, 1, 0, false },
	[LIMIT_OUTPUT] = { "output", POLICY_F_res_output, { BY_SUPERVISOR }, 1, 0, false },
	[LIMIT_TIMEOUT] = { "time", POLICY_F_res_timeout, { BY_SUPERVISOR }, 1, 0, false },
};

static uint64_t wanted_value(const struct plan *p, enum limit l)
{
	const struct policy *policy = &p->spec->policy;
	uint64_t value = POLICY_NONE;

	switch (l) {
#define LIMIT(id, name, unit, member, ...)                                                         \
	case LIMIT_##id:                                                                           \
		value = policy->member;                                                            \
		break;
#include "limits.def"
	case LIMITS:
		break;
	}
	if (l == LIMIT_MEMORY && value != POLICY_NONE && (value & POLICY_PERCENT)) {
		uint64_t share = value & ~POLICY_PERCENT;

		value = p->facts.memory_bytes * (share > 100 ? 100 : share) / 100;
	}
	return value;
}

/* Whether anything but ward's own sized tmpfs mounts can be written. */
static bool writes_to_disk(const struct plan *p)
{
	const struct policy *policy = &p->spec->policy;

	if (policy->fs_mode != FS_MODE_READ_ONLY || policy->fs_caches.len ||
	    strcmp(policy->fs_home, "private") != 0)
		return true;
	for (size_t i = 0; i < policy->fs_host_mounts.len; i++)
		if (policy->fs_host_mounts.items[i].writable)
			return true;
	return false;
}

static enum held_by cgroup_holder(const struct plan *p)
{
	return p->facts.cgroup == CGROUP_V2   ? HELD_CGROUP2
	       : p->facts.cgroup == CGROUP_V1 ? HELD_CGROUP1
					      : HELD_NONE;
}

/* What the holder amounts to on this host, HELD_NONE when it is not to be had. */
static enum held_by try_holder(const struct plan *p, const struct limits_host *h, enum holder who)
{
	bool looking =
		p->level == LEVEL_NAMESPACES; /* the watch counts by the sandbox's own /proc */

	switch (who) {
	case BY_NOBODY:
		return HELD_NONE;
	case BY_CGROUP:
		return cgroup_holder(p);
	case BY_CGROUP_CPU:
		return h->cgroup_cpu ? cgroup_holder(p) : HELD_NONE;
	case BY_RLIMIT:
		return HELD_RLIMIT;
	case BY_NPROC:
		return looking && p->ids.mode != IDS_ROOT ? HELD_RLIMIT : HELD_NONE;
	case BY_TMPFS:
		return looking && !writes_to_disk(p) ? HELD_TMPFS : HELD_NONE;
	case BY_WATCH:
		return looking ? HELD_WATCH : HELD_NONE;
	case BY_INODE_WATCH:
		return looking && h->counts_inodes ? HELD_WATCH : HELD_NONE;
	case BY_SUPERVISOR:
		return HELD_WATCH;
	}
	return HELD_NONE;
}

static enum held_by choose_holder(const struct plan *p, const struct limits_host *h, enum limit l)
{
	for (size_t i = 0; i < ARRAY_LEN(rules[l].holders); i++) {
		enum held_by held = try_holder(p, h, rules[l].holders[i]);

		if (held != HELD_NONE)
			return held;
	}
	return HELD_NONE;
}

static int refuse(const struct plan *p, const struct limits_host *h, enum limit l,
		  struct ward_err *e)
{
	bool cgroup = p->spec->policy.req_limits == REQUIRE_LIMITS_CGROUP;
	const char *field = policy_row(rules[l].field)->path;
	int r = ward_fail(e, ENOTSUP, "this host cannot enforce it%s%s%s",
			  cgroup ? " as require.limits: cgroup demands" : "",
			  h->cgroup_why ? ": " : "", h->cgroup_why ? h->cgroup_why : "");

	if (r < 0 && h->cgroup_remedy && h->cgroup_remedy[0])
		r = ward_remedy(e, "%s; or set require.limits: %s and %s: none", h->cgroup_remedy,
				p->level == LEVEL_LANDLOCK ? "none" : "watch", field);
	else if (r < 0)
		r = ward_remedy(
			e,
			"set %s: none, or use a host with cgroups for this user (see ward doctor)",
			field);
	return r < 0 ? ward_wrap(e, "the %s limit", rules[l].name) : 0;
}

/* Whether the policy puts up with this holder. */
static bool acceptable(const struct plan *p, enum limit l, enum held_by held)
{
	unsigned floor = p->spec->policy.req_limits;

	if (floor >= REQUIRE_LIMITS_CGROUP && rules[l].floor_cgroup)
		return held == HELD_CGROUP1 || held == HELD_CGROUP2;
	if (held != HELD_NONE)
		return true;
	if (p->spec->policy.origin[rules[l].field].source != POLICY_DEFAULT)
		return false; /* asked for by name */
	return floor < REQUIRE_LIMITS_WATCH || !rules[l].floor_watch;
}

int limits_decide(struct plan *p, const struct limits_host *h, struct ward_err *e)
{
	p->watch = false;
	for (unsigned i = 0; i < LIMITS; i++) {
		enum limit l = (enum limit)i;
		struct plan_limit *out = &p->limits[l];

		out->value = wanted_value(p, l);
		out->held_by = HELD_NONE;
		if (out->value == POLICY_NONE)
			continue;
		out->held_by = choose_holder(p, h, l);
		if (!acceptable(p, l, out->held_by))
			return refuse(p, h, l, e);
		if (out->held_by == HELD_NONE)
			strv_addf(&p->notes, "the %s limit is not enforced: this host cannot",
				  rules[l].name);
		if (l == LIMIT_MEMORY && out->held_by == HELD_WATCH &&
		    p->spec->policy.proc_nesting && !p->spec->inner)
			strv_add(&p->notes, "process.nesting: the memory limit does not count file "
					    "systems mounted inside (tmpfs); only a cgroup would");
		/* a cgroup does not count all that the kernel holds: see watch_unaccounted.c */
		if ((out->held_by == HELD_WATCH && rules[l].ticks) ||
		    (l == LIMIT_MEMORY &&
		     (out->held_by == HELD_CGROUP1 || out->held_by == HELD_CGROUP2)))
			p->watch = true;
	}
	return p->notes.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int limits_assign(struct plan *p, struct ward_err *e)
{
	struct cgroup_info info = { 0 };
	struct limits_host h = { 0 };
	struct statfs s;
	int r;

	h.counts_inodes =
		p->spec->workspace && statfs(p->spec->workspace, &s) == 0 && s.f_files > 0;
	if (wanted_value(p, LIMIT_CPU) != POLICY_NONE && p->facts.cgroup != CGROUP_NONE) {
		cgroup_probe_info(&info);
		h.cgroup_cpu = info.cpu;
	}
	r = limits_decide(p, &h, e);
	if (r != -ENOTSUP)
		return r;
	cgroup_probe_info(&info); /* for the message only */
	h.cgroup_why = info.why[0] ? info.why : NULL;
	h.cgroup_remedy = info.remedy;
	return limits_decide(p, &h, e);
}

/* ---- rlimits ---- */

static void add_rlimit(struct limits_rlimit *out, size_t *n, size_t cap, int resource,
		       uint64_t value)
{
	struct rlimit now;

	if (*n >= cap)
		return;
	if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
	    value > now.rlim_max)
		value = now.rlim_max;
	out[(*n)++] = (struct limits_rlimit){ resource, value, value };
}

uint64_t limits_file_bytes(const struct plan *p)
{
	const struct plan_limit *disk = &p->limits[LIMIT_DISK];

	return disk->held_by == HELD_WATCH ? disk->value + FSIZE_MARGIN : 0;
}

uint64_t limits_host_pids(const struct plan *p)
{
	uint64_t value = p->limits[LIMIT_PIDS].value;

	/* one of its threads for each of the command's, and those that it starts with */
	if (value == POLICY_NONE || !p->spec->inner || !p->spec->inner->counts)
		return value;
	return value > UINT32_MAX ? value : 2 * value + WALL_PIDS;
}

size_t limits_rlimits(const struct plan *p, struct limits_rlimit *out, size_t cap)
{
	const struct plan_limit *l = p->limits;
	size_t n = 0;

	/* no file, as at 0, and no handler: see coredump.c of the kernel. The filter keeps it */
	add_rlimit(out, &n, cap, RLIMIT_CORE, 1);
	add_rlimit(out, &n, cap, RLIMIT_RTPRIO, 0);
	add_rlimit(out, &n, cap, RLIMIT_NICE, 0);
	add_rlimit(out, &n, cap, RLIMIT_MEMLOCK, MEMLOCK_BYTES);
	add_rlimit(out, &n, cap, RLIMIT_SIGPENDING, SIGPENDING);
	add_rlimit(out, &n, cap, RLIMIT_MSGQUEUE, MSGQUEUE_BYTES);
	if (l[LIMIT_OPEN_FILES].value != POLICY_NONE)
		add_rlimit(out, &n, cap, RLIMIT_NOFILE, l[LIMIT_OPEN_FILES].value);
	if (l[LIMIT_PIDS].held_by == HELD_RLIMIT)
		add_rlimit(out, &n, cap, RLIMIT_NPROC, limits_host_pids(p) + 1);
	if (l[LIMIT_MEMORY].held_by == HELD_WATCH &&
	    p->spec->policy.proc_syscalls != SYSCALLS_BUILD)
		add_rlimit(out, &n, cap, RLIMIT_DATA, l[LIMIT_MEMORY].value);
	/* its memory is a file, too */
	if (limits_file_bytes(p) && !(p->spec->inner && p->spec->inner->memory_files))
		add_rlimit(out, &n, cap, RLIMIT_FSIZE, limits_file_bytes(p));
	return n;
}

bool limits_pids_storm(struct pids_storm *s, bool at_limit, uint64_t refused, uint64_t now_ms)
{
	uint64_t elapsed = s->last_ms ? now_ms - s->last_ms : 0;

	s->last_ms = now_ms;
	if (!at_limit)
		s->at_limit_ms -= elapsed / 2 < s->at_limit_ms ? elapsed / 2 : s->at_limit_ms;
	else
		s->at_limit_ms += elapsed;
	if (s->window_ms && now_ms - s->window_ms > STORM_WINDOW_MS) {
		s->window_ms = now_ms;
		s->window_refused = refused;
	}
	if (!s->window_ms)
		s->window_ms = now_ms;
	return refused - s->window_refused >= STORM_REFUSED || s->at_limit_ms >= STORM_AT_LIMIT_MS;
}

bool limits_stop(const struct plan *p, const struct usage *u, enum limit *ret_limit)
{
	static const enum limit fatal[] = { LIMIT_MEMORY, LIMIT_DISK, LIMIT_INODES };

	for (size_t i = 0; i < ARRAY_LEN(fatal); i++) {
		if (u->hit[fatal[i]]) {
			*ret_limit = fatal[i];
			return true;
		}
	}
	*ret_limit = LIMIT_PIDS;
	return u->hit[LIMIT_PIDS] &&
	       (u->pids_storm ||
		(p->limits[LIMIT_PIDS].held_by == HELD_WATCH && u->pids > limits_host_pids(p)));
}

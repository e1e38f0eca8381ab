/*
 * What is taken away last: every capability, the way to new privileges, then Landlock and seccomp;
 * behind them, by a call that every filter allows, resource limits: Landlock's rules and seccomp's
 * listener are descriptors, and resources.open_files may be less than this process has. Runs in the
 * child after pivot_root; nothing behind seccomp may need a call that the filter refuses.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "engine/native/seccomp.h"
#include "observe/observe.h"

static long set_limit(const struct limits_rlimit *l)
{
	uint64_t value[2] = { l->soft, l->hard };

	return raw_call(SYS_prlimit64, 0, l->resource, value, 0);
}

long native_rlimits(struct native_child *c)
{
	long r = 0;

	for (size_t i = 0; i < c->rlimit_count && r == 0; i++)
		if (c->rlimits[i].resource != RLIMIT_NOFILE) /* after ready was sent */
			r = set_limit(&c->rlimits[i]);
	c->layers[LAYER_RLIMITS] = LAYER_IN_FORCE;
	return r;
}

long native_limit_files(const struct native_child *c)
{
	for (size_t i = 0; i < c->rlimit_count; i++)
		if (c->rlimits[i].resource == RLIMIT_NOFILE)
			return set_limit(&c->rlimits[i]);
	return 0;
}

/* What no program of the sandbox can get any more, whatever it is. */
long native_bounding_set(struct native_child *c)
{
	(void)c;
	for (int cap = 0; cap < 64; cap++) {
		long r = raw_call(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);

		if (r < 0)
			return r == -EINVAL ? 0 : r; /* the kernel knows no higher one */
	}
	return 0;
}

long native_capabilities(struct native_child *c)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	long r = raw_call(SYS_prctl, PR_SET_SECUREBITS,
			  c->plan->spec->policy.proc_nesting ? 0 : bits, 0, 0, 0);

	if (r == 0)
		r = raw_call(SYS_capset, &header, none);
	c->layers[LAYER_CAPS] = LAYER_IN_FORCE;
	return r;
}

long native_no_new_privs(struct native_child *c)
{
	c->layers[LAYER_NNP] = LAYER_IN_FORCE;
	return raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

long native_landlock_rules(struct native_child *c)
{
	const struct plan *p = c->plan;
	int r;

	if (c->rules_made || p->facts.landlock_abi < LANDLOCK_ABI_MIN)
		return 0;
	/* under file rules an inner mount() is refused: nesting could not work */
	r = landlock_rules(p->facts.landlock_abi, c->paths, c->path_count,
			   p->spec->policy.proc_nesting ? LANDLOCK_SCOPES_ONLY : 0, &c->rules_fd);
	c->rules_made = r == 0;
	return r;
}

long native_landlock(struct native_child *c)
{
	const struct plan *p = c->plan;
	bool nesting = p->spec->policy.proc_nesting;
	long r;

	if (p->facts.landlock_abi < LANDLOCK_ABI_MIN) {
		c->layer_notes[LAYER_LANDLOCK] =
			"this kernel has no Landlock, or it is not in the lsm= list";
		return 0;
	}
	r = native_landlock_rules(c); /* the helper may have made them */
	if (r == 0)
		r = landlock_enter(c->rules_fd);
	if (r < 0)
		return r;
	if (nesting)
		c->layer_notes[LAYER_LANDLOCK] = "process.nesting: file rules are off";
	else
		c->layers[LAYER_LANDLOCK] = LAYER_IN_FORCE;
	return 0;
}

/* A sandbox around this one listens already: denied calls are answered by the filter itself. */
static void answer_in_filter(struct native_child *c)
{
	for (size_t i = 0; i < c->filter_len; i++)
		if (BPF_CLASS(c->filter[i].code) == BPF_RET &&
		    (c->filter[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
			c->filter[i].k = c->filter[i].k == SECCOMP_RET_SHOWN
						 ? SECCOMP_RET_ALLOW
						 : SECCOMP_RET_ERRNO | EPERM;
	c->layer_notes[LAYER_SECCOMP] =
		"inside another sandbox: denied calls are refused but not recorded";
}

long native_seccomp(struct native_child *c)
{
	long fd = seccomp_limit_cores(c->rlimits, c->rlimit_count);

	if (fd < 0)
		return fd;
	fd = seccomp_install(c->filter, c->filter_len, true);
	c->listener_fd = (int)fd;
	/* who wants to see what happens must be able to */
	if (fd == -EBUSY && !observe_wanted(c->plan)) {
		answer_in_filter(c);
		fd = seccomp_install(c->filter, c->filter_len, false);
		c->listener_fd = -1;
	}
	if (fd < 0)
		return fd;
	c->layers[LAYER_SECCOMP] = LAYER_IN_FORCE;
	return 0;
}

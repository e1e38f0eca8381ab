/* Who holds which limit: hosts and policies in rows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "limit/limits.h"

#define GIB (1ULL << 30)

static struct spec spec;
static struct plan plan;
static struct limits_host host;

static void start(enum cgroup_kind kind, enum ids_mode ids)
{
	struct ward_err e = { 0 };

	policy_clear(&spec.policy);
	strv_free(&plan.notes);
	memset(&plan, 0, sizeof(plan));
	assert_int_equal(policy_defaults(&spec.policy, &e), 0);
	plan.spec = &spec;
	plan.level = LEVEL_NAMESPACES;
	plan.ids.mode = ids;
	plan.facts.cgroup = kind;
	plan.facts.memory_bytes = 16 * GIB;
	plan.facts.cpus = 4;
	host = (struct limits_host){ .cgroup_cpu = kind != CGROUP_NONE, .counts_inodes = true };
}

static void set(const char *field, const char *value)
{
	struct ward_err e = { 0 };

	assert_int_equal(policy_set(&spec.policy, field, value, false, POLICY_CLI, &e), 0);
}

static void decide(void)
{
	struct ward_err e = { 0 };

	if (limits_decide(&plan, &host, &e) < 0)
		fail_msg("%s: %s (%s)", e.what, e.why, e.remedy);
}

static void refused(const char *what)
{
	struct ward_err e = { 0 };

	assert_int_equal(limits_decide(&plan, &host, &e), -ENOTSUP);
	assert_non_null(strstr(e.what, what));
	assert_true(e.why[0] && e.remedy[0]);
}

static void test_by_host(void **state)
{
	static const struct {
		enum cgroup_kind kind;
		enum ids_mode ids;
		enum held_by memory, pids, cpu;
	} rows[] = {
		{ CGROUP_V1, IDS_MAPPED, HELD_CGROUP1, HELD_CGROUP1, HELD_CGROUP1 },
		{ CGROUP_V2, IDS_OWN, HELD_CGROUP2, HELD_CGROUP2, HELD_CGROUP2 },
		{ CGROUP_NONE, IDS_OWN, HELD_WATCH, HELD_RLIMIT, HELD_WATCH },
		{ CGROUP_NONE, IDS_OWNER, HELD_WATCH, HELD_RLIMIT, HELD_WATCH },
		{ CGROUP_NONE, IDS_ROOT, HELD_WATCH, HELD_WATCH, HELD_WATCH },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		start(rows[i].kind, rows[i].ids);
		set("resources.cpu_limit", "0.5");
		decide();
		assert_int_equal(plan.limits[LIMIT_MEMORY].held_by, rows[i].memory);
		assert_int_equal(plan.limits[LIMIT_MEMORY].value, 8 * GIB);
		assert_int_equal(plan.limits[LIMIT_PIDS].held_by, rows[i].pids);
		assert_int_equal(plan.limits[LIMIT_PIDS].value, 1024);
		assert_int_equal(plan.limits[LIMIT_CPU].held_by, rows[i].cpu);
		assert_int_equal(plan.limits[LIMIT_CPU].value, 500);
		assert_int_equal(plan.limits[LIMIT_DISK].held_by, HELD_WATCH);
		assert_int_equal(plan.limits[LIMIT_INODES].held_by, HELD_WATCH);
		assert_int_equal(plan.limits[LIMIT_OPEN_FILES].held_by, HELD_RLIMIT);
		assert_int_equal(plan.limits[LIMIT_TIMEOUT].value, POLICY_NONE);
		assert_true(plan.watch);
	}
}

static void test_watch_runs_only_when_needed(void **state)
{
	(void)state;
	start(CGROUP_V1, IDS_MAPPED);
	set("filesystem.mode", "read_only");
	set("resources.timeout_seconds", "3");
	set("resources.memory_limit", "none");
	decide();
	assert_int_equal(plan.limits[LIMIT_DISK].held_by, HELD_TMPFS);
	assert_int_equal(plan.limits[LIMIT_TIMEOUT].held_by, HELD_WATCH);
	assert_int_equal(plan.limits[LIMIT_TIMEOUT].value, 3000);
	assert_false(plan.watch);
	set("resources.memory_limit", "1Gi"); /* of which a cgroup does not count everything */
	decide();
	assert_int_equal(plan.limits[LIMIT_MEMORY].held_by, HELD_CGROUP1);
	assert_true(plan.watch);
	set("resources.memory_limit", "none");
	set("filesystem.host_mounts", "[{path: /srv, mode: read_write}]");
	decide();
	assert_int_equal(plan.limits[LIMIT_DISK].held_by, HELD_WATCH);
	assert_true(plan.watch);
}

static void test_require(void **state)
{
	(void)state;
	start(CGROUP_NONE, IDS_OWN);
	set("require.limits", "cgroup");
	refused("memory");
	start(CGROUP_V2, IDS_OWN);
	set("require.limits", "cgroup");
	decide();
	set("resources.cpu_limit", "1");
	host.cgroup_cpu = false;
	refused("cpu");
	set("require.limits", "watch");
	decide();
	assert_int_equal(plan.limits[LIMIT_CPU].held_by, HELD_WATCH);
}

static void test_landlock_level(void **state)
{
	(void)state;
	start(CGROUP_NONE, IDS_OWN);
	plan.level = LEVEL_LANDLOCK;
	refused("memory");
	set("require.limits", "none");
	decide();
	assert_int_equal(plan.limits[LIMIT_MEMORY].held_by, HELD_NONE);
	assert_true(plan.notes.len >= 4);
	assert_false(plan.watch);
	set("resources.pids_limit", "64"); /* by name: not silently dropped */
	refused("pids");
	start(CGROUP_V2, IDS_OWN);
	plan.level = LEVEL_LANDLOCK;
	set("require.limits", "none");
	set("resources.pids_limit", "64");
	decide();
	assert_int_equal(plan.limits[LIMIT_PIDS].held_by, HELD_CGROUP2);
}

static void test_no_inodes(void **state)
{
	(void)state;
	start(CGROUP_V1, IDS_MAPPED);
	host.counts_inodes = false;
	decide();
	assert_int_equal(plan.limits[LIMIT_INODES].held_by, HELD_NONE);
	assert_int_equal(plan.notes.len, 1);
	set("resources.inode_limit", "1000");
	refused("inode");
}

#define ABSENT (UINT64_MAX - 1)

static uint64_t find(const struct limits_rlimit *all, size_t n, int resource)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].resource == resource)
			return all[i].hard;
	return ABSENT;
}

static void test_rlimits(void **state)
{
	struct limits_rlimit all[LIMITS_RLIMITS];
	struct rlimit own;
	size_t n;

	(void)state;
	start(CGROUP_NONE, IDS_OWN);
	set("resources.open_files", "1048576");
	decide();
	n = limits_rlimits(&plan, all, ARRAY_LEN(all));
	assert_true(n < ARRAY_LEN(all));
	getrlimit(RLIMIT_CORE, &own);
	assert_int_equal(find(all, n, RLIMIT_CORE), own.rlim_max ? 1 : 0);
	assert_int_equal(find(all, n, RLIMIT_NPROC), 1025); /* the last is the fork too many */
	assert_int_equal(find(all, n, RLIMIT_DATA), 8 * GIB);
	assert_in_range(find(all, n, RLIMIT_FSIZE), 20 * GIB + 1, 21 * GIB);
	getrlimit(RLIMIT_NOFILE, &own);
	assert_true(find(all, n, RLIMIT_NOFILE) <= own.rlim_max); /* may not be raised */
	for (size_t i = 0; i < n; i++)
		assert_int_equal(all[i].soft, all[i].hard);
	assert_int_equal(limits_rlimits(&plan, all, 2), 2);

	set("process.syscalls", "build");
	n = limits_rlimits(&plan, all, ARRAY_LEN(all));
	assert_int_equal(find(all, n, RLIMIT_DATA), ABSENT);
	start(CGROUP_V1, IDS_MAPPED);
	decide();
	n = limits_rlimits(&plan, all, ARRAY_LEN(all));
	assert_int_equal(find(all, n, RLIMIT_NPROC), ABSENT);
	assert_int_equal(find(all, n, RLIMIT_DATA), ABSENT);
}

static void test_stop(void **state)
{
	struct usage u = { 0 };
	enum limit l;

	(void)state;
	start(CGROUP_V1, IDS_MAPPED);
	decide();
	assert_false(limits_stop(&plan, &u, &l));
	u.hit[LIMIT_PIDS] = true;
	u.pids_refused = 3;
	assert_false(limits_stop(&plan, &u, &l));
	u.pids_storm = true;
	assert_true(limits_stop(&plan, &u, &l));
	assert_int_equal(l, LIMIT_PIDS);
	u.hit[LIMIT_MEMORY] = true;
	assert_true(limits_stop(&plan, &u, &l));
	assert_int_equal(l, LIMIT_MEMORY);
}

static void test_storm(void **state)
{
	struct pids_storm s = { 0 };
	uint64_t now = 1000, refused = 0;
	bool storm = false;

	(void)state;
	/* one refused fork a second for an hour is none */
	for (int i = 0; i < 3600; i++)
		storm |= limits_pids_storm(&s, false, ++refused, now += 1000);
	assert_false(storm);
	/* three hundred at once are one */
	assert_true(limits_pids_storm(&s, false, refused + 300, now += 20));

	/* a second at the limit now and then is none, five in a row are one */
	memset(&s, 0, sizeof(s));
	for (int i = 0; i < 100; i++) {
		storm |= limits_pids_storm(&s, true, 0, now += 1000);
		for (int k = 0; k < 3; k++)
			storm |= limits_pids_storm(&s, false, 0, now += 1000);
	}
	assert_false(storm);
	for (int i = 0; i < 6; i++)
		storm |= limits_pids_storm(&s, true, 0, now += 1000);
	assert_true(storm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_host),
		cmocka_unit_test(test_watch_runs_only_when_needed),
		cmocka_unit_test(test_require),
		cmocka_unit_test(test_landlock_level),
		cmocka_unit_test(test_no_inodes),
		cmocka_unit_test(test_rlimits),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Where the caller's cgroups are: texts of /proc as real hosts have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "limit/cgroup_kind.h"

static void test_hybrid(void **state)
{
	static const char mounts[] =
		"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup "
		"rw,cpu,cpuacct\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
		"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
	static const char own[] =
		"9:name=systemd:/\n8:pids:/\n4:memory:/a/b c\n1:cpu,cpuacct:/x\n0::/\n";
	struct cgroup_map m;

	(void)state;
	assert_int_equal(cgroup_map_parse(&m, mounts, own), 0);
	assert_string_equal(m.dir[CG_MEMORY], "/sys/fs/cgroup/memory/a/b c");
	assert_string_equal(m.mount[CG_MEMORY], "/sys/fs/cgroup/memory");
	assert_string_equal(m.dir[CG_PIDS], "/sys/fs/cgroup/pids");
	assert_string_equal(m.dir[CG_CPU], "/sys/fs/cgroup/cpu,cpuacct/x");
	assert_string_equal(m.dir[CG_CPUACCT], "/sys/fs/cgroup/cpu,cpuacct/x");
	assert_string_equal(m.dir[CG_UNIFIED], "/sys/fs/cgroup/unified");
	assert_null(m.dir[CG_FREEZER]);
	cgroup_map_clear(&m);
}

static void test_unified_session(void **state)
{
	static const char mounts[] = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:7 - "
				     "cgroup2 cgroup2 rw,nsdelegate\n";
	static const char own[] = "0::/user.slice/user-1000.slice/session-3.scope\n";
	struct cgroup_map m;

	(void)state;
	assert_int_equal(cgroup_map_parse(&m, mounts, own), 0);
	assert_string_equal(m.dir[CG_UNIFIED],
			    "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope");
	assert_null(m.dir[CG_MEMORY]);
	cgroup_map_clear(&m);
}

/* A container: the hierarchy is mounted from its own part, under a name with a blank; a second
 * mount shows another part. */
static void test_bind_of_a_part(void **state)
{
	static const char mounts[] = "1 0 0:1 /other /wrong rw - cgroup c rw,memory\n"
				     "2 0 0:1 /docker/abc /my\\040cg rw - cgroup c rw,memory\n";
	struct cgroup_map m;

	(void)state;
	assert_int_equal(cgroup_map_parse(&m, mounts, "5:memory:/docker/abc/job\n"), 0);
	assert_string_equal(m.dir[CG_MEMORY], "/my cg/job");
	cgroup_map_clear(&m);
	assert_int_equal(cgroup_map_parse(&m, mounts, "5:memory:/docker/abcdef\n"), 0);
	assert_null(m.dir[CG_MEMORY]);
	cgroup_map_clear(&m);
	assert_int_equal(
		cgroup_map_parse(&m, "2 0 0:1 / /cg rw - cgroup c rw,memory\n", "5:memory:/../x\n"),
		0);
	assert_null(m.dir[CG_MEMORY]);
	cgroup_map_clear(&m);
}

static void test_broken_texts(void **state)
{
	static const char *const texts[] = { "",
					     "\n",
					     "x",
					     "1 2 3",
					     "1 2 3 / /a rw - cgroup",
					     "1 2 3 / /a rw",
					     "- - - - - - - -\n",
					     "1 2 3 / /a rw - cgroup2 c rw" };
	struct cgroup_map m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
			assert_int_equal(cgroup_map_parse(&m, texts[i], texts[k]), 0);
			for (unsigned place = 0; place < CG_PLACES; place++)
				assert_null(m.dir[place]);
			cgroup_map_clear(&m);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_unified_session),
		cmocka_unit_test(test_bind_of_a_part),
		cmocka_unit_test(test_broken_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

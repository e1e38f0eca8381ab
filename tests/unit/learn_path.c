/* What ward learn may show by itself: judged by names, and by what is behind them. */
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "observe/learn_path.h"

static void test_judge(void **state unused_arg)
{
	static const struct {
		const char *path;
		enum learn_verdict want;
	} rows[] = {
		{ "/home/me/.ssh", LEARN_SECRET },
		{ "/home/me/.ssh/known_hosts", LEARN_SECRET },
		{ "/home/me/.ssh2", LEARN_SETTINGS },
		{ "/home/me/.aws/config", LEARN_SECRET },
		{ "/home/me/code/.env", LEARN_SECRET },
		{ "/srv/app/.env.local", LEARN_SECRET },
		{ "/srv/app/tls.key", LEARN_SECRET },
		{ "/srv/app/id_rsa.pub", LEARN_SECRET },
		{ "/srv/credentials/x", LEARN_SECRET },
		{ "/home/me/.config/gh/hosts.yml", LEARN_SECRET },
		{ "/home/me/.config/ghc", LEARN_SETTINGS },
		{ "/home/me/.zsh_history", LEARN_SECRET },
		{ "/home/me/.claude.json", LEARN_SECRET },
		{ "/home/other/data", LEARN_SECRET },
		{ "/root/x", LEARN_SECRET },
		{ "/etc/shadow", LEARN_SECRET },
		{ "/run/docker.sock", LEARN_SECRET },
		{ "/proc/1/environ", LEARN_SECRET },
		{ "/sys/kernel", LEARN_SECRET },
		{ "/var/lib/ward/x", LEARN_SECRET },
		{ "/home/me", LEARN_BROAD },
		{ "/home", LEARN_BROAD },
		{ "/", LEARN_BROAD },
		{ "/opt", LEARN_BROAD },
		{ "/home/me/.config", LEARN_BROAD },
		{ "/home/me/.local/lib", LEARN_BROAD },
		{ "/home/me/.gitconfig", LEARN_SETTINGS },
		{ "/etc/locale.alias", LEARN_SETTINGS },
		{ "/home/me/.bashrc", LEARN_SETTINGS },
		{ "/home/me/.local/lib/python3.11/site-packages", LEARN_GIVE },
		{ "/home/me/data/x.csv", LEARN_GIVE },
		{ "/opt/tool", LEARN_GIVE },
		{ "/home/me/.nvm/versions/node", LEARN_GIVE },
		{ "/tmp/data", LEARN_GIVE },
		{ "/home/meanwhile/x", LEARN_SECRET },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum learn_verdict got = learn_judge(rows[i].path, "/home/me");

		if (got != rows[i].want)
			fail_msg("%s: %d, not %d", rows[i].path, got, rows[i].want);
	}
	/* root's home is its own, everybody else's is not */
	assert_int_equal(learn_judge("/root/data/x", "/root"), LEARN_GIVE);
	assert_int_equal(learn_judge("/home/me/data/x", "/root"), LEARN_SECRET);
	assert_int_equal(learn_judge("/data/x", NULL), LEARN_GIVE);
}

static void put(const char *dir, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void expect(const char *dir, const char *name, enum learn_verdict want, const char *given)
{
	char path[512], wanted[512], home[512], workspace[512];
	char *got = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(wanted, sizeof(wanted), "%s/%s", dir, given ? given : "");
	snprintf(home, sizeof(home), "%s/home", dir);
	snprintf(workspace, sizeof(workspace), "%s/home/code/ws", dir);
	if (learn_generalise(path, home, workspace, &got) != want)
		fail_msg("%s: another verdict (%s)", name, got ? got : "none");
	if (given)
		assert_string_equal(got, wanted);
	else
		assert_null(got);
	free(got);
}

static void test_generalise(void **state unused_arg)
{
	static const char *const dirs[] = { "home",
					    "home/.ssh",
					    "home/code",
					    "home/code/ws",
					    "home/data",
					    "home/data/deep",
					    "home/mixed",
					    "home/mixed/deep",
					    "venv",
					    "venv/lib",
					    "app",
					    "app/node_modules",
					    "app/node_modules/left" };
	char dir[] = "/tmp/ward-unit-XXXXXX", path[512], target[512];

	assert_non_null(mkdtemp(dir));
	chmod(dir, 0755);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	put(dir, "home/.ssh/id_rsa");
	put(dir, "home/data/deep/x.csv");
	put(dir, "home/mixed/deep/.env");
	put(dir, "home/mixed/y.csv");
	put(dir, "venv/pyvenv.cfg");
	put(dir, "venv/lib/x.py");
	put(dir, "app/node_modules/left/index.js");
	put(dir, "closed");
	snprintf(path, sizeof(path), "%s/closed", dir);
	chmod(path, 0600);
	snprintf(path, sizeof(path), "%s/home/data/link", dir);
	snprintf(target, sizeof(target), "%s/home/.ssh", dir);
	assert_int_equal(symlink(target, path), 0);

	expect(dir, "home/data/deep/x.csv", LEARN_GIVE, "home/data/deep/x.csv");
	expect(dir, "home/data/deep", LEARN_GIVE, "home/data/deep");
	expect(dir, "home/mixed/y.csv", LEARN_GIVE, "home/mixed/y.csv");
	expect(dir, "home/mixed", LEARN_BROAD, NULL); /* a secret lies in it */
	expect(dir, "home/code", LEARN_BROAD, NULL);  /* the workspace does */
	expect(dir, "home", LEARN_BROAD, NULL);
	expect(dir, "home/data/link", LEARN_SECRET, NULL); /* by whatever name */
	expect(dir, "home/data/link/id_rsa", LEARN_SECRET, NULL);
	expect(dir, "venv/lib/x.py", LEARN_GIVE, "venv");
	expect(dir, "app/node_modules/left/index.js", LEARN_GIVE, "app/node_modules");
	expect(dir, "closed", LEARN_SECRET, NULL);
	expect(dir, "gone", LEARN_GONE, NULL);
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	assert_int_equal(system(path), 0);
}

/* No home of another user, wherever it lies. */
static void test_homes(void **state unused_arg)
{
	FILE *users = fopen("/etc/passwd", "re");
	struct passwd *user;

	assert_non_null(users);
	while ((user = fgetpwent(users))) {
		char *path = NULL;
		enum learn_verdict v = learn_generalise(user->pw_dir, "/home/nobody-has-this",
							"/nonexistent/ws", &path);

		if (v == LEARN_GIVE || v == LEARN_SETTINGS)
			fail_msg("%s is given", path);
	}
	fclose(users);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_judge),
					    cmocka_unit_test(test_generalise),
					    cmocka_unit_test(test_homes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

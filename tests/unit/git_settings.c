/* The strict reader of git's configuration and the keys that may stay (src/rules/git_config.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "rules/git_config.h"

#define SIZED(text) text, sizeof(text) - 1

struct setting {
	enum git_config_verdict verdict;
	size_t count;
};

static int judge(void *ctx, const struct gitconfig_entry *entry)
{
	struct setting *s = ctx;
	const char *why = NULL;

	s->verdict = git_config_allowed(entry, GIT_DIR_MODULE, &why);
	s->count++;
	assert_true(s->verdict == GIT_CONFIG_PLAIN || (why && *why));
	return 0;
}

static const struct {
	const char *text;
	enum git_config_verdict expect;
} keys[] = {
	{ "[core]\n\tbare=false\n", GIT_CONFIG_PLAIN },
	{ "[user]\n\temail=a@b\n", GIT_CONFIG_PLAIN },
	{ "[remote \"o\"]\n\turl=git@example.com:x/y.git\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\turl=ssh://[::1]/x\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\tfetch=+refs/heads/*:refs/remotes/o/*\n", GIT_CONFIG_PLAIN },
	{ "[branch \"main\"]\n\tmerge=refs/heads/main\n", GIT_CONFIG_PLAIN },
	{ "[alias]\n\tco=checkout\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tfsmonitor=true\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"x\"]\n\tupdate=rebase\n", GIT_CONFIG_PLAIN },
	{ "[commit]\n\tgpgsign=false\n", GIT_CONFIG_PLAIN },
	{ "[core]\n\tworktree=../x\n", GIT_CONFIG_WORKTREE },
	{ "[core]\n\thooksPath=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tfsmonitor=/x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tsshCommand=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tpager=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\teditor=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\taskPass=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tgitProxy=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tattributesFile=x\n", GIT_CONFIG_REFUSED },
	{ "[sequence]\n\teditor=x\n", GIT_CONFIG_REFUSED },
	{ "[diff]\n\texternal=x\n", GIT_CONFIG_REFUSED },
	{ "[diff \"x\"]\n\tcommand=x\n", GIT_CONFIG_REFUSED },
	{ "[diff \"x\"]\n\ttextconv=x\n", GIT_CONFIG_REFUSED },
	{ "[merge \"x\"]\n\tdriver=x\n", GIT_CONFIG_REFUSED },
	{ "[filter \"x\"]\n\tclean=x\n", GIT_CONFIG_REFUSED },
	{ "[filter \"x\"]\n\tsmudge=x\n", GIT_CONFIG_REFUSED },
	{ "[filter \"x\"]\n\tprocess=x\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tx=!sh\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tx=-c core.pager=x log\n", GIT_CONFIG_REFUSED },
	{ "[credential]\n\thelper=x\n", GIT_CONFIG_REFUSED },
	{ "[credential \"https://x\"]\n\thelper=x\n", GIT_CONFIG_REFUSED },
	{ "[include]\n\tpath=x\n", GIT_CONFIG_REFUSED },
	{ "[includeIf \"gitdir:x\"]\n\tpath=x\n", GIT_CONFIG_REFUSED },
	{ "[gpg]\n\tprogram=x\n", GIT_CONFIG_REFUSED },
	{ "[gpg \"ssh\"]\n\tprogram=x\n", GIT_CONFIG_REFUSED },
	{ "[uploadpack]\n\tpackObjectsHook=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\tuploadpack=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\treceivepack=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl=ext::sh -c x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl=-oProxyCommand=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\tvcs=x\n", GIT_CONFIG_REFUSED },
	{ "[http]\n\tproxy=x\n", GIT_CONFIG_REFUSED },
	{ "[pager]\n\tlog=x\n", GIT_CONFIG_REFUSED },
	{ "[interactive]\n\tdiffFilter=x\n", GIT_CONFIG_REFUSED },
	{ "[browser \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[man \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[difftool \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[mergetool \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"x\"]\n\tupdate=!x\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tst=rebase --exec x\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tst= !x\n", GIT_CONFIG_REFUSED },
	{ "[rebase]\n\tinstructionFormat=%s%nexec x\n", GIT_CONFIG_REFUSED },
	{ "[rebase]\n\tautoStash=true\n", GIT_CONFIG_PLAIN },
	{ "[gc]\n\trecentObjectsHook=x\n", GIT_CONFIG_REFUSED },
	{ "[gc]\n\tauto=1\n", GIT_CONFIG_PLAIN },
	{ "[branch \"m\"]\n\tremote=ext::x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote=origin\n", GIT_CONFIG_REMOTE },
	{ "[remote]\n\tpushDefault=ext::x\n", GIT_CONFIG_REFUSED },
	{ "[init]\n\ttemplateDir=x\n", GIT_CONFIG_REFUSED },
	{ "[url \"x\"]\n\tinsteadOf=y\n", GIT_CONFIG_REFUSED },
	{ "[protocol \"ext\"]\n\tallow=always\n", GIT_CONFIG_REFUSED },
	{ "[future]\n\tkey=x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote = https://x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote = ../x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote = .\n", GIT_CONFIG_PLAIN },
	{ "[branch \"-m\"]\n\tmerge = refs/heads/x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tdescription = a\\nb\n", GIT_CONFIG_PLAIN },
	{ "[user]\n\tname = a\\nb\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = http://x/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = file:///x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ssh://a@-x/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ssh://%2dx/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = a@-x:y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = host:-x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ~/x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ../x\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\turl = https://user:pa%40ss@x/y\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\tpromisor = true\n", GIT_CONFIG_REFUSED },
	{ "[remote]\n\turl = https://x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\tfetch = +refs/*:refs/*\n", GIT_CONFIG_PLAIN },
	{ "[remote \"o\"]\n\tfetch = --upload-pack=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\ttagOpt = --upload-pack=x\n", GIT_CONFIG_REFUSED },
	{ "[extensions]\n\tobjectFormat = sha256\n", GIT_CONFIG_PLAIN },
	{ "[extensions]\n\tpartialClone = o\n", GIT_CONFIG_REFUSED },
	{ "[extensions]\n\trefStorage = reftable\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\trepositoryFormatVersion = 2\n", GIT_CONFIG_REFUSED },
	{ "[core \"x\"]\n\tbare = true\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\teol = -x\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"a/hooks\"]\n\tactive = true\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"../a\"]\n\tactive = true\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"a\"]\n\tpath = .git/x\n", GIT_CONFIG_REFUSED },
	{ "[commit]\n\tgpgSign = true\n", GIT_CONFIG_REFUSED },
	{ "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n", GIT_CONFIG_REFUSED },
	{ "[trailer \"x\"]\n\tcmd = x\n", GIT_CONFIG_REFUSED },
};

static void settings_are_allowed_by_key_and_value(void **state unused_arg)
{
	const struct gitconfig_entry worktree = {
		.section = "core", .subsection = "", .key = "worktree", .value = "../x"
	};
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct setting s = { .verdict = (enum git_config_verdict)99 };
		int status =
			git_config_read(keys[i].text, strlen(keys[i].text), judge, &s, &why, NULL);

		if (status != 0 || s.count != 1 || s.verdict != keys[i].expect)
			fail_msg("%s: %d %d %s", keys[i].text, status, (int)s.verdict, why);
	}
	assert_int_equal(git_config_allowed(&worktree, GIT_DIR_MAIN, &why), GIT_CONFIG_REFUSED);
	assert_int_equal(git_modules_allowed(&worktree, &why), GIT_CONFIG_REFUSED);
}

static void configuration_has_one_form(void **state unused_arg)
{
	static const struct {
		const char *text;
		size_t n;
		size_t count; /* 99: it is refused */
	} cases[] = {
		{ SIZED(""), 0 },
		{ SIZED("\n\n"), 0 },
		{ SIZED("[a]\n\tb = c\n"), 1 },
		{ SIZED("[a]\nb=c"), 1 },
		{ SIZED("[a \"x\\\"y\\\\\"]\n\tb = \n"), 1 },
		{ SIZED("# c\n ; c\n[a]\n\tb = \" x;#\\\"\\n \"\n\tB = c\n"), 2 },
		{ SIZED("b = c\n"), 99 },
		{ SIZED("[a]b = c\n"), 99 },
		{ SIZED("[a]\n\tb\n"), 99 },
		{ SIZED("[a]\r\n\tb = c\n"), 99 },
		{ SIZED("[a]\rb=c\n"), 99 },
		{ SIZED("[a]\n\tb = c\\\n\td = e\n"), 99 },
		{ SIZED("[a \"x\0y\"]\n\tb = c\n"), 99 },
		{ SIZED("# \0\n[a]\n"), 99 },
		{ SIZED("[a]\n\tb = c\0\n"), 99 },
		{ SIZED("\xef\xbb\xbf[a]\n"), 99 },
		{ SIZED("[a.b]\n\tc = d\n"), 99 },
		{ SIZED("[a \"\"]\n"), 99 },
		{ SIZED("[ a]\n"), 99 },
		{ SIZED("[a ]\n"), 99 },
		{ SIZED("[a]x\n"), 99 },
		{ SIZED("[a] # c\n"), 99 },
		{ SIZED("[a][b]\n"), 99 },
		{ SIZED("[a  \"x\"]\n"), 99 },
		{ SIZED("[a \"x\" ]\n"), 99 },
		{ SIZED("[a \"x\\n\"]\n"), 99 },
		{ SIZED("[a]\n\tb = c # d\n"), 99 },
		{ SIZED("[a]\n\tb = c;d\n"), 99 },
		{ SIZED("[a]\n\tb = c\"d\"\n"), 99 },
		{ SIZED("[a]\n\tb = \"c\"d\n"), 99 },
		{ SIZED("[a]\n\tb = \"c\n"), 99 },
		{ SIZED("[a]\n\tb = c\\bd\n"), 99 },
		{ SIZED("[a]\n\tb = c \n"), 99 },
		{ SIZED("[a]\n\tb = c\td\n"), 99 },
		{ SIZED("[a]\n\tb_c = d\n"), 99 },
		{ SIZED("[a]\n\t1b = d\n"), 99 },
		{ SIZED("[a\n]\n"), 99 },
		{ SIZED("[a \"x\n\"]\n"), 99 },
		{ SIZED("[a]\v\n"), 99 },
		{ SIZED("# c \\\n[a]\n\tb = c\n"), 99 },
		{ SIZED("[\n"), 99 },
		{ SIZED("[a \"\n"), 99 },
		{ SIZED("[a \"x\"\n"), 99 },
	};
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct setting s = { 0 };
		int status = git_config_read(cases[i].text, cases[i].n, judge, &s, &why, NULL);

		if (cases[i].count == 99 ? status != -EINVAL
					 : status != 0 || s.count != cases[i].count)
			fail_msg("case %zu: %s: %d, %zu", i, cases[i].text, status, s.count);
	}
	assert_int_equal(git_config_hash(SIZED("[core]\n\tbare = false\n")), GIT_SHA1);
	assert_int_equal(git_config_hash(SIZED("[extensions]\n\tobjectformat = sha256\n")),
			 GIT_SHA256);
	assert_int_equal(git_config_hash(SIZED("[extensions]\n\tobjectformat = x\n")), 0);
	assert_int_equal(git_config_hash(SIZED("[extensions]\r\n")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_allowed_by_key_and_value),
		cmocka_unit_test(configuration_has_one_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

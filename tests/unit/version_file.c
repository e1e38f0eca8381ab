/* Version files: what projects have in them passes, and what mise or another reader could take for
 * a directory does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/own.h"
#include "rules/version_file.h"

static void check(enum version_form form, const char *const *texts, size_t n, bool good)
{
	for (size_t i = 0; i < n; i++) {
		const char *fault = version_file_fault(form, texts[i], strlen(texts[i]));

		if (!fault != good)
			print_error("%s: %s\n", texts[i], fault ? fault : "passes");
		assert_int_equal(!fault, good);
	}
}

static void plain_versions_pass(void **state unused_arg)
{
	static const char *const good[] = {
		"",
		"\n",
		"18\n",
		"v18.12.0\n",
		"v18.12.0",
		"lts/*\n",
		"lts/iron\n",
		"node\n",
		">=18 <20\n",
		">= 18 || 20\n",
		"~1.2\n",
		"^20\n",
		"3.12.1\r\n3.11\r\n",
		"3.12\n3.11\t3.10\n",
		"3.11.4/envs/work\n",
		"pypy3.9-7.3.9\n",
		"system\n",
		"ruby-3.2.2@gems\n",
		"truffleruby+graalvm-23.1\n",
		"temurin-21.0.3+9.0.LTS\n",
		"latest\n",
		"latest:^1.2\n",
		"min-required\n",
		"1.5.x\n",
		"!=1.2,>1\n",
		"# see: https://example.com/path:x\n18\n",
		"18 # of the image: 18\n",
		"# caf\xc3\xa9\n18\n",
		"java=21.0.3-tem\nmaven=3.9.6\n",
	};

	check(VERSION_WORDS, good, ARRAY_LEN(good), true);
}

static void directories_do_not(void **state unused_arg)
{
	static const char *const bad[] = {
		"path:../bin\n",
		"18 path:../bin\n",
		"18\npath:../bin\n",
		"vpath:../bin\n",
		"ruby-path:../bin\n",
		"path:../bin # x\n",
		"PATH:../bin",
		"java=path:../bin\n",
		"ref:x\n",
		"latest:path:x\n",
		"x#path:y\n",
		"../bin\n",
		"./bin\n",
		"/bin\n",
		"~/bin\n",
		"~user/bin\n",
		"3/../../bin\n",
		"..\n",
		"{{ exec(command='x') }}\n",
		"$HOME\n",
		"`x`\n",
		"18\r19\n",
		"18\n\x1b[2J",
		"\xef\xbb\xbf"
		"18\n",
		"18\xc2\xa0path\n",
		"a\\b\n",
		"\"18\"\n",
		"18;x\n",
		"18\r",
	};
	static const char zero[] = "18\0path:x\n";

	check(VERSION_WORDS, bad, ARRAY_LEN(bad), false);
	assert_non_null(version_file_fault(VERSION_WORDS, zero, sizeof(zero) - 1));
}

static void packages_name_versions(void **state unused_arg)
{
	static const char *const good[] = {
		"{}",
		"{\"name\":\"x\",\"scripts\":{\"a\":\"path:x \\u0041\"}}",
		"{\"packageManager\":\"pnpm@9.0.0+sha512.ab\"}",
		"{\"packageManager\":\"yarn@https://example.com/yarn.js#sha224.ab\"}",
		"{\"devEngines\":{\"runtime\":[{\"name\":\"node\",\"version\":\">=18 || 20\","
		"\"onFail\":\"error\"}]}}",
		"not json",
		"{\"a\":1,\"a\":2}",
		"",
	};
	static const char *const bad[] = {
		"{\"packageManager\":\"pnpm@path:../bin\"}",
		"{\"packageManager\":\"pnpm@\\u0070ath:../bin\"}",
		"{\"package\\u004danager\":\"pnpm@path:../bin\"}",
		"\xef\xbb\xbf{\"packageManager\":\"pnpm@path:../bin\"}",
		"{\"packageManager\":\"x\",\"packageManager\":\"pnpm@path:../bin\"}",
		"{\"packageManager\":\"pnpm@path:../bin\"} junk",
		"{\"packageManager\":\"p\\u0061th:x\",}",
		"{\"devEngines\":{\"runtime\":{\"name\":\"node\",\"version\":\"path:../bin\"}}}",
		"{\"devEngines\":{\"runtime\":[{\"name\":\"node\",\"version\":\"path:../bin\"}]}}",
		"{\"devEngines\":{\"packageManager\":{\"name\":\"yarn\",\"version\":\"{{x}}\"}}}",
	};

	check(VERSION_PACKAGE, good, ARRAY_LEN(good), true);
	check(VERSION_PACKAGE, bad, ARRAY_LEN(bad), false);
}

static void toolchains_name_channels(void **state unused_arg)
{
	static const char *const good[] = {
		"1.70\n",
		"stable\n",
		"",
		"# see: the book\n[toolchain]\nchannel = \"nightly-2024-01-01\"\ncomponents = "
		"[\"rustfmt\"]\n",
	};
	static const char *const bad[] = {
		"[toolchain]\nchannel = \"path:../bin\"\n",
		"[toolchain]\nchannel = \"\\u0070ath\\u003a../bin\"\n",
		"toolchain = { profile = \"#\", channel = \"path:../bin\" }\n",
		"toolchain = { profile = \"\"\"\n#\"\"\", channel = \"path:../bin\" }\n",
		"toolchain = { profile = '''\n#''', channel = 'path:../bin' }\n",
		"[toolchain]\r# x\nchannel = \"1\"\n",
		"[toolchain]\npath = \"evil\"\n",
	};

	check(VERSION_TOOLCHAIN, good, ARRAY_LEN(good), true);
	check(VERSION_TOOLCHAIN, bad, ARRAY_LEN(bad), false);
}

static void variables_run_nothing(void **state unused_arg)
{
	static const char *const good[] = {
		"",
		"# BASH_ENV=x\nA=b\n",
		"DATABASE_URL=postgres://h/db?a=b&c=d\n",
		"export KEY=\"a b\"\r\nENV=dev\nBROWSER=none\n",
		"MY_PATH=/x\nPATH_INFO=x\nXBASH_ENV=y\n",
		"NODE_OPTIONS=--max-old-space-size=4096\n",
		"NODE_OPTIONS='--max-old-space-size=4096 --no-warnings'\n",
		"GIT_AUTHOR_NAME=x\nNODE_ENV=production\n",
		"KEY='-----BEGIN KEY-----\nabc==\n-----END KEY-----'\n",
		"P=a;b|c$d\n",
	};
	static const char *const bad[] = {
		"BASH_ENV=./x.sh\n",
		"  export  BASH_ENV = ./x.sh\n",
		"BASH_ENV: ./x.sh\n",
		"BASH_ENV\t=./x",
		"A=b BASH_ENV=x\n",
		"BASH_ENV+=x\n",
		"\xef\xbb\xbf"
		"BASH_ENV=x\n",
		"# x\rBASH_ENV=./x\n",
		"# x\xe2\x80\xa8"
		"BASH_ENV=./x\n",
		"A='\nBASH_ENV=x\n'\n",
		"PATH=./bin:$PATH\n",
		"LD_PRELOAD=./x.so\n",
		"NODE_OPTIONS=--require ./x.js\n",
		"NODE_OPTIONS=\"--no-warnings -r ./x.js\"\n",
		"NODE_OPTIONS=--import=data:text/javascript,x\n",
		"AIDER_LINT_CMD=./x\n",
		"NPM_CONFIG_SCRIPT_SHELL=./x\n",
		"A=$(touch x)\n",
		"A=\"`touch x`\"\n",
		"GIT_SSH_COMMAND=./x\n",
	};
	static const char zero[] = "A=b\0C=d\n";

	check(VERSION_ENV, good, ARRAY_LEN(good), true);
	check(VERSION_ENV, bad, ARRAY_LEN(bad), false);
	assert_non_null(version_file_fault(VERSION_ENV, zero, sizeof(zero) - 1));
}

static void long_files_are_refused(void **state unused_arg)
{
	auto_free char *text = calloc(1, VERSION_FILE_MAX + 2);

	assert_non_null(text);
	memset(text, '\n', VERSION_FILE_MAX + 1);
	assert_non_null(version_file_fault(VERSION_WORDS, text, 65537));
	assert_null(version_file_fault(VERSION_WORDS, text, 65536));
	assert_non_null(version_file_fault(VERSION_TOOLCHAIN, text, VERSION_FILE_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_versions_pass),
		cmocka_unit_test(directories_do_not),
		cmocka_unit_test(packages_name_versions),
		cmocka_unit_test(toolchains_name_channels),
		cmocka_unit_test(variables_run_nothing),
		cmocka_unit_test(long_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is taken for a commit or a tag, and so may be signed with a gpg key; and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "rules/git_signed.h"

#define ID "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#define LONG_ID ID "aaaaaaaaaaaaaaaaaaaaaaaa"
#define WHO "A U Thor <a@b.example> 1700000000 +0100\n"
#define PEOPLE "author " WHO "committer " WHO
#define TAG "object " ID "\ntype commit\ntag v1\ntagger " WHO "\n"

static const struct {
	enum git_signed is;
	const char *text;
} cases[] = {
	{ GIT_SIGNED_COMMIT, "tree " ID "\n" PEOPLE "\nfirst\n" },
	{ GIT_SIGNED_COMMIT, "tree " ID "\nparent " ID "\nparent " ID "\n" PEOPLE "\nmerge\n" },
	{ GIT_SIGNED_COMMIT, "tree " LONG_ID "\nparent " LONG_ID "\n" PEOPLE "\n" },
	{ GIT_SIGNED_COMMIT, "tree " ID "\n" PEOPLE "encoding ISO-8859-1\n\n\xe4\n" },
	{ GIT_SIGNED_COMMIT,
	  "tree " ID "\n" PEOPLE "mergetag object " ID "\n type commit\n \n x\n\nm" },
	{ GIT_SIGNED_COMMIT, "tree " ID "\n" PEOPLE "\n-----BEGIN PGP MESSAGE-----\n" },
	{ GIT_SIGNED_COMMIT, "tree " ID "\nauthor  <> 1 -0000\ncommitter <a@b> 1 -0000\n\n" },
	{ GIT_SIGNED_TAG, TAG "one\n" },
	{ GIT_SIGNED_TAG, TAG },
	{ GIT_SIGNED_TAG, TAG "a -----BEGIN PGP SIGNATURE-----\n" },
	{ GIT_SIGNED_OTHER, "" },
	{ GIT_SIGNED_OTHER, "any text\n" },
	{ GIT_SIGNED_OTHER, "certificate version 0.1\npusher A <a@b> 1 +0000\n\n" },
	{ GIT_SIGNED_OTHER, "From: a@b\n\ntree " ID "\n" },
	{ GIT_SIGNED_OTHER, "\ntree " ID "\n" PEOPLE "\nfirst\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\n\nno people\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\n" PEOPLE "no end\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\n" PEOPLE },
	{ GIT_SIGNED_OTHER, "tree " ID "\nauthor " WHO "\nno committer\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\r\n" PEOPLE "\nfirst\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\n" PEOPLE "gpgsig x\n\nsigned already\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\nparent " LONG_ID "\n" PEOPLE "\nmixed\n" },
	{ GIT_SIGNED_OTHER, "tree 4B825DC642CB6EB9A060E54BF8D69288FBEE4904\n" PEOPLE "\nupper\n" },
	{ GIT_SIGNED_OTHER, "tree 4b825dc\n" PEOPLE "\nshort\n" },
	{ GIT_SIGNED_OTHER, "tree " ID "\nauthor A <a@b> 1 +0000\ncommitter A 1 +0000\n\nm" },
	{ GIT_SIGNED_OTHER, "tree " ID "\nauthor A <a@b> x +0000\ncommitter " WHO "\nm" },
	{ GIT_SIGNED_OTHER, "tree " ID "\nauthor A\x1b <a@b> 1 +0000\ncommitter " WHO "\nm" },
	{ GIT_SIGNED_OTHER, TAG "x\n-----BEGIN PGP SIGNATURE-----\n" },
	{ GIT_SIGNED_OTHER, TAG "-----BEGIN SSH SIGNATURE-----" },
	{ GIT_SIGNED_OTHER, "object " ID "\ntype mail\ntag v1\ntagger " WHO "\nm" },
	{ GIT_SIGNED_OTHER, "object " ID "\ntype commit\ntag \ntagger " WHO "\nm" },
	{ GIT_SIGNED_OTHER, "object " ID "\ntype commit\ntag v1\n\nno tagger\n" },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (git_signed_read((const uint8_t *)cases[i].text, strlen(cases[i].text)) !=
		    cases[i].is)
			fail_msg("case %zu: %s", i, cases[i].text);
}

/* A reader that stops at a NUL would see less than what is signed. */
static void test_nul(void **state)
{
	static const char commit[] = "tree " ID "\n" PEOPLE "\nm\0more\n", tag[] = TAG "m\0";

	(void)state;
	assert_int_equal(git_signed_read((const uint8_t *)commit, sizeof(commit) - 1),
			 GIT_SIGNED_OTHER);
	assert_int_equal(git_signed_read((const uint8_t *)tag, sizeof(tag) - 1), GIT_SIGNED_OTHER);
}

static void test_length(void **state)
{
	static const char head[] = "tree " ID "\n" PEOPLE "\n";
	uint8_t *text = malloc(GIT_SIGNED_MAX + 1);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', GIT_SIGNED_MAX + 1);
	memcpy(text, head, strlen(head));
	assert_int_equal(git_signed_read(text, GIT_SIGNED_MAX), GIT_SIGNED_COMMIT);
	assert_int_equal(git_signed_read(text, GIT_SIGNED_MAX + 1), GIT_SIGNED_OTHER);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases),
					    cmocka_unit_test(test_nul),
					    cmocka_unit_test(test_length) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

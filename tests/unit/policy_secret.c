/* --secret: what each form means, and what is refused without repeating what may be a secret. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "policy/policy_grant.h"
#include "policy/policy_secret.h"

static const struct {
	const char *text, *grant;
} good[] = {
	{ "OPENAI_API_KEY@api.openai.com",
	  "{\"name\":\"OPENAI_API_KEY\",\"source\":\"env:OPENAI_API_KEY\",\"hosts\":["
	  "\"api.openai.com\"],\"header\":\"Authorization: Bearer {}\",\"as\":"
	  "\"OPENAI_API_KEY\"}" },
	{ "ANTHROPIC_API_KEY@a.test,b.test",
	  "{\"name\":\"ANTHROPIC_API_KEY\",\"source\":\"env:ANTHROPIC_API_KEY\",\"hosts\":["
	  "\"a.test\",\"b.test\"],\"header\":\"x-api-key: {}\",\"as\":"
	  "\"ANTHROPIC_API_KEY\"}" },
	{ "K=cmd:pass show a@b@h.test:x-key",
	  "{\"name\":\"K\",\"source\":\"cmd:pass show a@b\",\"hosts\":[\"h.test\"],"
	  "\"header\":\"x-key: {}\",\"as\":\"K\"}" },
	{ "K=env:OTHER@github.com",
	  "{\"name\":\"K\",\"source\":\"env:OTHER\",\"hosts\":[\"github.com\"],"
	  "\"basic\":\"x-access-token\",\"as\":\"K\"}" },
	{ "K@h.test:query=key",
	  "{\"name\":\"K\",\"source\":\"env:K\",\"hosts\":[\"h.test\"],\"query\":"
	  "\"key\",\"as\":\"K\"}" },
	{ "K@h.test:Authorization: token {}",
	  "{\"name\":\"K\",\"source\":\"env:K\",\"hosts\":[\"h.test\"],\"header\":"
	  "\"Authorization: token {}\",\"as\":\"K\"}" },
};

static const struct {
	const char *text, *why, *remedy;
} bad[] = {
	{ "", "expected NAME@HOST", "" },
	{ "OPENAI_API_KEY", "expected NAME@HOST", "OPENAI_API_KEY@api.openai.com" },
	{ "K@", "expected NAME@HOST", "" },
	{ "@h.test", "the name of a variable", "" },
	{ "a-b@h.test", "a-b: expected the name of a variable", "" },
	{ "K=hunter2@h.test", "K: expected env:NAME", "never the secret itself" },
	{ "K=@h.test", "K: expected env:NAME", "" },
	{ "K@h.test:", "expected a header", "x-api-key" },
	{ "K@h.test:8443", "expected a header", "port 443" },
	{ "K@h.test:basic=", "expected a header", "" },
	{ "K@h.test:content-length", "expected a header", "" },
	{ "K@h.test:a\nb", "expected a header", "" },
	{ "K@github.com,h.test", "different places", "OTHER_NAME=env:K@h.test" },
	{ "K\xff@h.test", "not UTF-8", "" },
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct ward_err e = { 0 };
		auto_buf grant = { 0 };
		auto_grant g = { 0 };

		if (secret_option_read(good[i].text, &grant, &e) < 0)
			fail_msg("%s: %s", good[i].text, e.why);
		assert_string_equal(buf_text(&grant), good[i].grant);
		if (policy_grant_parse(buf_text(&grant), &g, NULL, &e) < 0)
			fail_msg("%s: the policy refuses it: %s", good[i].text, e.why);
	}
}

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ward_err e = { 0 };
		auto_buf grant = { 0 };

		assert_int_equal(secret_option_read(bad[i].text, &grant, &e), -EINVAL);
		if (!strstr(e.why, bad[i].why) || !strstr(e.remedy, bad[i].remedy))
			fail_msg("%s: %s; %s", bad[i].text, e.why, e.remedy);
		assert_null(strstr(e.why, "hunter2"));
		assert_null(strstr(e.remedy, "hunter2"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

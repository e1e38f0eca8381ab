/* Bodies that are looked into: what rules say about GraphQL, JSON-RPC and pushes of git, and which
 * packs prove what. */
#include <stdlib.h>

#include "base/io.h"
#include "gateway_help.h"
#include "inspect/body_inspect.h"
#include "inspect/git_pack.h"

#define HEAD "POST %s HTTP/1.1\r\nHost: a.example\r\nContent-Type: %s\r\nContent-Length: 9\r\n\r\n"

static int32_t last_rule;

/* Decides about a request in pieces of that many bytes. */
static enum verdict_reason decide(const char *rule, const char *path, const char *type,
				  const char *body, size_t n, size_t piece, char *ret_asked)
{
	static struct http_request request;
	static struct http_path room;
	auto_buf network = { 0 }, text = { 0 };
	struct host host = host_of("a.example");
	struct http_head head;
	struct http_verdict v;
	enum http_wrong wrong;
	size_t scanned = 0;
	enum body_inspect_say say = BODY_INSPECT_MORE;
	enum verdict_reason reason;
	struct rules *rules;
	struct body_inspect *look;

	buf_printf(&network, "{mode: restricted, egress_allowlist: [%s]}", rule);
	buf_printf(&text, HEAD, path, type);
	rules = rules_of(buf_text(&network));
	assert_int_equal(http1_head((const uint8_t *)text.data, text.len, &scanned, &head, &wrong),
			 1);
	assert_true(http_request_read((const uint8_t *)text.data, &head, &request));
	http_decide(rules, rules_match(rules, &host, 443).rule, 443, &request, &room, &v);
	reason = (enum verdict_reason)v.reason;
	strcpy(ret_asked, v.asked.text);
	if (v.n_looks) {
		look = body_inspect_new(&v, &request);
		for (size_t at = 0; at < n && say == BODY_INSPECT_MORE; at += piece)
			say = body_inspect_take(look, rules, (const uint8_t *)body + at,
						n - at < piece ? n - at : piece, false);
		if (say == BODY_INSPECT_MORE)
			say = body_inspect_take(look, rules, NULL, 0, true);
		reason = body_inspect_verdict(look)->reason;
		last_rule = body_inspect_verdict(look)->rule;
		assert_int_equal(say == BODY_INSPECT_PASS, reason == REASON_ALLOWED);
		strcpy(ret_asked, body_inspect_verdict(look)->asked.text);
		body_inspect_free(look);
	}
	rules_free(rules);
	return reason;
}

static void test_bodies(void **state)
{
	static const char graphql[] =
		"{host: a.example, paths: [/g], graphql: ['query:v*', mutation]}",
			  rpc[] = "{host: a.example, json_rpc: ['a/*', 'tools/call:x']}";
	static const struct {
		const char *rule, *body;
		enum verdict_reason reason;
		const char *asked;
	} rows[] = {
		{ graphql, "{\"query\":\"{viewer __typename}\"}", REASON_ALLOWED,
		  "graphql=query:viewer,__typename" },
		{ graphql, "[{\"query\":\"{viewer}\"},{\"query\":\"mutation{m}\"}]", REASON_ALLOWED,
		  "graphql=query:viewer;mutation:m" },
		{ graphql, "{\"query\":\"{viewer a:b}\"}", REASON_GRAPHQL, "graphql=query:b" },
		{ graphql, "{\"query\":\"{viewer\\\\\"}", REASON_GRAPHQL_BAD, NULL },
		{ graphql, "{\"query\":\"{viewer(a: \\\"\\\\x\\\")}\"}", REASON_GRAPHQL_BAD, NULL },
		{ graphql, "{\"query\":\"{viewer(a: \\\"\\\"\\\"\\\\\\\"\\\"\\\"\\\"\\\"\\\")}\"}",
		  REASON_GRAPHQL_BAD, NULL },
		{ rpc, "{\"method\":\"a/b\"}", REASON_ALLOWED, "json_rpc=a/b" },
		{ rpc,
		  "[{\"method\":\"a/b\"},{\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}]",
		  REASON_ALLOWED, "json_rpc=a/b,tools/call:x" },
		{ rpc, "{\"method\":\"tools/call\",\"params\":{\"name\":\"y\"}}", REASON_RPC,
		  "json_rpc=tools/call:y" },
		{ rpc, "{\"method\":\"a/b\\x\"}", REASON_RPC_BAD, NULL },
		{ rpc, "{\"method\":\"a/b\\ud800\"}", REASON_RPC_BAD, NULL },
		{ rpc, "{\"method\":\"a/b\",\"id\":01}", REASON_RPC_BAD, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t piece = 1; piece < 1000; piece *= 31) {
			char asked[200];
			enum verdict_reason reason =
				decide(rows[i].rule, "/g", "application/json", rows[i].body,
				       strlen(rows[i].body), piece, asked);

			if (reason != rows[i].reason ||
			    (rows[i].asked && strcmp(rows[i].asked, asked) != 0))
				fail_msg("%s: %s, %s", rows[i].body, verdict_reason_name(reason),
					 asked);
		}
}

/* A body that a rule allows is not asked about; another is, by whatever rule asks. */
static void test_bodies_that_are_asked_about(void **state)
{
	static const char rules[] = "{host: a.example, json_rpc: [a], ask: true}, {host: "
				    "a.example, json_rpc: [b]}, {host: a.example, methods: [POST], "
				    "paths: [/any], ask: true}]}\napprovals: {mode: ask}\n#";
	static const struct {
		const char *path, *body;
		enum verdict_reason reason;
		int32_t rule;
	} rows[] = {
		{ "/g", "{\"method\":\"a\"}", REASON_ALLOWED, 0 },
		{ "/g", "{\"method\":\"b\"}", REASON_ALLOWED, 1 },
		{ "/g", "{\"method\":\"c\"}", REASON_RPC, 1 },
		{ "/g", "{\"method\"", REASON_RPC_BAD, 1 },
		{ "/any", "{\"method\":\"a\"}", REASON_ALLOWED, 0 },
		{ "/any", "{\"method\":\"b\"}", REASON_ALLOWED, 1 },
		{ "/any", "{\"method\":\"c\"}", REASON_ALLOWED, 2 },
		{ "/any", "{\"method\"", REASON_ALLOWED, 2 },
	};
	char asked[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum verdict_reason reason = decide(rules, rows[i].path, "application/json",
						    rows[i].body, strlen(rows[i].body), 5, asked);

		if (reason != rows[i].reason || last_rule != rows[i].rule)
			fail_msg("%s %s: %s by %d", rows[i].path, rows[i].body,
				 verdict_reason_name(reason), last_rule);
	}
}

static void read_seed(const char *name, struct buf *out)
{
	auto_buf path = { 0 };
	FILE *f;
	int c;

	buf_printf(&path, "%s/../../fuzz/corpus/git-pack/%s", getenv("WARD_TEST_DATA"), name);
	f = fopen(buf_text(&path), "rb");
	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		buf_add(out, (const char[]){ (char)c }, 1);
	fclose(f);
}

static bool proves(const struct buf *seed, size_t n, const uint8_t *old, const uint8_t *new,
		   size_t piece)
{
	struct git_pack *p = git_pack_new(20);
	bool all;

	assert_true(git_pack_want(p, old, new));
	for (size_t at = 40; at < n; at += piece)
		git_pack_take(p, (const uint8_t *)seed->data + at, n - at < piece ? n - at : piece);
	all = git_pack_proves(p, true);
	git_pack_free(p);
	return all;
}

/* Packs of a real git: whole commits, and differences in both forms. */
static void test_packs(void **state)
{
	static const char *const names[] = { "plain", "offset", "reference" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_buf seed = { 0 };
		const uint8_t *old, *new;
		uint8_t other[20] = { 1 };

		read_seed(names[i], &seed);
		old = (const uint8_t *)seed.data;
		new = old + 20;
		for (size_t piece = 1; piece < 5000; piece *= 17)
			assert_true(proves(&seed, seed.len, old, new, piece));
		assert_false(proves(&seed, seed.len, new, old, 64)); /* backwards */
		assert_false(proves(&seed, seed.len, other, new, 64));
		assert_false(proves(&seed, seed.len, old, other, 64));
		assert_false(proves(&seed, 200, old, new, 64)); /* cut */
		seed.data[60] ^= 1;
		/* another content has another id, or is none */
		assert_false(proves(&seed, seed.len, old, new, 64));
	}
}

#define OLD "1111111111111111111111111111111111111111"
#define NEW "2222222222222222222222222222222222222222"
#define NONE "0000000000000000000000000000000000000000"
#define CAPABILITIES " report-status side-band-64k"

static void put_line(struct buf *out, const char *line, const char *capabilities)
{
	size_t n = strlen(line), more = capabilities ? strlen(capabilities) + 1 : 0;

	buf_printf(out, "%04zx%s", n + more + 4, line);
	if (capabilities)
		buf_add(out, "\0", 1);
	buf_puts(out, capabilities ? capabilities : "");
}

static void test_pushes(void **state)
{
	static const char rule[] = "{host: a.example, git: [push], repositories: [/r], refs: "
				   "['refs/heads/a*', 'refs/tags/*']}";
	static const char forced[] = "{host: a.example, git: [push, force, delete]}";
	static const struct {
		const char *rule, *path, *lines[2], *capabilities;
		enum verdict_reason reason;
		const char *asked;
	} rows[] = {
		{ rule,
		  "/r.git",
		  { NONE " " NEW " refs/heads/a" },
		  CAPABILITIES,
		  REASON_ALLOWED,
		  "git=push:refs/heads/a" },
		{ rule,
		  "/r",
		  { NONE " " NEW " refs/heads/a\n" },
		  NULL,
		  REASON_ALLOWED,
		  "git=push:refs/heads/a" },
		{ rule,
		  "/q",
		  { NONE " " NEW " refs/heads/a" },
		  CAPABILITIES,
		  REASON_GIT,
		  "repositories=/q" },
		{ rule,
		  "/r",
		  { NONE " " NEW " refs/heads/b" },
		  CAPABILITIES,
		  REASON_GIT,
		  "refs=refs/heads/b" },
		{ rule,
		  "/r",
		  { NONE " " NEW " refs/heads/a", NONE " " NEW " refs/heads/b" },
		  CAPABILITIES,
		  REASON_GIT,
		  "refs=refs/heads/b" },
		{ rule,
		  "/r",
		  { OLD " " NONE " refs/heads/a" },
		  CAPABILITIES,
		  REASON_GIT,
		  "git=delete" },
		{ rule,
		  "/r",
		  { OLD " " NEW " refs/heads/a" },
		  CAPABILITIES,
		  REASON_GIT_FORCE,
		  "git=force" },
		{ rule,
		  "/r",
		  { OLD " " NEW " refs/tags/a" },
		  CAPABILITIES,
		  REASON_GIT_FORCE,
		  "git=force" },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/main", OLD " " NONE " refs/x" },
		  CAPABILITIES,
		  REASON_ALLOWED,
		  "git=push:refs/heads/main,delete:refs/x" },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/main" },
		  " push-options",
		  REASON_GIT,
		  "git=options" },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/main" },
		  " push-options=1 agent=x",
		  REASON_GIT,
		  "git=options" },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/main" },
		  " agent=x\tpush-options",
		  REASON_GIT_BAD,
		  NULL },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/main" },
		  "push-options\n agent=x",
		  REASON_GIT_BAD,
		  NULL },
		{ forced, "/any", { OLD " " NEW " HEAD" }, CAPABILITIES, REASON_GIT_BAD, NULL },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/../x" },
		  CAPABILITIES,
		  REASON_GIT_BAD,
		  NULL },
		{ forced,
		  "/any",
		  { OLD " " NEW " refs/heads/a", OLD " " NEW " refs/heads/a" },
		  CAPABILITIES,
		  REASON_GIT_BAD,
		  NULL },
		{ forced, "/any", { "push-cert" }, CAPABILITIES, REASON_GIT_BAD, NULL },
		{ forced,
		  "/any",
		  { NONE " " NONE " refs/heads/a" },
		  CAPABILITIES,
		  REASON_GIT_BAD,
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf body = { 0 }, path = { 0 };
		enum verdict_reason reason;
		char asked[200];

		put_line(&body, rows[i].lines[0], rows[i].capabilities);
		if (rows[i].lines[1])
			put_line(&body, rows[i].lines[1], NULL);
		buf_puts(&body, rows[i].capabilities && strstr(rows[i].capabilities, "options")
					? "0000"
					  "0008abc\n"
					  "0000PACK"
					: "0000PACK");
		buf_printf(&path, "%s/git-receive-pack", rows[i].path);
		reason = decide(rows[i].rule, buf_text(&path),
				"application/x-git-receive-pack-request", body.data, body.len, 7,
				asked);
		if (reason != rows[i].reason ||
		    (rows[i].asked && strcmp(rows[i].asked, asked) != 0))
			fail_msg("%zu: %s, %s", i, verdict_reason_name(reason), asked);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bodies),
					    cmocka_unit_test(test_bodies_that_are_asked_about),
					    cmocka_unit_test(test_packs),
					    cmocka_unit_test(test_pushes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

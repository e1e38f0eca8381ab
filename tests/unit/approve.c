/* The queue of questions, and how names are shown in them. */
#include "gateway_help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "approve/approve.h"
#include "approve/show.h"
#include "protocol/gateway.h"

struct seen {
	unsigned applied, asked, changed, ended[5];
	enum question_answer last;
	uint32_t last_count;
	uint64_t last_seconds;
	uint32_t last_uid;
	bool fail;
};

static int on_apply(void *context, const struct question *q, enum question_answer answer,
		    uint64_t seconds, struct ward_err *e)
{
	struct seen *s = context;

	s->applied++;
	s->last = answer;
	s->last_count = q->count;
	s->last_seconds = seconds;
	return s->fail ? ward_fail(e, EIO, "it could not") : 0;
}

static void on_asked(void *context, const struct question *q)
{
	(void)q;
	((struct seen *)context)->asked++;
}

static void on_ended(void *context, const struct question *q, enum approve_end end,
		     enum question_answer answer, uint64_t seconds, const struct question_who *who)
{
	struct seen *s = context;

	(void)q;
	(void)answer;
	(void)seconds;
	s->ended[end]++;
	s->last_uid = who ? who->uid : 0;
}

static void on_changed(void *context)
{
	((struct seen *)context)->changed++;
}

static const struct approve_ops ops = { on_apply, on_asked, on_ended, on_changed };
static const struct question_who who = { .uid = 7, .pid = 8, .via = "control" };

static struct question about(const char *host, uint16_t port)
{
	struct question q = { .kind = QUESTION_CONNECT, .port = port };

	snprintf(q.host, sizeof(q.host), "%s", host);
	return q;
}

static uint64_t ask(struct approve *a, const char *host, uint16_t port, uint64_t now)
{
	struct question q = about(host, port);
	uint64_t id = 0;

	assert_int_equal(approve_ask(a, &q, now, &id), 0);
	return id;
}

static void withdraw(struct approve *a, const char *host, uint16_t port, uint64_t serial)
{
	struct question q = about(host, port);

	q.serial_first = serial;
	approve_withdraw(a, &q);
}

static void test_equal_requests_are_one_question(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);
	struct ward_err e = { 0 };

	(void)state;
	assert_int_equal(ask(a, "a.example", 443, 5), 1);
	assert_int_equal(ask(a, "a.example", 443, 6), 1);
	assert_int_equal(ask(a, "a.example", 80, 7), 2);
	assert_int_equal(ask(a, "b.example", 443, 8), 3);
	assert_int_equal(approve_count(a), 3);
	assert_int_equal(approve_get(a, 0)->count, 2);
	assert_int_equal(s.asked, 3);
	assert_int_equal(approve_answer(a, 1, QUESTION_ONCE, 0, &who, &e), 0);
	assert_int_equal(s.last_count, 2); /* both are answered together */
	assert_int_equal(s.ended[APPROVE_ANSWERED], 1);
	assert_int_equal(ask(a, "a.example", 443, 9), 4); /* once is once */
	assert_null(approve_get(a, 3));
	approve_destroy(a);
	assert_int_equal(s.ended[APPROVE_WITHDRAWN], 3);
	assert_int_equal(s.applied, 1); /* the end of the run is not a yes */
}

static void test_the_first_answer_counts(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);
	const struct question_who other = { .uid = 9 };
	struct ward_err e = { 0 };
	uint64_t id = ask(a, "a.example", 443, 0);

	(void)state;
	assert_int_equal(approve_answer(a, id, QUESTION_DENY, 0, &who, &e), 0);
	assert_int_equal(approve_answer(a, id, QUESTION_RUN, 0, &other, &e), -EALREADY);
	assert_int_equal(s.applied, 1);
	assert_int_equal(s.last, QUESTION_DENY);
	assert_int_equal(s.ended[APPROVE_LATE], 1); /* both are on record */
	assert_int_equal(s.last_uid, 9);
	assert_int_equal(approve_answer(a, id + 1, QUESTION_RUN, 0, &who, &e), -ENOENT);
	assert_int_equal(approve_answer(a, 0, QUESTION_RUN, 0, &who, &e), -ENOENT);
	approve_destroy(a);
}

static void test_answers_that_are_none(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);
	struct ward_err e = { 0 };
	uint64_t id = ask(a, "a.example", 443, 0);
	static const struct {
		int answer;
		uint64_t seconds;
	} bad[] = { { 0, 0 },
		    { -1, 0 },
		    { QUESTION_ANSWERS, 0 },
		    { QUESTION_TIME, 0 },
		    { QUESTION_ONCE, 5 },
		    { QUESTION_TIME, APPROVE_SECONDS_MAX + 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(approve_answer(a, id, (enum question_answer)bad[i].answer,
						bad[i].seconds, &who, &e),
				 -EINVAL);
	assert_int_equal(s.applied, 0);
	s.fail = true; /* a yes that cannot be put into effect leaves the question */
	assert_int_equal(approve_answer(a, id, QUESTION_RUN, 0, &who, &e), -EIO);
	assert_int_equal(approve_count(a), 1);
	assert_int_equal(s.ended[APPROVE_ANSWERED], 0);
	assert_int_equal(approve_answer(a, id, QUESTION_DENY, 0, &who, &e), 0); /* a no is a no */
	assert_int_equal(approve_count(a), 0);
	approve_destroy(a);
}

static void test_no_answer_in_time(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);
	struct ward_err e = { 0 };

	(void)state;
	assert_int_equal(approve_due_ms(a), 0);
	ask(a, "a.example", 443, 100);
	ask(a, "b.example", 443, 600);
	ask(a, "a.example", 443, 1000); /* does not extend it */
	assert_int_equal(approve_due_ms(a), 1100);
	approve_on_time(a, 1099);
	assert_int_equal(approve_count(a), 2);
	approve_on_time(a, 1100);
	assert_int_equal(approve_count(a), 1);
	assert_int_equal(s.ended[APPROVE_TIMEOUT], 1);
	assert_int_equal(s.last, 0);
	assert_int_equal(approve_answer(a, 1, QUESTION_RUN, 0, &who, &e), -EALREADY);
	approve_on_time(a, 1u << 30); /* however long the supervisor was stopped */
	assert_int_equal(approve_count(a), 0);
	approve_destroy(a);
}

static void test_withdrawn(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);
	struct ward_err e = { 0 };
	uint64_t id = ask(a, "a.example", 443, 0);

	(void)state;
	ask(a, "a.example", 443, 0);
	withdraw(a, "a.example", 80, 0);
	withdraw(a, "a.example", 443, 1); /* of another time */
	withdraw(a, "a.example", 443, 0);
	assert_int_equal(approve_get(a, 0)->count, 1);
	withdraw(a, "a.example", 443, 0);
	assert_int_equal(approve_count(a), 0);
	assert_int_equal(s.ended[APPROVE_WITHDRAWN], 1);
	assert_int_equal(approve_answer(a, id, QUESTION_ONCE, 0, &who, &e), -EALREADY);
	assert_int_equal(s.applied, 0);
	withdraw(a, "a.example", 443, 0);
	approve_destroy(a);
	approve_destroy(NULL);
}

static void test_floods(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);
	struct question q;
	uint64_t id;
	char host[32];

	(void)state;
	for (unsigned i = 0; i < APPROVE_PENDING_MAX; i++) {
		snprintf(host, sizeof(host), "h%u.example", i);
		ask(a, host, 443, 0);
	}
	q = about("one-more.example", 443);
	assert_int_equal(approve_ask(a, &q, 1, &id), -ENOBUFS);
	ask(a, "h3.example", 443, 1); /* an equal one needs no room */
	approve_on_time(a, 1000);
	assert_int_equal(s.ended[APPROVE_TIMEOUT], APPROVE_PENDING_MAX);
	for (unsigned i = 0; i < 500; i++) { /* 1,000 in a minute */
		snprintf(host, sizeof(host), "g%u.example", i);
		ask(a, host, 443, 2000);
		withdraw(a, host, 443, 0);
	}
	assert_int_equal(approve_ask(a, &q, 2000, &id), -ENOBUFS);
	assert_int_equal(approve_ask(a, &q, 60000, &id), 0);
	approve_destroy(a);
}

static uint64_t ask_request(struct approve *a, uint8_t exact, uint8_t like, uint64_t now)
{
	struct question q = about("a.example", 443);
	uint64_t id = 99;

	q.kind = QUESTION_REQUEST;
	q.exact[0] = exact;
	q.like[0] = like;
	assert_int_equal(approve_ask(a, &q, now, &id), 0);
	return id;
}

/* What is not the same request is another question; a yes for the run covers what is like it. */
static void test_requests_that_an_answer_covers(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000000);
	struct ward_err e = { 0 };
	uint64_t first = ask_request(a, 1, 7, 0), same = ask_request(a, 1, 7, 0),
		 alike = ask_request(a, 2, 7, 0), other = ask_request(a, 3, 8, 0);

	(void)state;
	assert_int_equal(first, same);
	assert_int_equal(approve_count(a), 3);
	assert_int_equal(approve_answer(a, other, QUESTION_ONCE, 0, &who, &e), 0);
	assert_int_equal(approve_count(a), 2); /* once is for itself alone */
	assert_true(approve_remember(a, approve_find(a, first), 5000));
	assert_int_equal(approve_answer(a, first, QUESTION_TIME, 5, &who, &e), 0);
	assert_null(approve_find(a, alike)); /* what was like it and waited, too */
	assert_int_equal(s.ended[APPROVE_ANSWERED], 3);
	assert_int_equal(approve_count(a), 0);
	s.asked = 0;
	assert_int_equal(ask_request(a, 4, 7, 4999), 0); /* no question */
	assert_int_equal(s.asked, 0);
	assert_int_equal(s.ended[APPROVE_COVERED], 1);
	assert_int_equal(s.last, QUESTION_ONCE);
	assert_int_not_equal(ask_request(a, 4, 8, 4999), 0);
	assert_int_not_equal(ask_request(a, 5, 7, 5000), 0); /* its time is over */
	assert_int_not_equal(ask_request(a, 6, 0, 4999), 0); /* nothing is like it */
	assert_false(approve_remember(a, approve_get(a, 2), 0));
	approve_destroy(a);
}

/* A yes that cannot be put into effect is none, remembered or not. */
static void test_what_cannot_be_let_through_is_asked(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000000);
	struct question q = about("a.example", 443);

	(void)state;
	q.kind = QUESTION_REQUEST;
	q.like[0] = 7;
	assert_true(approve_remember(a, &q, 0));
	s.fail = true;
	assert_int_not_equal(ask_request(a, 1, 7, 0), 0);
	assert_int_equal(approve_count(a), 1);
	assert_int_equal(s.ended[APPROVE_COVERED], 0);
	s.fail = false;
	assert_int_equal(ask_request(a, 2, 7, 0), 0);
	q.like[0] = 8;
	assert_true(approve_remember(a, &q, 0));
	approve_forget(a, &q); /* it covers nothing any more, and the other one still does */
	assert_int_not_equal(ask_request(a, 3, 8, 0), 0);
	assert_int_equal(ask_request(a, 4, 7, 0), 0);
	approve_destroy(a);
}

/* The time comes as an argument, of a clock that nobody sets; whatever it says, a question ends
 * once, as a no. */
static void test_clock_jumps(void **state)
{
	struct seen s = { 0 };
	struct approve *a = approve_create(&ops, &s, 1000);

	(void)state;
	ask(a, "a.example", 443, 5000);
	approve_on_time(a, 0); /* far back */
	assert_int_equal(approve_count(a), 1);
	approve_on_time(a, UINT64_MAX);
	assert_int_equal(approve_count(a), 0);
	assert_int_equal(s.ended[APPROVE_TIMEOUT], 1);
	approve_on_time(a, 0);
	assert_int_equal(s.ended[APPROVE_TIMEOUT], 1);
	assert_int_equal(approve_due_ms(a), 0);
	approve_destroy(a);
}

static struct question shown(const char *policy, const char *host, uint16_t port)
{
	auto_rules r = rules_of(policy);
	struct verdict v = decide_on(r, host, port);
	struct question q;
	struct want w = { .port = port };

	assert_int_equal(host_read(host, strlen(host), &w.host), HOST_FINE);
	show_connection(r, &w, &v, &q);
	return q;
}

#define ASK_ALL                                                                                    \
	"{mode: restricted, egress_allowlist: [internal.corp, {host: '*', ports: [443, 80], ask: " \
	"true}]}"

static void test_names_are_marked(void **state)
{
	static const struct {
		const char *host, *warning;
	} rows[] = {
		{ "registry.npmjs.org", "" },
		{ "api.github.com", "" },
		{ "example.net", "" },
		{ "githab.com", "looks like github.com" },
		{ "glthub.com", "looks like github.com" },
		{ "github.com.example.net", "looks like github.com" },
		{ "pypi.org-mirror.net", "looks like pypi.org" },
		{ "intemal.corp", "looks like internal.corp" },
		{ "x.internal.corp", "" },
		{ "xn--gthub-cta.com", "punycode" },
		{ "a.xn--mnchen-3ya.example", "punycode" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct question q = shown(ASK_ALL, rows[i].host, 443);

		if (*rows[i].warning ? !strstr(q.details[0], rows[i].warning)
				     : strstr(q.details[0], "warning") != NULL)
			fail_msg("%s: \"%s\"", rows[i].host, q.details[0]);
		assert_string_equal(q.rule, "*:80,443");
	}
}

static void test_lines_of_answers(void **state)
{
	(void)state;
	assert_string_equal(shown(ASK_ALL, "a.example", 443).line, "a.example");
	assert_string_equal(shown(ASK_ALL, "a.example", 80).line, "a.example:80");
	assert_string_equal(shown(ASK_ALL, "a.example", 80).subject, "a.example:80");
	assert_string_equal(shown("{mode: restricted, egress_allowlist: [{host: '*.corp', ports: "
				  "[443], mode: tcp, private: true, ask: true}]}",
				  "a.corp", 443)
				    .line,
			    "{host: \"a.corp\", ports: [443], mode: tcp, private: true}");
	assert_string_equal(shown("{mode: restricted, egress_allowlist: [{host: '2001:db8::/32', "
				  "ask: true}]}",
				  "2001:db8::1", 443)
				    .line,
			    "{host: \"2001:db8::1\", ports: [443]}");
}

#define ASK_POSTS                                                                                  \
	"{mode: restricted, egress_allowlist: [{host: a.example, methods: [POST], ask: true}, "    \
	"{host: a.example, paths: ['/mcp'], json_rpc: ['tools/call:*'], ask: true}]}"              \
	"\napprovals: {mode: ask}"

static struct question shown_request(int32_t rule, const char *what, const char *query)
{
	auto_rules r = rules_of(ASK_POSTS);
	struct verdict v = decide_on(r, "a.example", 443);
	struct gate_request said = { .kind = GATE_REQUEST_ASK, .rule = rule, .like = { 1 } };
	struct question q;
	struct want w = { .port = 443, .host = host_of("a.example") };

	assert_true(v.allow && !v.ask); /* the request is asked about, not the connection */
	v.rule = rule;
	snprintf(said.what, sizeof(said.what), "%s", what);
	snprintf(said.query, sizeof(said.query), "%s", query);
	show_request(r, &w, &v, &said, &q);
	return q;
}

static void test_requests_are_shown(void **state)
{
	struct question q = shown_request(0, "POST /v1/files", "a=1&b=2");

	(void)state;
	assert_string_equal(q.subject, "POST https://a.example/v1/files");
	assert_string_equal(q.details[0], "query: a=1&b=2");
	assert_string_equal(q.line, "{host: \"a.example\", ports: [443], methods: [POST], paths: "
				    "[\"/v1/files\"]}");
	q = shown_request(1, "POST /mcp json_rpc=tools/call:rm", "");
	assert_string_equal(q.subject, "POST https://a.example/mcp json_rpc=tools/call:rm");
	assert_string_equal(q.line, "{host: \"a.example\", ports: [443], methods: [POST], paths: "
				    "[\"/mcp\"], json_rpc: [\"tools/call:rm\"]}");
	q = shown_request(0, "POST /\x1b[2J\xe2\x80\xae", "\x1b]0;x\x07");
	assert_null(strchr(q.subject, 0x1b));
	assert_null(strchr(q.details[0], 0x1b));
	assert_string_equal(q.line, "");
}

static void test_long_text_is_cut_in_the_middle(void **state)
{
	char long_a[300], long_b[300], a[128], b[128];

	(void)state;
	memset(long_a, 'a', sizeof(long_a));
	memcpy(long_a + sizeof(long_a) - 10, ".evil.net", 10);
	memcpy(long_b, long_a, sizeof(long_b));
	long_b[150] = 'b';
	show_text(a, sizeof(a), long_a);
	show_text(b, sizeof(b), long_b);
	assert_true(strlen(a) < sizeof(a));
	assert_non_null(strstr(a, ".evil.net (sha256 "));
	assert_string_not_equal(a, b);
	show_text(a, sizeof(a),
		  "x\x1b[2J\xe2\x80\xae"
		  "moc");
	assert_null(strchr(a, '\x1b'));
	assert_null(strstr(a, "\xe2\x80\xae"));
}

static void test_ask_rules(void **state)
{
	static const char *const policy =
		"{mode: restricted, egress_allowlist: [a.example, {host: b.example, ask: true}, "
		"{host: '*.c.example', ask: true}, {host: 10.0.0.0/8, private: true, ask: true}, "
		"{host: 169.254.0.0/16, ports: [80], ask: true}]}";
	static const struct {
		const char *host;
		uint16_t port;
		bool allow, ask;
		const char *reason;
	} rows[] = { { "a.example", 443, true, false, "allowed" },
		     { "b.example", 443, false, true, "ask" },
		     { "b.example", 80, false, false, "port" },
		     { "x.c.example", 443, false, true, "ask" },
		     { "x.c.example", 0, false, true, "ask" },
		     { "10.1.1.1", 443, false, true, "ask" },
		     { "169.254.169.254", 80, false, false, "metadata" },
		     { "d.example", 443, false, false, "not_listed" } };
	auto_rules r = rules_of(policy);

	(void)state;
	for (int asks = 0; asks < 2; asks++) {
		r->asks = asks;
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct verdict v = decide_on(r, rows[i].host, rows[i].port);
			const char *reason = !asks && rows[i].ask ? "not_asked" : rows[i].reason;

			assert_int_equal(v.allow, rows[i].allow);
			assert_int_equal(v.ask, asks && rows[i].ask);
			assert_string_equal(verdict_reason_name(v.reason), reason);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_requests_are_one_question),
		cmocka_unit_test(test_the_first_answer_counts),
		cmocka_unit_test(test_answers_that_are_none),
		cmocka_unit_test(test_no_answer_in_time),
		cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_floods),
		cmocka_unit_test(test_requests_that_an_answer_covers),
		cmocka_unit_test(test_what_cannot_be_let_through_is_asked),
		cmocka_unit_test(test_requests_are_shown),
		cmocka_unit_test(test_clock_jumps),
		cmocka_unit_test(test_names_are_marked),
		cmocka_unit_test(test_lines_of_answers),
		cmocka_unit_test(test_long_text_is_cut_in_the_middle),
		cmocka_unit_test(test_ask_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

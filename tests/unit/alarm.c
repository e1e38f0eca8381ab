/* Watch rules: what they count, when they fire, what silences them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alarm/alarm.h"
#include "alarm/entropy.h"
#include "event/event.h"

static struct policy policy_of(const char *rules, const char *labels)
{
	struct policy p = { 0 };
	struct ward_err e = { 0 };

	assert_int_equal(policy_defaults(&p, &e), 0);
	if (policy_set(&p, "watch.rules", rules, false, POLICY_CLI, &e) < 0)
		fail_msg("%s", e.why);
	if (labels && policy_set(&p, "watch.labels", labels, false, POLICY_CLI, &e) < 0)
		fail_msg("%s", e.why);
	return p;
}

static struct alarm *alarm_of(const char *rules, const char *labels)
{
	struct policy p = policy_of(rules, labels);
	struct ward_err e = { 0 };
	struct alarm *a;

	if (alarm_create(&p, "/project", &a, &e) < 0)
		fail_msg("%s", e.why);
	assert_non_null(a);
	policy_clear(&p);
	return a;
}

static void denial(struct alarm *a, uint64_t now_ms)
{
	struct ward_event v = event_make(EVENT_CONNECT, ACTION_DENY, "evil.test:443");

	event_text(&v, FIELD_HOST, "evil.test");
	alarm_see(a, &v, now_ms);
}

static void host(struct alarm *a, const char *name, uint64_t now_ms)
{
	struct ward_event v = event_make(EVENT_CONNECT, ACTION_ALLOW, name);

	event_text(&v, FIELD_HOST, name);
	alarm_see(a, &v, now_ms);
}

static void file(struct alarm *a, enum event_kind kind, const char *path, const char *change,
		 unsigned entropy)
{
	struct ward_event v = event_make(kind, ACTION_LOG, path);

	event_text(&v, FIELD_CHANGE, change);
	event_number(&v, FIELD_PID, 7);
	if (entropy)
		event_number(&v, FIELD_ENTROPY, entropy);
	alarm_see(a, &v, 1000);
}

static unsigned fires(struct alarm *a)
{
	struct alarm_fire f;
	unsigned count = 0;

	while (alarm_take(a, &f))
		count++;
	return count;
}

static void test_threshold(void **state)
{
	struct alarm *a = alarm_of("[{name: d, count: denials, above: 2, do: kill}]", NULL);
	struct alarm_fire f;

	(void)state;
	denial(a, 1);
	denial(a, 2);
	assert_false(alarm_take(a, &f));
	denial(a, 3);
	assert_true(alarm_take(a, &f));
	assert_string_equal(f.rule->name, "d");
	assert_int_equal(f.rule->act, WATCH_KILL);
	assert_int_equal(f.value, 3);
	assert_int_equal(f.cause_count, 3);
	assert_string_equal(f.causes[2], "net.connect deny evil.test:443");
	assert_string_equal(f.why, "denials: 3, more than 2");
	assert_false(alarm_take(a, &f));
	/* it begins anew */
	denial(a, 2000);
	denial(a, 2001);
	assert_false(alarm_take(a, &f));
	denial(a, 2002);
	assert_true(alarm_take(a, &f));
	alarm_destroy(a);
}

static void test_counted_together(void **state)
{
	struct alarm *a = alarm_of("[{name: d, count: denials, above: 10}]", NULL);
	struct ward_event v = event_make(EVENT_SYSCALL, ACTION_DENY, "ptrace");

	(void)state;
	event_number(&v, FIELD_COUNT, 11);
	alarm_see(a, &v, 1);
	assert_int_equal(fires(a), 1);
	/* what is about the run is not what it tried */
	v = event_make(EVENT_LIMIT, ACTION_DENY, "memory");
	event_number(&v, FIELD_COUNT, 11);
	alarm_see(a, &v, 5000);
	assert_int_equal(fires(a), 0);
	alarm_destroy(a);
}

static void test_window(void **state)
{
	struct alarm *a =
		alarm_of("[{name: d, count: denials, above: 5, within_seconds: 10}]", NULL);

	(void)state;
	/* one in three seconds is never more than five in ten */
	for (unsigned i = 0; i < 100; i++) {
		denial(a, 1000000 + i * 3000);
		assert_int_equal(fires(a), 0);
	}
	for (unsigned i = 0; i < 6; i++)
		denial(a, 2000000 + i);
	assert_int_equal(fires(a), 1);
	/* a clock that goes back changes nothing */
	for (unsigned i = 0; i < 5; i++)
		denial(a, 5);
	assert_int_equal(fires(a), 0);
	assert_int_equal(alarm_peak(a, 0), 6);
	alarm_destroy(a);
}

static void test_rest(void **state)
{
	struct alarm *a = alarm_of("[{name: d, count: denials}]", NULL);
	unsigned count = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		denial(a, 1000 + i);
		count += fires(a);
	}
	assert_int_equal(count, 1);
	alarm_destroy(a);
}

static void test_new_hosts_after_label(void **state)
{
	struct alarm *a = alarm_of("[{name: leak, count: new_hosts, after: secret, do: kill}]",
				   "[{name: secret, paths: [\"secrets/*\"]}]");

	(void)state;
	host(a, "a.test", 1);
	host(a, "b.test", 2);
	assert_int_equal(fires(a), 0);
	file(a, EVENT_FILE_READ, "/elsewhere/secrets/key", NULL, 0);
	host(a, "c.test", 3);
	assert_int_equal(fires(a), 0);
	file(a, EVENT_FILE_READ, "/project/secrets/deep/key", NULL, 0);
	assert_int_equal(fires(a), 0);
	host(a, "a.test", 2000); /* it was there before */
	assert_int_equal(fires(a), 0);
	host(a, "d.test", 2001);
	assert_int_equal(fires(a), 1);
	alarm_destroy(a);
}

static void test_label_by_host_and_credential(void **state)
{
	struct alarm *a = alarm_of("[{name: p, count: pushes, after: untrusted},"
				   " {name: c, count: new_hosts, after: prod}]",
				   "[{name: untrusted, hosts: [\"*.forum.test\"]},"
				   " {name: prod, credentials: [deploy]}]");
	struct ward_event push = event_make(EVENT_HTTP, ACTION_ALLOW, "POST https://git.test/x");
	struct ward_event use = event_make(EVENT_CREDENTIAL_USE, ACTION_ALLOW, "deploy");

	(void)state;
	event_text(&push, FIELD_ASKED, "git=push:refs/heads/main");
	alarm_see(a, &push, 1);
	assert_int_equal(fires(a), 0);
	host(a, "www.forum.test", 2);
	alarm_see(a, &push, 3);
	assert_int_equal(fires(a), 1);
	host(a, "one.test", 4);
	assert_int_equal(fires(a), 0);
	alarm_see(a, &use, 5);
	host(a, "two.test", 6);
	assert_int_equal(fires(a), 1);
	alarm_destroy(a);
}

static void test_except(void **state)
{
	struct alarm *a = alarm_of("[{name: d, count: denials, except: [\"host:evil.*\"]},"
				   " {name: f, count: files_deleted, except: [\"path:build/*\"]},"
				   " {name: x, count: execs, except: [\"program:/usr/bin/*\"]}]",
				   NULL);
	struct ward_event v = event_make(EVENT_EXEC, ACTION_LOG, "/usr/bin/make");

	(void)state;
	denial(a, 1);
	file(a, EVENT_FILE_CHANGE, "/project/build/a.o", "delete", 0);
	alarm_see(a, &v, 2);
	assert_int_equal(fires(a), 0);
	file(a, EVENT_FILE_CHANGE, "/project/a.c", "update", 0);
	assert_int_equal(fires(a), 0);
	file(a, EVENT_FILE_CHANGE, "/project/a.c", "delete", 0);
	assert_int_equal(fires(a), 1);
	v = event_make(EVENT_EXEC, ACTION_LOG, "/project/x");
	alarm_see(a, &v, 3000);
	assert_int_equal(fires(a), 1);
	alarm_destroy(a);
}

static void sample(struct alarm *a, uint64_t cpu_ms, uint64_t output, uint64_t sent, uint64_t now)
{
	struct ward_event v = event_make(EVENT_RUN_SAMPLE, ACTION_LOG, NULL);

	event_number(&v, FIELD_CPU_MS, cpu_ms);
	event_number(&v, FIELD_OUTPUT, output);
	event_number(&v, FIELD_BYTES_OUT, sent);
	alarm_see(a, &v, now);
}

static void test_idle_cpu(void **state)
{
	struct alarm *a = alarm_of("[{name: i, count: idle_cpu, above: 5}]", NULL);

	(void)state;
	assert_true(alarm_wants_samples(a));
	sample(a, 4000, 10, 0, 4000);
	sample(a, 9000, 20, 0, 9000); /* something was written */
	assert_int_equal(fires(a), 0);
	sample(a, 14000, 20, 0, 14000);
	assert_int_equal(fires(a), 0);
	sample(a, 15000, 20, 0, 15000);
	assert_int_equal(fires(a), 1);
	sample(a, 16000, 20, 0, 16000);
	assert_int_equal(fires(a), 0);
	alarm_destroy(a);
}

static void test_bytes_out(void **state)
{
	struct alarm *a = alarm_of("[{name: b, count: bytes_out, above: 1Mi}]", NULL);
	struct ward_event v = event_make(EVENT_CLOSE, ACTION_LOG, "a.test:443");
	struct alarm_fire f;

	(void)state;
	sample(a, 0, 0, 1 << 20, 1);
	event_number(&v, FIELD_BYTES_OUT, 1 << 20); /* the same bytes, at the end */
	alarm_see(a, &v, 2);
	assert_false(alarm_take(a, &f));
	sample(a, 0, 0, (1 << 20) + 1, 3);
	assert_true(alarm_take(a, &f));
	assert_int_equal(f.value, (1 << 20) + 1);
	alarm_destroy(a);
}

static void test_spend(void **state)
{
	struct alarm *a = alarm_of("[{name: s, count: spend, above_cost: 0.50}]", NULL);
	struct ward_event v = event_make(EVENT_SPEND, ACTION_LOG, "llm.test");

	(void)state;
	event_text(&v, FIELD_COST, "0.30");
	alarm_see(a, &v, 1);
	assert_int_equal(fires(a), 0);
	alarm_see(a, &v, 2);
	assert_int_equal(fires(a), 1);
	alarm_destroy(a);
}

static void test_silence(void **state)
{
	struct alarm *a = alarm_of("[{name: d, count: denials}]", NULL);

	(void)state;
	denial(a, 1);
	assert_int_equal(fires(a), 1);
	alarm_silence(a, 0, 5000);
	denial(a, 4999);
	assert_int_equal(fires(a), 0);
	denial(a, 5000);
	assert_int_equal(fires(a), 1);
	alarm_silence(a, 0, UINT64_MAX);
	denial(a, 1000000);
	assert_int_equal(fires(a), 0);
	alarm_destroy(a);
}

static void test_chain(void **state)
{
	struct alarm *a = alarm_of("[{name: x, count: execs, above: 100}]", NULL);
	struct ward_event v = event_make(EVENT_EXEC, ACTION_LOG, "/bin/make");
	auto_buf out = { 0 };

	(void)state;
	event_number(&v, FIELD_PID, 5);
	event_number(&v, FIELD_PPID, 2);
	alarm_see(a, &v, 1);
	v = event_make(EVENT_EXEC, ACTION_LOG, "/bin/cc");
	event_number(&v, FIELD_PID, 9);
	event_number(&v, FIELD_PPID, 5);
	alarm_see(a, &v, 2);
	alarm_chain(a, 9, &out);
	assert_string_equal(buf_text(&out), "/bin/cc (9)");
	assert_string_equal(buf_text(&out) + strlen(buf_text(&out)) + 1, "/bin/make (5)");
	alarm_destroy(a);
}

static void test_encrypted(void **state)
{
	struct alarm *a = alarm_of("[{name: e, count: files_encrypted, above: 1}]", NULL);
	uint8_t bytes[ENTROPY_MOST];
	uint64_t x = 88172645463325252;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (uint8_t)x;
	}
	assert_true(entropy_of(bytes, sizeof(bytes)) >= 795);
	assert_true(entropy_of(bytes, ENTROPY_LEAST) >= 790);
	assert_int_equal(entropy_of(bytes, ENTROPY_LEAST - 1), 0);
	memcpy(bytes, "PK\003\004", 4);
	assert_int_equal(entropy_of(bytes, sizeof(bytes)), 0);
	memset(bytes, 'a', sizeof(bytes));
	assert_int_equal(entropy_of(bytes, sizeof(bytes)), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i % 16);
	assert_int_equal(entropy_of(bytes, sizeof(bytes)), 400);
	file(a, EVENT_FILE_CHANGE, "/project/a", "update", 799);
	file(a, EVENT_FILE_CHANGE, "/project/b", "update", 600);
	assert_int_equal(fires(a), 0);
	file(a, EVENT_FILE_CHANGE, "/project/c", "update", 799);
	assert_int_equal(fires(a), 1);
	alarm_destroy(a);
}

/* What a policy may not say. */
static void test_refused(void **state)
{
	static const char *const bad[] = {
		"[{name: a, count: nonsense}]",
		"[{name: a}]",
		"[{count: denials}]",
		"[{name: a, count: denials, above_cost: 1}]",
		"[{name: a, count: spend, above: 1}]",
		"[{name: a, count: idle_cpu, within_seconds: 5}]",
		"[{name: a, count: denials, do: shout}]",
		"[{name: a, count: denials, within_seconds: 0}]",
		"[{name: a, count: denials, except: [\"who:me\"]}]",
		"[{name: a, count: denials, except: [\"host:\"]}]",
	};
	static const char *const unfit[] = {
		"[{name: a, count: denials}, {name: a, count: execs}]",
		"[{name: a, count: denials, after: nothing}]",
		"[{name: a, count: denials, do: ask}]",
	};
	struct policy p = { 0 };
	struct ward_err e = { 0 };

	(void)state;
	assert_int_equal(policy_defaults(&p, &e), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (policy_set(&p, "watch.rules", bad[i], false, POLICY_CLI, &e) == 0)
			fail_msg("taken: %s", bad[i]);
	policy_clear(&p);
	for (size_t i = 0; i < sizeof(unfit) / sizeof(unfit[0]); i++) {
		p = policy_of(unfit[i], NULL);
		if (policy_watch_check(&p, &e) == 0)
			fail_msg("taken: %s", unfit[i]);
		policy_clear(&p);
	}
}

static void test_level(void **state)
{
	char rule[WATCH_NAME_TEXT];
	struct policy p = policy_of("[{name: a, count: denials}]", NULL);

	(void)state;
	assert_int_equal(policy_watch_level(&p, rule), AUDIT_BASIC);
	policy_clear(&p);
	p = policy_of("[{name: a, count: denials}, {name: b, count: execs}]", NULL);
	assert_int_equal(policy_watch_level(&p, rule), AUDIT_EXEC);
	assert_string_equal(rule, "b");
	policy_clear(&p);
	p = policy_of("[{name: a, count: denials, after: s}]", "[{name: s, paths: [x]}]");
	assert_int_equal(policy_watch_level(&p, rule), AUDIT_FULL);
	policy_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_counted_together),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_new_hosts_after_label),
		cmocka_unit_test(test_label_by_host_and_credential),
		cmocka_unit_test(test_except),
		cmocka_unit_test(test_idle_cpu),
		cmocka_unit_test(test_bytes_out),
		cmocka_unit_test(test_spend),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_encrypted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

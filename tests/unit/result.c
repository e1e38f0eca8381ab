/* Unit test of lib/result: the report's keys, counting of denials, and that hostile names cannot
 * forge anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "event/result.h"

static void fill(struct result *r, struct plan *p)
{
	*r = (struct result){ .run_id = "run-1",
			      .engine = "native",
			      .exit_code = 137,
			      .exit_signal = 9,
			      .duration_ms = 1500 };
	*p = (struct plan){ .engine = "native" };
	for (int l = 0; l < LIMITS; l++)
		p->limits[l].value = POLICY_NONE;
	p->limits[LIMIT_MEMORY] = (struct plan_limit){ 64 << 20, HELD_CGROUP1 };
	r->usage.memory_peak_bytes = 64 << 20;
	r->usage.cpu_ms = 20;
	r->usage.hit[LIMIT_MEMORY] = true;
	result_layer_note(r, LAYER_SECCOMP, LAYER_IN_FORCE, NULL);
	result_layer_note(r, LAYER_LANDLOCK, LAYER_ABSENT, "the kernel has none");
}

static void check_has(const struct buf *out, const char *part)
{
	if (!strstr(buf_text(out), part))
		fail_msg("%s is not in %s", part, buf_text(out));
}

static void test_json(unused_arg void **state)
{
	struct result r;
	struct plan p;
	auto_buf out = { 0 };

	fill(&r, &p);
	result_deny(&r, "open \"x\"", "hidden", "unhide it");
	result_deny(&r, "open \"x\"", "hidden", "unhide it");
	strv_add(&r.quarantine, ".git/hooks/pre-commit: planted");
	strv_add(&r.notes, "one");
	strv_add(&p.notes, "one");
	strv_add(&p.notes, "two");
	result_json(&r, &p, &out);
	check_has(&out,
		  "{\"run\":\"run-1\",\"engine\":\"native\",\"wall\":null,\"exit\":{\"code\":137,"
		  "\"signal\":9},"
		  "\"duration_ms\":1500,\"memory_peak_bytes\":67108864,\"cpu_ms\":20,\"limits\":{");
	check_has(&out, "\"memory\":{\"value\":67108864,\"unit\":\"bytes\",\"held_by\":\"cgroup1\","
			"\"hit\":true}");
	check_has(&out, "\"pids\":{\"value\":null,\"unit\":\"processes\",\"held_by\":\"none\","
			"\"hit\":false}");
	check_has(&out, "\"seccomp\":{\"in_force\":true,\"note\":null}");
	check_has(&out, "\"landlock\":{\"in_force\":false,\"note\":\"the kernel has none\"}");
	check_has(&out, "\"denials\":[{\"what\":\"open "
			"\\\"x\\\"\",\"why\":\"hidden\",\"remedy\":\"unhide it\",\"option\":null,"
			"\"count\":2}]");
	check_has(&out, "\"changes\":[],\"quarantine\":[\".git/hooks/pre-commit: "
			"planted\"],\"steers\":[],\"links_out\":[],\"notes\":[\"one\",\"two\"]}");
	strv_free(&p.notes);
	result_clear(&r);
}

static void test_refusal(unused_arg void **state)
{
	struct result r = { .refused = true, .exit_code = 125 };
	auto_buf out = { 0 };

	strcpy(r.error.what, "user namespaces");
	strcpy(r.error.why, "no");
	strcpy(r.error.remedy, "sysctl");
	result_json(&r, NULL, &out);
	assert_string_equal(out.data, "{\"refused\":{\"what\":\"user "
				      "namespaces\",\"why\":\"no\",\"remedy\":\"sysctl\"}}");
	result_clear(&r);
}

static void test_text(unused_arg void **state)
{
	struct result r;
	struct plan p;
	auto_buf out = { 0 }, brief = { 0 }, stopped = { 0 };

	fill(&r, &p);
	result_text(&r, &p, true, false, &out);
	check_has(&out, "ward: exit 137 (signal SIGKILL), 1.5 s, peak memory 64 MiB, cpu 20 ms, "
			"1 of 15 layers (not cgroup, user namespace");
	check_has(&out, "seccomp           in force\n");
	check_has(&out, "landlock          absent: the kernel has none\n");
	check_has(&out, "memory            64 MiB, held by cgroup1, reached\n");
	result_text(&r, &p, false, false, &brief);
	check_has(&brief, ", 1 of 15 layers (not cgroup, user namespace");
	assert_null(strstr(brief.data, "layers:\n"));
	result_stopped_text(&r, &p, &stopped);
	assert_string_equal(
		stopped.data,
		"ward: stopped: the sandbox used more memory than allowed (limit 64 MiB, "
		"held by cgroup1); remedy: --memory 128Mi\n");
	r.usage.machine_short = true;
	stopped.len = 0;
	result_stopped_text(&r, &p, &stopped);
	check_has(&stopped, "ward: stopped: the machine ran short of memory");
	check_has(&stopped, "this sandbox may not be the cause (limit 64 MiB");
	result_clear(&r);
}

static void test_reached(unused_arg void **state)
{
	struct result r = { .exit_code = 1 };
	struct plan p = { 0 };
	auto_buf out = { 0 };

	p.limits[LIMIT_PIDS] = (struct plan_limit){ 64, HELD_RLIMIT };
	r.usage.hit[LIMIT_PIDS] = r.usage.hit[LIMIT_CPU] = true;
	result_stopped_text(&r, &p, &out);
	assert_string_equal(
		out.data,
		"ward: limit reached: the sandbox tried to start more processes than allowed "
		"(limit 64, held by rlimit); remedy: --pids 128\n");
}

static void test_hostile(unused_arg void **state)
{
	struct result r;
	struct plan p;
	auto_buf text = { 0 }, json = { 0 };

	fill(&r, &p);
	result_deny(&r, "a\nward: exit 0\033[2J",
		    "\xc2\x9b"
		    "1m",
		    "\xff");
	strv_add(&r.quarantine, "x\"}\n{\"run\": \xe2\x80\xae");
	result_text(&r, &p, true, false, &text);
	result_json(&r, &p, &json);
	assert_null(strchr(text.data, '\033'));
	assert_null(strstr(text.data, "\nward: exit 0"));
	assert_null(strchr(json.data, '\n'));
	assert_null(strchr(json.data, '\033'));
	assert_null(strstr(json.data, "\xc2\x9b"));
	assert_null(strstr(json.data, "\xe2\x80\xae"));
	check_has(&json, "\\ufffd");
	result_clear(&r);
}

static void test_many_denials(unused_arg void **state)
{
	struct result r = { 0 };
	char what[32];

	for (int i = 0; i < 3000; i++) {
		snprintf(what, sizeof(what), "call %d", i);
		result_deny(&r, what, "", "");
	}
	assert_true(r.denial_count <= 1000);
	result_clear(&r);
	assert_int_equal(r.denial_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),    cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_text),    cmocka_unit_test(test_reached),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_many_denials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Unit test of the control socket's messages and of the register's entries: what is well formed,
 * and what is not. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "control/control.h"
#include "control/copy.h"
#include "state/boxes.h"

static int check(uint32_t op, int32_t a, int32_t b, const char *rest, size_t n)
{
	struct control_message m = { .magic = CONTROL_MAGIC, .op = op, .a = a, .b = b };
	auto_buf packet = { 0 };

	buf_add(&packet, &m, sizeof(m));
	buf_add(&packet, rest, n);
	return op < CONTROL_OK ? control_check_request(packet.data, packet.len)
			       : control_check_answer(packet.data, packet.len);
}
#define CHECK(op, a, b, text) check(op, a, b, text, sizeof(text) - 1)

static void test_requests(unused_arg void **state)
{
	struct control_message bad = { .magic = 1, .op = CONTROL_STATS };

	assert_int_equal(CHECK(CONTROL_STATS, 0, 0, ""), 0);
	assert_int_equal(CHECK(CONTROL_STATS, 0, 0, "x"), -EINVAL);
	assert_int_equal(CHECK(0, 0, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_REQUESTS, 0, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_SIGNAL, 15, 0, ""), 0);
	assert_int_equal(CHECK(CONTROL_SIGNAL, 0, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_SIGNAL, 65, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_STOP, -1, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_SIZE, 24, 80, ""), 0);
	assert_int_equal(CHECK(CONTROL_SIZE, 24, 0x10000, ""), -EINVAL);
	assert_int_equal(control_check_request(&bad, sizeof(bad)), -EINVAL);
	assert_int_equal(control_check_request(&bad, 3), -EINVAL);
	assert_int_equal(control_check_request("", 0), -EINVAL);
}

static void test_exec(unused_arg void **state)
{
	assert_int_equal(CHECK(CONTROL_EXEC, 1, 0, "\0sh\0"), 0);
	assert_int_equal(CHECK(CONTROL_EXEC, 2, 1, "/tmp\0sh\0-c\0A=b\0"), 0);
	assert_int_equal(CHECK(CONTROL_EXEC, 2, 1, "/tmp\0sh\0\0A=\0"), 0);
	/* no command */
	assert_int_equal(CHECK(CONTROL_EXEC, 0, 0, "\0"), -EINVAL);
	/* without a name */
	assert_int_equal(CHECK(CONTROL_EXEC, 1, 0, "\0\0"), -EINVAL);
	/* not ended */
	assert_int_equal(CHECK(CONTROL_EXEC, 1, 0, "\0sh"), -EINVAL);
	/* too few */
	assert_int_equal(CHECK(CONTROL_EXEC, 2, 0, "\0sh\0"), -EINVAL);
	/* too many */
	assert_int_equal(CHECK(CONTROL_EXEC, 1, 0, "\0sh\0x\0"), -EINVAL);
	/* no variable */
	assert_int_equal(CHECK(CONTROL_EXEC, 1, 1, "\0sh\0A\0"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_EXEC, 1, 1, "\0sh\0=b\0"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_EXEC, INT32_MAX, INT32_MAX, "\0sh\0"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_EXEC, -1, 3, "\0sh\0"), -EINVAL);
}

static void test_write_exec(unused_arg void **state)
{
	static char sh[] = "sh", long_word[CONTROL_MAX], variable[] = "A=b", none[] = "A";
	char *argv[] = { sh, NULL }, *env[] = { variable, NULL }, *bad[] = { none, NULL };
	char *big[] = { long_word, NULL }, *nothing[] = { NULL };
	struct control_exec x = { .cwd = "", .argv = argv, .env = env };
	auto_buf good = { 0 }, too_big = { 0 }, no_name = { 0 }, no_command = { 0 };

	memset(long_word, 'x', sizeof(long_word) - 1);
	assert_int_equal(control_write_exec(&x, &good), 0);
	assert_int_equal(control_check_request(good.data, good.len), 0);
	x.argv = big;
	assert_int_equal(control_write_exec(&x, &too_big), -E2BIG);
	x = (struct control_exec){ .cwd = "", .argv = argv, .env = bad };
	assert_int_equal(control_write_exec(&x, &no_name), -EINVAL);
	x = (struct control_exec){ .cwd = "", .argv = nothing };
	assert_int_equal(control_write_exec(&x, &no_command), -EINVAL);
}

static void test_answers(unused_arg void **state)
{
	struct ward_err e = { 0 }, again = { 0 };
	auto_buf out = { 0 };

	assert_int_equal(CHECK(CONTROL_OK, 0, 0, ""), 0);
	assert_int_equal(CHECK(CONTROL_OK, 0, 0, "x"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_USAGE, 0, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_ERROR, 2, 0, "a\0b\0c\0"), 0);
	assert_int_equal(CHECK(CONTROL_ERROR, 0, 0, "a\0b\0c\0"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_ERROR, 2, 0, "a\0b\0c"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_ERROR, 2, 0, "a\0b\0"), -EINVAL);
	ward_fail(&e, EBUSY, "the reason");
	ward_wrap(&e, "the place");
	ward_remedy(&e, "the remedy");
	control_write_error(&e, &out);
	assert_int_equal(control_check_answer(out.data, out.len), 0);
	control_read_error(out.data, out.len, &again);
	assert_memory_equal(&e, &again, sizeof(e));
}

static int parse(const char *text)
{
	struct box_info i = { 0 };
	int r = boxes_parse(text, strlen(text), &i);

	if (r == 0)
		box_info_clear(&i);
	return r;
}

static void test_entries(unused_arg void **state)
{
	static const char good[] = "ward-box 1 P\npid 12 345\nstarted 99\nname web\nworkspace "
				   "/a\\nb\nprotect /x\nprotect !y\\tz\nword sh\nend 3 9 7\n";
	struct box_info i = { 0 };

	assert_int_equal(boxes_parse(good, strlen(good), &i), 0);
	assert_int_equal(i.state, BOX_PAUSED);
	assert_int_equal(i.pid, 12);
	assert_string_equal(i.name, "web");
	assert_string_equal(i.workspace, "/a\nb");
	assert_int_equal(i.command.len, 1);
	assert_int_equal(i.protect.len, 2);
	assert_string_equal(i.protect.items[1], "!y\tz");
	assert_int_equal(i.exit_code, 3);
	assert_int_equal(i.exit_signal, 9);
	box_info_clear(&i);
	assert_int_equal(parse(""), -EINVAL);
	assert_int_equal(parse("ward-box 1 "), -EINVAL);
	assert_int_equal(parse("ward-box 1 X\n"), -EINVAL);
	assert_int_equal(parse("ward-box 2 R\n"), -EINVAL);
	assert_int_equal(parse("ward-box 1 R\nname ../x\n"), -EINVAL);
	assert_int_equal(parse("ward-box 1 R\npid x\n"), -EINVAL);
	assert_true(boxes_is_name("a") && boxes_is_name("0-A_z.9"));
	assert_false(boxes_is_name("") || boxes_is_name(".a") || boxes_is_name("-a") ||
		     boxes_is_name("a/b"));
}

static void test_copy_names(unused_arg void **state)
{
	struct guest_copy h = { .magic = GUEST_COPY_MAGIC,
				.type = GUEST_COPY_FILE,
				.mode = 06777,
				.size = 9 },
			  out;

	assert_int_equal(copy_check_name("", 0), 0);
	assert_int_equal(copy_check_name("a/b.c/..d", 9), 0);
	assert_int_equal(copy_check_name("/a", 2), -EINVAL);
	assert_int_equal(copy_check_name("a/", 2), -EINVAL);
	assert_int_equal(copy_check_name("a//b", 4), -EINVAL);
	assert_int_equal(copy_check_name("..", 2), -EINVAL);
	assert_int_equal(copy_check_name("a/../b", 6), -EINVAL);
	assert_int_equal(copy_check_name("a/.", 3), -EINVAL);
	assert_int_equal(copy_check_name("a\0b", 3), -EINVAL);
	assert_true(copy_link_stays("a", "b", 1) && copy_link_stays("a/b/c", "../../d", 7) &&
		    copy_link_stays("a/b", "./..//c", 7));
	/* b may be a link up: behind it nobody knows where ".." leads */
	assert_false(copy_link_stays("a", "b/../c", 6) ||
		     copy_link_stays("a/x", "../b/c/../..", 12));
	assert_false(copy_link_stays("a", "/etc", 4) || copy_link_stays("a", "../b", 4) ||
		     copy_link_stays("a/b", "../../c", 7) || copy_link_stays("a", "b/../../c", 9) ||
		     copy_link_stays("a", "", 0));
	assert_int_equal(copy_check_head(&h, sizeof(h), &out), 0);
	assert_int_equal(out.mode, 0777);
	assert_int_equal(copy_check_head(&h, sizeof(h) - 1, &out), -EINVAL);
	h.size = UINT64_MAX;
	assert_int_equal(copy_check_head(&h, sizeof(h), &out), -EINVAL);
	h = (struct guest_copy){ .magic = GUEST_COPY_MAGIC, .type = GUEST_COPY_LINK, .size = 5000 };
	assert_int_equal(copy_check_head(&h, sizeof(h), &out), -EINVAL);
	h = (struct guest_copy){ .magic = GUEST_COPY_MAGIC,
				 .type = GUEST_COPY_DIR,
				 .name_len = 5000 };
	assert_int_equal(copy_check_head(&h, sizeof(h), &out), -EINVAL);
}

static void test_net(unused_arg void **state)
{
	char *lines[CONTROL_NET_LINES + 1], text[] = "a.example:443";
	struct control_net_flow flow = { .host = "a.example" };
	struct control_net now = { .generation = 1 };
	auto_buf packet = { 0 }, answer = { 0 };
	struct control_message m;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		lines[i] = text;
	assert_int_equal(control_write_net(CONTROL_NET_DENY, lines, CONTROL_NET_LINES, 5, &packet),
			 0);
	memcpy(&m, packet.data, sizeof(m));
	assert_int_equal(m.a, CONTROL_NET_LINES);
	packet.len = 0;
	assert_int_equal(
		control_write_net(CONTROL_NET_ALLOW, lines, CONTROL_NET_LINES + 1, 0, &packet),
		-E2BIG);
	packet.len = 0;
	assert_int_equal(control_write_net(CONTROL_NET_ALLOW, lines, 0, 0, &packet), -EINVAL);
	assert_int_equal(CHECK(CONTROL_NET_ALLOW, 1, 0, "a\0"), 0);
	assert_int_equal(CHECK(CONTROL_NET_ALLOW, 2, 0, "a\0"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_NET_ALLOW, 1, 0, "a"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_NET_ALLOW, 1, -1, "a\0"), -EINVAL);
	assert_int_equal(CHECK(CONTROL_NET_SHOW, CONTROL_NET_FLOWS, 7, ""), 0);
	assert_int_equal(CHECK(CONTROL_NET_SHOW, CONTROL_NET_WHATS, 0, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_NET_SHOW, 0, -1, ""), -EINVAL);
	assert_int_equal(CHECK(CONTROL_NET_SHOW, 0, 0, "x"), -EINVAL);
	buf_add(&answer, &now, sizeof(now));
	buf_add(&answer, &flow, sizeof(flow));
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_FLOWS, 0, answer.data, answer.len), 0);
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_SUMMARY, 0, answer.data, answer.len),
			 -EINVAL);
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_SUMMARY, 0, answer.data, sizeof(now)), 0);
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_FLOWS, 0, answer.data, answer.len - 1),
			 -EINVAL);
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_FLOWS, -1, answer.data, answer.len),
			 -EINVAL);
	memset(answer.data + sizeof(now), 'x', sizeof(flow.host)); /* a text without an end */
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_FLOWS, 0, answer.data, answer.len),
			 -EINVAL);
	memset(answer.data, 'x', sizeof(now));
	assert_int_equal(check(CONTROL_NET, CONTROL_NET_SUMMARY, 0, answer.data, sizeof(now)),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),   cmocka_unit_test(test_exec),
		cmocka_unit_test(test_write_exec), cmocka_unit_test(test_answers),
		cmocka_unit_test(test_entries),    cmocka_unit_test(test_copy_names),
		cmocka_unit_test(test_net),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

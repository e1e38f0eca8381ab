/* Frames of a websocket (keys/ws.c), and what heads of answers say about their bodies
 * (keys/answer_head.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "keys/answer_head.h"
#include "keys/ws.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static enum ws_say take(struct ws *w, const uint8_t *bytes, size_t n, struct buf *data, size_t used)
{
	size_t got = 0;
	enum ws_say say = ws_take(w, bytes, n, data, &got);

	assert_int_equal(got, used);
	return say;
}

/* A message in several frames, a ping among them, is one text. */
static void test_messages(void **state)
{
	struct ws server = { 0 }, program = { .masked = true };
	auto_buf data = { 0 }, out = { 0 };

	(void)state;
	assert_int_equal(take(&server, BYTES("\x01\x03sec\x89\x01p\x80\x03ret\x82"), &data, 8),
			 WS_CONTROL);
	assert_int_equal(server.control_len, 1);
	ws_give_control(&server, &out);
	assert_int_equal(take(&server, BYTES("\x80\x03ret\x82"), &data, 5), WS_MESSAGE);
	assert_string_equal(buf_text(&data), "secret");
	ws_give(&server, (const uint8_t *)data.data, 4, false, &out);
	ws_give(&server, (const uint8_t *)data.data + 4, 2, true, &out);
	assert_int_equal(out.len, 3 + 6 + 4);
	assert_memory_equal(out.data,
			    "\x89\x01p\x01\x04secr\x80\x02"
			    "et",
			    13);
	data.len = out.len = 0;
	assert_int_equal(take(&program, BYTES("\x81\x84\x01\x02\x03\x04iglh"), &data, 10),
			 WS_MESSAGE);
	assert_memory_equal(data.data, "heol", 4);
	ws_give(&program, (const uint8_t *)data.data, 4, true, &out);
	assert_memory_equal(out.data, "\x81\x84\x01\x02\x03\x04iglh", 10);
}

/* Whatever could hide a text from who looks at it is refused. */
static void test_refused(void **state)
{
	static const struct {
		bool masked;
		const char *bytes;
	} cases[] = {
		{ false, "\xc1\x01" }, /* a reserved bit: compressed */
		{ false, "\x83\x01" }, /* an opcode that nobody knows */
		{ false, "\x8b\x01" }, /* and one of control */
		{ false, "\x81\x81"
			 "abcd" },             /* a server that masks */
		{ true, "\x81\x01" },          /* a program that does not */
		{ false, "\x80\x01" },         /* goes on with nothing */
		{ false, "\x09\x01" },         /* a ping in pieces */
		{ false, "\x89\x7e\x01\x01" }, /* a large one */
		{ false, "\x01\x01"
			 "a\x01\x01" }, /* a message within another one */
		{ false, "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ws w = { .masked = cases[i].masked };
		auto_buf data = { 0 };
		size_t used;

		assert_int_equal(ws_take(&w, (const uint8_t *)cases[i].bytes,
					 strlen(cases[i].bytes), &data, &used),
				 WS_BAD);
	}
}

static bool hides(const char *fields)
{
	auto_buf lines = { 0 };

	buf_printf(&lines, "HTTP/1.1 200 OK: fine\r\n%s\r\n", fields);
	return answer_hides(&lines, true);
}

static void test_answers(void **state)
{
	(void)state;
	assert_false(hides(""));
	assert_false(hides("Content-Type: text/plain\r\nContent-Encoding: "
			   "identity\r\nTransfer-Encoding: chunked\r\n"));
	assert_false(hides("content-encoding:\r\n"));
	assert_true(hides("content-encoding: gzip\r\n"));
	assert_true(hides("content-encoding: identity\r\ncontent-encoding: gzip\r\n"));
	assert_true(hides("content-encoding: identity, gzip\r\n"));
	assert_true(hides("Content-Encoding : gzip\r\n"));
	assert_true(hides("content-encoding:\r\n gzip\r\n"));
	assert_true(hides("x: y\rcontent-encoding: gzip\r\n"));
	assert_true(hides("grpc-encoding: identity\r\ngrpc-encoding: gzip\r\n"));
	assert_true(hides("Transfer-Encoding: gzip, chunked\r\n"));
	assert_true(hides("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"));
	assert_true(hides(
		"content-type: text/plain\r\nContent-Type: multipart/byteranges; boundary=x\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_messages),
					    cmocka_unit_test(test_refused),
					    cmocka_unit_test(test_answers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

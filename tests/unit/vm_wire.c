/* Unit test of what a hostile guest can say: frames, channels, credit, records of trees. Crafted
 * bytes; each lie is refused. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <cmocka.h>

#include "protocol/guest.h"
#include "vm/party.h"
#include "vm/session.h"
#include "vm/tree.h"

static uint8_t frame[VM_FRAME_MAX];

static size_t make(unsigned type, unsigned channel, unsigned stream, uint32_t len)
{
	static const uint8_t zeros[VM_PAYLOAD_MAX];
	size_t n = wire_put(frame, type, channel, stream, zeros,
			    len > VM_PAYLOAD_MAX ? VM_PAYLOAD_MAX : len);

	memcpy(frame + 8, &len, 4);
	return n;
}

static long parse(unsigned type, unsigned channel, unsigned stream, uint32_t len, bool from_guest)
{
	struct vm_frame f;

	return wire_parse(frame, make(type, channel, stream, len), from_guest, &f);
}

static void test_frames(void **state)
{
	struct vm_frame f;
	size_t n = make(VM_DATA, 3, 2, 100);

	(void)state;
	assert_int_equal(wire_parse(frame, n, true, &f), n);
	assert_int_equal(f.type, VM_DATA);
	assert_int_equal(f.channel, 3);
	assert_int_equal(f.stream, 2);
	assert_int_equal(f.len, 100);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(wire_parse(frame, i, true, &f), 0); /* not all of it is there */
	frame[0] ^= 1;
	assert_int_equal(wire_parse(frame, n, true, &f), -EPROTO);
}

static void test_lengths(void **state)
{
	(void)state;
	assert_int_equal(parse(VM_DATA, 1, 1, 0, true), -EPROTO);
	assert_int_equal(parse(VM_DATA, 1, 1, VM_PAYLOAD_MAX, true), VM_FRAME_MAX);
	assert_int_equal(parse(VM_DATA, 1, 1, VM_PAYLOAD_MAX + 1, true), -EPROTO);
	assert_int_equal(parse(VM_DATA, 1, 1, UINT32_MAX, true), -EPROTO);
	assert_int_equal(parse(VM_EXIT, 1, 0, 3, true), -EPROTO);
	assert_int_equal(parse(VM_EXIT, 1, 0, 5, true), -EPROTO);
	assert_int_equal(parse(VM_EOF, 1, 1, 1, true), -EPROTO);
	assert_int_equal(parse(VM_ERROR, 1, 0, 4 + VM_ERROR_TEXT + 1, true), -EPROTO);
}

static void test_who_may_say_what(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		bool guest = type == VM_READY || type == VM_QUIET || type == VM_ECHO;

		if (type >= VM_TYPES || type == 0)
			assert_int_equal(parse(type, 1, 0, 4, true), -EPROTO);
		else if (!guest && type != VM_ERROR)
			/* about no channel */
			assert_int_equal(parse(type, 0, 0, 4, true), -EPROTO);
	}
	assert_int_equal(parse(VM_START, 1, 0, sizeof(struct vm_start), true), -EPROTO);
	assert_int_equal(parse(VM_START, 1, 0, sizeof(struct vm_start), false),
			 VM_HEAD_BYTES + sizeof(struct vm_start));
	assert_int_equal(parse(VM_EXIT, 1, 0, 4, false), -EPROTO);
	assert_int_equal(parse(VM_DATA, VM_CHANNELS, 0, 1, true), -EPROTO);
	assert_int_equal(parse(VM_DATA, UINT32_MAX, 0, 1, true), -EPROTO);
	assert_int_equal(parse(VM_DATA, 1, 3, 1, true), -EPROTO);
	assert_int_equal(parse(VM_DATA, 1, 255, 1, true), -EPROTO);
	/* the guest is sent nothing in that stream */
	assert_int_equal(parse(VM_WINDOW, 1, 1, 4, true), -EPROTO);
	assert_int_equal(parse(VM_QUIET, 1, 0, 0, true), -EPROTO);
}

static void test_words(void **state)
{
	static const char words[] = "/dir\0one\0two\0A=b";

	(void)state;
	assert_true(wire_check_words(words, sizeof(words), 2, 1));
	assert_false(wire_check_words(words, sizeof(words), 3, 1));
	assert_false(wire_check_words(words, sizeof(words) - 1, 2, 1));
	assert_false(wire_check_words(words, sizeof(words), 0, 3));
	assert_false(wire_check_words(words, sizeof(words), UINT32_MAX, UINT32_MAX));
	assert_false(wire_check_words(words, 0, 1, 0));
}

/* ---- channels ---- */

static struct vm_session session;
static uint8_t out[VM_FRAME_MAX];
static size_t filled;

static ssize_t fill(void *ctx, uint8_t *bytes, size_t n)
{
	(void)ctx;
	memset(bytes, 'x', n);
	filled += n;
	return (ssize_t)n;
}

static unsigned open_channel(unsigned terminals)
{
	struct vm_start start = { .kind = VM_RUN, .argc = 1, .terminals = (uint16_t)terminals };
	struct ward_err e = { 0 };
	char *words = malloc(6);
	int channel;

	memcpy(words, "/\0cmd", 6);
	channel = session_open(&session, &start, words, 6, &e);
	assert_true(channel > 0);
	session.channels[channel].fill = fill;
	while (session.channels[channel].state != VM_RUNNING)
		assert_true(session_next(&session, out) > 0);
	return (unsigned)channel;
}

static int begin(void **state)
{
	(void)state;
	memset(&session, 0, sizeof(session));
	filled = 0;
	return 0;
}

static int finish(void **state)
{
	(void)state;
	session_free(&session);
	return 0;
}

static int say(unsigned type, unsigned channel, unsigned stream, const void *payload, size_t n)
{
	struct ward_err e = { 0 };
	struct vm_frame f;
	size_t len = wire_put(frame, type, channel, stream, payload, n);

	assert_int_equal(wire_parse(frame, len, true, &f), len);
	return session_take(&session, &f, &e);
}

static int say_number(unsigned type, unsigned channel, uint32_t number)
{
	return say(type, channel, 0, &number, sizeof(number));
}

static int say_data(unsigned channel, unsigned stream, size_t n)
{
	static const uint8_t bytes[VM_PAYLOAD_MAX];

	return say(VM_DATA, channel, stream, bytes, n);
}

static void test_credit_of_the_guest(void **state)
{
	unsigned c = open_channel(0);
	struct vm_inbox *in = &session.channels[c].in[1];

	(void)state;
	assert_int_equal(say_data(c, 1, VM_PAYLOAD_MAX), 0);
	assert_int_equal(say_data(c, 1, VM_WINDOW_BYTES - VM_PAYLOAD_MAX), 0);
	assert_int_equal(in->len, VM_WINDOW_BYTES);
	assert_int_equal(say_data(c, 2, 1), 0); /* each stream has its own */
	assert_int_equal(say_data(c, 1, 1), -EPROTO);
	session_taken(in, 100);
	assert_int_equal(say_data(c, 1, 1), -EPROTO); /* it was not told yet */
	session_taken(in, VM_WINDOW_BYTES / 2);
	while (in->owed)
		assert_true(session_next(&session, out) > 0);
	assert_int_equal(say_data(c, 1, VM_PAYLOAD_MAX), 0);
	assert_int_equal(say_data(c, 1, 101), -EPROTO);
}

static void test_credit_of_the_host(void **state)
{
	unsigned c = open_channel(0);

	(void)state;
	/* a guest that takes nothing is sent a window and no more */
	for (int i = 0; i < 100; i++)
		(void)!session_next(&session, out);
	assert_int_equal(filled, VM_WINDOW_BYTES);
	assert_int_equal(say_number(VM_WINDOW, c, 10), 0);
	for (int i = 0; i < 100; i++)
		(void)!session_next(&session, out);
	assert_int_equal(filled, VM_WINDOW_BYTES + 10);
	assert_int_equal(say_number(VM_WINDOW, c, 0), -EPROTO);
	assert_int_equal(say_number(VM_WINDOW, c, UINT32_MAX), -EPROTO);
	assert_int_equal(say_number(VM_WINDOW, c, VM_WINDOW_BYTES + 1), -EPROTO);
	assert_int_equal(say_number(VM_WINDOW, c, VM_WINDOW_BYTES), 0);
	assert_int_equal(say_number(VM_WINDOW, c, 1), -EPROTO);
}

static void test_ends(void **state)
{
	unsigned c = open_channel(0);

	(void)state;
	assert_int_equal(say(VM_EOF, c, 1, NULL, 0), 0);
	assert_int_equal(say_data(c, 1, 1), -EPROTO);
	assert_int_equal(say(VM_EOF, c, 1, NULL, 0), -EPROTO);
	assert_int_equal(say_data(c, 2, 5), 0);
	assert_int_equal(say_number(VM_EXIT, c, 3 << 8), 0);
	assert_int_equal(session.channels[c].status, 3 << 8);
	/* what it wrote before is still there */
	assert_int_equal(session.channels[c].in[2].len, 5);
	assert_int_equal(say_number(VM_EXIT, c, 0), -EPROTO);
	assert_int_equal(say_data(c, 2, 1), -EPROTO);
	assert_int_equal(say(VM_EOF, c, 2, NULL, 0), -EPROTO);
	assert_int_equal(session_next(&session, out), 0);
}

static void test_statuses(void **state)
{
	static const uint32_t told[] = { 0x7f, 0x137f, 0xffffffff, 0x80, 0x8b, 0xff00 };

	(void)state;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		unsigned c = open_channel(0);
		int status;

		assert_int_equal(say_number(VM_EXIT, c, told[i]), 0);
		status = session.channels[c].status;
		/* an end, whatever was said */
		assert_true((status & 0x7f) != 0x7f && status >= 0 && status <= 0xff00);
		session_close(&session, c);
	}
}

static int status_of(uint32_t told)
{
	unsigned c = open_channel(0);
	int status;

	assert_int_equal(say_number(VM_EXIT, c, told), 0);
	status = session.channels[c].status;
	session_close(&session, c);
	return status;
}

/* A signal that would stop whoever ends like the command, or do nothing, is an exit code. */
static void test_signals(void **state)
{
	static const uint32_t ends[] = { SIGHUP,  SIGINT,  SIGKILL, SIGSEGV, SIGPIPE,
					 SIGTERM, SIGXCPU, SIGSYS,  34,      64 };
	static const uint32_t others[] = { SIGCHLD, SIGCONT,  SIGSTOP, SIGTSTP, SIGTTIN,    SIGTTOU,
					   SIGURG,  SIGWINCH, 65,      0x7e,    GUEST_SPENT };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		assert_int_equal(status_of(ends[i]), ends[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(status_of(others[i]), (128 + others[i]) << 8);
}

/* That the machine had no memory left is believed of a command that was killed, and of no other. */
static void test_spent(void **state)
{
	static const struct {
		uint32_t told;
		bool spent;
	} cases[] = { { SIGKILL | VM_EXIT_SPENT, true },      { SIGKILL, false },
		      { SIGTERM | VM_EXIT_SPENT, false },     { VM_EXIT_SPENT, false },
		      { GUEST_SPENT | VM_EXIT_SPENT, false }, { 9 << 8 | VM_EXIT_SPENT, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned c = open_channel(0);

		assert_int_equal(say_number(VM_EXIT, c, cases[i].told), 0);
		assert_int_equal(session.channels[c].spent, cases[i].spent);
		assert_int_equal(session.channels[c].status & ~0xff7f, 0);
		session_close(&session, c);
		c = open_channel(0);
		assert_false(session.channels[c].spent);
		session_close(&session, c);
	}
}

static void test_not_open(void **state)
{
	(void)state;
	assert_int_equal(say_data(5, 1, 1), -EPROTO);
	assert_int_equal(say_number(VM_EXIT, 1, 0), -EPROTO);
	assert_int_equal(say_number(VM_WINDOW, 66, 1), -EPROTO);
	assert_int_equal(say(VM_QUIET, 0, 0, NULL, 0), -EPROTO);
	session.tell_quiesce = true;
	assert_true(session_next(&session, out) > 0);
	assert_int_equal(say(VM_QUIET, 0, 0, NULL, 0), 0);
	assert_int_equal(say(VM_QUIET, 0, 0, NULL, 0), -EPROTO);
	assert_int_equal(say_number(VM_READY, 0, VM_VERSION), -EPROTO);
}

/* What was asked for before is started before: it ends with the rest. */
static void test_quiesce_is_last(void **state)
{
	struct vm_start start = { .kind = VM_RUN, .argc = 1 };
	struct ward_err e = { 0 };
	char *words = malloc(6);
	unsigned types[3] = { 0 };
	struct vm_frame f;

	(void)state;
	memcpy(words, "/\0cmd", 6);
	assert_true(session_open(&session, &start, words, 6, &e) > 0);
	session.tell_quiesce = true;
	for (size_t i = 0; i < 3; i++) {
		size_t n = session_next(&session, out);

		assert_int_equal(wire_parse(out, n, false, &f), n);
		types[i] = f.type;
	}
	assert_int_equal(types[0], VM_WORDS);
	assert_int_equal(types[1], VM_START);
	assert_int_equal(types[2], VM_QUIESCE);
}

static void test_terminal_data(void **state)
{
	unsigned plain = open_channel(0), terminal = open_channel(7), mixed = open_channel(5);

	(void)state;
	assert_int_equal(say_data(plain, 0, 1), -EPROTO);
	assert_int_equal(say_data(terminal, 0, 1), 0);
	assert_int_equal(say_data(terminal, 1, 1), -EPROTO); /* 1 and 2 are the terminal, too */
	assert_int_equal(say_data(terminal, 2, 1), -EPROTO);
	assert_int_equal(say_data(mixed, 1, 1), 0);
	assert_int_equal(say_data(mixed, 2, 1), -EPROTO);
}

static void test_broken(void **state)
{
	unsigned c = open_channel(0);
	struct vm_inbox *in = &session.channels[c].in[1];

	(void)state;
	assert_int_equal(say_data(c, 1, 1000), 0);
	session_break(in);
	assert_null(in->bytes);
	for (int i = 0; i < 1000; i++) { /* thrown away; credit goes on as it must */
		assert_int_equal(say_data(c, 1, 30000), 0);
		while (in->owed >= VM_WINDOW_BYTES / 4)
			assert_true(session_next(&session, out) > 0);
	}
	assert_null(in->bytes);
}

static void test_all_channels(void **state)
{
	struct vm_start start = { .kind = VM_RUN, .argc = 1 };
	struct ward_err e = { 0 };
	char *words = malloc(6);

	(void)state;
	for (unsigned i = 1; i < VM_CHANNELS; i++)
		open_channel(0);
	memcpy(words, "/\0cmd", 6);
	assert_int_equal(session_open(&session, &start, words, 6, &e), -EAGAIN);
}

/* ---- records of trees ---- */

static struct tree_reader reader;
static size_t heads, bytes_seen, ends;

static int on_head(void *ctx, const struct tree_head *h, const char *name)
{
	(void)ctx;
	(void)h;
	assert_true(tree_check_name(name, strlen(name)));
	heads++;
	return 0;
}

static int on_link(void *ctx, const struct tree_head *h, const char *name, const char *target)
{
	assert_int_equal(strlen(target), h->size);
	return on_head(ctx, h, name);
}

static int on_chunk(void *ctx, uint64_t offset, const void *bytes, size_t n)
{
	(void)ctx;
	(void)offset;
	(void)bytes;
	bytes_seen += n;
	return 0;
}

static int on_file_end(void *ctx)
{
	(void)ctx;
	ends++;
	return 0;
}

static const struct tree_sink sink = {
	.head = on_head, .link = on_link, .chunk = on_chunk, .file_end = on_file_end
};

static void new_reader(uint64_t bytes_max, uint64_t records_max)
{
	memset(&reader, 0, sizeof(reader));
	reader = (struct tree_reader){ .sink = &sink,
				       .bytes_max = bytes_max,
				       .records_max = records_max };
	heads = bytes_seen = ends = 0;
}

static int record(unsigned type, const char *name, uint64_t size)
{
	struct tree_head h = { .magic = TREE_MAGIC,
			       .type = (uint16_t)type,
			       .mode = 0644,
			       .name_len = (uint32_t)strlen(name),
			       .size = size };
	int r = tree_read(&reader, &h, sizeof(h));

	return r ? r : tree_read(&reader, name, strlen(name));
}

static int chunk(uint64_t offset, uint32_t len)
{
	static const uint8_t zeros[TREE_CHUNK_MAX];
	struct tree_chunk c = { .offset = offset, .len = len };
	int r = tree_read(&reader, &c, sizeof(c));

	return r || !len ? r
			 : tree_read(&reader, zeros, len > TREE_CHUNK_MAX ? TREE_CHUNK_MAX : len);
}

static void test_records(void **state)
{
	(void)state;
	new_reader(1000, 10);
	assert_int_equal(record(TREE_DIR, "", 0), 0);
	assert_int_equal(record(TREE_FILE, "a/b", 1ull << 40), 0);
	assert_int_equal(chunk(0, 10), 0);
	assert_int_equal(chunk((1ull << 40) - 10, 10), 0);
	assert_int_equal(chunk(0, 0), 0);
	assert_int_equal(record(TREE_LINK, "l", 3), 0);
	assert_int_equal(tree_read(&reader, "../", 3), 0);
	assert_int_equal(record(TREE_END, "", 0), 0);
	assert_int_equal(reader.at, TREE_AT_END);
	assert_int_equal(heads, 4);
	assert_int_equal(bytes_seen, 20);
	assert_int_equal(ends, 1);
	assert_int_equal(tree_read(&reader, "x", 1), -EPROTO);
}

static void test_trees_behind_each_other(void **state)
{
	(void)state;
	new_reader(1000, 10);
	reader.more = 1;
	assert_int_equal(record(TREE_DIR, "", 0), 0);
	assert_int_equal(record(TREE_END, "", 0), 0);
	assert_int_equal(reader.at, TREE_AT_HEAD);
	assert_int_equal(record(TREE_END, "", 0), 0);
	assert_int_equal(reader.at, TREE_AT_END);
	assert_int_equal(record(TREE_END, "", 0), -EPROTO);
}

static void test_names_of_records(void **state)
{
	static const char *const bad[] = { "/etc/passwd", "..", "../x", "a/../b",
					   "a//b",        "a/", ".",    "a/./b" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		new_reader(1000, 10);
		assert_int_equal(record(TREE_DIR, bad[i], 0), -EPROTO);
		assert_int_equal(heads, 0);
	}
	assert_false(tree_check_name("a\0b", 3));
	assert_true(tree_check_name("...", 3));
}

static void test_records_that_lie(void **state)
{
	(void)state;
	new_reader(1000, 10);
	assert_int_equal(record(TREE_FILE, "f", UINT64_MAX), -EPROTO);
	new_reader(1000, 10);
	assert_int_equal(record(TREE_LINK, "f", TREE_NAME_MAX + 1), -EPROTO);
	new_reader(1000, 10);
	assert_int_equal(record(TREE_DIR, "f", 1), -EPROTO);
	new_reader(1000, 10);
	assert_int_equal(record(99, "f", 0), -EPROTO);
	new_reader(1000, 10);
	assert_int_equal(record(TREE_FILE, "f", 100), 0);
	assert_int_equal(chunk(50, 51), -EPROTO); /* behind its end */
	new_reader(1000, 10);
	assert_int_equal(record(TREE_FILE, "f", 100), 0);
	assert_int_equal(chunk(50, 10), 0);
	assert_int_equal(chunk(55, 10), -EPROTO); /* twice */
	new_reader(1000, 10);
	assert_int_equal(record(TREE_FILE, "f", 1ull << 40), 0);
	assert_int_equal(chunk(UINT64_MAX - 1, 10), -EPROTO);
	new_reader(1000, 10);
	assert_int_equal(record(TREE_FILE, "f", 1ull << 40), 0);
	assert_int_equal(chunk(0, UINT32_MAX), -EPROTO);
	new_reader(15, 10);
	assert_int_equal(record(TREE_FILE, "f", 100), 0);
	assert_int_equal(chunk(0, 10), 0);
	assert_int_equal(chunk(10, 10), -E2BIG);
	new_reader(1000, 2);
	assert_int_equal(record(TREE_DIR, "a", 0), 0);
	assert_int_equal(record(TREE_DIR, "a", 0), 0);
	assert_int_equal(record(TREE_DIR, "a", 0), -E2BIG);
}

static void test_messages(void **state)
{
	struct party_message m = { .magic = PARTY_MAGIC, .op = PARTY_SIGNAL, .a = 15 }, got;

	(void)state;
	assert_true(party_check(&m, sizeof(m), &got));
	assert_false(party_check(&m, sizeof(m) - 1, &got));
	m.a = 65;
	assert_false(party_check(&m, sizeof(m), &got));
	m.op = PARTY_EXIT;
	m.a = 1;
	assert_false(party_check(&m, sizeof(m), &got)); /* not theirs to say */
	m.op = PARTY_START;
	assert_false(party_check(&m, sizeof(m), &got));
	m.start.kind = VM_TREE_IN;
	assert_false(party_check(&m, sizeof(m), &got));
	m.start.kind = VM_RUN;
	assert_true(party_check(&m, sizeof(m), &got));
	m.op = PARTY_RESIZE;
	m.a = 70000;
	assert_false(party_check(&m, sizeof(m), &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_who_may_say_what),
		cmocka_unit_test(test_words),
		cmocka_unit_test_setup_teardown(test_credit_of_the_guest, begin, finish),
		cmocka_unit_test_setup_teardown(test_credit_of_the_host, begin, finish),
		cmocka_unit_test_setup_teardown(test_ends, begin, finish),
		cmocka_unit_test_setup_teardown(test_statuses, begin, finish),
		cmocka_unit_test_setup_teardown(test_signals, begin, finish),
		cmocka_unit_test_setup_teardown(test_spent, begin, finish),
		cmocka_unit_test_setup_teardown(test_quiesce_is_last, begin, finish),
		cmocka_unit_test_setup_teardown(test_not_open, begin, finish),
		cmocka_unit_test_setup_teardown(test_terminal_data, begin, finish),
		cmocka_unit_test_setup_teardown(test_broken, begin, finish),
		cmocka_unit_test_setup_teardown(test_all_channels, begin, finish),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_trees_behind_each_other),
		cmocka_unit_test(test_names_of_records),
		cmocka_unit_test(test_records_that_lie),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

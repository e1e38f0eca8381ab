/* The journal's writer where things go wrong: a full disk, a removed directory, a second writer, a
 * killed one, a clock that is set. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/index.h"
#include "audit/journal.h"
#include "base/buf.h"
#include "base/io.h"
#include "event/event.h"

static char top[64];
static long clock_set_s; /* how far the wall's clock was set */

/* In place of the C library's: what the writer sees. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);

	if (id == CLOCK_REALTIME)
		t->tv_sec += clock_set_s;
	return r;
}

static bool disk_tight;

/* Likewise. */
int fstatvfs(int fd, struct statvfs *v)
{
	(void)fd;
	/* of 100 GB 800 MB or 1.2 GB */
	*v = (struct statvfs){ .f_frsize = 4096,
			       .f_blocks = 25000000,
			       .f_bavail = disk_tight ? 200000 : 300000 };
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/ward-test-journal-XXXXXX");
	assert_non_null(mkdtemp(top));
	setenv("WARD_STATE_DIR", top, 1);
	clock_set_s = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove_all(top);
	return 0;
}

static void emit(struct journal *j, const char *object)
{
	struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, object);

	event_emit(journal_sink(j), &v);
}

static struct journal *begin(const char *run, bool go_on)
{
	struct journal *j = journal_create(go_on);
	struct ward_err e = { 0 };

	assert_non_null(j);
	assert_int_equal(event_begin(journal_sink(j), run, &e), 0);
	return j;
}

static void end(struct journal *j)
{
	struct ward_err e = { 0 };
	bool due;

	assert_int_equal(journal_close(j, &due, &e), 0);
}

static char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/audit/%s", top, name);
	return path;
}

/* The lines of a file as one text; every one must follow the one before. Returns how many. */
static unsigned check(const char *name, struct buf *ret)
{
	struct chain c = { 0 };
	unsigned count = 0;

	ret->len = 0;
	if (io_read_file(AT_FDCWD, path_of(name), 64 << 20, ret) < 0)
		return 0;
	for (char *line = ret->data, *next; line && *line; line = next, count++) {
		next = strchr(line, '\n');
		assert_non_null(next);
		next++;
		if (chain_check(&c, line, (size_t)(next - line)) != CHAIN_FINE)
			fail_msg("%s: line %u does not follow: %s", name, count + 1, line);
	}
	return count;
}

static void test_a_run(void **state)
{
	struct journal *j = begin("one", false);
	auto_buf text = { 0 };

	(void)state;
	emit(j, "UNMISTAKABLE-NOTE");
	emit(j, "another");
	end(j);
	assert_int_equal(check("runs/one.jsonl", &text), 2);
	assert_non_null(strstr(text.data, "UNMISTAKABLE-NOTE"));
	assert_int_equal(check("index.jsonl", &text), 2);
	assert_non_null(strstr(text.data, "journal.end"));
	assert_int_equal(access(path_of("live/one.jsonl"), F_OK), -1);
}

/* A continued run has the same id: its journal goes on, in another file. */
static void test_continued(void **state)
{
	auto_buf first = { 0 }, second = { 0 };
	struct chain c = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct journal *j = begin("same", false);

		emit(j, "x");
		end(j);
	}
	assert_int_equal(check("runs/same.0.jsonl", &first), 1);
	assert_int_equal(io_read_file(AT_FDCWD, path_of("runs/same.1.jsonl"), 1 << 20, &second), 0);
	assert_true(chain_trust(&c, first.data, first.len));
	assert_int_equal(
		chain_check(&c, second.data, (size_t)(strchr(second.data, '\n') + 1 - second.data)),
		CHAIN_FINE);
	assert_int_equal(access(path_of("runs/same.jsonl"), F_OK), 0);
}

static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Half a line of what did not fit must not stay, and the gap is counted. */
static void test_full_disk(void **state)
{
	struct ward_err e = { 0 };
	struct journal *j = begin("full", true);
	auto_buf text = { 0 };
	const char *why;

	(void)state;
	emit(j, "before");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	set_file_limit(400);
	for (int i = 0; i < 10; i++)
		emit(j, "LOST-ONE");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	emit(j, "LOST-ONE");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	assert_int_equal(journal_lost(j, &why), 11);
	assert_int_equal(check("live/full.jsonl", &text), 1);
	set_file_limit(RLIM_INFINITY);
	emit(j, "after");
	end(j);
	assert_int_equal(check("runs/full.jsonl", &text), 3);
	assert_non_null(strstr(text.data, "\"kind\":\"journal.gap\",\"action\":\"log\",\"object\":"
					  "\"journal\",\"why\":\"File too large\",\"lost\":11"));
	assert_null(strstr(text.data, "LOST-ONE"));
}

static void test_full_disk_stops(void **state)
{
	struct ward_err e = { 0 };
	struct journal *j = begin("stop", false);
	bool due;

	(void)state;
	emit(j, "before");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	set_file_limit(300);
	emit(j, "LOST-ONE");
	assert_true(event_flush(journal_sink(j), &e) < 0);
	assert_non_null(strstr(e.why, "cannot write the journal"));
	assert_non_null(strstr(e.remedy, "audit.on_full"));
	set_file_limit(RLIM_INFINITY);
	assert_true(journal_close(j, &due, &e) < 0);

	j = journal_create(false);
	e = (struct ward_err){ 0 };
	set_file_limit(0);
	assert_true(event_begin(journal_sink(j), "stop2", &e) < 0);
	set_file_limit(RLIM_INFINITY);
	journal_close(j, &due, &e);
}

static void test_directory_removed(void **state)
{
	struct ward_err e = { 0 };
	struct journal *j = begin("gone", true), *strict = begin("gone2", false);
	const char *why;
	bool due;

	(void)state;
	emit(j, "x");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	remove_all(path_of("live"));
	emit(j, "x");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	assert_int_equal(journal_lost(j, &why), 1);
	emit(strict, "x");
	assert_true(event_flush(journal_sink(strict), &e) < 0);
	(void)journal_close(j, &due, &e);
	(void)journal_close(strict, &due, &e);
}

static void test_two_writers(void **state)
{
	struct ward_err e = { 0 };
	struct journal *j = begin("two", false), *other = journal_create(false);
	auto_fd fd = -1;
	bool due;

	(void)state;
	assert_true(event_begin(journal_sink(other), "two", &e) < 0);
	(void)journal_close(other, &due, &e);
	emit(j, "mine");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	fd = open(path_of("live/two.jsonl"), O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "FORGED\n", 7), 7);
	emit(j, "mine");
	assert_int_equal(event_flush(journal_sink(j), &e), -EBADMSG);
	(void)journal_close(j, &due, &e);
}

/* The writer is killed in the middle of a line; so is one of the index. */
static void test_torn(void **state)
{
	struct ward_err e = { 0 };
	auto_buf text = { 0 };
	pid_t pid = fork();
	auto_fd fd = -1;

	(void)state;
	if (pid == 0) {
		struct journal *j = begin("torn", false);

		emit(j, "whole");
		if (event_flush(journal_sink(j), &e) == 0)
			_exit(0);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	fd = open(path_of("live/torn.jsonl"), O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "{\"seq\":2,\"time", 14), 14);
	close(fd);
	fd = open(path_of("index.jsonl"), O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "{\"se", 4), 4);
	assert_int_equal(journal_recover(SIZE_MAX, &e), 1);
	assert_int_equal(check("runs/torn.jsonl", &text), 2);
	assert_non_null(strstr(text.data, "\"kind\":\"journal.recover\""));
	assert_non_null(strstr(text.data, "\"bytes\":14"));
	assert_int_equal(check("index.jsonl", &text), 3);
	assert_int_equal(journal_recover(SIZE_MAX, &e), 0);
}

/* A living writer's journal is left alone, and so is its index while many write it. */
static void test_many_writers(void **state)
{
	enum { WRITERS = 50, EVENTS = 400 };
	struct ward_err e = { 0 };
	auto_buf text = { 0 };

	(void)state;
	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0) {
			char run[24];
			struct journal *j;

			snprintf(run, sizeof(run), "many-%d", i);
			j = begin(run, false);
			for (int k = 0; k < EVENTS; k++) {
				emit(j, "EVENT-OF-MANY");
				if (k % 5 == 4 && event_flush(journal_sink(j), &e) < 0)
					_exit(1);
			}
			end(j);
			_exit(0);
		}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < WRITERS; i++) {
		char name[40];

		snprintf(name, sizeof(name), "runs/many-%d.jsonl", i);
		assert_int_equal(check(name, &text), EVENTS);
	}
	assert_int_equal(check("index.jsonl", &text), 2 * WRITERS);
}

/* Whoever writes the index waits for the one who does. */
static void test_index_lock(void **state)
{
	struct pollfd done = { .events = POLLIN };
	auto_fd held = -1;
	int pipe_fds[2], status;
	pid_t pid;

	(void)state;
	end(begin("first", false));
	held = open(path_of("index.jsonl"), O_RDONLY);
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (pid == 0) {
		struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, "waited");
		struct ward_err e = { 0 };

		_exit(index_report(&v, &e) < 0 || write(pipe_fds[1], "x", 1) != 1);
	}
	close(pipe_fds[1]);
	done.fd = pipe_fds[0];
	assert_int_equal(poll(&done, 1, 100), 0);
	assert_int_equal(flock(held, LOCK_UN), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(pipe_fds[0]);
}

static void test_clock(void **state)
{
	struct journal *j = begin("clock", false);
	auto_buf text = { 0 };

	(void)state;
	emit(j, "x");
	clock_set_s = -3600;
	emit(j, "x");
	emit(j, "x");
	clock_set_s = 86400;
	emit(j, "x");
	end(j);
	assert_int_equal(check("runs/clock.jsonl", &text), 6);
	assert_non_null(strstr(text.data,
			       "\"kind\":\"journal.clock\",\"action\":\"log\",\"object\":"
			       "\"clock\",\"jump_ms\":3600000,\"backwards\":true"));
	assert_non_null(strstr(text.data, "\"jump_ms\":90000000"));
}

/* Files do not grow for ever; the chain goes on. */
static void test_segments(void **state)
{
	struct journal *j = begin("long", false);
	struct ward_err e = { 0 };
	char *object = malloc(4001);
	struct stat st;

	(void)state;
	memset(object, 'x', 4000);
	object[4000] = '\0';
	for (int i = 0; i < JOURNAL_SEGMENT_MAX / 4000; i++) {
		emit(j, object);
		if (i % 4 == 3)
			assert_int_equal(event_flush(journal_sink(j), &e), 0);
	}
	end(j);
	free(object);
	assert_int_equal(stat(path_of("runs/long.0.jsonl"), &st), 0);
	assert_true(st.st_size > JOURNAL_SEGMENT_MAX &&
		    st.st_size < JOURNAL_SEGMENT_MAX + (1 << 20));
	assert_int_equal(stat(path_of("runs/long.jsonl"), &st), 0);
}

/* Emits so many objects of 4000 bytes; returns what the last flush said. */
static int emit_long(struct journal *j, int count, struct ward_err *e)
{
	char object[4001];
	int r = 0;

	memset(object, 'x', 4000);
	object[4000] = '\0';
	for (int i = 0; i < count && r == 0; i++) {
		emit(j, object);
		if (i % 4 == 3)
			r = event_flush(journal_sink(j), e);
	}
	return r;
}

/* A sandbox chooses how much there is to write: the last of the disk is not for it. A short journal
 * may have some. */
static void test_the_last_of_the_disk(void **state)
{
	struct ward_event v = event_make(EVENT_RUN_END, ACTION_LOG, "the end");
	struct journal *j = begin("tight", false);
	struct ward_err e = { 0 };
	auto_buf text = { 0 };
	const char *why;
	uint64_t lost;
	bool due;

	(void)state;
	disk_tight = true;
	assert_int_equal(emit_long(j, 400, &e), 0);
	assert_true(emit_long(j, JOURNAL_SEGMENT_MAX / 4000, &e) < 0);
	assert_non_null(strstr(e.remedy, "free some space"));
	assert_true(journal_close(j, &due, &e) < 0);

	j = begin("tight2", true);
	assert_int_equal(emit_long(j, JOURNAL_SEGMENT_MAX / 4000 + 400, &e), 0);
	lost = journal_lost(j, &why);
	assert_true(lost > 100);
	assert_string_equal(why, "No space left on device");
	disk_tight = false;
	emit(j, "after");
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	assert_int_equal(journal_lost(j, &why), lost);
	end(j);

	/* how a run ended, and how much is missing, is a few lines: they are there */
	j = begin("tight3", true);
	assert_int_equal(emit_long(j, JOURNAL_SEGMENT_MAX / 4000 + 800, &e), 0);
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	disk_tight = true;
	assert_int_equal(emit_long(j, 400, &e), 0);
	assert_int_equal(journal_lost(j, &why), 400);
	event_emit(journal_sink(j), &v);
	assert_int_equal(event_flush(journal_sink(j), &e), 0);
	end(j);
	disk_tight = false;
	assert_int_equal(io_read_file(AT_FDCWD, path_of("runs/tight3.jsonl"), 64 << 20, &text), 0);
	assert_non_null(strstr(buf_text(&text), "the end"));
	assert_non_null(strstr(buf_text(&text), "\"lost\":400"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_run),
		TEST(test_continued),
		TEST(test_full_disk),
		TEST(test_full_disk_stops),
		TEST(test_directory_removed),
		TEST(test_two_writers),
		TEST(test_torn),
		TEST(test_many_writers),
		TEST(test_index_lock),
		TEST(test_clock),
		TEST(test_segments),
		TEST(test_the_last_of_the_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

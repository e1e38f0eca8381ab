/* Unit test of the supervisor's ear: whatever ward-init says, well formed or not, is a mark or
 * nothing at all. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/io.h"
#include "run/box_internal.h"
#include "run/detach.h"
#include "run/serve.h"
#include "run/serve_internal.h"

struct scene {
	struct box b;
	struct plan plan;
	struct spec spec;
	struct result result;
	struct detached detached;
	char *argv[2];
	char dir[64];
	int inner_fd; /* where a hostile ward-init would sit */
};

static size_t open_fds(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct ward_err e = { 0 };
	int pair[2], inside[3] = { -1, -1, -1 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	snprintf(s->dir, sizeof(s->dir), "/tmp/ward-unit-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->argv[0] = s->dir;
	s->spec.argv = s->argv;
	s->plan.argv = s->argv;
	s->plan.spec = &s->spec;
	s->plan.ids.host_uid = geteuid();
	s->detached =
		(struct detached){ .asker_fd = -1, .outer_fds = NO_OUTER, .entry = NO_BOX_ENTRY };
	s->detached.entry.dir_fd = s->detached.entry.run_fd =
		open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->b = (struct box){
		.plan = &s->plan, .result = &s->result, .detached = &s->detached, .signal_fd = -1
	};
	s->b.run.control_fd = pair[0];
	s->b.run.pid_fd = s->b.run.proc_fd = s->b.run.notify_fd = -1;
	s->inner_fd = pair[1];
	assert_int_equal(serve_create(&s->b, &s->detached.entry, false, &s->b.serve, inside, &e),
			 0);
	for (int i = 0; i < 3; i++)
		close(inside[i]);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;
	char path[96];

	serve_destroy(s->b.serve);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", s->dir, i ? "control" : "log.0");
		unlink(path);
	}
	rmdir(s->dir);
	close(s->detached.entry.dir_fd);
	close(s->b.run.control_fd);
	close(s->inner_fd);
	free(s);
	return 0;
}

/* A client with a command that runs; returns its own end. */
static int add_client(struct scene *s, uint32_t tag)
{
	int pair[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	s->b.serve->clients[s->b.serve->client_count++] =
		(struct serve_client){ .fd = pair[0], .stream_fd = -1, .tag = tag, .number = tag };
	return pair[1];
}

static void say(struct scene *s, uint32_t op, int32_t a, int32_t b, uint32_t tag)
{
	struct guest_message m = { op, a, b, tag };

	assert_int_equal(send(s->inner_fd, &m, sizeof(m), 0), sizeof(m));
	box_on_control(&s->b);
}

static void test_tags(void **state)
{
	struct scene *s = *state;
	int one = add_client(s, 1), two = add_client(s, 2);
	struct control_message answer;

	say(s, GUEST_EXITED, 7 << 8, 0, 99); /* nobody's */
	say(s, GUEST_EXITED, 7 << 8, 0, UINT32_MAX);
	say(s, GUEST_READY, -1, -1, 1);
	say(s, 4711, 1, 2, 2);
	assert_int_equal(recv(one, &answer, sizeof(answer), 0), -1);
	assert_int_equal(recv(two, &answer, sizeof(answer), 0), -1);
	assert_false(s->b.exited || s->b.dead || s->b.failed);
	say(s, GUEST_EXITED, 7 << 8, 0, 2);
	assert_int_equal(recv(one, &answer, sizeof(answer), 0), -1);
	assert_int_equal(recv(two, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.op, CONTROL_EXITED);
	assert_int_equal(answer.a, 7);
	say(s, GUEST_EXITED, 9 << 8, 0, 2); /* twice */
	assert_int_equal(recv(two, &answer, sizeof(answer), 0), -1);
	say(s, GUEST_FAILED, INT32_MIN, INT32_MAX, 1);
	assert_int_equal(recv(one, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.op, CONTROL_FAILED);
	close(one);
	close(two);
}

static void test_descriptors_are_not_taken(void **state)
{
	struct scene *s = *state;
	struct guest_message m = { .op = GUEST_READY };
	size_t before = open_fds();
	int fds[3] = { 0, 1, 2 };

	for (int i = 0; i < 50; i++) {
		assert_int_equal(io_send_fds(s->inner_fd, &m, sizeof(m), fds, 3), 0);
		box_on_control(&s->b);
	}
	assert_int_equal(open_fds(), before);
	assert_false(s->b.dead);
}

static void test_noise(void **state)
{
	struct scene *s = *state;
	int one = add_client(s, 1);
	unsigned seed = 42;

	for (int i = 0; i < 20000; i++) {
		struct guest_message m = { (uint32_t)rand_r(&seed) % 80, (int32_t)rand_r(&seed),
					   (int32_t)rand_r(&seed), (uint32_t)rand_r(&seed) % 4 };

		if (m.tag == 0)
			m.tag = 3;
		assert_int_equal(send(s->inner_fd, &m, sizeof(m), 0), sizeof(m));
		box_on_control(&s->b);
	}
	assert_false(s->b.dead || s->b.exited || s->b.failed);
	close(one);
}

static void test_lengths(void **state)
{
	struct scene *s = *state;
	static const size_t lengths[] = { 1, 4, 12, 15, 17, 64, 4096 };
	char bytes[4096] = { 1 };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		s->b.dead = false;
		assert_int_equal(send(s->inner_fd, bytes, lengths[i], 0), (ssize_t)lengths[i]);
		box_on_control(&s->b);
		/* too long is cut off to a message; too short is the end of a peer that cannot be
		 * believed */
		assert_int_equal(s->b.dead, lengths[i] < sizeof(struct guest_message));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tags, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptors_are_not_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_noise, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lengths, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

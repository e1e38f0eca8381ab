/*
 * The turns of a connection in ward-keys (keys/keys_conn.c), its steps and its TLS played: work
 * that is left when a turn is over is done in another one, although no descriptor has anything new
 * to tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "keys/keys_conn.h"
#include "keys/keys_h2.h"

static unsigned work_left, steps;

bool up_step(struct keys *k, struct conn *c)
{
	(void)k;
	(void)c;
	steps++;
	return work_left && work_left--;
}

bool down_step(struct keys *k, struct conn *c)
{
	(void)k;
	(void)c;
	return false;
}

struct tls_up *tls_up_new(struct tls_trust *t, int fd, const struct host *host, uint16_t port,
			  enum tls_alpn offer)
{
	static char some[8] __attribute__((aligned(16)));

	(void)t;
	(void)fd;
	(void)host;
	(void)port;
	(void)offer;
	return (struct tls_up *)some;
}

enum tls_say tls_up_handshake(struct tls_up *u)
{
	(void)u;
	return TLS_DONE;
}

enum tls_alpn tls_up_alpn(const struct tls_up *u)
{
	(void)u;
	return TLS_ALPN_HTTP1;
}

enum tls_say tls_up_write(struct tls_up *u, const void *bytes, size_t n, size_t *ret_n)
{
	(void)u;
	(void)bytes;
	*ret_n = n;
	return TLS_DONE;
}

const char *tls_up_why(const struct tls_up *u)
{
	(void)u;
	return "";
}

void tls_up_end(struct tls_up *u)
{
	(void)u;
}

void tls_up_free(struct tls_up *u)
{
	(void)u;
}

bool down_release(struct keys *k, struct conn *c, uint64_t now)
{
	(void)k;
	(void)c;
	(void)now;
	return false;
}

bool keys_h2_release(struct keys *k, struct conn *c, uint64_t now)
{
	(void)k;
	(void)c;
	(void)now;
	return false;
}

struct keys_h2 *keys_h2_new(struct keys *k, struct conn *c)
{
	(void)k;
	(void)c;
	return NULL;
}

void keys_h2_free(struct keys *k, struct keys_h2 *h)
{
	(void)k;
	(void)h;
}

bool keys_h2_step(struct keys *k, struct conn *c)
{
	(void)k;
	(void)c;
	return false;
}

bool keys_h2_is_done(const struct keys_h2 *h)
{
	(void)h;
	return true;
}

void ask_clear(struct keys *k, struct ask *a)
{
	(void)k;
	(void)a;
}

void ask_words(struct buf *out, const char *why)
{
	buf_puts(out, why);
}

static void test_work_that_is_left(void **state)
{
	struct keys k = { .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	struct keys_open open = { .port = 443, .offer = TLS_ALPN_HTTP1, .host_len = 8 };
	struct epoll_event event;
	unsigned turns = 0, before;
	int front[2], server[2];
	char greeting[16];

	(void)state;
	memcpy(open.host, "web.test", 8);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, front), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, server), 0);
	conn_open(&k, &open, server[0], front[0]);
	assert_int_equal(k.conn_count, 1);
	work_left = 1000; /* several turns, whatever a turn is */
	conn_ready(&k, k.conns);
	assert_true(work_left > 0);
	assert_true(recv(front[1], greeting, sizeof(greeting), 0) > 0);
	while (work_left && turns++ < 1000 && epoll_wait(k.epoll_fd, &event, 1, 100) == 1)
		conn_ready(&k, event.data.ptr);
	assert_int_equal(work_left, 0);
	/* and then it is idle: at most the turn that sees that there is nothing left */
	for (before = steps; epoll_wait(k.epoll_fd, &event, 1, 0) == 1 && steps < before + 10;)
		conn_ready(&k, event.data.ptr);
	assert_in_range(steps - before, 0, 2);
	close(front[1]);
	conn_ready(&k, k.conns);
	assert_int_equal(k.conn_count, 0);
	conn_free_dead(&k);
	close(server[1]);
	close(k.epoll_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_work_that_is_left) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

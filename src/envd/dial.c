/*
 * Connections to ports of the sandbox. In: a stream and a port. Out: a TCP connection to the
 * sandbox's own loopback, 127.0.0.1 and then ::1, and its bytes in both directions. It is made
 * inside, so it reaches what programs inside reach, and nothing else. Where nothing listens on the
 * code interpreter's port, that one is started.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "envd/call.h"
#include "envd/interpreter.h"

#define CHUNK 16384

static int dial(unsigned port)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port),
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&four, sizeof(four)) == 0)
		return fd;
	own_close_fd(&fd);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&six, sizeof(six)) == 0)
		return fd;
	own_close_fd(&fd);
	return -1;
}

static int dial_or_start(unsigned port)
{
	int fd = dial(port);

	return fd < 0 && port == INTERPRETER_PORT && interpreter_start(NULL) ? dial(port) : fd;
}

struct way {
	struct stream *stream;
	int fd;
};

/* From the stream to the program. */
static void *go_in(void *argument)
{
	struct way *w = argument;
	char bytes[CHUNK];
	ssize_t n;

	while ((n = stream_read(w->stream, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0; at < n;) {
			ssize_t some = send(w->fd, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);

			if (some < 0) {
				shutdown(w->fd, SHUT_RDWR);
				return NULL;
			}
			at += some;
		}
	shutdown(w->fd, n == 0 ? SHUT_WR : SHUT_RDWR);
	return NULL;
}

void dial_serve(struct stream *s, unsigned port)
{
	struct way w = { s, dial_or_start(port) };
	char bytes[CHUNK];
	pthread_t other;
	ssize_t n;

	if (w.fd < 0 || pthread_create(&other, NULL, go_in, &w) != 0) {
		stream_head(s, 502, ENVD_NOTHING, 0);
		stream_end(s);
		own_close_fd(&w.fd);
		return;
	}
	stream_head(s, 200, ENVD_BYTES, ENVD_LENGTH_UNKNOWN);
	while ((n = recv(w.fd, bytes, sizeof(bytes), 0)) > 0)
		if (stream_write(s, bytes, (size_t)n) < 0)
			break;
	if (n == 0)
		stream_end(s);
	else
		stream_reset(s);
	pthread_join(other, NULL);
	own_close_fd(&w.fd);
}

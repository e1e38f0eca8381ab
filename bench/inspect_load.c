/*
 * The client of inspection's bench: HTTPS over kept connections.
 *
 *   inspect-load WHAT HOST PORT COUNT [PROXY_PORT] with a port, through the HTTP proxy there
 *   (CONNECT)
 *
 * WHAT is rate (requests a second, from eight connections), wait (microseconds to a whole answer,
 * the median of one connection's), fresh (connections a second with one request each, from eight
 * threads), up or down (MiB a second of one connection, in requests of 16 MiB).
 *
 * It verifies the server with OpenSSL's default paths (SSL_CERT_FILE). It says "ready" when all
 * connections are open and have had an answer, waits for a line, measures, prints the number, and
 * keeps its connections until standard input ends: so whoever started it can look at the relay's
 * processes before and after.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define BODY (16 << 20)
#define BLOCK (64 * 1024)

struct conn {
	SSL *ssl;
	char head[4096], block[BLOCK];
};

static char *host, *port, *proxy;
static int count;
static SSL_CTX *context;
static struct conn conns[THREADS];
static char get[512], put[512], down[512];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "inspect-load: %s: %s\n", what,
		ERR_peek_error() ? ERR_reason_error_string(ERR_peek_last_error())
				 : strerror(errno));
	exit(1);
}

static int connect_there(void)
{
	struct addrinfo want = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	char line[1024];
	int fd, on = 1;
	size_t n = 0;

	if (getaddrinfo(proxy ? "127.0.0.1" : host, proxy ? proxy : port, &want, &found) != 0)
		die("name");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		die("connect");
	freeaddrinfo(found);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!proxy)
		return fd;
	snprintf(line, sizeof(line), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port,
		 host, port);
	if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		die("CONNECT");
	while (n < sizeof(line) - 1 && recv(fd, line + n, 1, 0) == 1) {
		line[++n] = '\0';
		if (n >= 4 && strcmp(line + n - 4, "\r\n\r\n") == 0)
			break;
	}
	if (n < 12 || strncmp(line + 8, " 200", 4) != 0)
		die("the proxy's answer");
	return fd;
}

static void open_conn(struct conn *c)
{
	static const unsigned char alpn[] = "\10http/1.1";

	c->ssl = SSL_new(context);
	if (!c->ssl || SSL_set_fd(c->ssl, connect_there()) != 1 ||
	    SSL_set1_host(c->ssl, host) != 1 || SSL_set_tlsext_host_name(c->ssl, host) != 1 ||
	    SSL_set_alpn_protos(c->ssl, alpn, sizeof(alpn) - 1) != 0 || SSL_connect(c->ssl) != 1)
		die("TLS");
}

static void close_conn(struct conn *c)
{
	int fd = SSL_get_fd(c->ssl);

	SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	close(fd);
}

static void send_all(struct conn *c, const void *bytes, size_t n)
{
	if (SSL_write(c->ssl, bytes, (int)n) != (int)n)
		die("request");
}

/* One answer, to its end: it must be a 200 with a length. */
static void take_answer(struct conn *c)
{
	size_t n = 0, left;
	char *end = NULL, *length;

	while (!end && n < sizeof(c->head) - 1) {
		int got = SSL_read(c->ssl, c->head + n, (int)(sizeof(c->head) - 1 - n));

		if (got <= 0)
			die("answer");
		n += (size_t)got;
		c->head[n] = '\0';
		end = strstr(c->head, "\r\n\r\n");
	}
	length = end ? strcasestr(c->head, "\ncontent-length:") : NULL;
	if (!length || length > end || strncmp(c->head + 8, " 200", 4) != 0) {
		fprintf(stderr, "inspect-load: the answer is %.60s\n", c->head);
		exit(1);
	}
	left = strtoul(length + 16, NULL, 10) - (n - (size_t)(end + 4 - c->head));
	while (left) {
		int got = SSL_read(c->ssl, c->block, left < BLOCK ? (int)left : BLOCK);

		if (got <= 0)
			die("answer");
		left -= (size_t)got;
	}
}

static void ask(struct conn *c, const char *request)
{
	send_all(c, request, strlen(request));
	take_answer(c);
}

static void *many(void *argument)
{
	struct conn *c = argument;

	for (int i = 0; i < count / THREADS; i++)
		ask(c, get);
	return NULL;
}

static void *many_fresh(void *argument)
{
	struct conn *c = argument;

	for (int i = 0; i < count / THREADS; i++) {
		open_conn(c);
		ask(c, get);
		close_conn(c);
	}
	return NULL;
}

static double all_threads(void *(*work)(void *))
{
	pthread_t threads[THREADS];
	double began = now();

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, &conns[i]) != 0)
			die("thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return count / THREADS * THREADS / (now() - began);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double wait_one(void)
{
	double *times = calloc((size_t)count, sizeof(*times));

	for (int i = 0; times && i < count; i++) {
		double began = now();

		ask(&conns[0], get);
		times[i] = now() - began;
	}
	qsort(times, (size_t)count, sizeof(*times), by_value);
	return times[count / 2] * 1e6;
}

static double bulk(bool up)
{
	double began = now();
	char *block = calloc(1, BLOCK);

	for (size_t i = 0; i < BLOCK; i++)
		/* anything but one byte again and again */
		block[i] = (char)(i * 2654435761u >> 13);
	for (int i = 0; i < count; i += BODY >> 20) {
		send_all(&conns[0], up ? put : down, strlen(up ? put : down));
		for (int n = 0; up && n < BODY; n += BLOCK)
			send_all(&conns[0], block, BLOCK);
		take_answer(&conns[0]);
	}
	return count / (now() - began);
}

int main(int argc, char **argv)
{
	char line[16];
	double number;
	int warm;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: inspect-load rate|wait|fresh|up|down HOST PORT COUNT "
				"[PROXY_PORT]\n");
		return 2;
	}
	host = argv[2];
	port = argv[3];
	count = atoi(argv[4]);
	proxy = argc == 6 ? argv[5] : NULL;
	snprintf(get, sizeof(get),
		 "GET /small HTTP/1.1\r\nHost: %s\r\nUser-Agent: inspect-load\r\nAccept: "
		 "*/*\r\n\r\n",
		 host);
	snprintf(down, sizeof(down), "GET /large HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	snprintf(put, sizeof(put),
		 "POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nContent-Type: "
		 "application/octet-stream\r\n\r\n",
		 host, BODY);
	context = SSL_CTX_new(TLS_client_method());
	if (!context || SSL_CTX_set_default_verify_paths(context) != 1)
		die("context");
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	warm = strcmp(argv[1], "rate") == 0 ? THREADS : 1;
	for (int i = 0; i < warm; i++) {
		open_conn(&conns[i]);
		ask(&conns[i], get);
	}
	if (strcmp(argv[1], "fresh") == 0)
		close_conn(&conns[0]);
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (strcmp(argv[1], "rate") == 0)
		number = all_threads(many);
	else if (strcmp(argv[1], "fresh") == 0)
		number = all_threads(many_fresh);
	else if (strcmp(argv[1], "wait") == 0)
		number = wait_one();
	else
		number = bulk(strcmp(argv[1], "up") == 0);
	printf("%.2f\n", number);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}

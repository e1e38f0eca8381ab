/*
 * Load for the network's bench: net-load serve PORT, or net-load WHAT HOST PORT COUNT. serve answers each connection on
 * 127.0.0.1: a first byte 'p' with one byte, 'd' with as many MiB as the next four bytes say, 'u' by counting what comes.
 * WHAT is ttfb (connections one after another, median microseconds to the first byte), rate (connections a second, from eight
 * threads), down or up (MiB a second of one connection). Prints one number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (256 * 1024)
#define THREADS 8

static struct sockaddr_storage there;
static socklen_t there_n;
static int count;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* -- the server */

static void send_much(int fd, uint32_t mib)
{
	char *block = calloc(1, BLOCK);

	for (uint64_t left = (uint64_t)mib << 20; block && left;) {
		ssize_t n = send(fd, block, left < BLOCK ? left : BLOCK, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		left -= (uint64_t)n;
	}
	free(block);
}

static void *answer(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char *block = malloc(BLOCK);
	char word[5];
	ssize_t n = recv(fd, word, 1, 0);

	if (n == 1 && word[0] == 'p')
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
	if (n == 1 && word[0] == 'd' && recv(fd, word + 1, 4, MSG_WAITALL) == 4) {
		uint32_t mib;

		memcpy(&mib, word + 1, 4);
		send_much(fd, mib);
	}
	if (n == 1 && word[0] == 'u') {
		while (block && recv(fd, block, BLOCK, 0) > 0)
			;
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
	}
	free(block);
	close(fd);
	return NULL;
}

static _Noreturn void serve(int port)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	pthread_attr_t attributes;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, 4096) < 0)
		die("listen");
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 65536);
	printf("up\n");
	fflush(stdout);
	for (;;) {
		int client = accept(fd, NULL, NULL);
		pthread_t thread;

		if (client < 0)
			continue;
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (pthread_create(&thread, &attributes, answer, (void *)(intptr_t)client) != 0)
			close(client);
	}
}

/* -- the client */

static int connect_there(void)
{
	int fd = socket(there.ss_family, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&there, there_n) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static double one(void)
{
	double began = now();
	int fd = connect_there();
	char byte;

	if (send(fd, "p", 1, MSG_NOSIGNAL) != 1 || recv(fd, &byte, 1, 0) != 1)
		die("first byte");
	began = now() - began;
	close(fd);
	return began;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ttfb(void)
{
	double *times = calloc((size_t)count, sizeof(*times));

	for (int i = 0; i < count; i++)
		times[i] = one();
	qsort(times, (size_t)count, sizeof(*times), by_value);
	return times[count / 2] * 1e6;
}

static void *many(void *unused)
{
	(void)unused;
	for (int i = 0; i < count / THREADS; i++)
		one();
	return NULL;
}

static double rate(void)
{
	pthread_t threads[THREADS];
	double began = now();

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, many, NULL) != 0)
			die("thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return count / (now() - began);
}

static double bulk(int up)
{
	char *block = calloc(1, BLOCK), word[5] = { up ? 'u' : 'd' };
	uint32_t mib = (uint32_t)count;
	int fd = connect_there();
	uint64_t got = 0;
	double began = now();
	ssize_t n;

	memcpy(word + 1, &mib, 4);
	if (send(fd, word, up ? 1 : 5, 0) < 1)
		die("send");
	if (up) {
		send_much(fd, mib);
		shutdown(fd, SHUT_WR);
		if (recv(fd, word, 1, 0) != 1)
			die("the end");
	}
	while (!up && (n = recv(fd, block, BLOCK, 0)) > 0)
		got += (uint64_t)n;
	if (!up && got != (uint64_t)mib << 20)
		die("short");
	return count / (now() - began);
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(atoi(argv[2]));
	if (argc != 5 || getaddrinfo(argv[2], argv[3], &hints, &found) != 0) {
		fprintf(stderr, "net-load: serve PORT, or ttfb|rate|down|up HOST PORT COUNT\n");
		return 2;
	}
	memcpy(&there, found->ai_addr, found->ai_addrlen);
	there_n = found->ai_addrlen;
	count = atoi(argv[4]);
	one();	/* whatever is made on first use is there from now on */
	printf("%.2f\n", strcmp(argv[1], "ttfb") == 0 ? ttfb() : strcmp(argv[1], "rate") == 0 ? rate() : bulk(argv[1][0] == 'u'));
	return 0;
}

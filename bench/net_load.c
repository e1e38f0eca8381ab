/*
 * Load for the network's bench.
 *
 *   net-load serve PORT                                    the server, on 127.0.0.1
 *   net-load WHAT HOST PORT COUNT [PROXY_PORT [HEADER]] a client; with a port, through the HTTP
 *   proxy there (CONNECT)
 *   net-load without-nft CMD... CMD on what looks like a kernel without nf_tables
 *
 * The first byte of a connection says what the server does: 'p' is answered with one byte and the
 * end; 'd' and 'u', with four bytes of MiB behind them, send or take as much, and the connection
 * stays; 'i' is answered with one byte, and it stays. WHAT is ttfb (connections one after another,
 * median microseconds to the first byte), rate (connections a second, from eight threads), down or
 * up (MiB a second of one connection), idle (COUNT connections that do nothing).
 *
 * The client says "ready", waits for a line, measures, and prints the number, the seconds of
 * processor that it used itself and its congestion control; then it keeps its connections until
 * standard input ends. So whoever started it can look at the relay's processes before and after.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (256 * 1024)
#define THREADS 8

static struct sockaddr_storage there;
static socklen_t there_n;
static int count;
static char head[2048]; /* what a proxy is told first; empty: none */

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

static uint64_t take_much(int fd, uint32_t mib)
{
	char *block = malloc(BLOCK);
	uint64_t got = 0, all = (uint64_t)mib << 20;
	ssize_t n;

	while (block && got < all &&
	       (n = recv(fd, block, all - got < BLOCK ? all - got : BLOCK, 0)) > 0)
		got += (uint64_t)n;
	free(block);
	return got;
}

static void *answer(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char word = 0;
	uint32_t mib = 0;
	ssize_t n = recv(fd, &word, 1, 0);

	if (n == 1 && (word == 'd' || word == 'u') && recv(fd, &mib, 4, MSG_WAITALL) == 4) {
		if (word == 'd')
			send_much(fd, mib);
		else
			take_much(fd, mib);
	}
	if (n == 1 && word != 'd')
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
	if (word != 'p')
		(void)!recv(fd, &word, 1, 0); /* the client's end */
	close(fd);
	return NULL;
}

static _Noreturn void serve(int port)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
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

/* CONNECT, and its answer up to the empty line. */
static void ask_proxy(int fd)
{
	char answer[4096];
	size_t n = 0;

	if (send(fd, head, strlen(head), MSG_NOSIGNAL) < 0)
		die("CONNECT");
	while (n < sizeof(answer) - 1) {
		ssize_t got = recv(fd, answer + n, sizeof(answer) - 1 - n, 0);

		if (got <= 0)
			die("the proxy's answer");
		n += (size_t)got;
		answer[n] = '\0';
		if (strstr(answer, "\r\n\r\n")) {
			if (strncmp(answer + 8, " 200", 4) == 0)
				return;
			break;
		}
	}
	fprintf(stderr, "net-load: the proxy says %.40s\n", answer);
	exit(1);
}

static int connect_there(void)
{
	int fd = socket(there.ss_family, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&there, there_n) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (*head)
		ask_proxy(fd);
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
	char word[5] = { up ? 'u' : 'd' };
	uint32_t mib = (uint32_t)count;
	int fd = connect_there();
	double began = now();

	memcpy(word + 1, &mib, 4);
	if (send(fd, word, 5, 0) != 5)
		die("send");
	if (up)
		send_much(fd, mib);
	if (up ? recv(fd, word, 1, 0) != 1 : take_much(fd, mib) != (uint64_t)mib << 20)
		die("the end");
	return count / (now() - began);
}

static double idle(void)
{
	double began = now();
	char byte;

	for (int i = 0; i < count; i++) {
		int fd = connect_there();

		if (send(fd, "i", 1, MSG_NOSIGNAL) != 1 || recv(fd, &byte, 1, 0) != 1)
			die("idle");
	}
	return count / (now() - began);
}

/* -- a kernel without nf_tables */

#define DO(code, k) BPF_STMT(code, k)
#define UNLESS(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, skip)

static int without_nft(char **argv)
{
	struct sock_filter code[] = {
		DO(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		UNLESS(SYS_socket, 5),
		DO(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		UNLESS(AF_NETLINK, 3),
		DO(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		UNLESS(NETLINK_NETFILTER, 1),
		DO(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
		DO(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if ((getuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		die("seccomp");
	execvp(argv[0], argv);
	die(argv[0]);
	return 1;
}

/* -- the client's frame */

static double cpu_seconds(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static const char *congestion_control(char name[16])
{
	int fd = socket(there.ss_family, SOCK_STREAM, 0);
	socklen_t n = 15;

	if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) < 0)
		strcpy(name, "?");
	close(fd);
	return name;
}

static double measure(const char *what)
{
	if (strcmp(what, "ttfb") == 0)
		return ttfb();
	if (strcmp(what, "rate") == 0)
		return rate();
	return strcmp(what, "idle") == 0 ? idle() : bulk(strcmp(what, "up") == 0);
}

static int run(const char *what)
{
	char line[64], name[16] = "";
	double used, number;

	one(); /* whatever is made on first use is there from now on */
	printf("ready\n");
	fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
	used = cpu_seconds();
	number = measure(what);
	used = cpu_seconds() - used;
	printf("%.2f %.3f %s\n", number, used, congestion_control(name));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	const char *host = argc > 5   ? "127.0.0.1"
			   : argc > 2 ? argv[2]
				      : "",
		   *port = argc > 5   ? argv[5]
			   : argc > 3 ? argv[3]
				      : "";

	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(atoi(argv[2]));
	if (argc > 2 && strcmp(argv[1], "without-nft") == 0)
		return without_nft(argv + 2);
	if (argc < 5 || argc > 7 || getaddrinfo(host, port, &hints, &found) != 0) {
		fprintf(stderr, "net-load: serve PORT, ttfb|rate|down|up|idle HOST PORT COUNT "
				"[PROXY_PORT [HEADER]], "
				"or without-nft CMD...\n");
		return 2;
	}
	if (argc > 5)
		snprintf(head, sizeof(head), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n%s%s\r\n",
			 argv[2], argv[3], argv[2], argv[3], argc > 6 ? argv[6] : "",
			 argc > 6 ? "\r\n" : "");
	memcpy(&there, found->ai_addr, found->ai_addrlen);
	there_n = found->ai_addrlen;
	count = atoi(argv[4]);
	return run(argv[1]);
}

/* What the conformance suite has done inside: one word and its arguments. Builds for Linux, and for
 * WASI, where some of it does not exist. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifndef __wasi__
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#endif

static int say_errno(void)
{
	const struct {
		int code;
		const char *name;
	} names[] = {
		{ ENOENT, "ENOENT" },
		{ EACCES, "EACCES" },
		{ EPERM, "EPERM" },
		{ EROFS, "EROFS" },
		{ EXDEV, "EXDEV" },
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ ECONNRESET, "ECONNRESET" },
		{ ENOSPC, "ENOSPC" },
#ifdef ENOTCAPABLE
		{ ENOTCAPABLE, "ENOTCAPABLE" },
#endif
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == errno) {
			printf("%s\n", names[i].name);
			return 1;
		}
	printf("%s\n", strerror(errno));
	return 1;
}

static int copy(int from, int to)
{
	static char bytes[65536];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		for (ssize_t done = 0, k; done < n; done += k) {
			k = write(to, bytes + done, (size_t)(n - done));
			if (k <= 0)
				return say_errno();
		}
	return n < 0 ? say_errno() : 0;
}

static int do_read(char **a)
{
	int fd = open(a[0], O_RDONLY);

	return fd < 0 ? say_errno() : copy(fd, 1);
}

static int do_write(char **a)
{
	int fd = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, a[1], strlen(a[1])) < 0 || close(fd) < 0)
		return say_errno();
	return 0;
}

static int do_list(char **a)
{
	DIR *d = opendir(a[0]);
	struct dirent *e;

	if (!d)
		return say_errno();
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.'))
			printf("%s\n", e->d_name);
	return 0;
}

static int do_remove(char **a)
{
	return unlink(a[0]) < 0 ? say_errno() : 0;
}

static int do_env(char **a)
{
	const char *value = getenv(a[0]);

	printf("%s\n", value ? value : "(none)");
	return 0;
}

static int do_where(char **a)
{
	char path[4096];

	(void)a;
#ifdef __wasi__
	printf("%s\n", getenv("PWD")); /* there is no directory of a process */
	return 0;
#endif
	printf("%s\n", getcwd(path, sizeof(path)) ? path : "?");
	return 0;
}

static int do_args(char **a)
{
	for (; *a; a++)
		printf("[%s]", *a);
	printf("\n");
	return 0;
}

static int do_alloc(char **a)
{
	size_t n = (size_t)atoi(a[0]) << 20;
	char *bytes = malloc(n);

	if (!bytes) {
		printf("refused\n");
		return 1;
	}
	for (size_t i = 0; i < n; i += 4096)
		bytes[i] = (char)i;
	printf("%d\n", bytes[n / 2] + 1);
	return 0;
}

static int do_exit(char **a)
{
	exit(atoi(a[0]));
}

static int do_cat(char **a)
{
	(void)a;
	return copy(0, 1);
}

static int do_error(char **a)
{
	fprintf(stderr, "%s\n", a[0]);
	return 0;
}

static int do_sleep(char **a)
{
	struct timespec wait = { .tv_sec = atoi(a[0]) };

	printf("up\n");
	fflush(stdout);
	for (time_t end = time(NULL) + wait.tv_sec; time(NULL) < end;)
		nanosleep(&wait, NULL); /* some runtimes wake up when they were paused */
	return 0;
}

static int do_spin(char **a)
{
	(void)a;
	for (volatile unsigned i = 1; i; i += 2)
		;
	return 0;
}

static int do_flood(char **a)
{
	static char line[4096];

	memset(line, 'x', sizeof(line));
	for (long n = atol(a[0]); n > 0; n -= (long)sizeof(line))
		if (write(1, line, sizeof(line)) < 0)
			return say_errno();
	return 0;
}

static int do_tty(char **a)
{
	(void)a;
	printf("%d %d %d\n", isatty(0), isatty(1), isatty(2));
	return 0;
}

#ifndef __wasi__
static void on_signal(int number)
{
	(void)number;
	static const char word[] = "asked to end\n";

	(void)!write(1, word, sizeof(word) - 1);
	_exit(9);
}

static int do_ends(char **a)
{
	signal(SIGTERM, on_signal);
	return do_sleep(a);
}

static int do_forks(char **a)
{
	int n = 0, most = atoi(a[0]);

	for (; n < most; n++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (!pid) {
			sleep(20);
			_exit(0);
		}
	}
	printf("%d\n", n);
	fflush(stdout);
	kill(0, SIGKILL);
	return 0;
}

static int do_kernel(char **a)
{
	struct utsname name;

	(void)a;
	uname(&name);
	printf("%s\n", name.release);
	return 0;
}

static int do_id(char **a)
{
	(void)a;
	printf("%d\n", (int)getuid());
	return 0;
}

/* Speaks with the world's echo server. */
static int do_connect(char **a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET }, *list;
	int r = getaddrinfo(a[0], a[1], &hints, &list), fd;
	char answer[64] = "";

	if (r) {
		printf("no such name\n");
		return 1;
	}
	fd = socket(list->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) < 0 ||
	    write(fd, "hello", 5) < 0 || read(fd, answer, sizeof(answer) - 1) < 0)
		return say_errno();
	printf("got %s\n", answer);
	return 0;
}
#endif

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		int arguments;
		int (*act)(char **a);
	} acts[] = {
		{ "read", 1, do_read },       { "write", 2, do_write },
		{ "list", 1, do_list },       { "remove", 1, do_remove },
		{ "env", 1, do_env },         { "where", 0, do_where },
		{ "args", 0, do_args },       { "alloc", 1, do_alloc },
		{ "exit", 1, do_exit },       { "cat", 0, do_cat },
		{ "error", 1, do_error },     { "sleep", 1, do_sleep },
		{ "spin", 0, do_spin },       { "flood", 1, do_flood },
		{ "tty", 0, do_tty },
#ifndef __wasi__
		{ "ends", 1, do_ends },       { "forks", 1, do_forks },
		{ "kernel", 0, do_kernel },   { "id", 0, do_id },
		{ "connect", 2, do_connect },
#endif
	};

	for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(argv[1], acts[i].word) == 0 && argc - 2 >= acts[i].arguments)
			return acts[i].act(argv + 2);
	fprintf(stderr, "conform: no such word\n");
	return 99;
}

/*
 * Times how long programs take from spawn to reaped, many against each other in one run.
 *
 * In: a file of contenders, one a line, fields apart by tabs:
 *	NAME  EVERY  FD_FILE|-  NS_FILE|-  ARGV...
 * EVERY: take part in each EVERY-th round (slow ones less often). FD_FILE: is descriptor 9 of the
 * program, rewound before each start (bwrap reads its filter from there). NS_FILE: a mount
 * namespace to enter first. Out, on standard output, one line a contender: NAME <tab> "ok" or what
 * went wrong <tab> nanoseconds...
 *
 *	spawn latency ROUNDS FILE	round-robin, so that a noisy moment hits everybody
 *	spawn rate WORKERS COUNT FILE	each contender alone: COUNT starts with WORKERS in flight;
 *					prints failures, total ns
 *
 * The program measures with vfork, execve and wait4 and touches nothing in between: what is timed
 * is the contender, not an interpreter. It runs with the caller's rights and trusts its input.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONTENDERS 32
#define MAX_ARGS 96
#define WARM_UP 3
#define PASSED_FD 9

struct contender {
	char *name;
	unsigned every;
	int fd, ns_fd;
	char *argv[MAX_ARGS];
	uint64_t *ns;
	size_t count;
	int status; /* of the first start that failed, 0: none did */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static pid_t start(const struct contender *c, int err_fd)
{
	extern char **environ;
	pid_t pid = vfork();

	if (pid)
		return pid;
	if (c->ns_fd >= 0 && setns(c->ns_fd, CLONE_NEWNS))
		_exit(120);
	if (c->fd >= 0 && (dup2(c->fd, PASSED_FD) < 0 || lseek(PASSED_FD, 0, SEEK_SET) < 0))
		_exit(121);
	dup2(err_fd, 1);
	dup2(err_fd, 2);
	execve(c->argv[0], c->argv, environ);
	_exit(122);
}

static int finish(pid_t pid)
{
	int status = -1;
	while (wait4(pid, &status, 0, NULL) < 0 && errno == EINTR)
		;
	return status;
}

static int open_or_none(const char *path)
{
	int fd;
	if (strcmp(path, "-") == 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "spawn: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	return fd;
}

static void parse(char *line, struct contender *c)
{
	char *save = NULL, *field = strtok_r(line, "\t", &save);
	size_t n = 0;

	c->name = field;
	c->every = (unsigned)atoi(strtok_r(NULL, "\t", &save));
	c->fd = open_or_none(strtok_r(NULL, "\t", &save));
	c->ns_fd = open_or_none(strtok_r(NULL, "\t", &save));
	while ((field = strtok_r(NULL, "\t", &save)) && n < MAX_ARGS - 1)
		c->argv[n++] = field;
	if (!n || !c->every) {
		fprintf(stderr, "spawn: bad line for %s\n", c->name);
		exit(2);
	}
}

static size_t read_contenders(const char *path, struct contender *all, size_t rounds)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0, n = 0;

	if (!f) {
		fprintf(stderr, "spawn: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (n < MAX_CONTENDERS && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!*line)
			continue;
		parse(strdup(line), &all[n]);
		all[n].ns = calloc(rounds + 1, sizeof(uint64_t));
		if (!all[n].ns)
			exit(2);
		n++;
	}
	free(line);
	fclose(f);
	return n;
}

/* Starts it a few times before the measuring; what it says when it fails goes to standard error. */
static void warm_up(struct contender *c)
{
	for (int i = 0; i < WARM_UP && !c->status; i++)
		c->status = finish(start(c, 2));
}

static void print(const struct contender *c)
{
	printf("%s\t", c->name);
	if (c->status)
		printf("failed with status %d",
		       WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status));
	else
		printf("ok");
	for (size_t i = 0; i < c->count; i++)
		printf("\t%llu", (unsigned long long)c->ns[i]);
	putchar('\n');
}

static void latency(struct contender *all, size_t n, size_t rounds, int null_fd)
{
	for (size_t i = 0; i < n; i++)
		warm_up(&all[i]);
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < n; i++) {
			struct contender *c = &all[i];
			uint64_t before;
			int status;

			if (c->status || round % c->every)
				continue;
			before = now_ns();
			status = finish(start(c, null_fd));
			c->ns[c->count++] = now_ns() - before;
			if (status)
				c->status = status;
		}
	for (size_t i = 0; i < n; i++)
		print(&all[i]);
}

static void rate(struct contender *c, size_t workers, size_t count, int null_fd)
{
	size_t in_flight = 0, started = 0;
	uint64_t failures = 0, before;

	warm_up(c);
	before = now_ns();
	while (!c->status && (started < count || in_flight)) {
		int status;
		if (started < count && in_flight < workers) {
			if (start(c, null_fd) > 0)
				in_flight++;
			else
				failures++;
			started++;
			continue;
		}
		if (wait4(-1, &status, 0, NULL) > 0) {
			in_flight--;
			failures += status != 0;
		}
	}
	c->ns[0] = failures;
	c->ns[1] = now_ns() - before;
	c->count = 2;
	print(c);
}

int main(int argc, char **argv)
{
	static struct contender all[MAX_CONTENDERS];
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t n;

	if (null_fd >= 0 && argc == 4 && strcmp(argv[1], "latency") == 0) {
		size_t rounds = (size_t)atol(argv[2]);
		n = read_contenders(argv[3], all, rounds);
		latency(all, n, rounds, null_fd);
		return 0;
	}
	if (null_fd >= 0 && argc == 5 && strcmp(argv[1], "rate") == 0) {
		n = read_contenders(argv[4], all, 2);
		for (size_t i = 0; i < n; i++)
			rate(&all[i], (size_t)atol(argv[2]), (size_t)atol(argv[3]), null_fd);
		return 0;
	}
	fputs("usage: spawn latency ROUNDS FILE | spawn rate WORKERS COUNT FILE\n", stderr);
	return 2;
}

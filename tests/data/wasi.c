/* What the tests of isolation wasm have a module do beside what conform.c does: one word and its
 * arguments. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return 1;
}

static int show(const char *path)
{
	char bytes[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n < 0)
		return fail(path);
	fwrite(bytes, 1, (size_t)n, stdout);
	return 0;
}

/* By every name that could lead there: as it is, with dots in front, by links that are made here.
 */
static int do_reach(char **a)
{
	char path[4200];

	show(a[0]);
	snprintf(path, sizeof(path), "../../../../../../../../../../../..%s", a[0]);
	show(path);
	snprintf(path, sizeof(path), "sub/../../../../../../../../../../../../..%s", a[0]);
	mkdir("sub", 0755);
	show(path);
	symlink(a[0], "link-absolute");
	show("link-absolute");
	snprintf(path, sizeof(path), "../../../../../../../../../../../..%s", a[0]);
	symlink(path, "link-relative");
	show("link-relative");
	symlink("..", "up1");
	symlink("up1/..", "up2");
	symlink("up2/../../../../../../../..", "up3");
	snprintf(path, sizeof(path), "up3%s", a[0]);
	show(path);
	symlink("/", "top");
	snprintf(path, sizeof(path), "top%s", a[0]);
	show(path);
	snprintf(path, sizeof(path), "sub/stolen");
	rename(a[0], path);
	show(path);
	link(a[0], "hard");
	show("hard");
	printf("done\n");
	return 0;
}

static int do_spoil(char **a)
{
	for (; *a; a++) {
		int fd = open(*a, O_WRONLY | O_TRUNC);

		if (fd < 0 || write(fd, "SPOILED", 7) < 0)
			fail(*a);
		unlink(*a);
		rename(*a, "elsewhere");
		truncate(*a, 0);
	}
	printf("done\n");
	return 0;
}

static int do_trap(char **a)
{
	(void)a;
	fprintf(stderr, "before\n");
	__builtin_trap();
}

static int recurse(volatile int *n)
{
	volatile int here[64] = { *n };

	++*n;
	return recurse(n) + here[*n % 64];
}

static int do_deep(char **a)
{
	volatile int n = 0;

	(void)a;
	return recurse(&n);
}

static int do_outside(char **a)
{
	volatile char *p = (char *)0xfffffff0u;

	(void)a;
	*p = 1;
	return 0;
}

static int do_grow(char **a)
{
	unsigned long pages = 0;

	(void)a;
	while (__builtin_wasm_memory_grow(0, 16) != (unsigned long)-1)
		pages += 16;
	printf("%lu\n", pages);
	return 0;
}

static int do_files(char **a)
{
	struct stat st;
	FILE *f = fopen("dir/file", "w");
	DIR *d;

	(void)a;
	if (f || mkdir("dir", 0755) < 0 || !(f = fopen("dir/file", "w+")))
		return fail("dir/file");
	fputs("0123456789", f);
	fseek(f, 5, SEEK_SET);
	fputs("FIVE", f);
	fclose(f);
	if (truncate("dir/file", 8) < 0 || rename("dir/file", "moved") < 0 ||
	    stat("moved", &st) < 0)
		return fail("moved");
	printf("%lld\n", (long long)st.st_size);
	show("moved");
	printf("\n");
	d = opendir("dir");
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			printf("left: %s\n", e->d_name);
	return rmdir("dir") < 0 ? fail("dir") : 0;
}

static int do_clock(char **a)
{
	struct timespec start, end, wait = { .tv_nsec = 20000000 };
	unsigned char random[16] = { 0 }, zero[16] = { 0 };

	(void)a;
	clock_gettime(CLOCK_MONOTONIC, &start);
	nanosleep(&wait, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	getentropy(random, sizeof(random));
	printf("%d %d %d\n", end.tv_sec > start.tv_sec || end.tv_nsec - start.tv_nsec >= 15000000,
	       memcmp(random, zero, sizeof(zero)) != 0, time(NULL) > 1700000000);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		int (*act)(char **a);
	} acts[] = { { "reach", do_reach }, { "spoil", do_spoil },     { "trap", do_trap },
		     { "deep", do_deep },   { "outside", do_outside }, { "grow", do_grow },
		     { "files", do_files }, { "clock", do_clock } };

	for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(argv[1], acts[i].word) == 0)
			return acts[i].act(argv + 2);
	return 99;
}

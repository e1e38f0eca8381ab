/*
 * run: one command in a sandbox, its output as it comes, its exit code and the report at the end.
 *
 *	cc run.c $(pkg-config --cflags --libs ward) -o run && ./run DIRECTORY CMD...
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ward/ward.h>

static void die(const struct ward_error *e)
{
	fprintf(stderr, "run: %s%s%s\n", e->what, *e->what ? ": " : "", e->why);
	if (*e->remedy)
		fprintf(stderr, "  remedy: %s\n", e->remedy);
	exit(125);
}

/* Copies what is there; closes and forgets a stream that has ended. */
static void copy(struct pollfd *from, int to)
{
	char data[16384];
	ssize_t n;

	if (!from->revents)
		return;
	n = read(from->fd, data, sizeof(data));
	if (n > 0 && write(to, data, (size_t)n) == n)
		return;
	close(from->fd);
	from->fd = -1;
}

int main(int argc, char **argv)
{
	struct pollfd streams[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct ward_spec *spec = ward_spec_new();
	struct ward_error e = { 0 };
	struct ward_box *box;
	char *report;
	int code;

	if (argc < 3 || !spec) {
		fprintf(stderr, "usage: run DIRECTORY CMD...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (ward_spec_workspace(spec, argv[1], &e) < 0 ||
	    ward_spec_set(spec, "resources.timeout_seconds", "60", &e) < 0 ||
	    ward_spec_command(spec, (const char *const *)argv + 2, &e) < 0 ||
	    ward_start(spec, 0, &box, &e) < 0)
		die(&e);
	ward_spec_free(spec);

	close(ward_box_stream(box, 0, NULL)); /* it has nothing to read */
	streams[0].fd = ward_box_stream(box, 1, NULL);
	streams[1].fd = ward_box_stream(box, 2, NULL);
	while (streams[0].fd >= 0 || streams[1].fd >= 0) {
		if (poll(streams, 2, -1) < 0)
			break;
		copy(&streams[0], STDOUT_FILENO);
		copy(&streams[1], STDERR_FILENO);
	}
	if (ward_wait(box, -1, &code, &e) < 0 || ward_result(box, &report, &e) < 0)
		die(&e);
	fprintf(stderr, "%s\n", report);
	ward_free(report);
	ward_box_free(box);
	return code;
}

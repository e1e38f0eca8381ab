/*
 * exec_many: one idle sandbox, and each line of standard input is a shell command that runs in it.
 *
 *	cc exec_many.c $(pkg-config --cflags --libs ward) -o exec_many && printf 'echo a\nexit 3\n' | ./exec_many DIRECTORY
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ward/ward.h>

static void die(const struct ward_error *e)
{
	fprintf(stderr, "exec_many: %s%s%s\n", e->what, *e->what ? ": " : "", e->why);
	exit(125);
}

/* Runs one line; both outputs are one, as the shell makes them. */
static int run_line(struct ward_box *box, const char *line)
{
	const char *const argv[] = { "sh", "-c", "exec 2>&1; eval \"$0\"", line, NULL };
	const char *const env[] = { "FROM=exec_many", NULL };
	struct ward_command command = { .size = sizeof(command), .argv = argv, .env = env };
	struct ward_process *process;
	struct ward_error e = { 0 };
	char data[4096];
	int out, code;
	ssize_t n;

	if (ward_exec(box, &command, &process, &e) < 0)
		die(&e);
	close(ward_process_stream(process, 0, NULL));
	out = ward_process_stream(process, 1, &e);
	while ((n = read(out, data, sizeof(data))) > 0)
		fwrite(data, 1, (size_t)n, stdout);
	close(out);
	if (ward_process_wait(process, -1, &code, &e) < 0)
		die(&e);
	ward_process_free(process);
	return code;
}

int main(int argc, char **argv)
{
	struct ward_spec *spec = ward_spec_new();
	struct ward_error e = { 0 };
	struct ward_box *box;
	char line[4096];

	if (argc != 2 || !spec) {
		fprintf(stderr, "usage: exec_many DIRECTORY\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (ward_spec_workspace(spec, argv[1], &e) < 0 || ward_start(spec, 0, &box, &e) < 0)
		die(&e);
	ward_spec_free(spec);
	while (fgets(line, sizeof(line), stdin)) {
		int code;

		line[strcspn(line, "\n")] = '\0';
		code = run_line(box, line);
		printf("[%d] %s\n", code, line);
	}
	ward_box_free(box); /* ends it */
	return 0;
}

/*
 * The answer ALWAYS on a terminal. In: a question, the policy file. Out: `ward policy add`, run as
 * a process of its own (ward-explain), first to show the difference, then, after a person has said
 * yes to that, to write it. It makes the checks that it makes on the command line, keeps a trusted
 * file trusted, and writes nothing if the difference is another one by then (--expect). Runs in
 * ward with the user's rights, outside of every sandbox; nothing waits for it but always_end().
 */
#include "run/always.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/text.h"
#include "host/program.h"

#define OUT_MAX (256 * 1024)

static void put_words(const struct always *a, const struct question *q, struct strv *argv)
{
	strv_add(argv, "ward-explain");
	strv_add(argv, "policy");
	strv_add(argv, "add");
	strv_add(argv, a->writes ? "--yes" : "--dry-run");
	if (a->writes) {
		strv_add(argv, "--expect");
		strv_add(argv, a->digest);
	}
	if (a->file) {
		strv_add(argv, "--policy");
		strv_add(argv, a->file);
	}
	strv_add(argv, question_field(q));
	strv_add(argv, q->line);
}

int always_begin(struct always *a, const struct question *q, bool write, struct ward_err *e)
{
	auto_fd program_fd = -1, in_fd = -1, out_fd = -1;
	struct program p = { .envp = environ, .dir = a->dir };
	auto_strv argv = { 0 };
	int ends[2], r;

	if (a->pid)
		return ward_fail(e, EBUSY, "the policy file is being changed already");
	if (write && !*a->digest)
		return ward_fail(e, EINVAL, "the change was not shown");
	a->writes = write;
	put_words(a, q, &argv);
	if (argv.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	in_fd = ends[0];
	out_fd = ends[1];
	program_fd = program_open("ward-explain", e);
	if (program_fd < 0)
		return program_fd;
	p.fd = program_fd;
	p.argv = argv.items;
	p.out_fd = out_fd;
	r = fcntl(in_fd, F_SETFL, O_NONBLOCK) < 0 ? ward_fail_errno(e, "cannot make a pipe")
						  : program_start(&p, &a->pid, e);
	if (r < 0)
		return r;
	buf_free(&a->out);
	a->out = (struct buf){ 0 };
	a->out_fd = take_fd(&in_fd);
	return 0;
}

/* True: there is nothing more to come. */
static bool read_some(struct always *a)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(a->out_fd, bytes, sizeof(bytes))) > 0)
		if (a->out.len < OUT_MAX)
			buf_add(&a->out, bytes, (size_t)n);
	return n == 0 || (errno != EAGAIN && errno != EINTR);
}

static void reap(struct always *a, int *ret_status, int flags)
{
	pid_t pid;

	while ((pid = waitpid(a->pid, ret_status, flags)) < 0 && errno == EINTR)
		;
	if (pid == 0)
		return;
	a->pid = 0;
	own_close_fd(&a->out_fd);
}

/* What it has said is escaped; its first line is the error. */
static int fail_as_said(const struct always *a, struct ward_err *e)
{
	static const char before[] = "ward: ";
	const char *said = buf_text(&a->out);

	if (strncmp(said, before, strlen(before)) == 0)
		said += strlen(before);
	return ward_fail(e, ECANCELED, "%.*s", (int)strcspn(said, "\n"),
			 *said ? said : "the policy file was not changed");
}

int always_look(struct always *a, const char **ret_text, struct ward_err *e)
{
	int status = -1;

	if (!a->pid)
		return ward_fail(e, ESRCH, "the policy file was not changed");
	if (!read_some(a))
		return 0;
	reap(a, &status, WNOHANG);
	if (a->pid)
		return 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || a->out.failed ||
	    a->out.len >= OUT_MAX)
		return fail_as_said(a, e);
	sha256_hex(buf_text(&a->out), a->out.len, a->digest);
	*ret_text = buf_text(&a->out);
	return 1;
}

void always_end(struct always *a)
{
	int status;

	if (a->pid && !a->writes)
		(void)kill(a->pid, SIGKILL);
	if (a->pid)
		reap(a, &status, 0);
	buf_free(&a->out);
	a->out = (struct buf){ 0 };
}

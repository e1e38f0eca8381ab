/*
 * The command's output on its way through ward-scan (scan/stream.c). In: the descriptors that the
 * output goes to. Out: pipes in their place, and at the end a note and an event for each kind of
 * secret that was found. The supervisor reads not a byte of the output for that: ward-scan does,
 * locked up, with a pipe, the caller's descriptor and nothing else. If it is killed, the pipe
 * breaks, and nothing more is printed. A terminal is only looked at: what a person sees must not
 * wait, nor be changed under a program that draws it.
 */
#include "run/output_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "event/event.h"
#include "event/result.h"
#include "host/program.h"

#define SAID_MAX 65536
#define WAIT_MS 20

bool output_scan_is_on(const struct plan *p)
{
	return SCAN_MODE(&p->spec->policy, p->spec->policy.cred_scan_output) <= SCAN_LOG;
}

static int start(const struct plan *p, unsigned mode, int in_fd, int out_fd, int say_fd,
		 pid_t *ret_pid, struct ward_err *e)
{
	static const char *const modes[] = { "block", "redact", "log" };
	auto_fd program_fd = program_open("ward-scan", e), nothing = -1;
	char *argv[8] = { (char *)(uintptr_t) "ward-scan", (char *)(uintptr_t) "stream",
			  (char *)(uintptr_t) "--mode",
			  (char *)(uintptr_t)(out_fd < 0 ? "silent" : modes[mode]) };
	static char *const none[] = { NULL };
	struct program program = { .argv = argv, .envp = none, .fd_count = 3 };
	size_t count = 4;

	if (program_fd < 0)
		return -e->code;
	nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nothing < 0)
		return ward_fail_errno(e, "cannot open /dev/null");
	if (mode == SCAN_REDACT && out_fd >= 0)
		argv[count++] = (char *)(uintptr_t) "--redact";
	if (p->spec->policy.cred_scan_personal)
		argv[count++] = (char *)(uintptr_t) "--pii";
	program.fd = program_fd;
	program.fds[0] = in_fd;
	program.fds[1] = out_fd < 0 ? nothing : out_fd;
	program.fds[2] = say_fd;
	return program_start(&program, ret_pid, e);
}

int output_scan_begin(struct output_scan *s, const struct plan *p, int to_fd, const char *place,
		      int *ret_fd, struct ward_err *e)
{
	unsigned mode = SCAN_MODE(&p->spec->policy, p->spec->policy.cred_scan_output);
	struct one_scan *one = &s->all[s->count];
	int in[2], say[2], r;

	if (s->count == OUTPUT_SCANS || pipe2(in, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe for the look at the output");
	if (pipe2(say, O_CLOEXEC) < 0) {
		close(in[0]);
		close(in[1]);
		return ward_fail_errno(e, "cannot make a pipe for the look at the output");
	}
	*one = (struct one_scan){ .say_fd = say[0],
				  .mode = to_fd < 0 ? SCAN_LOG : mode,
				  .place = place };
	r = start(p, mode, in[0], to_fd, say[1], &one->pid, e);
	close(in[0]);
	close(say[1]);
	if (r == 0 && to_fd < 0 && fcntl(in[1], F_SETFL, O_NONBLOCK) < 0)
		r = ward_fail_errno(e, "cannot make a pipe for the look at the output");
	if (r < 0) {
		close(in[1]);
		close(say[0]);
		return ward_wrap(e, "credentials.scan_output");
	}
	s->count++;
	*ret_fd = in[1];
	return 0;
}

/* -- the end */

static void tell(const struct one_scan *one, const char *kind, unsigned long count, bool stopped,
		 struct result *r)
{
	const char *done = stopped                    ? "the output was stopped there"
			   : one->mode == SCAN_REDACT ? "it was overwritten"
						      : "it was printed";
	struct ward_event v = event_make(EVENT_CREDENTIAL_FOUND,
					 one->mode == SCAN_LOG ? ACTION_LOG : ACTION_DENY, kind);
	auto_buf text = { 0 };

	event_text(&v, FIELD_PATH, one->place);
	event_text(&v, FIELD_WHY, done);
	event_number(&v, FIELD_COUNT, count);
	event_emit(r->events, &v);
	buf_printf(&text, "%s in %s: %s", kind, one->place, done);
	if (!stopped) {
		result_secret(r, buf_text(&text));
		return;
	}
	text.len = 0;
	buf_printf(&text, "%s: %s", one->place, kind);
	result_deny(r, buf_text(&text),
		    "what looks like a secret was printed; the output was stopped there",
		    "credentials.scan_output: redact");
}

/* What it says: "KIND COUNT" lines, "stopped", "end". */
static void read_report(const struct one_scan *one, struct result *r)
{
	auto_buf said = { 0 };
	int n = io_read_all(one->say_fd, SAID_MAX, &said);
	char *rest = n == 0 && said.len ? said.data : NULL, *line;
	bool stopped = rest && strstr(buf_text(&said), "\nstopped\n"),
	     whole = rest && strstr(buf_text(&said), "end\n");
	auto_buf text = { 0 };

	while (whole && (line = strsep(&rest, "\n"))) {
		char *kind = strsep(&line, " ");

		if (line)
			tell(one, kind, strtoul(line, NULL, 10), stopped, r);
	}
	if (whole)
		return;
	buf_printf(&text, "ward-scan ended before %s did: the rest was not printed", one->place);
	strv_add(&r->notes, buf_text(&text));
}

int output_scan_wait(struct output_scan *s, uint64_t until_ms, int stop_fd)
{
	struct pollfd p = { .fd = stop_fd, .events = POLLIN };

	for (size_t i = 0; i < s->count; i++) {
		while (s->all[i].pid > 0 && waitpid(s->all[i].pid, NULL, WNOHANG) == 0) {
			if (io_now_ms() >= until_ms)
				kill(s->all[i].pid, SIGKILL);
			if (poll(&p, 1, WAIT_MS) > 0)
				return 1;
		}
		s->all[i].pid = 0;
	}
	return 0;
}

void output_scan_end(struct output_scan *s, struct result *r)
{
	for (size_t i = 0; i < s->count; i++) {
		read_report(&s->all[i], r);
		close(s->all[i].say_fd);
	}
	if (s->unseen)
		strv_addf(&r->notes,
			  "the terminal was written to faster than it could be looked through for "
			  "secrets: %llu bytes were not",
			  (unsigned long long)s->unseen);
	s->count = 0;
}

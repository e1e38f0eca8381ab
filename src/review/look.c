/*
 * Asking ward-scan about changes (look.h). In: directories by descriptor and a list of paths. Out:
 * findings. The program that reads the files is another one, which has given up all rights but
 * reading these directories; what it says is checked all the same. Runs in ward, with the user's
 * rights, before ward apply and at the end of a run whose policy asks for it: never on the way to a
 * sandbox.
 */
#include "review/look.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "host/program.h"

#define SAID_MAX (4u << 20)
#define FIELDS 6
#define FINDINGS_MAX 4096

static const char *const severities[] = { "low", "medium", "high" };

const char *look_severity_name(enum look_severity s)
{
	return severities[s < LOOK_SEVERITIES ? s : LOOK_HIGH];
}

bool look_severity_read(const char *text, enum look_severity *ret)
{
	for (unsigned i = 0; i < LOOK_SEVERITIES; i++)
		if (strcmp(text, severities[i]) == 0) {
			*ret = (enum look_severity)i;
			return true;
		}
	return false;
}

size_t look_count(const struct look_findings *f, enum look_severity least)
{
	size_t count = 0;

	for (size_t i = 0; i < f->len; i++)
		count += f->items[i].severity >= least;
	return count;
}

void look_clear(struct look_findings *f)
{
	for (size_t i = 0; i < f->len; i++) {
		free(f->items[i].rule);
		free(f->items[i].path);
		free(f->items[i].title);
	}
	free(f->items);
	*f = (struct look_findings){ 0 };
}

/* -- what it says */

int look_add(struct look_findings *f, const struct look_finding *x)
{
	struct look_finding *new;

	if (f->len == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 32;
		struct look_finding *more =
			cap > FINDINGS_MAX ? NULL : reallocarray(f->items, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->items = more;
		f->cap = cap;
	}
	new = &f->items[f->len++];
	*new = *x;
	new->rule = strdup(x->rule);
	new->path = strdup(x->path);
	new->title = strdup(x->title);
	return new->rule &&new->path &&new->title ? 0 : -ENOMEM;
}

static int add(struct look_findings *f, char *const fields[FIELDS])
{
	char *end;
	struct look_finding x = { .line = strtoull(fields[3], &end, 10),
				  .secret = strcmp(fields[1], "construct") != 0,
				  .rule = fields[2],
				  .path = fields[4],
				  .title = fields[5] };

	return *end || !look_severity_read(fields[0], &x.severity) ? -EINVAL : look_add(f, &x);
}

int look_read(const char *bytes, size_t n, struct look_findings *ret)
{
	struct look_findings f = { 0 };
	size_t at = 0;
	int r = n && !bytes[n - 1] ? 0 : -EINVAL;

	while (r == 0 && strcmp(bytes + at, "end") != 0) {
		char *fields[FIELDS];

		for (size_t i = 0; i < FIELDS && r == 0; i++) {
			fields[i] = (char *)(uintptr_t)(bytes + at);
			at += strlen(bytes + at) + 1;
			r = at < n ? 0 : -EINVAL;
		}
		if (r == 0)
			r = add(&f, fields);
	}
	if (r < 0)
		look_clear(&f);
	else
		*ret = f;
	return r;
}

/* -- asking */

static int read_until(int fd, uint64_t until_ms, struct buf *out, struct ward_err *e)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = io_now_ms();
		int wait = until_ms == UINT64_MAX ? -1 : until_ms > now ? (int)(until_ms - now) : 0;
		char bytes[16384];
		ssize_t n;
		int ready = poll(&p, 1, wait);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return ward_fail(e, ETIMEDOUT, "it takes too long");
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? ward_fail_errno(e, "cannot read it") : 0;
		buf_add(out, bytes, (size_t)n);
		if (out->failed || out->len > SAID_MAX)
			return ward_fail(e, E2BIG, "its report is too large");
	}
}

static int write_list(const struct look_request *q, int *ret_fd, struct ward_err *e)
{
	auto_fd fd = memfd_create("ward-look", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : io_write_all(fd, q->paths, q->path_bytes);

	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return ward_fail_errno(e, "cannot list the changes");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int start(const struct look_request *q, int say_fd, pid_t *ret_pid, struct ward_err *e)
{
	char since[32];
	char *argv[8] = { (char *)(uintptr_t) "ward-scan", (char *)(uintptr_t) "look" };
	static char *const none[] = { NULL };
	auto_fd list = -1, nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	auto_fd program_fd = program_open("ward-scan", e);
	size_t count = 2;
	struct program p = { .argv = argv, .envp = none, .fd_count = 4 };

	if (program_fd < 0 || write_list(q, &list, e) < 0)
		return -e->code;
	if (nothing < 0)
		return ward_fail_errno(e, "cannot open /dev/null");
	if (q->personal)
		argv[count++] = (char *)(uintptr_t) "--pii";
	if (q->since_ns) {
		snprintf(since, sizeof(since), "%" PRIu64, q->since_ns);
		argv[count++] = (char *)(uintptr_t) "--since";
		argv[count++] = since;
	}
	p.fd = program_fd;
	p.fds[0] = say_fd;
	p.fds[1] = list;
	p.fds[2] = q->new_fd;
	p.fds[3] = q->old_fd >= 0 ? q->old_fd : nothing;
	return program_start(&p, ret_pid, e);
}

int look_run(const struct look_request *q, struct look_findings *ret, struct ward_err *e)
{
	uint64_t until = q->timeout_ms ? io_now_ms() + q->timeout_ms : UINT64_MAX;
	auto_buf said = { 0 };
	int fds[2], r, status = 0;
	pid_t pid = -1;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	r = start(q, fds[1], &pid, e);
	close(fds[1]);
	if (r == 0)
		r = read_until(fds[0], until, &said, e);
	close(fds[0]);
	if (pid > 0) {
		if (r < 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (r == 0 && status)
		r = program_failed("ward-scan", status, e);
	else if (r == 0 && look_read(said.data, said.len, ret) < 0)
		r = ward_fail(e, EPROTO, "cannot read what ward-scan found");
	return r < 0 ? ward_wrap(e, "looking through the changes") : 0;
}

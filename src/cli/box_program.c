/*
 * ward-box: the program that libward starts, and `ward run -d` through it. In: descriptor 3, a
 * socket over which one request comes (api/request.h): a command line of ward run or ward plan.
 * Out: answers over it (run/detach.h): a plan, a refusal, or a sandbox that runs, which this
 * process then supervises to its end as ward run does. Runs with the rights of the program that
 * asked, in a session of its own; what there is to say goes into the answer. The request comes from
 * the same user, and is read as if it did not.
 */
#include "cli/box_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "api/request.h"
#include "base/io.h"
#include "cli/ask.h"
#include "cli/run.h"
#include "engine/engines.h"
#include "model/running.h"
#include "plan/plan.h"
#include "plan/spec.h"

/* more than a sandbox can have under way in sockets: see io_sendmsg() */
#define FILES_WANTED 8192

static int receive(int asker_fd, struct buf *bytes, struct ward_err *e)
{
	struct request_call call;
	auto_fd fd = -1;
	size_t fds;
	ssize_t n = io_recv_fds(asker_fd, &call, sizeof(call), &fd, 1, &fds);
	int r;

	if (n != (ssize_t)sizeof(call) || call.magic != DETACH_MAGIC || fds != 1)
		return ward_fail(e, EPROTO, "not a request of libward " WARD_VERSION);
	r = io_read_all(fd, REQUEST_BYTES_MAX, bytes);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the request: %s", strerror(-r));
	return bytes->len == call.bytes ? 0 : ward_fail(e, EPROTO, "the request is incomplete");
}

static int make_plan(const struct options *o, int asker_fd, struct ward_err *e)
{
	struct plan *plan = NULL;
	auto_buf json = { 0 };
	auto_fd fd = -1;
	struct spec spec;

	if (ask_plan(o, NULL, &spec, &plan, NULL, e) < 0)
		return -e->code;
	plan_print(plan, engine_choose(plan)->stages(), true, &json);
	fd = detach_text_fd(&json, e);
	if (fd >= 0)
		detach_tell(asker_fd, DETACH_PLAN, NULL, &fd, 1);
	plan_free(plan);
	spec_clear(&spec);
	return fd < 0 ? fd : 0;
}

/* Does what the words say; what is wrong before anything was started is in *e, unless it was
 * reported already. */
static int dispatch(const struct request *r, int *asker_fd, struct ward_err *e)
{
	bool plans = r->flags & REQUEST_PLAN;
	struct detached d = { .asker_fd = *asker_fd,
			      .outer_fds = NO_OUTER,
			      .attached = !(r->flags & REQUEST_DETACHED),
			      .entry = NO_BOX_ENTRY };
	struct options o;
	int result = options_read(plans ? VERB_PLAN : VERB_RUN, r->words, &o, e);

	if (result == 0 && plans) {
		o.json = true; /* all that is known goes into the error */
		result = make_plan(&o, *asker_fd, e);
	} else if (result == 0) {
		o.json |= d.attached;
		d.name = o.name;
		result = run_sandbox(&o, &d) == EXIT_REFUSED ? -EIO : 0;
		*asker_fd = d.asker_fd;
	}
	options_clear(&o);
	return result;
}

/* It lives long and serves many: the limit of descriptors that the program that asked has set for
 * itself is not for it. */
static void raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= FILES_WANTED)
		return;
	files.rlim_cur = files.rlim_max < FILES_WANTED ? files.rlim_max : FILES_WANTED;
	(void)!setrlimit(RLIMIT_NOFILE, &files);
}

/* A reader that goes away is an error like any other. A handler and not SIG_IGN, which a command
 * would inherit. */
static void reader_gone(unused_arg int signal_number)
{
}

int box_program(void)
{
	const struct sigaction gone = { .sa_handler = reader_gone, .sa_flags = SA_RESTART };
	struct detach_answer refusal = { 0 };
	struct request request;
	auto_buf bytes = { 0 };
	int asker_fd, r;

	sigaction(SIGPIPE, &gone, NULL);
	raise_limit();
	/* out of the way of what children are handed */
	asker_fd = fcntl(REQUEST_FD, F_DUPFD_CLOEXEC, 10);
	close(REQUEST_FD);
	prctl(PR_SET_NAME, BOX_PROGRAM);
	r = receive(asker_fd, &bytes, &refusal.error);
	if (r == 0)
		r = request_read(bytes.data, bytes.len, &request, &refusal.error);
	if (r == 0) {
		r = dispatch(&request, &asker_fd, &refusal.error);
		request_clear(&request);
	}
	if (r < 0 && refusal.error.code)
		detach_tell(asker_fd, DETACH_REFUSED, &refusal, NULL, 0);
	own_close_fd(&asker_fd);
	return r < 0 ? EXIT_REFUSED : 0;
}

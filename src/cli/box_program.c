/*
 * ward-box: the program that libward starts. In: descriptor 3, a socket over which one request comes (api/request.h). Out: one
 * answer over it. Runs with the rights of the host program, in a session of its own, with /dev/null as 0-2: what there is to
 * say goes into the answer. The request comes from the same user, and is read as if it did not.
 */
#include "cli/box_program.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "api/request.h"
#include "base/io.h"
#include "engine/engines.h"
#include "lib/engine.h"

static int answer(uint32_t kind, const struct ward_err *why, int fd)
{
	struct request_answer a = { .magic = REQUEST_MAGIC, .kind = kind };

	if (why)
		a.error = *why;
	return io_send_fds(REQUEST_FD, &a, sizeof(a), &fd, fd >= 0 ? 1 : 0);
}

static int receive(struct buf *bytes, struct ward_err *e)
{
	struct request_call call;
	auto_fd fd = -1;
	size_t fds;
	ssize_t n = io_recv_fds(REQUEST_FD, &call, sizeof(call), &fd, 1, &fds);
	int r;

	if (n != (ssize_t)sizeof(call) || call.magic != REQUEST_MAGIC || fds != 1)
		return ward_fail(e, EPROTO, "this is not a request of libward " WARD_VERSION);
	r = io_read_all(fd, REQUEST_BYTES_MAX, bytes);
	if (r < 0)
		return ward_fail(e, -r, "the request cannot be read: %s", strerror(-r));
	return bytes->len == call.bytes ? 0 : ward_fail(e, EPROTO, "the request is not whole");
}

/* All errors of a policy file in one message, as many as fit. */
static void sum_up(const struct policy_errors *errors, struct ward_err *e)
{
	size_t n = errors->lines.len;
	auto_buf all = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&all, "%s%s", i ? "; " : "", errors->lines.items[i]);
	ward_fail(e, EINVAL, "%zu error%s: %s", n, n == 1 ? "" : "s", buf_text(&all));
	ward_wrap(e, "policy file");
	ward_remedy(e, "mend the file; ward check FILE shows all of it");
}

static int build_spec(const struct request *r, struct spec *ret_spec, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	struct spec_request wanted = {
		.policy_file = r->texts[REQUEST_POLICY],
		.workspace = r->texts[REQUEST_WORKSPACE],
		.cwd = r->texts[REQUEST_DIRECTORY],
		.option_count = r->option_count,
		.widen = r->flags & REQUEST_WIDEN,
		.argv = r->arg_count ? r->argv : NULL,
	};
	auto_free struct spec_option *options = calloc(r->option_count + 1, sizeof(*options));
	int result;

	if (!options)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < r->option_count; i++)
		options[i] = (struct spec_option){ .field = r->options[i].field, .value = r->options[i].value,
						   .option = r->options[i].origin, .append = r->options[i].append };
	wanted.options = options;
	result = spec_build(&wanted, ret_spec, &errors, e);
	if (result < 0 && errors.lines.len)
		sum_up(&errors, e);
	strv_free(&errors.lines);
	return result;
}

/* A text as a descriptor to read it from. */
static int text_fd(const struct buf *text, struct ward_err *e)
{
	auto_fd fd = memfd_create("ward-answer", MFD_CLOEXEC);

	if (text->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (fd < 0 || io_write_all(fd, text->data, text->len) < 0 || lseek(fd, 0, SEEK_SET) != 0)
		return ward_fail_errno(e, "the answer cannot be written down");
	return take_fd(&fd);
}

static int make_plan(const struct request *r, struct ward_err *e)
{
	struct plan *plan = NULL;
	auto_buf json = { 0 };
	auto_fd fd = -1;
	struct spec spec;
	int result = build_spec(r, &spec, e);

	if (result < 0)
		return result;
	result = plan_compile(&spec, NULL, &plan, e);
	if (result == 0) {
		plan_print(plan, engine_choose(plan)->stages(), true, &json);
		fd = text_fd(&json, e);
		result = fd < 0 ? fd : answer(ANSWER_PLAN, NULL, fd);
		plan_free(plan);
	}
	spec_clear(&spec);
	return result;
}

int box_program(void)
{
	struct ward_err e = { 0 };
	struct request request;
	auto_buf bytes = { 0 };
	int r;

	prctl(PR_SET_NAME, "ward-box");
	r = receive(&bytes, &e);
	if (r == 0)
		r = request_read(bytes.data, bytes.len, &request, &e);
	if (r == 0) {
		r = make_plan(&request, &e);
		request_clear(&request);
	}
	if (r < 0 && (!e.code || answer(ANSWER_REFUSED, &e, -1) < 0))
		return 125;	/* nobody is there to be told */
	return r < 0 ? 125 : 0;
}

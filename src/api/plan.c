/* ward_plan: what would happen. In: a spec. Out: JSON that a fresh `ward` made of it; nothing else
 * was started. */
#include "api/api.h"
#include "api/launch.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

#define PLAN_BYTES_MAX (256U << 20)

static int read_plan(int sock_fd, char **ret_json, struct ward_err *e)
{
	struct detach_answer answer;
	auto_buf text = { 0 };
	auto_fd fd = -1;
	size_t fds;
	int r = launch_answer(sock_fd, DETACH_PLAN, &answer, &fd, 1, &fds, e);

	if (r < 0)
		return r;
	r = fds == 1 ? io_read_all(fd, PLAN_BYTES_MAX, &text) : -EPROTO;
	if (r < 0)
		return ward_fail(e, -r, "cannot read the plan: %s", strerror(-r));
	*ret_json = buf_take(&text);
	return *ret_json ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int ward_plan(const struct ward_spec *s, char **ret_json, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	auto_strv words = { 0 };
	auto_fd sock_fd = -1;
	int r;

	spec_words(s, REQUEST_PLAN, &words);
	r = launch(s->program, REQUEST_PLAN, &words, false, &sock_fd, &inner);
	if (r == 0)
		r = read_plan(sock_fd, ret_json, &inner);
	return r < 0 ? api_fail(e, &inner) : 0;
}

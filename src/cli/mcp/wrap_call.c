/*
 * One call of a wrapped server, in its process. In: arguments as a client sent them. Out: the
 * members of an MCP result. The arguments must match the definition that was accepted, and the
 * parameters of the tools.yaml's entry, where it has any; a person is asked where the entry wants
 * that. The answer comes from the relay, which has read it; its texts are looked through for
 * secrets before the client sees them. A call that takes too long is given up. What is refused, and
 * what fails, is a result with isError.
 */
#include "cli/mcp/wrap.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "tools/json_schema.h"

#define ANSWER_MAX (96u << 20) /* bytes of one part of a relay's answer */

struct wrapped_call {
	const struct wrapped *t;
	const struct work *w;
	uint64_t end_ms; /* 0: none */
	struct relay_answer head;
	struct buf members, text;
};

/* -- arguments */

static int check_schema(const struct wrapped *t, const char *arguments, struct ward_err *e)
{
	const char *more = t->entry ? t->entry->input : NULL;
	struct ward_err why = { 0 };
	struct reader r = { .name = "", .e = &why };
	auto_node value = json_read(&r, (const uint8_t *)arguments, strlen(arguments));
	auto_node own = more ? json_read(&r, (const uint8_t *)more, strlen(more)) : NULL;
	struct schema_error wrong = { 0 };

	if (!value || (more && !own) || r.count)
		return ward_fail(e, EINVAL, "the arguments cannot be checked: %.300s", why.why);
	if (json_schema_validate(t->pin->input, value, &wrong) == 0 &&
	    (!own || json_schema_validate(own, value, &wrong) == 0))
		return 0;
	return ward_fail(e, EINVAL, "the arguments do not match the schema: %s%s%s", wrong.path,
			 *wrong.path ? ": " : "", wrong.message);
}

/* What the server is sent; ret->input. */
static int make_input(const struct work *w, struct tools_call *ret, struct ward_err *e)
{
	const struct wrapped *t = w->offer->wrapped;
	struct mcp_span given = { (const uint8_t *)w->arguments, strlen(w->arguments) };
	int r = 0;

	*ret = (struct tools_call){ 0 };
	if (t->entry && t->entry->parameters.len)
		r = call_bind(w->catalog, t->entry, given, ret, e);
	else
		ret->input = strdup(w->arguments);
	if (r == 0 && !ret->input)
		r = ward_fail(e, ENOMEM, "out of memory");
	return r < 0 ? r : check_schema(t, ret->input, e);
}

static int approve(const struct work *w, const struct tools_call *call, int fd, struct ward_err *e)
{
	const struct asker asker = {
		.r = { .source = &w->catalog->source, .tool = w->offer->wrapped->entry }, .fd = fd
	};

	if (!asker.r.tool || asker.r.tool->nature.approval != APPROVAL_ALWAYS)
		return 0;
	return ask_server(&asker.r, call, e);
}

/* -- the relay */

static int fail_late(const struct wrapped_call *c, struct ward_err *e)
{
	const char late = RELAY_LATE;

	(void)!send(c->w->relay_fd, &late, 1, MSG_NOSIGNAL);
	return ward_fail(e, ETIMEDOUT, "the server did not answer within %.3g seconds",
			 (double)c->t->timeout_ms / 1000);
}

/* All n bytes, while there is time. */
static int read_bytes(const struct wrapped_call *c, void *bytes, size_t n, struct ward_err *e)
{
	struct pollfd fd = { c->w->relay_fd, POLLIN, 0 };

	for (size_t at = 0; at < n;) {
		uint64_t now = io_now_ms();
		int left = !c->end_ms ? -1 : now < c->end_ms ? (int)(c->end_ms - now) : 0;
		ssize_t got;

		if (poll(&fd, 1, left) == 0)
			return fail_late(c, e);
		got = recv(c->w->relay_fd, (char *)bytes + at, n - at, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return ward_fail(e, at ? EPIPE : EAGAIN, "the server has ended");
		at += (size_t)got;
	}
	return 0;
}

static int read_part(const struct wrapped_call *c, uint32_t n, struct buf *ret, struct ward_err *e)
{
	int r;

	if (n > ANSWER_MAX || !buf_reserve(ret, (size_t)n + 1))
		return ward_fail(e, ENOMEM, "the answer is too long");
	r = read_bytes(c, ret->data, n, e);
	if (r < 0)
		return r;
	ret->len = n;
	ret->data[n] = '\0';
	return 0;
}

static int ask_relay(struct wrapped_call *c, const char *arguments, struct ward_err *e)
{
	const struct relay_ask ask = { .tool = c->t->number,
				       .bytes = (uint32_t)strlen(arguments),
				       .result_max = c->t->result_max };
	auto_buf request = { 0 };
	int r;

	buf_add(&request, &ask, sizeof(ask));
	buf_puts(&request, arguments);
	if (request.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t at = 0; at < request.len;) {
		ssize_t n = send(c->w->relay_fd, request.data + at, request.len - at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ward_fail(e, EAGAIN, "the server has ended");
		at += (size_t)n;
	}
	r = read_bytes(c, &c->head, sizeof(c->head), e);
	if (r == 0)
		r = read_part(c, c->head.members, &c->members, e);
	if (r == 0)
		r = read_part(c, c->head.text, &c->text, e);
	if (r == 0 && c->head.status == RELAY_AGAIN)
		return ward_fail(e, EAGAIN, "%.300s", buf_text(&c->text));
	return r;
}

/* -- the answer */

static void put_findings(const struct strv *rules, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, "_meta");
	json_begin_array(&j, "ward/findings");
	for (size_t i = 0; i < rules->len; i++)
		json_string(&j, NULL, rules->items[i]);
	json_end_array(&j);
	json_end_object(&j);
}

/* What may be handed out of it. */
static int judge(struct wrapped_call *c, struct buf *out, struct ward_err *e)
{
	const struct tool_tool *entry = c->t->entry;
	bool reports = entry && entry->scan == RESULT_REPORT;
	auto_strv rules = { 0 };
	int r = output_scan(&c->text, &rules, e);

	if (r < 0)
		return r;
	if (rules.len && !reports)
		return ward_fail(e, EPERM,
				 "the result is withheld: it may hold a secret (%.*s, line %s)",
				 (int)strcspn(rules.items[0], ":"), rules.items[0],
				 strrchr(rules.items[0], ':') + 1);
	if (c->head.hidden && entry && !reports)
		return ward_fail(e, EPERM,
				 "the result is withheld: %u texts in it hold characters that hide "
				 "or act on a terminal",
				 c->head.hidden);
	if (c->head.status != RELAY_RESULT) {
		ward_fail(e, EREMOTEIO, "%s: %s", c->t->pin->name, buf_text(&c->text));
		return c->head.status == RELAY_REFUSED
			       ? ward_remedy(e, "tell the user: ward mcp trust shows what has "
						"changed")
			       : -EREMOTEIO;
	}
	for (size_t i = 0; i < c->members.len; i++) /* the relay may have been taken over */
		if (strchr("\n\r", c->members.data[i]))
			c->members.data[i] = ' ';
	buf_add(out, buf_text(&c->members), c->members.len);
	if (rules.len)
		put_findings(&rules, out);
	return 0;
}

void wrap_call(unused_arg const struct server *s, const struct work *w, int fd, struct buf *out)
{
	struct wrapped_call c = { .t = w->offer->wrapped, .w = w };
	struct ward_err e = { 0 };
	auto_call call = { 0 };
	int r = make_input(w, &call, &e);

	if (r == 0)
		r = approve(w, &call, fd, &e);
	c.end_ms = c.t->timeout_ms && c.t->timeout_ms != POLICY_NONE ? io_now_ms() + c.t->timeout_ms
								     : 0;
	if (r == 0)
		r = ask_relay(&c, call.input, &e);
	if (r == -EAGAIN && !w->again) {
		buf_puts(out, WORK_AGAIN);
		return;
	}
	buf_puts(out, "\n");
	if (r == 0)
		r = judge(&c, out, &e);
	if (r < 0)
		call_put_refusal(&e, NULL, out);
	buf_free(&c.members);
	buf_free(&c.text);
}

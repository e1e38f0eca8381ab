/*
 * ward mcp trust and forget: a person accepts what an MCP server says of itself. In: a server,
 * which is started under its policy and asked. Out: its instructions and its tools, or the
 * difference to what was accepted before, with everything escaped; and after a yes a record, which
 * ward mcp wrap offers word for word. The policy that it is accepted with is part of that. Runs
 * with the user's rights; the relay reads the server.
 */
#include "cli/mcp/trust.h"
#include "cli/mcp/wrap.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/difference.h"

#define ANSWER_MS 75000 /* more than a relay waits for the server */
#define DEFINITIONS_MAX (16u << 20)

/* -- asking the server */

static int read_bytes(int fd, uint64_t end_ms, void *bytes, size_t n, struct ward_err *e)
{
	struct pollfd p = { fd, POLLIN, 0 };

	for (size_t at = 0; at < n;) {
		uint64_t now = io_now_ms();
		ssize_t got = now < end_ms && poll(&p, 1, (int)(end_ms - now)) > 0
				      ? recv(fd, (char *)bytes + at, n - at, 0)
				      : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return ward_fail(e, ETIMEDOUT, "the server does not answer");
		at += (size_t)got;
	}
	return 0;
}

int trust_take(int fd, struct buf *ret, struct ward_err *e)
{
	uint64_t end_ms = io_now_ms() + ANSWER_MS;
	struct relay_answer head;
	size_t n;
	int r;

	r = read_bytes(fd, end_ms, &head, sizeof(head), e);
	if (r < 0)
		return r;
	n = (size_t)head.members + head.text;
	if (n > DEFINITIONS_MAX || !buf_reserve(ret, n + 1))
		return ward_fail(e, EFBIG, "what the server says of itself is too long");
	r = read_bytes(fd, end_ms, ret->data, n, e);
	if (r < 0)
		return r;
	ret->len = n;
	ret->data[n] = '\0';
	return head.status == RELAY_RESULT ? 0 : ward_fail(e, EREMOTEIO, "%.300s", ret->data);
}

int trust_read(const struct buf *text, struct node **ret, struct ward_err *e)
{
	struct ward_err why = { 0 };
	struct reader r = { .name = "", .e = &why };
	auto_node said = json_read(&r, (const uint8_t *)buf_text(text), text->len);
	const struct node *tools = said && said->kind == NODE_MAP ? node_get(said, "tools") : NULL;

	if (!tools || r.count || tools->kind != NODE_LIST)
		return ward_fail(e, EPROTO, "what the server says of itself is refused: %.300s",
				 why.why);
	*ret = take_ptr(said);
	return 0;
}

static int ask_definitions(const struct source *s, struct node **ret, struct ward_err *e)
{
	const struct instance_kind kind = { .name = s->name,
					    .command = s->command.items,
					    .keep = true };
	struct instance one = { .document = s->document.data, .cwd = s->cwd, .control_fd = -1 };
	auto_buf text = { 0 };
	auto_fd fd = -1;
	const struct relay_ask ask = { .tool = RELAY_DEFINITIONS };
	int r = instance_connect(&one, &kind, &fd, e);

	if (r == -EBUSY ||
	    (r == 0 && send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) != (ssize_t)sizeof(ask)))
		r = ward_fail(e, EPIPE, "the server has ended");
	if (r == 0)
		r = trust_take(fd, &text, e);
	instance_stop(&one);
	return r < 0 ? r : trust_read(&text, ret, e);
}

/* -- showing */

static const char *instructions_of(const struct node *said)
{
	const struct node *n = node_get(said, "instructions");

	return n && n->kind == NODE_STRING ? n->text : NULL;
}

static int put_source(char *const *command, const char *document, struct buf *out,
		      struct ward_err *e)
{
	struct policy policy = { 0 };
	int r = source_walls(document, NULL, &policy, e);

	buf_puts(out, "command:");
	for (size_t i = 0; command[i]; i++) {
		buf_puts(out, " ");
		text_escape(out, command[i]);
	}
	buf_puts(out, "\n");
	if (r == 0)
		source_put_walls(&policy, "", out);
	policy_clear(&policy);
	return r;
}

static void put_unusable(const struct node *said, struct buf *out)
{
	const struct node *list = node_get(said, "unusable");

	for (const struct node *n = list ? list->first : NULL; n; n = n->next) {
		const struct node *name = node_get(n, "name"), *why = node_get(n, "why");

		buf_puts(out, "not usable: ");
		text_escape(out, name && name->text ? name->text : "?");
		buf_puts(out, ": ");
		text_escape(out, why && why->text ? why->text : "?");
		buf_puts(out, "\n");
	}
}

/* 1: something differs from what was accepted; 0: nothing. */
static int show(const struct source *s, const struct node *said, struct buf *out,
		struct ward_err *e)
{
	auto_buf before = { 0 }, now = { 0 };
	int r = put_source(s->command.items, buf_text(&s->document), &now, e);

	pins_show(instructions_of(said), node_get(said, "tools"), &now);
	put_unusable(said, &now);
	if (r == 0 && s->known) {
		const struct node *old = node_get(s->pins.root, "said");

		r = put_source(s->pins.command.items, s->pins.policy, &before, e);
		pins_show(s->pins.instructions, node_get(old, "tools"), &before);
		put_unusable(old, &before);
	}
	if (r < 0)
		return r;
	if (!s->known)
		buf_add(out, buf_text(&now), now.len);
	else if (difference_put("accepted before", &before, s->name, &now, out) < 0)
		now.failed = true;
	if (now.failed || before.failed || out->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return !s->known || strcmp(buf_text(&before), buf_text(&now)) != 0;
}

static int keep(const struct source *s, const struct node *said, struct ward_err *e)
{
	const struct pins_draft draft = { .name = s->name,
					  .command = s->command.items,
					  .policy = buf_text(&s->document),
					  .cwd = s->cwd,
					  .said = said };

	return pins_save(&draft, e);
}

int trust_accept(const struct source *s, const struct node *said, struct ward_err *e)
{
	auto_buf shown = { 0 };
	int r = show(s, said, &shown, e);

	say_err(&shown);
	return r < 0 ? r : keep(s, said, e);
}

/* -- the words */

static int run(struct options *o, struct source *s, bool *ret_changed, struct ward_err *e)
{
	auto_node said = NULL;
	auto_buf shown = { 0 };
	int r = source_read(o, o->words, s, e);

	if (r == 0)
		r = ask_definitions(s, &said, e);
	if (r < 0)
		return r;
	r = show(s, said, &shown, e);
	if (r < 0)
		return r;
	*ret_changed = r > 0;
	if (!o->json && say_out(&shown, 0) != 0)
		return ward_fail(e, EIO, "cannot show it");
	if (o->dry_run)
		return 0;
	r = *ret_changed && !o->yes ? ask_person("accept this? [y/N] ", "accepted", e) : 0;
	if (r == -EACCES)
		return ward_remedy(e, "look at it, then: --yes");
	return r < 0 ? r : keep(s, said, e);
}

int mcp_trust(struct options *o)
{
	struct source s = { 0 };
	struct ward_err e = { 0 };
	bool changed = false;
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = run(o, &s, &changed, &e), code = EXIT_FINE;

	if (r < 0) {
		source_free(&s);
		return say_error(&e, o->json,
				 r == -ECANCELED ? EXIT_FINDINGS
				 : r == -EINVAL  ? EXIT_USAGE
						 : EXIT_REFUSED);
	}
	if (o->dry_run && changed)
		code = EXIT_FINDINGS;
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "name", s.name);
		json_bool(&j, "changed", changed);
		json_bool(&j, "accepted", !o->dry_run);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (!o->dry_run || !changed) {
		buf_printf(&out, "%s as %s\n",
			   !changed ? "nothing has changed: accepted" : "accepted", s.name);
	}
	source_free(&s);
	return say_out(&out, code);
}

int mcp_forget(struct options *o)
{
	const char *name = o->words[0];
	struct ward_err e = { 0 };
	int r = pins_is_name(name) ? pins_remove(name, &e)
				   : ward_fail(&e, EINVAL, "no name of a server: %.100s", name);

	return r < 0 ? say_error(&e, o->json, r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED) : EXIT_FINE;
}

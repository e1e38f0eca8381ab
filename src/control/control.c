/*
 * The codec of the control socket. In: bytes of a peer that has the user's rights, or says so. Out:
 * messages. Pure functions over (pointer, length): no I/O, no clock, nothing is believed that is
 * not checked. A request that passed control_check_request() has the strings that its counts
 * promise, each ended within the packet.
 */
#include "control/control.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "model/question.h"
#include "protocol/secrets.h"

#define WORDS_MAX 65536

/* How many strings stand in n bytes; -EINVAL if the last is not ended. */
static ssize_t count_strings(const char *text, size_t n)
{
	ssize_t count = 0;

	if (n && text[n - 1])
		return -EINVAL;
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		count++;
	return count;
}

static int check_exec(const struct control_message *m, const char *text, size_t n)
{
	const char *at = text;

	if (m->flags & CONTROL_CHECKPOINT &&
	    (m->flags != (CONTROL_CHECKPOINT | CONTROL_INPUT) || m->a != 1 || m->b))
		return -EINVAL;
	if (m->a < 1 || m->a > WORDS_MAX || m->b < 0 || m->b > WORDS_MAX ||
	    count_strings(text, n) != 1 + (ssize_t)m->a + (ssize_t)m->b)
		return -EINVAL;
	for (int32_t i = 0; i < 1 + m->a + m->b; i++) {
		if (i == 1 && !*at)
			return -EINVAL; /* the command has no name */
		if (i > m->a && (*at == '=' || !strchr(at, '=')))
			return -EINVAL;
		at += strlen(at) + 1;
	}
	return 0;
}

/* A text of ours: ended, and nothing but what can be shown. */
static bool is_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return n < size;
}

static int check_question_answer(const char *rest, size_t n)
{
	struct control_answer said;

	if (n != sizeof(said))
		return -EINVAL;
	memcpy(&said, rest, sizeof(said));
	return said.via < QUESTION_VIAS && is_text(said.from, sizeof(said.from)) ? 0 : -EINVAL;
}

int control_check_request(const void *bytes, size_t n)
{
	struct control_message m;

	if (n < sizeof(m) || n > CONTROL_MAX)
		return -EINVAL;
	memcpy(&m, bytes, sizeof(m));
	if (m.magic != CONTROL_MAGIC || m.op < CONTROL_STATS || m.op >= CONTROL_REQUESTS)
		return -EINVAL;
	if (m.op == CONTROL_EXEC)
		return check_exec(&m, (const char *)bytes + sizeof(m), n - sizeof(m));
	if (m.op == CONTROL_NET_ALLOW || m.op == CONTROL_NET_DENY)
		return m.a >= 1 && m.a <= CONTROL_NET_LINES && m.b >= 0 &&
				       count_strings((const char *)bytes + sizeof(m),
						     n - sizeof(m)) == m.a
			       ? 0
			       : -EINVAL;
	if (m.op == CONTROL_NET_SHOW && (m.a < 0 || m.a >= CONTROL_NET_WHATS || m.b < 0))
		return -EINVAL;
	if (m.op == CONTROL_SECRET_GRANT || m.op == CONTROL_SECRET_REVOKE)
		return count_strings((const char *)bytes + sizeof(m), n - sizeof(m)) == 1 ? 0
											  : -EINVAL;
	if (m.op == CONTROL_QUESTION_ANSWER)
		return check_question_answer((const char *)bytes + sizeof(m), n - sizeof(m));
	if ((m.op == CONTROL_QUESTION_LIST || m.op == CONTROL_QUESTION_WATCH) && m.a < 0)
		return -EINVAL;
	if (m.op == CONTROL_SIGNAL && (m.a < 1 || m.a > 64))
		return -EINVAL;
	if (m.op == CONTROL_STOP && m.a < 0)
		return -EINVAL;
	if (m.op == CONTROL_SIZE && (m.a < 0 || m.a > 0xffff || m.b < 0 || m.b > 0xffff))
		return -EINVAL;
	return n == sizeof(m) ? 0 : -EINVAL;
}

static size_t net_row(int32_t what)
{
	return what == CONTROL_NET_RULES ? sizeof(struct control_net_rule)
					 : sizeof(struct control_net_flow);
}

/* Whole rows, and every text in them ended. */
static int check_net(const struct control_message *m, const char *rest, size_t n)
{
	size_t row = net_row(m->a), text = m->a == CONTROL_NET_RULES
						   ? sizeof(((struct control_net_rule *)0)->text)
						   : sizeof(((struct control_net_flow *)0)->host);

	if (m->a < 0 || m->a >= CONTROL_NET_WHATS || m->b < 0 || n < sizeof(struct control_net))
		return -EINVAL;
	if (!memchr(rest + offsetof(struct control_net, workspace), '\0',
		    sizeof(((struct control_net *)0)->workspace)))
		return -EINVAL;
	rest += sizeof(struct control_net);
	n -= sizeof(struct control_net);
	if (n % row || n / row > CONTROL_NET_ROWS || (m->a == CONTROL_NET_SUMMARY && n))
		return -EINVAL;
	for (; n; rest += row, n -= row)
		if (!memchr(rest, '\0', text))
			return -EINVAL;
	return 0;
}

size_t control_net_rows(const void *bytes, size_t n)
{
	struct control_message m;

	memcpy(&m, bytes, sizeof(m));
	return (n - sizeof(m) - sizeof(struct control_net)) / net_row(m.a);
}

/* Whole rows, every text in them ended and without a byte that acts on a terminal. */
static int check_questions(const struct control_message *m, const char *rest, size_t n)
{
	struct question q;

	if (m->a < 0 || m->a > CONTROL_QUESTION_ROWS || m->b < 0 || m->b > 1 ||
	    n != (size_t)m->a * sizeof(q))
		return -EINVAL;
	for (; n; rest += sizeof(q), n -= sizeof(q)) {
		memcpy(&q, rest, sizeof(q));
		if (!is_text(q.host, sizeof(q.host)) || !is_text(q.subject, sizeof(q.subject)) ||
		    !is_text(q.rule, sizeof(q.rule)) || !is_text(q.line, sizeof(q.line)) ||
		    !is_text(q.process, sizeof(q.process)) || q.kind >= QUESTION_KINDS)
			return -EINVAL;
		for (size_t i = 0; i < QUESTION_DETAILS_MAX; i++)
			if (!is_text(q.details[i], sizeof(q.details[i])))
				return -EINVAL;
	}
	return 0;
}

int control_check_answer(const void *bytes, size_t n)
{
	struct control_message m;

	if (n < sizeof(m) || n > CONTROL_MAX)
		return -EINVAL;
	memcpy(&m, bytes, sizeof(m));
	if (m.magic != CONTROL_MAGIC)
		return -EINVAL;
	switch (m.op) {
	case CONTROL_OK:
	case CONTROL_STARTED:
	case CONTROL_EXITED:
	case CONTROL_FAILED:
	case CONTROL_STOPPED:
	case CONTROL_TURN:
		return n == sizeof(m) ? 0 : -EINVAL;
	case CONTROL_USAGE:
		return n == sizeof(m) + sizeof(struct control_usage) ? 0 : -EINVAL;
	case CONTROL_NET:
		return check_net(&m, (const char *)bytes + sizeof(m), n - sizeof(m));
	case CONTROL_QUESTIONS:
		return check_questions(&m, (const char *)bytes + sizeof(m), n - sizeof(m));
	case CONTROL_SECRETS:
		if (m.a < 0)
			return m.a == -1 && count_strings((const char *)bytes + sizeof(m),
							  n - sizeof(m)) == 1
				       ? 0
				       : -EINVAL;
		return (size_t)m.a == (n - sizeof(m)) / sizeof(struct secrets_row) &&
				       (n - sizeof(m)) % sizeof(struct secrets_row) == 0
			       ? 0
			       : -EINVAL;
	case CONTROL_ERROR:
		return m.a > 0 && count_strings((const char *)bytes + sizeof(m), n - sizeof(m)) == 3
			       ? 0
			       : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int add_strings(char *const *list, struct buf *out, int32_t *ret_count)
{
	int32_t count = 0;

	for (; list && *list; list++, count++) {
		if (count >= WORDS_MAX || out->len > CONTROL_MAX)
			return -E2BIG;
		buf_add(out, *list, strlen(*list) + 1);
	}
	*ret_count = count;
	return out->failed ? -ENOMEM : out->len > CONTROL_MAX ? -E2BIG : 0;
}

int control_write_exec(const struct control_exec *x, struct buf *out)
{
	struct control_message m = { .magic = CONTROL_MAGIC,
				     .op = CONTROL_EXEC,
				     .flags = (uint16_t)x->flags };
	size_t at = out->len;
	int r;

	buf_add(out, &m, sizeof(m));
	buf_add(out, x->cwd, strlen(x->cwd) + 1);
	r = add_strings(x->argv, out, &m.a);
	if (r == 0)
		r = add_strings(x->env, out, &m.b);
	if (r < 0)
		return r;
	memcpy(out->data + at, &m, sizeof(m));
	return control_check_request(out->data + at, out->len - at);
}

int control_write_net(enum control_op op, char *const *lines, size_t count, unsigned seconds,
		      struct buf *out)
{
	struct control_message m = {
		.magic = CONTROL_MAGIC, .op = op, .a = (int32_t)count, .b = (int32_t)seconds
	};

	if (count > CONTROL_NET_LINES)
		return -E2BIG;
	buf_add(out, &m, sizeof(m));
	for (size_t i = 0; i < count; i++)
		buf_add(out, lines[i], strlen(lines[i]) + 1);
	return out->failed              ? -ENOMEM
	       : out->len > CONTROL_MAX ? -E2BIG
					: control_check_request(out->data, out->len);
}

void control_write_error(const struct ward_err *e, struct buf *out)
{
	struct control_message m = { .magic = CONTROL_MAGIC,
				     .op = CONTROL_ERROR,
				     .a = e->code > 0 ? e->code : EIO };

	buf_add(out, &m, sizeof(m));
	buf_add(out, e->what, strlen(e->what) + 1);
	buf_add(out, e->why, strlen(e->why) + 1);
	buf_add(out, e->remedy, strlen(e->remedy) + 1);
}

void control_read_error(const void *bytes, size_t n, struct ward_err *ret_error)
{
	const char *what = (const char *)bytes + sizeof(struct control_message);
	const char *why = what + strlen(what) + 1;
	const char *remedy = why + strlen(why) + 1;
	struct control_message m;

	(void)n;
	memcpy(&m, bytes, sizeof(m));
	ret_error->code = m.a;
	snprintf(ret_error->what, sizeof(ret_error->what), "%s", what);
	snprintf(ret_error->why, sizeof(ret_error->why), "%s", why);
	snprintf(ret_error->remedy, sizeof(ret_error->remedy), "%s", remedy);
}

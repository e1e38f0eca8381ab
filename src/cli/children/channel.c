/*
 * Channels between a sandbox and its children. In: messages of programs inside, each with the name
 * of the sandbox that sends it, which the socket says and no program can choose. Out: messages that
 * fit, in order, for those that may receive them; or why one does not fit. A message is one JSON
 * value of the channel's schema; it is read by a process of its own that has no rights
 * (output_judge_apart()). Rates and sizes are checked before that, so a flood costs little. How
 * many messages wait has a limit for each who receives. Runs in ward-children.
 */
#include "cli/children/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/policy_value.h"
#include "tools/output.h"

#define QUEUED_EACH 16 /* for each who receives */
#define SENDERS_MAX 65
#define QUEUED_MAX (QUEUED_EACH * SENDERS_MAX)
#define MINUTE_MS 60000

struct waiting {
	char from[CHANNEL_NAME_TEXT], to[CHANNEL_NAME_TEXT];
	char *text; /* owned */
};

/* What a sender has sent in this minute. */
struct sender {
	char name[CHANNEL_NAME_TEXT];
	uint64_t since_ms, count;
};

struct channel {
	struct policy_channel policy;
	struct waiting queue[QUEUED_MAX]; /* oldest first */
	size_t queued;
	struct sender senders[SENDERS_MAX]; /* of those that the policy names */
	size_t sender_count;
};

struct channels {
	struct channel *items;
	size_t len;
};

static int check_one(const struct channels *c, const struct policy_channel *p, struct ward_err *e)
{
	struct reader r = { .name = "schema", .e = e };
	auto_node schema = json_read(&r, (const uint8_t *)p->schema, strlen(p->schema));
	struct schema_error why = { 0 };

	if (!schema || r.count)
		return ward_fail(e, EINVAL, "channels: the schema of %s is not JSON", p->name);
	if (json_schema_check(schema, true, &why) < 0)
		return ward_fail(e, EINVAL, "channels: the schema of %s: %s: %s", p->name, why.path,
				 why.message);
	if (p->from.len > SENDERS_MAX || p->to.len > SENDERS_MAX)
		return ward_fail(e, E2BIG, "channels: %s: more than %d names", p->name,
				 SENDERS_MAX);
	for (size_t i = 0; i < c->len; i++)
		if (strcmp(c->items[i].policy.name, p->name) == 0)
			return ward_fail(e, EINVAL, "channels: %s is there twice", p->name);
	return 0;
}

int channels_open(const struct policy *p, struct channels **ret, struct ward_err *e)
{
	struct channels *c;
	int r = 0;

	*ret = NULL;
	if (!p->channels.len)
		return 0;
	if (p->channels.len > CHANNELS_MAX)
		return ward_fail(e, E2BIG, "channels: at most %d", CHANNELS_MAX);
	c = calloc(1, sizeof(*c));
	if (c)
		c->items = calloc(p->channels.len, sizeof(*c->items));
	if (!c || !c->items) {
		free(c);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (; r == 0 && c->len < p->channels.len; c->len++) {
		struct policy_channel *own = &c->items[c->len].policy;

		r = policy_channel_read(p->channels.items[c->len], own, e);
		if (r == 0)
			r = check_one(c, own, e);
	}
	if (r < 0)
		channels_free(c);
	else
		*ret = c;
	return r;
}

static void take_out(struct channel *c, size_t at)
{
	free(c->queue[at].text);
	c->queued--;
	memmove(&c->queue[at], &c->queue[at + 1], (c->queued - at) * sizeof(c->queue[0]));
}

void channels_free(struct channels *c)
{
	for (size_t i = 0; c && i < c->len; i++) {
		while (c->items[i].queued)
			take_out(&c->items[i], c->items[i].queued - 1);
		policy_channel_clear(&c->items[i].policy);
	}
	if (c)
		free(c->items);
	free(c);
}

static struct channel *find(struct channels *c, const char *name, struct ward_err *e)
{
	auto_buf shown = { 0 };

	for (size_t i = 0; c && i < c->len; i++)
		if (strcmp(c->items[i].policy.name, name) == 0)
			return &c->items[i];
	text_escape(&shown, name);
	ward_fail(e, ENOENT, "there is no channel %.100s", buf_text(&shown));
	return NULL;
}

/* -- sending */

/* There is room for all that the policy names. */
static struct sender *find_sender(struct channel *c, const char *name)
{
	for (size_t i = 0; i < c->sender_count; i++)
		if (strcmp(c->senders[i].name, name) == 0)
			return &c->senders[i];
	snprintf(c->senders[c->sender_count].name, CHANNEL_NAME_TEXT, "%s", name);
	return &c->senders[c->sender_count++];
}

static int check_rate(struct channel *c, const char *from, uint64_t now_ms, struct ward_err *e)
{
	struct sender *s = find_sender(c, from);

	if (now_ms - s->since_ms >= MINUTE_MS) {
		s->since_ms = now_ms;
		s->count = 0;
	}
	if (s->count >= c->policy.per_minute)
		return ward_fail(e, EAGAIN, "more than %" PRIu64 " messages in a minute",
				 c->policy.per_minute);
	s->count++;
	return 0;
}

static int choose_receiver(const struct channel *c, const struct channel_message *m,
			   char ret_to[CHANNEL_NAME_TEXT], struct ward_err *e)
{
	const char *to = m->to ? m->to : c->policy.to.items[0];
	auto_buf shown = { 0 };

	if (!m->to && c->policy.to.len > 1)
		return ward_fail(e, EINVAL, "several may receive from %s: --to NAME",
				 c->policy.name);
	text_escape(&shown, to);
	if (!strv_has(&c->policy.to, to))
		return ward_fail(e, EACCES, "%.100s may not receive from %s", buf_text(&shown),
				 c->policy.name);
	snprintf(ret_to, CHANNEL_NAME_TEXT, "%s", to);
	return 0;
}

static int judge(const struct channel *c, const char *text, struct ward_err *e)
{
	struct output_verdict verdict;
	auto_buf bytes = { 0 };
	int r;

	buf_puts(&bytes, text);
	if (bytes.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = output_judge_apart(&bytes, c->policy.schema, &verdict, e);
	if (r < 0)
		return r;
	if (verdict.hidden)
		return ward_fail(e, EINVAL, "the message has control or hidden characters");
	if (verdict.is_json && verdict.matches)
		return 0;
	return ward_fail(e, EINVAL, "the message does not match the schema: %s%s%.200s",
			 verdict.why.path, *verdict.why.path ? ": " : "", verdict.why.message);
}

static size_t count_waiting(const struct channel *c, const char *to)
{
	size_t count = 0;

	for (size_t i = 0; i < c->queued; i++)
		count += strcmp(c->queue[i].to, to) == 0;
	return count;
}

static int check(struct channel *c, const struct channel_message *m, uint64_t now_ms,
		 char ret_to[CHANNEL_NAME_TEXT], struct ward_err *e)
{
	int r;

	if (!strv_has(&c->policy.from, m->from))
		return ward_fail(e, EACCES, "%s may not send on %s", m->from, c->policy.name);
	r = choose_receiver(c, m, ret_to, e);
	if (r == 0 && strlen(m->text) > c->policy.max_bytes)
		r = ward_fail(e, E2BIG, "the message has more than %" PRIu64 " bytes",
			      c->policy.max_bytes);
	if (r == 0)
		r = check_rate(c, m->from, now_ms, e);
	if (r == 0 && (c->queued == QUEUED_MAX || count_waiting(c, ret_to) >= QUEUED_EACH))
		r = ward_fail(e, EAGAIN, "%d messages for %s wait on %s already", QUEUED_EACH,
			      ret_to, c->policy.name);
	return r < 0 ? r : judge(c, m->text, e);
}

int channels_send(struct channels *all, const struct channel_message *m, uint64_t now_ms,
		  char ret_to[CHANNEL_NAME_TEXT], struct ward_err *e)
{
	struct channel *c = find(all, m->channel, e);
	struct waiting *w;

	if (!c || check(c, m, now_ms, ret_to, e) < 0)
		return -e->code;
	w = &c->queue[c->queued];
	w->text = strdup(m->text);
	if (!w->text)
		return ward_fail(e, ENOMEM, "out of memory");
	memcpy(w->to, ret_to, sizeof(w->to));
	snprintf(w->from, sizeof(w->from), "%s", m->from);
	c->queued++;
	return 0;
}

/* -- receiving */

/* One line: line ends and tabs stand between a value's tokens only. */
static char *make_line(const struct waiting *w)
{
	struct buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_object(&j, NULL);
	json_string(&j, "from", w->from);
	buf_puts(&out, ",\"message\":");
	for (const char *at = w->text; *at; at++)
		buf_add(&out, strchr("\t\r\n", *at) ? " " : at, 1);
	json_end_object(&j);
	buf_puts(&out, "\n");
	return buf_take(&out);
}

int channels_receive(struct channels *all, const char *name, const char *who, char **ret_text,
		     struct ward_err *e)
{
	struct channel *c = find(all, name, e);

	if (!c)
		return -e->code;
	if (!strv_has(&c->policy.to, who))
		return ward_fail(e, EACCES, "%s may not receive from %s", who, c->policy.name);
	for (size_t i = 0; i < c->queued; i++)
		if (strcmp(c->queue[i].to, who) == 0) {
			*ret_text = make_line(&c->queue[i]);
			take_out(c, i);
			return *ret_text ? 0 : ward_fail(e, ENOMEM, "out of memory");
		}
	return 1;
}

void channels_forget(struct channels *all, const char *who)
{
	for (size_t k = 0; all && k < all->len; k++)
		for (size_t i = all->items[k].queued; i-- > 0;)
			if (strcmp(all->items[k].queue[i].to, who) == 0)
				take_out(&all->items[k], i);
}

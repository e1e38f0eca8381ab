/*
 * Looking into bodies (body_inspect.h). In: the rules that a body decides between, its bytes. Out:
 * which rule allows it, or why none does. Runs in front.
 */
#include "inspect/body_inspect.h"

#include <stdlib.h>
#include <string.h>

#include "inspect/git_pack.h"
#include "inspect/gunzip.h"
#include "policy/policy_rule.h"

struct body_inspect {
	unsigned n_looks;
	struct http_look looks[HTTP_LOOKS];
	struct gunzip *zip; /* NULL: it comes as it is */
	/* what it says; of a push that waits for its proof only the commands */
	struct buf plain;
	bool push, decided;
	enum body_inspect_say say;
	struct body_inspect_verdict verdict;
	uint64_t taken; /* bytes as they came */
	struct git_push commands;
	bool commanded;                   /* all of them are there */
	struct git_pack *pack;            /* NULL: nothing needs a proof */
	unsigned refused;                 /* the command that was; UINT_MAX: none in particular */
	unsigned wanted[GIT_UPDATES_MAX]; /* commands that need a proof */
	struct http_look waiting;         /* the rule that allows it once it is proven */
	/* a rule allows it without, after a person's yes; it was proven */
	bool asks, proven;
	struct http_look asking;
};

struct body_inspect *body_inspect_new(const struct http_verdict *v, const struct http_request *r)
{
	struct body_inspect *l = calloc(1, sizeof(*l));
	struct http_text coding = http_field_get(&r->fields, "content-encoding");

	if (!l)
		return NULL;
	l->n_looks = v->n_looks;
	memcpy(l->looks, v->looks, sizeof(l->looks));
	l->push = v->looks[0].kind == BODY_INSPECT_PUSH;
	l->refused = UINT32_MAX;
	l->verdict = (struct body_inspect_verdict){
		REASON_DENIED, v->looks[0].rule, RULE_NONE, RULE_NONE, { .wrong = NULL }
	};
	if (coding.s && !http_text_is(coding, "identity")) {
		l->zip = gunzip_new();
		if (!l->zip) {
			free(l);
			return NULL;
		}
	}
	return l;
}

void body_inspect_free(struct body_inspect *l)
{
	if (!l)
		return;
	gunzip_free(l->zip);
	git_push_free(&l->commands);
	git_pack_free(l->pack);
	buf_free(&l->plain);
	free(l);
}

const struct body_inspect_verdict *body_inspect_verdict(const struct body_inspect *l)
{
	return &l->verdict;
}

int32_t body_inspect_first_rule(const struct body_inspect *l)
{
	return l->looks[0].rule;
}

bool body_inspect_is_push(const struct body_inspect *l)
{
	return l->push && l->commanded;
}

size_t body_inspect_size(const struct body_inspect *l)
{
	return l->plain.cap + (l->pack ? git_pack_size(l->pack) : 0);
}

static enum body_inspect_say refuse(struct body_inspect *l, enum verdict_reason reason)
{
	l->decided = true;
	l->verdict.reason = reason;
	return l->say = BODY_INSPECT_REFUSE;
}

void body_inspect_deny(struct body_inspect *l, enum verdict_reason reason)
{
	(void)refuse(l, reason);
}

static enum body_inspect_say pass(struct body_inspect *l, const struct http_look *by)
{
	l->decided = true;
	l->verdict.reason = REASON_ALLOWED;
	l->verdict.rule = by->rule;
	l->verdict.request_limit = by->request_limit;
	l->verdict.response_limit = by->response_limit;
	return l->say = BODY_INSPECT_PASS;
}

/* The conditions of a rule; NULL: it is no longer in force. */
static const char *conditions_of(const struct rules *rules, int32_t rule, size_t *ret_len)
{
	const struct rule *item =
		rule >= 0 && (uint32_t)rule < rules->n_items ? &rules->items[rule] : NULL;

	if (!item || item->dead || item->waf || !item->http_len)
		return NULL;
	*ret_len = item->http_len;
	return rules->text + item->http;
}

/* Whether this one allows after a yes only. */
static bool is_asking(const struct rules *rules, const struct http_look *by)
{
	return (uint32_t)by->rule < rules->n_items && rules->items[by->rule].ask;
}

/* Whether it allows any body after a yes. */
static bool asks_only(const struct rules *rules, const struct http_look *by)
{
	return by->kind == BODY_INSPECT_NONE && is_asking(rules, by) &&
	       !rules->items[by->rule].dead;
}

/* -- GraphQL and JSON-RPC */

static enum verdict_reason ask_body(const struct body_inspect *l, const struct http_look *by,
				    const char *conditions, size_t len, struct asked *ret)
{
	const uint8_t *bytes = (const uint8_t *)buf_text(&l->plain);
	size_t n = l->plain.len;
	bool fits;

	if (l->taken > by->request_limit)
		return REASON_REQUEST_SIZE;
	fits = by->kind == BODY_INSPECT_GRAPHQL ? graphql_body_fits(conditions, len, bytes, n, ret)
	       : by->kind == BODY_INSPECT_RPC
		       ? rpc_body_fits(conditions, len, bytes, n, ret)
		       : by->kind == BODY_INSPECT_GRAPHQL_TEXT &&
				 graphql_text_fits(conditions, len, (const char *)bytes, n, ret);
	if (fits)
		return REASON_ALLOWED;
	if (by->kind == BODY_INSPECT_RPC)
		return ret->wrong ? REASON_RPC_BAD : REASON_RPC;
	return ret->wrong ? REASON_GRAPHQL_BAD : REASON_GRAPHQL;
}

static enum body_inspect_say decide_body(struct body_inspect *l, const struct rules *rules)
{
	enum verdict_reason last = REASON_CHANGED;
	struct asked asking = { .wrong = NULL };

	for (unsigned i = 0; i < l->n_looks; i++) {
		const struct http_look *by = &l->looks[i];
		struct asked asked = { .wrong = NULL };
		size_t len = 0;
		const char *conditions = conditions_of(rules, by->rule, &len);
		enum verdict_reason reason;

		if (!conditions && !asks_only(rules, by))
			continue;
		reason = asks_only(rules, by) ? REASON_ALLOWED
					      : ask_body(l, by, conditions, len, &asked);
		if (reason == REASON_ALLOWED && is_asking(rules, by)) {
			if (!l->asks) {
				l->asking = *by;
				asking = asked;
			}
			l->asks = true;
			continue;
		}
		l->verdict.asked = asked;
		l->verdict.rule = by->rule;
		if (reason == REASON_ALLOWED)
			return pass(l, by);
		last = reason;
	}
	if (!l->asks)
		return refuse(l, last);
	l->verdict.asked = asking;
	return pass(l, &l->asking);
}

/* -- git */

static void ask_for(struct asked *a, const char *key, const char *text, size_t n)
{
	*a = (struct asked){ .wrong = NULL };
	asked_add(a, key, strlen(key));
	asked_add(a, text, n);
}

/* For the remedy: what git wanted to do with which ref. Of several in one push none: one rule has
 * to allow them all. */
static void ask_use(const struct body_inspect *l, struct asked *a, const char *use,
		    const struct git_command *c)
{
	const char *ref = buf_text(&l->plain) + c->ref;

	if (l->commands.count != 1 || c->ref_len > 160 || memchr(ref, ' ', c->ref_len) ||
	    memchr(ref, '\0', c->ref_len))
		snprintf(a->more, sizeof(a->more), "use=%s", use);
	else
		snprintf(a->more, sizeof(a->more), "use=%s ref=%.*s", use, (int)c->ref_len, ref);
}

/* One command: allowed, refused, or REASON_GIT_FORCE: it wants a proof, or the right to do
 * without. */
static enum verdict_reason ask_command(const struct body_inspect *l, const struct git_command *c,
				       const char *conditions, size_t len, struct asked *ret)
{
	const char *ref = buf_text(&l->plain) + c->ref, *need = c->delete ? "delete" : "push";

	if (!body_inspect_fits(conditions, len, POLICY_HTTP_REF, ref, c->ref_len)) {
		ask_for(ret, "refs=", ref, c->ref_len);
		ask_use(l, ret, need, c);
		return REASON_GIT;
	}
	if (!body_inspect_has(conditions, len, POLICY_HTTP_GIT, need)) {
		ask_for(ret, "git=", need, strlen(need));
		ask_use(l, ret, need, c);
		return REASON_GIT;
	}
	if (c->create || c->delete || body_inspect_has(conditions, len, POLICY_HTTP_GIT, "force"))
		return REASON_ALLOWED;
	ask_for(ret, "git=", "force", 5);
	ask_use(l, ret, "push+force", c);
	return REASON_GIT_FORCE;
}

/* All commands, by one rule. REASON_GIT_FORCE: those in wanted[] (count) are to be proven. */
static enum verdict_reason ask_commands(struct body_inspect *l, const char *conditions, size_t len,
					unsigned *ret_count, unsigned *ret_refused)
{
	struct asked asked = { .wrong = NULL };

	*ret_count = 0;
	*ret_refused = UINT32_MAX;
	if (l->commands.options && !body_inspect_has(conditions, len, POLICY_HTTP_GIT, "options")) {
		ask_for(&l->verdict.asked, "git=", "options", 7);
		if (l->commands.count)
			ask_use(l, &l->verdict.asked, "push+options", &l->commands.commands[0]);
		return REASON_GIT;
	}
	for (unsigned i = 0; i < l->commands.count; i++) {
		const struct git_command *c = &l->commands.commands[i];
		enum verdict_reason reason = ask_command(l, c, conditions, len, &asked);
		/* a tag that moves is no fast-forward, whatever it points to */
		bool tag = c->ref_len > 10 &&
			   memcmp(buf_text(&l->plain) + c->ref, "refs/tags/", 10) == 0;

		if (reason == REASON_GIT_FORCE && !tag && *ret_count < GIT_UPDATES_MAX) {
			l->wanted[(*ret_count)++] = i;
			continue;
		}
		if (reason != REASON_ALLOWED) {
			l->verdict.asked = asked;
			*ret_refused = i;
			return reason;
		}
	}
	return *ret_count ? REASON_GIT_FORCE : REASON_ALLOWED;
}

/* "push:refs/heads/a,delete:refs/heads/b" for what passes. */
static void describe(struct body_inspect *l)
{
	struct asked *a = &l->verdict.asked;

	*a = (struct asked){ .text = "git=" };
	for (unsigned i = 0; i < l->commands.count; i++) {
		const struct git_command *c = &l->commands.commands[i];

		if (i)
			asked_add(a, ",", 1);
		asked_add(a, c->delete ? "delete:" : "push:", c->delete ? 7 : 5);
		asked_add(a, buf_text(&l->plain) + c->ref, c->ref_len);
	}
}

static enum body_inspect_say pass_after_yes(struct body_inspect *l)
{
	const struct git_command *c = l->commands.commands;

	describe(l);
	if (l->commands.count)
		ask_use(l, &l->verdict.asked, c->delete ? "delete" : "push", c);
	return pass(l, &l->asking);
}

static enum body_inspect_say begin_proof(struct body_inspect *l, unsigned count)
{
	l->pack = git_pack_new(l->commands.id_len);
	for (unsigned i = 0; i < count && l->pack; i++) {
		const struct git_command *c = &l->commands.commands[l->wanted[i]];

		if (!git_pack_want(l->pack, c->old, c->new))
			return l->asks ? pass_after_yes(l) : refuse(l, REASON_GIT_FORCE);
	}
	return l->pack ? BODY_INSPECT_MORE : refuse(l, REASON_FULL);
}

/* A rule that allows the commands if they are proven. One that asks gives way. */
static void wait_for_proof(struct body_inspect *l, const struct rules *rules,
			   const struct http_look *by, bool *some)
{
	if (!*some || (is_asking(rules, &l->waiting) && !is_asking(rules, by)))
		l->waiting = *by;
	*some = true;
}

/* The commands are there: a rule that allows them all, or one that does if they are proven, or one
 * that does after a yes. */
static enum body_inspect_say decide_commands(struct body_inspect *l, const struct rules *rules)
{
	enum verdict_reason last = REASON_CHANGED;
	bool proofs = false;
	unsigned count;

	for (unsigned i = 0; i < l->n_looks; i++) {
		const struct http_look *by = &l->looks[i];
		size_t len = 0;
		unsigned refused = UINT32_MAX;
		const char *conditions = conditions_of(rules, by->rule, &len);
		enum verdict_reason reason;

		if (!conditions && !asks_only(rules, by))
			continue;
		reason = asks_only(rules, by) ? REASON_ALLOWED
					      : ask_commands(l, conditions, len, &count, &refused);
		if (reason == REASON_ALLOWED && is_asking(rules, by)) {
			l->asking = l->asks ? l->asking : *by;
			l->asks = true;
		} else if (reason == REASON_ALLOWED) {
			describe(l);
			return pass(l, by);
		} else if (count && reason == REASON_GIT_FORCE && refused == UINT32_MAX) {
			wait_for_proof(l, rules, by, &proofs);
		} else {
			l->refused = refused;
			l->verdict.rule = by->rule;
			last = reason;
		}
	}
	if (l->asks && (!proofs || is_asking(rules, &l->waiting)))
		return pass_after_yes(l);
	if (!proofs)
		return refuse(l, last);
	/* what wanted[] says is the last rule's: ask the one that waits again */
	size_t len = 0;
	const char *conditions = conditions_of(rules, l->waiting.rule, &len);
	unsigned refused;

	(void)ask_commands(l, conditions, len, &count, &refused);
	return begin_proof(l, count);
}

static enum body_inspect_say unproven(struct body_inspect *l)
{
	unsigned i = git_pack_unproven(l->pack);

	if (l->asks)
		return pass_after_yes(l);
	l->refused = i < GIT_UPDATES_MAX ? l->wanted[i] : UINT32_MAX;
	l->verdict.rule = l->waiting.rule;
	ask_for(&l->verdict.asked, "git=", "force", 5);
	if (l->refused < l->commands.count)
		ask_use(l, &l->verdict.asked, "push+force", &l->commands.commands[l->refused]);
	return refuse(l, REASON_GIT_FORCE);
}

static enum body_inspect_say take_pack(struct body_inspect *l, const uint8_t *bytes, size_t n,
				       bool end)
{
	git_pack_take(l->pack, bytes, n);
	if (git_pack_proves(l->pack, end || l->taken > BODY_INSPECT_PUSH_BYTES)) {
		describe(l);
		l->proven = true;
		return pass(l, &l->waiting);
	}
	return end || l->taken > BODY_INSPECT_PUSH_BYTES ? unproven(l) : BODY_INSPECT_MORE;
}

static enum body_inspect_say take_push(struct body_inspect *l, const struct rules *rules, bool end)
{
	enum body_inspect_say say;
	size_t rest;

	if (!l->commanded) {
		int r = git_push_take(&l->commands, (const uint8_t *)buf_text(&l->plain),
				      l->plain.len);

		if (r < 0 || (r == 0 && end)) {
			l->verdict.asked.wrong = r < 0 ? l->commands.wrong
						       : "the commands of the push are not whole";
			return refuse(l, REASON_GIT_BAD);
		}
		if (r == 0)
			return BODY_INSPECT_MORE;
		l->commanded = true;
		say = decide_commands(l, rules);
		if (say != BODY_INSPECT_MORE)
			return say;
	}
	rest = l->commands.at;
	say = take_pack(l, (const uint8_t *)buf_text(&l->plain) + rest, l->plain.len - rest, end);
	l->plain.len = rest; /* the pack has been read; the commands stay, for the answer */
	return say;
}

/* -- the bytes */

enum body_inspect_say body_inspect_take(struct body_inspect *l, const struct rules *rules,
					const uint8_t *bytes, size_t n, bool end)
{
	size_t most = l->push ? BODY_INSPECT_PUSH_BYTES * 2 : BODY_INSPECT_BYTES;

	if (l->decided)
		return l->say;
	l->taken += n;
	if (l->zip && !gunzip_take(l->zip, bytes, n, most, &l->plain))
		return refuse(l, l->plain.len + 16384 > most ? REASON_LOOK_SIZE : REASON_ENCODING);
	if (!l->zip)
		buf_add(&l->plain, bytes, n);
	if (l->plain.failed)
		return refuse(l, REASON_FULL);
	if (l->plain.len > most || (!l->push && l->taken > BODY_INSPECT_BYTES))
		return refuse(l, REASON_LOOK_SIZE);
	if (l->zip && end && !gunzip_is_done(l->zip))
		return refuse(l, REASON_ENCODING);
	if (l->push)
		return take_push(l, rules, end);
	return end ? decide_body(l, rules) : BODY_INSPECT_MORE;
}

/* "main 1a2b3c4d5e6f -> 6f5e4d3c2b1a": which reference the server is to set to what. */
static void show_command(const struct body_inspect *l, const struct git_command *c, struct buf *out)
{
	const char *ref = buf_text(&l->plain) + c->ref;

	for (size_t i = 0; i < c->ref_len; i++)
		buf_printf(out, "%c", ref[i] <= ' ' || ref[i] > '~' ? '?' : ref[i]);
	buf_puts(out, c->create ? " new" : " ");
	for (unsigned i = 0; i < 6 && !c->create; i++)
		buf_printf(out, "%02x", c->old[i]);
	buf_puts(out, " -> ");
	for (unsigned i = 0; i < 6 && !c->delete; i++)
		buf_printf(out, "%02x", c->new[i]);
	buf_puts(out, c->delete                  ? "deleted"
		      : !c->create && !l->proven ? " (may lose commits)"
						 : "");
}

void body_inspect_show(const struct body_inspect *l, struct buf *out)
{
	if (!l->push) {
		buf_add(out, l->plain.data, l->plain.len);
		return;
	}
	for (unsigned i = 0; i < l->commands.count; i++) {
		buf_puts(out, i ? ", " : "");
		show_command(l, &l->commands.commands[i], out);
	}
}

bool body_inspect_report(const struct body_inspect *l, const char *message, struct buf *out)
{
	const char **whys = calloc(l->commands.count + 1, sizeof(*whys));

	for (unsigned i = 0; whys && i < l->commands.count; i++)
		whys[i] = i == l->refused || l->refused == UINT32_MAX
				  ? verdict_reason_text(l->verdict.reason)
				  : "another part of the push was refused";
	if (whys)
		git_push_report(&l->commands, (const uint8_t *)buf_text(&l->plain), whys, message,
				out);
	out->failed |= !whys;
	free(whys);
	return !out->failed;
}

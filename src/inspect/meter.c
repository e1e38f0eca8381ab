/*
 * Counting what requests cost (meter.h). In: requests and answers as they pass. Out: yes or no
 * before a request is complete at the server, and what was spent. Of a rule for language models
 * only what can be counted passes: the paths below, with a body that says its model in a way that
 * everybody reads alike. Before the last byte of a request goes the most that it may cost is held:
 * its bytes as so many tokens, and as many tokens as it lets the answer have; all that is left,
 * where it refers to what the server fetches or does itself. Afterwards counts what a whole answer
 * says. Any other request of which a byte has gone costs what was held: one that the program took
 * back, hung up on or never read to its end, one that the server did not answer, an answer without
 * usage. So what the provider can bill for all of them never passes the limit by more than one
 * request. An answer with an error status costs nothing. An answer that goes beyond what is held is
 * broken off. Runs in front.
 */
#include "inspect/meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "policy/units.h"
#include "rules/http_alias.h"

#define BYTES_A_TOKEN 3 /* of a text whose tokens were not counted: few */
#define TOKENS_MOST UINT64_C(1000000000)

enum path_kind { PATH_OTHER, PATH_FREE, PATH_PAID, PATH_EMBEDDING };

struct meter {
	int32_t rule;
	uint8_t kind;   /* enum path_kind */
	uint8_t limits; /* keys that its service heeds, bits of enum tokens_limit */
	bool judged, answered, fine, events, unreadable; /* fine: the answer is a success */
	uint64_t held, request_bytes, answer_bytes;
	/* what it may cost, where the answer began before it could be held */
	uint64_t held_missing;
	struct price price;
	struct tokens asked, answer;
	char note[64];
};

/* -- which requests */

/* Of two that fit the first counts. */
static const struct paid_path {
	const char *end;
	uint8_t kind, limits;
} paths[] = {
	{ "/chat/completions", PATH_PAID, 1 << TOKENS_LIMIT_ALL | 1 << TOKENS_LIMIT_COMPLETION },
	{ "/completions", PATH_PAID, 1 << TOKENS_LIMIT_ALL },
	{ "/responses", PATH_PAID, 1 << TOKENS_LIMIT_OUTPUT },
	{ "/messages", PATH_PAID, 1 << TOKENS_LIMIT_ALL },
	{ "/embeddings", PATH_EMBEDDING, 0 },
	{ "/messages/count_tokens", PATH_FREE, 0 },
	{ "/moderations", PATH_FREE, 0 },
	{ "/responses/input_tokens", PATH_FREE, 0 },
};

static bool ends_with(struct http_text path, const char *end)
{
	size_t n = strlen(end);

	return path.n >= n && memcmp(path.s + path.n - n, end, n) == 0;
}

static struct paid_path kind_of(const struct http_request *r, struct http_text path)
{
	static const char *const reading[] = { "GET", "HEAD", "OPTIONS", "DELETE" };

	for (size_t i = 0; i < ARRAY_LEN(reading); i++)
		if (http_text_is(r->method, reading[i]))
			return (struct paid_path){ .kind = r->websocket || r->body ||
									   http_override(r, 0).s
								   ? PATH_OTHER
								   : PATH_FREE };
	for (size_t i = 0; i < ARRAY_LEN(paths) && http_text_is(r->method, "POST"); i++)
		if (ends_with(path, paths[i].end))
			return paths[i];
	return (struct paid_path){ .kind = PATH_OTHER };
}

/* A body of whose tokens its bytes say nothing. */
static bool is_packed(const struct http_request *r)
{
	unsigned count;
	struct http_text coding = http_field_only(&r->fields, "content-encoding", &count);

	return count && !http_text_is(coding, "identity");
}

/* The answer shall come as it can be read. */
static void ask_for_plain(struct http_request *r)
{
	static const struct http_field plain = { { "accept-encoding", 15 }, { "identity", 8 } };
	unsigned kept = 0;

	for (unsigned i = 0; i < r->fields.count; i++)
		if (!http_text_is(r->fields.items[i].name, "accept-encoding"))
			r->fields.items[kept++] = r->fields.items[i];
	r->fields.count = kept;
	if (kept < HTTP_FIELDS_MAX)
		r->fields.items[r->fields.count++] = plain;
}

enum verdict_reason meter_request(struct front *f, struct exchange *ex, struct http_request *r,
				  const struct http_verdict *v, struct meter **ret)
{
	const struct rule *rule = v->rule >= 0 ? &f->rules->items[v->rule] : NULL;
	struct budget *b = &f->budget;
	struct paid_path kind = { .kind = PATH_FREE };
	uint64_t wait_ms;

	*ret = NULL;
	ex->llm = rule && rule->llm;
	if (budget_fit(b, f->rules) < 0)
		return REASON_FULL;
	if (!budget_pace(b, f->rules, v->rule, io_now_ms(), &wait_ms)) {
		ex->retry_s = (uint32_t)((wait_ms + 999) / 1000);
		return REASON_REQUEST_RATE;
	}
	if (ex->llm)
		kind = kind_of(r, v->path);
	if (kind.kind == PATH_FREE ||
	    (kind.kind == PATH_OTHER && f->rules->unpriced == UNPRICED_FREE && !f->rules->n_prices))
		return REASON_ALLOWED;
	if (kind.kind == PATH_OTHER)
		return REASON_UNMETERED;
	if (is_packed(r) && f->rules->n_prices) {
		snprintf(ex->why, sizeof(ex->why),
			 "the cost of a compressed request cannot be determined: send it "
			 "uncompressed");
		return REASON_UNMETERED;
	}
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return REASON_FULL;
	(*ret)->rule = v->rule;
	(*ret)->kind = kind.kind;
	(*ret)->limits = kind.limits;
	tokens_begin_request(&(*ret)->asked);
	ask_for_plain(r);
	return REASON_ALLOWED;
}

/* -- before it goes */

void meter_body(struct meter *m, const uint8_t *bytes, size_t n)
{
	if (!m)
		return;
	m->request_bytes += n;
	tokens_take(&m->asked, bytes, n);
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A model that costs as much as the dearest of each. */
static struct price dearest(const struct rules *r)
{
	struct price p = { .max_output = 1 };

	for (uint32_t i = 0; i < r->n_prices; i++) {
		p.input = most_of(p.input, r->prices[i].input);
		p.output = most_of(p.output, r->prices[i].output);
		p.cache_read = most_of(p.cache_read, r->prices[i].cache_read);
		p.cache_write = most_of(p.cache_write, r->prices[i].cache_write);
		p.max_output = most_of(p.max_output, r->prices[i].max_output);
	}
	return p;
}

/* Everybody reads the request alike. */
static bool is_plain(const struct tokens *asked)
{
	return asked->whole && !asked->odd && !asked->broken;
}

/* False: there is no price for it. Only a model whose name is known can be free. */
static bool find_price(const struct rules *r, struct meter *m)
{
	bool named = m->asked.model_said && is_plain(&m->asked);
	const struct price *p = named ? price_find(r->prices, r->n_prices, m->asked.model) : NULL;

	m->price = p ? *p : dearest(r);
	if (!p && named && r->unpriced == UNPRICED_FREE)
		m->price = (struct price){ .max_output = 0 };
	return p != NULL;
}

/* How many tokens the answer may have. A key that this service does not heed makes it no
 * shorter. */
static uint64_t most_output(const struct meter *m)
{
	bool said = false;

	for (unsigned i = 0; i < TOKENS_LIMITS; i++)
		said |= m->limits >> i & 1 && m->asked.limits[i];
	return said && is_plain(&m->asked) ? m->asked.most
					   : most_of(m->asked.most, m->price.max_output);
}

/* The most that the request may cost. */
static uint64_t most_cost(const struct meter *m)
{
	struct price p = m->price;
	struct tokens t = { .input = m->request_bytes };
	uint64_t output = most_output(m);

	p.input = most_of(p.input, p.cache_write);
	output = output > TOKENS_MOST ? TOKENS_MOST : output;
	if (m->kind != PATH_EMBEDDING)
		t.output = output * (m->asked.choices > 1000 ? 1000 : most_of(m->asked.choices, 1));
	return price_of(&p, &t);
}

/* What a server fetches by itself may be as large as it likes: nothing else is under way beside
 * it. */
static uint64_t what_to_hold(const struct front *f, const struct meter *m)
{
	uint64_t amount = most_cost(m), left = budget_left(&f->budget, f->rules, m->rule);

	return m->asked.refers && left != RULE_NONE ? most_of(amount, left) : amount;
}

static void explain(const struct front *f, struct exchange *ex, const struct meter *m,
		    enum budget_say say, uint64_t amount)
{
	uint64_t left = budget_left(&f->budget, f->rules, m->rule);
	auto_buf may = { 0 }, rest = { 0 };

	units_put_money(amount, &may);
	units_put_money(left, &rest);
	if (say == BUDGET_BUSY)
		snprintf(ex->why, sizeof(ex->why),
			 "this request may cost %s, and pending requests may use up what is left "
			 "(%s): try again when they are done",
			 buf_text(&may), buf_text(&rest));
	else if (left)
		snprintf(ex->why, sizeof(ex->why),
			 "this request may cost %s, and %s of the budget is left: limit the answer "
			 "(max_tokens), or stop",
			 buf_text(&may), buf_text(&rest));
	else
		snprintf(ex->why, sizeof(ex->why),
			 "the budget is spent: this run can send no more requests to this service");
}

enum verdict_reason meter_judge(struct front *f, struct exchange *ex, struct meter *m,
				bool complete)
{
	enum budget_say say;
	uint64_t amount;

	if (!m || m->judged || (!complete && !m->asked.whole))
		return REASON_ALLOWED;
	tokens_end(&m->asked);
	if (m->asked.later) {
		snprintf(ex->why, sizeof(ex->why),
			 "the cost of a background answer cannot be determined: send the request "
			 "without \"background\"");
		return REASON_UNMETERED;
	}
	if (!find_price(f->rules, m)) {
		snprintf(ex->why, sizeof(ex->why),
			 m->asked.model_said && is_plain(&m->asked)
				 ? "the model %s has no price in the policy"
				 : "the request does not name its model in plain JSON with each "
				   "key once%.0s",
			 m->asked.model);
		if (f->rules->unpriced == UNPRICED_REFUSE)
			return REASON_UNPRICED;
		ex->why[0] = '\0';
	}
	amount = what_to_hold(f, m);
	say = budget_hold(&f->budget, f->rules, m->rule, amount);
	if (say != BUDGET_FINE) {
		explain(f, ex, m, say, amount);
		ex->retry_s = say == BUDGET_BUSY ? 1 : 0;
		return say == BUDGET_BUSY ? REASON_SPEND_BUSY : REASON_SPENT;
	}
	m->judged = true;
	m->held = amount;
	return REASON_ALLOWED;
}

/* -- the answer */

static bool begins(struct http_text t, const char *with)
{
	struct http_text head = { t.s, strlen(with) };

	return t.n >= head.n && http_text_is(head, with);
}

bool meter_answer(struct front *f, struct exchange *ex, struct meter *m, unsigned status,
		  struct http_text type, struct http_text encoding)
{
	if (!m)
		return true;
	m->answered = true;
	m->fine = status >= 200 && status < 300;
	/* a server need not wait for the end of what it is asked */
	if (m->fine && meter_judge(f, ex, m, true) != REASON_ALLOWED) {
		m->judged = true; /* it has begun, though: that counts */
		m->held_missing = most_cost(m);
		return false;
	}
	m->events = begins(type, "text/event-stream");
	m->unreadable = encoding.n && !http_text_is(encoding, "identity");
	tokens_begin(&m->answer, m->events);
	return true;
}

const char *meter_note(const struct front *f, struct meter *m)
{
	unsigned percent = m ? budget_percent(&f->budget, f->rules, m->rule) : 0;

	if (!percent || !f->rules->spend_warning || percent < f->rules->spend_warning)
		return NULL;
	snprintf(m->note, sizeof(m->note), "%u%% of the budget is spent", percent);
	return m->note;
}

/* By what was seen of the answer. */
static uint64_t seen_cost(const struct meter *m)
{
	struct tokens t = m->answer;

	if (!t.input && !t.cache_read && !t.cache_write)
		t.input = m->request_bytes / BYTES_A_TOKEN + 1;
	t.output = most_of(most_of(t.output, t.events_seen), t.text_bytes / BYTES_A_TOKEN);
	if (!t.output)
		t.output = m->answer_bytes / BYTES_A_TOKEN;
	if (m->kind == PATH_EMBEDDING)
		t.output = 0;
	return price_of(&m->price, &t);
}

bool meter_data(struct front *f, struct meter *m, const uint8_t *bytes, size_t n)
{
	uint64_t cost;

	if (!m || !m->fine)
		return true;
	m->answer_bytes += n;
	if (m->unreadable)
		return true;
	tokens_take(&m->answer, bytes, n);
	cost = m->events ? seen_cost(m) : 0;
	if (cost <= m->held)
		return true;
	if (budget_hold(&f->budget, f->rules, m->rule, cost - m->held) != BUDGET_FINE)
		return false;
	m->held = cost;
	return true;
}

bool meter_cut_off(struct front *f, struct exchange *ex, const struct meter *m, struct buf *out)
{
	auto_buf rule = { 0 };

	if (!m || !m->events)
		return false;
	snprintf(ex->why, sizeof(ex->why), "the budget is spent: the answer is cut off here");
	rules_text(f->rules, m->rule, &rule);
	buf_puts(out, "\n\nevent: error\ndata: ");
	meter_say(ex, REASON_SPENT, buf_text(&rule), "", out);
	buf_puts(out, "\n");
	return !out->failed;
}

/* -- the end */

static uint64_t final_cost(const struct rules *r, struct meter *m, enum meter_way how)
{
	const struct price *p;

	if (how == METER_UNSENT || (m->answered && !m->fine))
		return 0;
	if (m->unreadable || !m->answered)
		return most_of(m->held, m->held_missing);
	tokens_end(&m->answer);
	p = *m->answer.model ? price_find(r->prices, r->n_prices, m->answer.model) : NULL;
	if (p)
		m->price = *p;
	if (how == METER_WHOLE && tokens_said(&m->answer))
		return price_of(&m->price, &m->answer);
	return most_of(most_of(m->held, m->held_missing), seen_cost(m));
}

static void tell(struct front *f, const struct meter *m, uint64_t cost, unsigned warned)
{
	struct budget *b = &f->budget;

	front_flow_report_spent(f, m->rule, *m->answer.model ? m->answer.model : m->asked.model,
				m->answer.input + m->answer.cache_read + m->answer.cache_write,
				m->answer.output, cost);
	if (warned & 1)
		front_flow_report_budget(f, -1, b->whole.spent, f->rules->limits.spend);
	if (warned & 2)
		front_flow_report_budget(f, m->rule, b->rules[m->rule].spent,
					 f->rules->items[m->rule].limits.spend);
}

void meter_end(struct front *f, struct meter *m, enum meter_way how)
{
	uint64_t cost;
	unsigned warned;

	if (!m)
		return;
	if (m->judged) {
		cost = final_cost(f->rules, m, how);
		warned = budget_settle(&f->budget, f->rules, m->rule, m->held, cost);
		f->totals.spent = f->budget.whole.spent;
		if (how != METER_UNSENT)
			tell(f, m, cost, warned);
	}
	free(m);
}

/* -- answers to the program */

bool meter_is_about(const struct exchange *ex, enum verdict_reason reason)
{
	return ex->llm && (reason == REASON_REQUEST_RATE || reason == REASON_SPENT ||
			   reason == REASON_SPEND_BUSY || reason == REASON_UNPRICED ||
			   reason == REASON_UNMETERED);
}

/* One body for both kinds of clients: {"error": {message, type, code, param}} is OpenAI's, {"type":
 * "error", "error": {type, message}} Anthropic's. */
void meter_say(const struct exchange *ex, enum verdict_reason reason, const char *rule,
	       const char *remedy, struct buf *out)
{
	bool other = strstr(ex->what, "/messages") != NULL,
	     later = reason == REASON_REQUEST_RATE || reason == REASON_SPEND_BUSY;
	struct json j = { .out = out };
	auto_buf message = { 0 };

	buf_printf(&message, "refused by ward: %s",
		   *ex->why ? ex->why : verdict_reason_text(reason));
	json_begin_object(&j, NULL);
	json_string(&j, "type", "error");
	json_begin_object(&j, "error");
	json_string(&j, "type",
		    later                    ? "rate_limit_error"
		    : reason != REASON_SPENT ? "invalid_request_error"
		    : other                  ? "billing_error"
					     : "insufficient_quota");
	json_string(&j, "code",
		    later                    ? "rate_limit_exceeded"
		    : reason == REASON_SPENT ? "insufficient_quota"
					     : verdict_reason_name(reason));
	json_string(&j, "param", NULL);
	json_string(&j, "message", buf_text(&message));
	json_end_object(&j);
	json_begin_object(&j, "ward");
	json_string(&j, "request", ex->what);
	json_string(&j, "reason", verdict_reason_name(reason));
	json_string(&j, "rule", rule);
	if (*remedy)
		json_string(&j, "remedy", remedy);
	json_end_object(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
	out->failed |= message.failed;
}

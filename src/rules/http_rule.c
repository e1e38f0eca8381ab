/*
 * Rules asked about requests (http_rule.h). In: the compiled rules, a request as it was read. Out:
 * allowed by which one, with which limits and in which form of its path; or the reason of the rule
 * that came nearest. A rule that asks a person first decides only where no other allows it. Run by
 * front for every request of a connection in mode inspect; the text of a rule's conditions was
 * checked for its bounds when it came (egress_codec.c).
 */
#include "rules/http_rule.h"

#include <string.h>
#include <strings.h>

#include "policy/policy_rule.h"
#include "rules/http_alias.h"

/* The order in which conditions are asked, and the reason when one is not met. */
enum {
	ASK_METHOD,
	ASK_PATH,
	ASK_QUERY,
	ASK_HEADER,
	ASK_TYPE,
	ASK_WEBSOCKET,
	ASK_SIZE,
	ASK_BODY,
	ASKS
};
static const uint8_t reasons[ASKS] = {
	REASON_METHOD, REASON_PATH,      REASON_QUERY,        REASON_HEADER,
	REASON_TYPE,   REASON_WEBSOCKET, REASON_REQUEST_SIZE, REASON_ALLOWED
}; /* of ASK_BODY: what body_inspect_head() says */

struct asking {
	const struct http_request *request;
	struct http_path *room;
	/* some rule has paths: the normal form is what counts and what is forwarded */
	bool paths;
	bool readable; /* it has a normal form */
	bool wanted[ASKS], met[ASKS];
	uint64_t request_limit, response_limit;
	bool body; /* the rule is about what is asked for, too */
	enum body_inspect_kind look;
	enum verdict_reason reason;
	struct asked asked;
};

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A parameter's text without its escapes; false: not understood, or too long. */
static bool decode(struct http_text t, char *out, size_t size, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < t.n; i++) {
		int c = (uint8_t)t.s[i];

		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			if (i + 2 >= t.n || hex(t.s[i + 1]) < 0 || hex(t.s[i + 2]) < 0)
				return false;
			c = hex(t.s[i + 1]) << 4 | hex(t.s[i + 2]);
			i += 2;
		}
		if (c < ' ' || c == 0x7f || n == size)
			return false;
		out[n++] = (char)c;
	}
	*ret_n = n;
	return true;
}

/* Whether one of the conditions allows this parameter. */
static bool parameter_fits(const char *conditions, size_t len, struct http_text parameter)
{
	const char *equals = memchr(parameter.s, '=', parameter.n);
	size_t n = equals ? (size_t)(equals - parameter.s) : parameter.n, name_n = 0, value_n = 0;
	char name[256], value[2048];

	if (memchr(parameter.s, ';', parameter.n) ||
	    !decode((struct http_text){ parameter.s, n }, name, sizeof(name), &name_n) ||
	    (equals && !decode((struct http_text){ equals + 1, parameter.n - n - 1 }, value,
			       sizeof(value), &value_n)))
		return false;
	for (size_t at = 0; at < len; at += strlen(conditions + at) + 1) {
		const char *c = conditions + at,
			   *sign = *c == POLICY_HTTP_QUERY ? strchr(c, '=') : NULL;
		size_t c_n = *c != POLICY_HTTP_QUERY ? 0
			     : sign                  ? (size_t)(sign - c) - 1
						     : strlen(c) - 1;

		if (c_n && c_n == name_n && memcmp(c + 1, name, name_n) == 0 &&
		    (!sign || http_glob(sign + 1, strlen(sign + 1), value, value_n)))
			return true;
	}
	return false;
}

static bool query_fits(const char *conditions, size_t len, struct http_text query)
{
	while (query.n) {
		const char *end = memchr(query.s, '&', query.n);
		size_t n = end ? (size_t)(end - query.s) : query.n;

		if (n && !parameter_fits(conditions, len, (struct http_text){ query.s, n }))
			return false;
		query = (struct http_text){ query.s + n + (end ? 1 : 0),
					    query.n - n - (end ? 1 : 0) };
	}
	return true;
}

/* "name:pattern": there is such a field, and all that any server would take for it match. */
static bool header_fits(const struct http_fields *f, const char *condition)
{
	const char *colon = strchr(condition, ':');
	size_t n = colon ? (size_t)(colon - condition) : 0;
	char name[256];
	bool found = false;

	if (!n || n >= sizeof(name))
		return false;
	memcpy(name, condition, n);
	name[n] = '\0';
	for (unsigned i = 0; i < f->count; i++) {
		const struct http_field *field = &f->items[i];

		if (!http_name_like(field->name.s, field->name.n, name))
			continue;
		if (!http_glob(colon + 1, strlen(colon + 1), field->value.s, field->value.n))
			return false;
		found |= http_text_is(field->name, name);
	}
	return found;
}

static bool type_fits(const struct http_request *r, const char *pattern)
{
	unsigned count;
	/* of two each server takes another */
	struct http_text value = http_field_only(&r->fields, "content-type", &count);
	char type[128];
	size_t n = 0;

	while (n < value.n && n < sizeof(type) && value.s[n] != ';' && value.s[n] != ' ' &&
	       value.s[n] != ',') {
		type[n] = (char)(value.s[n] >= 'A' && value.s[n] <= 'Z' ? value.s[n] | 0x20
									: value.s[n]);
		n++;
	}
	return n && n < sizeof(type) && (n == value.n || value.s[n] != ',') &&
	       http_glob(pattern, strlen(pattern), type, n);
}

static bool path_fits(const struct asking *a, const char *pattern)
{
	size_t n = strlen(pattern);

	if (!a->readable || http_moves_path(a->request))
		return false;
	return http_glob(pattern, n, a->room->text, a->room->len) &&
	       (!a->room->two || http_glob(pattern, n, a->room->other, a->room->other_len));
}

/* Whether the method that a header or a parameter names, for servers that take it from there, is
 * one of the rule's, too. */
static bool overrides_fit(const struct http_request *r, const char *conditions, size_t len)
{
	struct http_text method;
	bool fits = true;

	for (unsigned i = 0; fits && (method = http_override(r, i)).s; i++) {
		fits = false;
		for (size_t at = 0; at < len && !fits; at += strlen(conditions + at) + 1)
			fits = conditions[at] == POLICY_HTTP_METHOD &&
			       http_text_is(method, conditions + at + 1);
	}
	return fits;
}

static uint64_t number(const char *s)
{
	uint64_t value = 0;

	for (; *s >= '0' && *s <= '9' && value < UINT64_MAX / 16; s++)
		value = value * 10 + (uint64_t)(*s - '0');
	return value;
}

static void ask(struct asking *a, const char *conditions, size_t len, const char *condition)
{
	const struct http_request *r = a->request;
	const char *text = condition + 1;
	unsigned what;
	bool met = false;

	switch ((enum policy_http) * condition) {
	case POLICY_HTTP_METHOD:
		what = ASK_METHOD;
		met = r->method.n == strlen(text) && memcmp(r->method.s, text, r->method.n) == 0 &&
		      overrides_fit(r, conditions, len);
		break;
	case POLICY_HTTP_PATH:
		what = ASK_PATH;
		met = path_fits(a, text);
		break;
	case POLICY_HTTP_QUERY:
		what = ASK_QUERY;
		met = a->met[what] || query_fits(conditions, len, r->query);
		break;
	case POLICY_HTTP_HEADER: /* all of them */
		what = ASK_HEADER;
		met = header_fits(&r->fields, text) && (!a->wanted[what] || a->met[what]);
		a->met[what] = false;
		break;
	case POLICY_HTTP_TYPE:
		what = ASK_TYPE;
		met = !r->body || type_fits(r, text);
		break;
	case POLICY_HTTP_REQUEST:
		what = ASK_SIZE;
		a->request_limit = number(text);
		met = !r->has_length || r->length <= a->request_limit;
		break;
	case POLICY_HTTP_WEBSOCKET:
		what = ASK_WEBSOCKET;
		met = true;
		break;
	case POLICY_HTTP_RESPONSE:
		a->response_limit = number(text);
		return;
	case POLICY_HTTP_GRAPHQL:
	case POLICY_HTTP_RPC:
	case POLICY_HTTP_GIT:
		a->body = true;
		return;
	case POLICY_HTTP_REPOSITORY:
	case POLICY_HTTP_REF:
		return;
	default: /* the meaning is unknown: nothing passes */
		what = ASK_METHOD;
		break;
	}
	a->wanted[what] = true;
	a->met[what] |= met;
}

/* How many of the questions are answered in order: ASKS, it is allowed. */
static unsigned ask_rule(struct asking *a, const struct rules *r, const struct rule *rule)
{
	const char *conditions = r->text + rule->http;

	memset(a->wanted, 0, sizeof(a->wanted));
	memset(a->met, 0, sizeof(a->met));
	a->request_limit = a->response_limit = RULE_NONE;
	a->wanted[ASK_WEBSOCKET] = a->request->websocket;
	a->body = false;
	a->look = BODY_INSPECT_NONE;
	a->asked = (struct asked){ 0 };
	for (size_t at = 0; at < rule->http_len; at += strlen(conditions + at) + 1)
		ask(a, conditions, rule->http_len, conditions + at);
	for (unsigned i = 0; i < ASKS; i++)
		if (a->wanted[i] && !a->met[i])
			return i;
	if (rule->ask && !r->asks) { /* there is nobody to ask */
		a->reason = REASON_NOT_ASKED;
		return ASK_BODY;
	}
	if (!a->body)
		return ASKS;
	a->reason = body_inspect_head(conditions, rule->http_len, a->request, a->room, &a->asked,
				      &a->look);
	return a->reason == REASON_ALLOWED ? ASKS : ASK_BODY;
}

/* Whether the rule needs the path in its normal form. */
static bool has_paths(const struct rules *r, const struct rule *rule)
{
	for (size_t at = 0; at < rule->http_len; at += strlen(r->text + rule->http + at) + 1)
		if (r->text[rule->http + at] == POLICY_HTTP_PATH ||
		    r->text[rule->http + at] == POLICY_HTTP_GIT)
			return true;
	return false;
}

/* No head alone allows it. Where a body may still, it comes last. */
static void allow_after_yes(const struct http_look *asks, const struct asked *asked,
			    struct http_verdict *ret)
{
	if (ret->n_looks) {
		if (ret->n_looks < HTTP_LOOKS)
			ret->looks[ret->n_looks++] = *asks;
		return;
	}
	ret->rule = asks->rule;
	ret->reason = REASON_ALLOWED;
	ret->request_limit = asks->request_limit;
	ret->response_limit = asks->response_limit;
	ret->asked = *asked;
	ret->ask = true;
}

/* git asks for the refs before it pushes: which ones is in the push itself, and that is what a
 * person is asked about. */
static bool is_before_push(const struct http_request *r, const struct asking *a)
{
	return a->body && http_text_is(r->method, "GET") && strcmp(a->asked.text, "git=push") == 0;
}

static void note_asking(const struct asking *a, int32_t rule, struct http_look *asks,
			struct asked *asks_for)
{
	if (asks->rule >= 0)
		return;
	*asks = (struct http_look){ rule, BODY_INSPECT_NONE, a->request_limit, a->response_limit };
	*asks_for = a->asked;
}

void http_decide(const struct rules *r, int32_t rule, uint16_t port,
		 const struct http_request *request, struct http_path *room,
		 struct http_verdict *ret)
{
	struct asking a = { .request = request, .room = room };
	struct http_look asks = { .rule = -1 }; /* the first rule that allows it after a yes */
	struct asked asks_for = { 0 };
	unsigned best = 0;

	*ret = (struct http_verdict){ .reason = REASON_DENIED,
				      .rule = rule,
				      .request_limit = RULE_NONE,
				      .response_limit = RULE_NONE,
				      .path = request->path };
	for (int32_t i = rule; i >= 0 && (uint32_t)i < r->n_items; i = rules_sibling(r, i, port))
		a.paths |= has_paths(r, &r->items[i]);
	if (a.paths) {
		a.readable = http_path_read(request->path.s, request->path.n, room);
		if (!a.readable) {
			ret->reason = REASON_PATH_BAD;
			return;
		}
		ret->path = (struct http_text){ room->text, room->len };
	}
	for (int32_t i = rule; i >= 0 && (uint32_t)i < r->n_items; i = rules_sibling(r, i, port)) {
		unsigned n = ask_rule(&a, r, &r->items[i]);

		if (n == ASKS && a.look != BODY_INSPECT_NONE) {
			if (ret->n_looks < HTTP_LOOKS)
				ret->looks[ret->n_looks++] =
					(struct http_look){ i, (uint8_t)a.look, a.request_limit,
							    a.response_limit };
			continue;
		}
		if (n == ASKS && r->items[i].ask && !is_before_push(request, &a)) {
			note_asking(&a, i, &asks, &asks_for);
			continue;
		}
		if (n < ASKS && (n < best || ret->n_looks))
			continue;
		best = n;
		ret->rule = i;
		ret->reason = n == ASKS       ? REASON_ALLOWED
			      : n == ASK_BODY ? (uint8_t)a.reason
					      : reasons[n];
		ret->request_limit = a.request_limit;
		ret->response_limit = a.response_limit;
		ret->asked = a.asked;
		if (n == ASKS) {
			ret->n_looks = 0;
			return;
		}
	}
	if (asks.rule >= 0)
		allow_after_yes(&asks, &asks_for, ret);
	if (ret->n_looks) { /* the body decides */
		ret->rule = ret->looks[0].rule;
		ret->reason = REASON_ALLOWED;
		ret->request_limit = ret->response_limit = RULE_NONE;
		ret->asked = (struct asked){ 0 };
	}
}

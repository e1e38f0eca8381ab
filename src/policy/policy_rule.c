/*
 * Egress rules, taken apart. In: a rule as struct policy holds it (one line of canonical JSON, made
 * by policy_item.c), or as a person writes it. Out: struct policy_rule, all of it bounded. Nothing
 * is decided here. Pure functions; run by the supervisor before the rules are compiled.
 */
#include <errno.h>
#include <string.h>

#include "policy/hostname.h"
#include "policy/policy_http.h"
#include "policy/policy_rule.h"
#include "policy/policy_value.h"
#include "policy/units.h"

static int read_ports(const struct node *list, struct policy_rule *ret, struct ward_err *e)
{
	for (const struct node *n = list ? list->first : NULL; n; n = n->next) {
		uint64_t port;

		if (ret->n_ports == POLICY_RULE_PORTS) {
			ward_fail(e, EINVAL, "%s: more than %d ports in one rule", ret->host,
				  POLICY_RULE_PORTS);
			return ward_remedy(e, "split the rule in two, with some of the ports each");
		}
		if (!n->text || units_parse_uint(n->text, &port) < 0 || port < 1 || port > 65535)
			return ward_fail(e, EINVAL, "%s: not a port", ret->host);
		ret->ports[ret->n_ports++] = (uint16_t)port;
	}
	return ret->n_ports ? 0 : ward_fail(e, EINVAL, "%s: a rule without ports", ret->host);
}

static int read_mode(const struct node *n, struct policy_rule *ret, struct ward_err *e)
{
	unsigned index = POLICY_RULE_BY_PORT;

	if (n &&
	    (!n->text || !schema_word("splice|inspect|http|tcp", n->text, strlen(n->text), &index)))
		return ward_fail(e, EINVAL, "%s: not a mode", ret->host);
	ret->mode = (enum policy_rule_mode)index;
	return 0;
}

static int read_limits(const struct node *map, struct policy_rule *ret, struct ward_err *e)
{
	static const char *const names[] = { "connection_limit", "connection_rate", "receive_limit",
					     "send_limit",       "bandwidth_limit", "request_rate",
					     "spend_limit" };
	uint64_t *const values[] = { &ret->connections, &ret->connection_rate, &ret->receive,
				     &ret->send,        &ret->bandwidth,       &ret->request_rate,
				     &ret->spend };
	const struct node *llm = node_get(map, "llm");

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct node *n = node_get(map, names[i]);

		if (n && (!n->text ||
			  (values[i] == &ret->spend ? units_parse_money(n->text, values[i])
						    : units_parse_uint(n->text, values[i])) < 0))
			return ward_fail(e, EINVAL, "%s: %s is not a number", ret->host, names[i]);
	}
	ret->llm =
		ret->spend != POLICY_NONE || (llm && llm->text && strcmp(llm->text, "true") == 0);
	ret->inspect |= ret->llm || ret->request_rate != POLICY_NONE; /* these count requests */
	return 0;
}

/* -- conditions on HTTP */

static const struct {
	const char *name, *shape;
	enum policy_http kind;
} lists[] = {
	{ "methods", "method", POLICY_HTTP_METHOD },
	{ "paths", "path", POLICY_HTTP_PATH },
	{ "query", "parameter", POLICY_HTTP_QUERY },
	{ "headers", "condition", POLICY_HTTP_HEADER },
	{ "content_types", "media", POLICY_HTTP_TYPE },
	{ "graphql", "graphql", POLICY_HTTP_GRAPHQL },
	{ "json_rpc", "json_rpc", POLICY_HTTP_RPC },
	{ "git", "git", POLICY_HTTP_GIT },
	{ "repositories", "repository", POLICY_HTTP_REPOSITORY },
	{ "refs", "ref", POLICY_HTTP_REF },
};

static const struct {
	const char *name;
	enum policy_http kind;
} scalars[] = { { "request_limit", POLICY_HTTP_REQUEST },
		{ "response_limit", POLICY_HTTP_RESPONSE },
		{ "websocket", POLICY_HTTP_WEBSOCKET } };

const char *policy_http_name(char kind)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if ((char)lists[i].kind == kind)
			return lists[i].name;
	for (size_t i = 0; i < ARRAY_LEN(scalars); i++)
		if ((char)scalars[i].kind == kind)
			return scalars[i].name;
	return "?";
}

static bool add_condition(struct policy_rule *ret, enum policy_http kind, const char *text)
{
	size_t n = strlen(text);

	if (ret->http_len + n + 2 > sizeof(ret->http))
		return false;
	ret->http[ret->http_len] = (char)kind;
	memcpy(ret->http + ret->http_len + 1, text, n + 1);
	ret->http_len += (unsigned)n + 2;
	ret->inspect = true;
	return true;
}

static int too_much(const struct policy_rule *ret, struct ward_err *e)
{
	ward_fail(e, E2BIG, "%s: more than %d bytes of methods, paths and other conditions",
		  ret->host, POLICY_RULE_HTTP_MAX);
	return ward_remedy(e, "split the rule in two, with some of them each");
}

static int read_list(const struct node *map, size_t row, struct policy_rule *ret,
		     struct ward_err *e)
{
	const struct node *list = node_get(map, lists[row].name);
	const char *expected = "", *hint;

	for (const struct node *n = list ? list->first : NULL; n; n = n->next) {
		auto_free char *text = n->text ? strdup(n->text) : NULL;

		if (!text || !http_shape(lists[row].shape, text, &expected, &hint))
			return ward_fail(e, EINVAL, "%s: %s: expected %s", ret->host,
					 lists[row].name, text ? expected : "text");
		http_canonical(lists[row].shape, text);
		if (!add_condition(ret, lists[row].kind, text))
			return too_much(ret, e);
	}
	/* an empty list is a wish that nothing passes */
	if (list && !list->first && !add_condition(ret, lists[row].kind, ""))
		return too_much(ret, e);
	return 0;
}

static int read_http(const struct node *map, struct policy_rule *ret, struct ward_err *e)
{
	const struct node *waf = node_get(map, "waf");

	if (waf && (!waf->text ||
		    !schema_word("off|detect|block", waf->text, strlen(waf->text), &ret->waf)))
		return ward_fail(e, EINVAL, "%s: waf is off, detect or block", ret->host);
	ret->inspect = ret->waf != POLICY_WAF_OFF;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		int r = read_list(map, i, ret, e);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
		const struct node *n = node_get(map, scalars[i].name);

		if (n && n->text && strcmp(n->text, "false") != 0 &&
		    !add_condition(ret, scalars[i].kind, n->text))
			return too_much(ret, e);
	}
	return 0;
}

static int read_host(const char *text, struct policy_rule *ret, struct ward_err *e)
{
	unsigned port;
	const char *wrong = host_parse(text, false, ret->host, &port);

	return wrong ? ward_fail(e, EINVAL, "expected %s", wrong) : 0;
}

static int read_any(const char *line, struct policy_rule *ret, struct ward_err *e)
{
	struct reader reader = { .name = "rule", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));
	const struct node *host = map && map->kind == NODE_MAP ? node_get(map, "host") : NULL;
	const struct node *private = host ? node_get(map, "private") : NULL;
	const struct node *ask = host ? node_get(map, "ask") : NULL;
	int r;

	if (reader.count)
		return -e->code;
	if (!host || !host->text)
		return ward_fail(e, EINVAL, "the rule names no host: add host: NAME");
	r = read_host(host->text, ret, e);
	if (r < 0)
		return r;
	ret->private = private && private->text && strcmp(private->text, "true") == 0;
	ret->ask = ask && ask->text && strcmp(ask->text, "true") == 0;
	r = read_mode(node_get(map, "mode"), ret, e);
	if (r == 0)
		r = read_http(map, ret, e);
	if (r == 0)
		r = read_ports(node_get(map, "ports"), ret, e);
	return r < 0 ? r : read_limits(map, ret, e);
}

/* {"host":"NAME","ports":[PORT]} with a canonical name is how most rules are held: taken apart
 * without a tree. False: it is something else, or wrong. */
static bool read_short(const char *line, struct policy_rule *ret)
{
	static const char before[] = "{\"host\":\"", between[] = "\",\"ports\":[";
	const char *at = line + strlen(before);
	unsigned port = 0;
	struct host host;
	size_t n;

	if (strncmp(line, before, strlen(before)) != 0)
		return false;
	n = strcspn(at, "\"\\");
	if (strncmp(at + n, between, strlen(between)) != 0 ||
	    host_read(at, n, &host) != HOST_FINE || host.kind != HOST_NAME || host.len != n ||
	    memcmp(host.name, at, n) != 0)
		return false;
	at += n + strlen(between);
	if (*at < '1' || *at > '9')
		return false;
	for (n = 0; n < 5 && *at >= '0' && *at <= '9'; n++)
		port = port * 10 + (unsigned)(*at++ - '0');
	if (port > 65535 || strcmp(at, "]}") != 0)
		return false;
	memcpy(ret->host, host.name, (size_t)host.len + 1);
	ret->ports[ret->n_ports++] = (uint16_t)port;
	return true;
}

static void set_defaults(struct policy_rule *ret)
{
	memset(ret, 0, offsetof(struct policy_rule, http));
	ret->mode = POLICY_RULE_BY_PORT;
	ret->connections = ret->connection_rate = ret->receive = ret->send = POLICY_NONE;
	ret->bandwidth = ret->request_rate = ret->spend = POLICY_NONE;
}

int policy_rule_read(const char *line, struct policy_rule *ret, struct ward_err *e)
{
	set_defaults(ret);
	return read_short(line, ret) ? 0 : read_any(line, ret, e);
}

int policy_rule_parse(const char *text, struct policy_rule *ret, bool *ret_port_said,
		      struct ward_err *e)
{
	struct policy p = { 0 };
	char host[256];
	unsigned port = 0;
	int r = policy_defaults(&p, e);

	*ret_port_said = text[strspn(text, " \t")] == '{'
				 ? strstr(text, "ports") != NULL
				 : !host_parse(text, true, host, &port) && port;
	if (r == 0)
		r = policy_set(&p, "network.egress_allowlist", text, true, POLICY_CLI, e);
	if (r == 0 && p.net_egress.len != 1)
		r = ward_fail(e, EINVAL, "%s: expected one rule", text);
	if (r == 0)
		r = policy_rule_read(p.net_egress.items[0], ret, e);
	policy_clear(&p);
	return r;
}

int policy_price_read(const char *line, struct policy_price *ret, struct ward_err *e)
{
	struct reader reader = { .name = "price", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));
	const struct node *model = map && map->kind == NODE_MAP ? node_get(map, "model") : NULL,
			  *most;
	static const char *const names[] = { "input", "output", "cache_read", "cache_write" };
	uint64_t *const values[] = { &ret->input, &ret->output, &ret->cache_read,
				     &ret->cache_write };
	const char *star;

	memset(ret, 0, sizeof(*ret));
	if (reader.count)
		return -e->code;
	star = model && model->text ? strchr(model->text, '*') : NULL;
	if (!model || !model->text || !*model->text || strlen(model->text) >= sizeof(ret->model) ||
	    !http_is_printable(model->text) || (star && star[1]))
		return ward_fail(e, EINVAL,
				 "expected a model of at most %zu characters, * only at its end",
				 sizeof(ret->model) - 1);
	memcpy(ret->model, model->text, strlen(model->text));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct node *n = node_get(map, names[i]);

		*values[i] = i < 2 ? 0 : ret->input * (i - 1);
		if (n ? !n->text || units_parse_money(n->text, values[i]) < 0 : i < 2)
			return ward_fail(e, EINVAL, "%s: %s is not a price", ret->model, names[i]);
	}
	most = node_get(map, "max_output");
	ret->max_output = 32768;
	if (most && (!most->text || units_parse_uint(most->text, &ret->max_output) < 0))
		return ward_fail(e, EINVAL, "%s: max_output is not a number", ret->model);
	return 0;
}

int policy_service_read(const char *text, char ret_name[64], struct policy_rule *ret,
			struct ward_err *e)
{
	const char *expected, *hint;
	size_t n = strcspn(text, "=");
	unsigned port;

	memset(ret, 0, offsetof(struct policy_rule, http));
	if (!value_has_shape("service", text, &expected, &hint) || n > 63)
		return ward_fail(e, EINVAL,
				 "expected NAME=ADDRESS:PORT such as postgres=127.0.0.1:5432");
	memcpy(ret_name, text, n);
	ret_name[n] = '\0';
	expected = host_parse(text + n + 1, true, ret->host, &port);
	if (expected)
		return ward_fail(e, EINVAL, "expected %s", expected);
	ret->ports[0] = (uint16_t)port;
	ret->n_ports = 1;
	return 0;
}

/*
 * Names and connections of ward learn. In: what a run was refused, and what it reached. Out: rules
 * for the next round, and at last the exact ones. A sandbox could ask for any name to have it
 * written into a policy, so nothing is allowed unasked: the user has said --allow HOST (or
 * --allow-public, for names at public addresses), or says yes on the terminal to each. A private
 * address needs a yes of its own, or a rule with private: true; loopback, the host's own addresses
 * and metadata services are never given here.
 */
#include "cli/learn_ways.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "policy/policy_rule.h"

void learn_ways_clear(struct learn_ways *w)
{
	strv_free(&w->answered);
	strv_free(&w->private_hosts);
	strv_free(&w->refused);
}

bool learn_ask(const char *question, int stop_fd)
{
	struct pollfd waits[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				  { .fd = stop_fd, .events = POLLIN } };
	char answer[16];

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	fprintf(stderr, "%s [y/N] ", question);
	fflush(stderr);
	if (poll(waits, ARRAY_LEN(waits), -1) < 0 || waits[1].revents)
		return false;
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static bool rule_fits(const struct policy_rule *r, const char *host)
{
	size_t n = strlen(host), suffix = strlen(r->host);

	if (strcmp(r->host, host) == 0 || strcmp(r->host, "*") == 0)
		return true;
	return strncmp(r->host, "*.", 2) == 0 && n >= suffix &&
	       strcmp(host + n - (suffix - 1), r->host + 1) == 0;
}

/* What the user has said with --allow about a host: 0 nothing, 1 some port, 2 whatever port. */
static int user_said(const struct learn_ways *w, const char *host)
{
	int said = 0;

	for (size_t i = 0; i < w->o->field_count; i++) {
		struct policy_rule rule;
		struct ward_err e = { 0 };
		bool port_said;

		if (strcmp(w->o->fields[i].field, "network.egress_allowlist") != 0 ||
		    policy_rule_parse(w->o->fields[i].value, &rule, &port_said, &e) < 0 ||
		    !rule_fits(&rule, host))
			continue;
		if (!port_said)
			return 2;
		said = 1;
	}
	return said;
}

/* A map that the user has written for exactly this host and port: it says more than a port does,
 * and stays as it is. NULL: none. */
static const char *user_map(const struct learn_ways *w, const char *host, unsigned port)
{
	for (size_t i = 0; i < w->o->field_count; i++) {
		const char *value = w->o->fields[i].value;
		struct policy_rule rule;
		struct ward_err e = { 0 };
		bool port_said;

		if (strcmp(w->o->fields[i].field, "network.egress_allowlist") != 0 ||
		    value[strspn(value, " \t")] != '{' || strpbrk(value, "\r\n") ||
		    policy_rule_parse(value, &rule, &port_said, &e) < 0 ||
		    strcmp(rule.host, host) != 0)
			continue;
		for (unsigned p = 0; p < rule.n_ports; p++)
			if (rule.ports[p] == port)
				return value;
	}
	return NULL;
}

static bool base_allows(const struct learn_ways *w, const char *host, unsigned port)
{
	for (size_t i = 0; w->base && i < w->base->net_egress.len; i++) {
		struct policy_rule rule;
		struct ward_err e = { 0 };

		if (policy_rule_read(w->base->net_egress.items[i], &rule, &e) < 0 ||
		    !rule_fits(&rule, host))
			continue;
		for (unsigned p = 0; p < rule.n_ports; p++)
			if (rule.ports[p] == port)
				return true;
	}
	return false;
}

static bool is_one_of(const char *reason, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(reason, names[i]) == 0)
			return true;
	return false;
}

static void put_way(const struct learn_way *way, struct buf *out)
{
	text_escape(out, way->host);
	if (way->port)
		buf_printf(out, ":%u", way->port);
}

/* Whether the user lets it through; each question is asked once. */
static bool ask_way(struct learn_ways *w, const struct learn_way *way, const char *what)
{
	auto_buf question = { 0 };

	buf_puts(&question, "ward learn: the command wants to reach ");
	put_way(way, &question);
	buf_printf(&question, "%s. Allow it?", what);
	if (question.failed || strv_has(&w->answered, question.data))
		return false;
	strv_add(&w->answered, question.data);
	return learn_ask(question.data, w->stop_fd);
}

static bool add_rule(const struct learn_ways *w, struct strv *rules, const char *host,
		     unsigned port, const char *mode)
{
	auto_buf text = { 0 };

	if (!learn_rule_text(host, port, mode, strv_has(&w->private_hosts, host), &text) ||
	    strv_has(rules, buf_text(&text)))
		return false;
	strv_add(rules, buf_text(&text));
	return true;
}

/* One that was refused: true where there is a new rule for it. */
static bool give_way(struct learn_ways *w, const struct learn_way *way, struct strv *rules)
{
	static const char *const open[] = { "not_listed", "port", "literal" };
	static const char *const opaque[] = { "not_tls",   "tls_old",    "no_sni",
					      "wrong_sni", "ech",        "not_http",
					      "http_bad",  "wrong_host", "http_tunnel" };
	const char *by_port = way->port == 443 ? "tls" : way->port == 80 ? "http" : "tcp";
	int said = user_said(w, way->host);
	bool tls;

	if (strcmp(way->reason, "private") == 0) {
		if (strv_has(&w->private_hosts, way->host) ||
		    !ask_way(w, way, ", which has a private address"))
			return false;
		strv_add(&w->private_hosts, way->host);
		return add_rule(w, rules, way->host, way->port ? way->port : 443, by_port);
	}
	/* the host was allowed, but not for what it speaks */
	if (is_one_of(way->reason, opaque, ARRAY_LEN(opaque)))
		return way->port && (said || strv_has(&w->answered, way->host)) &&
		       add_rule(w, rules, way->host, way->port, "tcp");
	if (!is_one_of(way->reason, open, ARRAY_LEN(open)))
		return false;
	/* a yes to a name is one to its ports */
	if (said != 2 && !strv_has(&w->answered, way->host)) {
		if (!ask_way(w, way, ""))
			return false;
		strv_add(&w->answered, way->host);
	}
	if (way->port)
		return add_rule(w, rules, way->host, way->port, by_port);
	tls = add_rule(w, rules, way->host, 443, "tls");
	/* another port is refused, and then known */
	return add_rule(w, rules, way->host, 80, "http") || tls;
}

/* The words for a reason that an event names. */
static const char *reason_text(const char *name)
{
	static const struct {
		const char *name, *text;
	} reasons[] = {
#define REASON(id, name, remedy, text) { name, text },
#include "egress.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strcmp(reasons[i].name, name) == 0)
			return reasons[i].text;
	return name;
}

static void note_refused(struct learn_ways *w, const struct learn_way *way)
{
	bool listed = strcmp(way->reason, "not_listed") == 0;
	auto_buf line = { 0 };

	put_way(way, &line);
	buf_puts(&line, ": ");
	text_escape(&line, reason_text(way->reason));
	if (listed && text_is_plain(way->host)) {
		buf_printf(&line, "; remedy: --allow %s", way->host);
		if (way->port)
			buf_printf(&line, ":%u", way->port);
	}
	if (!strv_has(&w->refused, buf_text(&line)))
		strv_add(&w->refused, buf_text(&line));
}

bool learn_ways_give(struct learn_ways *w, const struct learn_needs *n, struct strv *rules)
{
	bool more = false;

	strv_free(&w->refused);
	w->refused = (struct strv){ 0 };
	for (size_t i = 0; i < n->way_count; i++) {
		if (!n->ways[i].reason[0])
			continue;
		if (give_way(w, &n->ways[i], rules))
			more = true;
		else
			note_refused(w, &n->ways[i]);
	}
	return more;
}

/* Whether a rule, as learn_rule_text() writes it, is one for this host. */
static bool is_for(const char *rule, const char *host)
{
	static const char map[] = "{host: \"";
	size_t n = strlen(host);
	const char *at = strncmp(rule, map, strlen(map)) == 0 ? rule + strlen(map) : rule + 1;

	return strncmp(at, host, n) == 0 && (at[n] == ':' || at[n] == '"');
}

static bool was_reached(const struct learn_needs *n, const char *host)
{
	for (size_t i = 0; i < n->way_count; i++)
		if (n->ways[i].mode[0] && strcmp(n->ways[i].host, host) == 0)
			return true;
	return false;
}

/* A name that a program asked for, and connected to without naming it, or not at all: it is unknown
 * which port it meant. */
static void keep_name(const struct learn_ways *w, const char *host, const struct strv *tried,
		      struct strv *ret_rules)
{
	for (size_t i = 0; i < tried->len; i++)
		if (is_for(tried->items[i], host) && !strv_has(ret_rules, tried->items[i]))
			strv_add(ret_rules, tried->items[i]);
	for (size_t i = 0; i < w->o->field_count; i++) {
		const char *value = w->o->fields[i].value;
		struct policy_rule rule;
		struct ward_err e = { 0 };
		bool port_said;

		if (strcmp(w->o->fields[i].field, "network.egress_allowlist") != 0 ||
		    policy_rule_parse(value, &rule, &port_said, &e) < 0 || !rule_fits(&rule, host))
			continue;
		for (unsigned p = 0; p < rule.n_ports; p++)
			(void)add_rule(w, ret_rules, host, rule.ports[p],
				       rule.ports[p] == 443  ? "tls"
				       : rule.ports[p] == 80 ? "http"
							     : "tcp");
	}
}

void learn_ways_used(const struct learn_ways *w, const struct learn_needs *n,
		     const struct strv *tried, struct strv *ret_rules)
{
	for (size_t i = 0; i < n->names.len; i++)
		if (!was_reached(n, n->names.items[i]))
			keep_name(w, n->names.items[i], tried, ret_rules);
	for (size_t i = 0; i < n->way_count; i++) {
		const struct learn_way *way = &n->ways[i];
		const char *map;

		if (!way->mode[0] || !way->port || base_allows(w, way->host, way->port))
			continue;
		map = user_map(w, way->host, way->port);
		if (!map)
			(void)add_rule(w, ret_rules, way->host, way->port, way->mode);
		else if (!strv_has(ret_rules, map))
			strv_add(ret_rules, map);
	}
}

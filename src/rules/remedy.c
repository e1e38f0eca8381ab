/*
 * Remedies (remedy.h). In: the rules in force, what was wanted, why it was refused. Out: text. Run
 * by front, for the answer that a program gets, and by the supervisor, for the report and the
 * journal. Host, method, path and the rest come from inside: they are written only if a policy
 * reads them back as exactly that, and what was cut, or has characters that were replaced, is not
 * offered.
 */
#include "rules/remedy.h"

#include <inttypes.h>
#include <string.h>

#include "policy/policy_http.h"
#include "policy/policy_rule.h"
#include "policy/quote.h"
#include "policy/units.h"
#include "rules/http_path.h"

#define SIBLINGS_MAX 8    /* rules that are repeated: more is nothing to read */
#define REMEDY_BYTES 2000 /* a longer one is described in words */

enum remedy {
	REMEDY_NONE,
	REMEDY_RULE,
	REMEDY_TCP,
	REMEDY_INSPECT,
	REMEDY_PRIVATE,
	REMEDY_ADDRESS,
	REMEDY_SERVICE,
	REMEDY_LIMIT,
	REMEDY_NAME,
	REMEDY_SPLICE,
	REMEDY_HTTP,
	REMEDY_PRICE,
	REMEDY_ASK
};

static const uint8_t remedies[VERDICT_REASONS] = {
#define REASON(id, label, way, words) [REASON_##id] = REMEDY_##way,
#include "egress.def"
};

/* -- texts */

bool remedy_literal(struct buf *out, const char *text, size_t n)
{
	auto_buf pattern = { 0 };

	/* it was cut, or may have been */
	if (!n || (n >= 3 && memcmp(text + n - 3, "...", 3) == 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		/* "?": something else stood there */
		if (text[i] <= ' ' || text[i] > '~' || strchr("?\\\"", text[i]))
			return false;
		if (text[i] == '*')
			buf_puts(&pattern, "\\");
		buf_add(&pattern, &text[i], 1);
	}
	out->failed |= pattern.failed;
	return !pattern.failed && policy_quote(out, buf_text(&pattern));
}

/* host:port as a rule has it. */
static void put_target(struct buf *out, const struct host *host, uint16_t port)
{
	char text[HOST_TEXT];
	bool six = host->kind == HOST_ADDRESS && host->ip.family == 6;

	buf_printf(out, six ? "[%s]" : "%s", host_text(host, text));
	if (port)
		buf_printf(out, ":%u", port);
}

/* -- rules */

/* What a rule says in the place of what it said. */
struct instead {
	struct buf lists[128]; /* by kind of condition: what is between the brackets; owned */
	bool private;
	const char *mode; /* NULL: as it was */
	bool requests;    /* it has conditions on requests, which imply a mode */
};

static void instead_clear(struct instead *i)
{
	for (size_t k = 0; k < ARRAY_LEN(i->lists); k++)
		buf_free(&i->lists[k]);
}

#define auto_instead __attribute__((cleanup(instead_clear))) struct instead

static const struct rule *rule_at(const struct rules *r, int32_t rule)
{
	return rule >= 0 && (uint32_t)rule < r->n_items && !r->items[rule].dead &&
			       !r->items[rule].deny
		       ? &r->items[rule]
		       : NULL;
}

/* Whether no rule can be nearer to a host than this one. */
static bool is_exact(const struct rule *rule)
{
	return rule->kind == RULE_NAME ||
	       (rule->kind == RULE_BLOCK && rule->prefix == (rule->ip.family == 4 ? 32 : 128));
}

static bool has_kind(const struct rules *r, const struct rule *rule, char kind)
{
	for (size_t at = 0; at < rule->http_len; at += strlen(r->text + rule->http + at) + 1)
		if (r->text[rule->http + at] == kind)
			return true;
	return false;
}

/* ", methods: [GET]" for conditions of one kind, as the rule has them. */
static bool put_conditions(struct buf *out, const struct rules *r, const struct rule *rule,
			   char kind)
{
	bool some = false, fine = true;

	for (size_t at = 0; at < rule->http_len; at += strlen(r->text + rule->http + at) + 1) {
		const char *c = r->text + rule->http + at;

		if (*c != kind)
			continue;
		if (!some)
			buf_printf(out, ", %s: [", policy_http_name(kind));
		else
			buf_puts(out, ", ");
		fine &= !c[1] || policy_quote(out, c + 1);
		some = true;
	}
	if (some)
		buf_puts(out, "]");
	return fine;
}

static bool put_lists(struct buf *out, const struct rules *r, const struct rule *rule,
		      const struct instead *i)
{
	static const char kinds[] = { POLICY_HTTP_METHOD, POLICY_HTTP_PATH, POLICY_HTTP_QUERY,
				      POLICY_HTTP_HEADER, POLICY_HTTP_TYPE, POLICY_HTTP_GRAPHQL,
				      POLICY_HTTP_RPC,    POLICY_HTTP_GIT,  POLICY_HTTP_REPOSITORY,
				      POLICY_HTTP_REF };
	bool fine = true;

	for (size_t k = 0; k < sizeof(kinds); k++) {
		const struct buf *other = i ? &i->lists[(unsigned char)kinds[k]] : NULL;

		if (other && other->len)
			buf_printf(out, ", %s: [%s]", policy_http_name(kinds[k]), buf_text(other));
		else
			fine &= put_conditions(out, r, rule, kinds[k]);
	}
	return fine;
}

static void put_scalars(struct buf *out, const struct rules *r, const struct rule *rule,
			const struct instead *i)
{
	for (size_t at = 0; at < rule->http_len; at += strlen(r->text + rule->http + at) + 1) {
		const char *c = r->text + rule->http + at;

		if (*c == POLICY_HTTP_REQUEST || *c == POLICY_HTTP_RESPONSE)
			buf_printf(out, ", %s: %s", policy_http_name(*c), c + 1);
		else if (*c == POLICY_HTTP_WEBSOCKET && !(i && i->lists[POLICY_HTTP_WEBSOCKET].len))
			buf_puts(out, i && i->requests ? "" : ", websocket: true");
	}
	if (i && i->lists[POLICY_HTTP_WEBSOCKET].len)
		buf_puts(out, ", websocket: true");
}

static void put_limits(struct buf *out, const struct rule *rule)
{
	static const char *const names[] = {
		"connection_limit", "connection_rate", "receive_limit",
		"send_limit",       "bandwidth_limit", "request_rate"
	};
	const uint64_t values[] = { rule->limits.connections,   rule->limits.connection_rate,
				    rule->limits.receive_bytes, rule->limits.send_bytes,
				    rule->limits.bandwidth,     rule->limits.request_rate };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (values[i] != RULE_NONE)
			buf_printf(out, ", %s: %" PRIu64, names[i], values[i]);
	if (rule->limits.spend != RULE_NONE) {
		buf_puts(out, ", spend_limit: ");
		units_put_money(rule->limits.spend, out);
	} else if (rule->llm) {
		buf_puts(out, ", llm: true");
	}
}

static void put_mode(struct buf *out, const struct rule *rule, const struct instead *i)
{
	static const char *const modes[RULE_MODES] = { [RULE_SPLICE] = "splice",
						       [RULE_HTTP] = "http",
						       [RULE_TCP] = "tcp",
						       [RULE_INSPECT] = "inspect",
						       [RULE_PLAIN] = "http" };

	if (i && i->mode)
		buf_printf(out, ", mode: %s", i->mode);
	else if (rule->moded && rule->mode < RULE_MODES &&
		 !(i && i->requests && rule->mode == RULE_INSPECT))
		buf_printf(out, ", mode: %s", modes[rule->mode]);
}

/* {host: ..., ports: [...], ...}: all that the rule says, for this host and port alone, but for
 * what stands in i. */
static bool put_rule(struct buf *out, const struct rules *r, const struct want *w,
		     const struct rule *rule, const struct instead *i)
{
	static const char *const wafs[] = {
		[POLICY_WAF_DETECT] = "detect", [POLICY_WAF_BLOCK] = "block"
	};
	char text[HOST_TEXT];
	bool fine;

	buf_printf(out, "{host: \"%s\", ports: [%u]", host_text(&w->host, text),
		   w->port ? w->port : 443);
	put_mode(out, rule, i);
	fine = put_lists(out, r, rule, i);
	put_scalars(out, r, rule, i);
	if (rule->waf && rule->waf < ARRAY_LEN(wafs))
		buf_printf(out, ", waf: %s", wafs[rule->waf]);
	if (rule->private || (i && i->private))
		buf_puts(out, ", private: true");
	if (rule->ask)
		buf_puts(out, ", ask: true");
	put_limits(out, rule);
	buf_puts(out, "}");
	return fine;
}

/* The rules for the same host and port as `first`, each for this host alone. False: too many, or
 * one that cannot be written. */
static bool put_siblings(struct buf *out, const struct rules *r, const struct want *w,
			 int32_t first, uint16_t port, const struct instead *i)
{
	unsigned count = 0;
	bool fine = true;

	for (int32_t k = first; rule_at(r, k) && fine;
	     k = r->items[k].moded && r->items[k].mode >= RULE_INSPECT ? rules_sibling(r, k, port)
								       : -1) {
		fine = ++count <= SIBLINGS_MAX;
		buf_puts(out, count > 1 ? ", " : "");
		fine &= put_rule(out, r, w, &r->items[k], i);
	}
	return fine && count;
}

static void begin_line(struct buf *out)
{
	buf_puts(out, "network.egress_allowlist: [");
}

/* Keeps what was written since `at` if all of it could be, and it is short enough to be read. */
static void end_line(struct buf *out, size_t at, bool fine)
{
	buf_puts(out, "]");
	if (fine && out->len - at <= REMEDY_BYTES)
		return;
	out->len = at;
	buf_puts(out, "no single rule would allow exactly this: check the rules for this host in "
		      "network.egress_allowlist");
}

/* Words about the rule that decided. */
static void put_words(struct buf *out, const struct want *w, const char *before, const char *behind)
{
	buf_puts(out, before);
	put_target(out, &w->host, w->port);
	buf_puts(out, behind);
}

/* -- connections */

bool remedy_may_name(const struct host *host)
{
	enum address_class class =
		host->kind == HOST_ADDRESS ? address_classify(&host->ip) : ADDRESS_PUBLIC;

	return class == ADDRESS_PUBLIC || class == ADDRESS_PRIVATE;
}

static bool is_plain(const struct rule *rule)
{
	const struct rule_limits *l = &rule->limits;

	return !rule->moded && !rule->http_len && !rule->private && !rule->ask && !rule->llm &&
	       !rule->waf && l->connections == RULE_NONE && l->connection_rate == RULE_NONE &&
	       l->receive_bytes == RULE_NONE && l->send_bytes == RULE_NONE &&
	       l->bandwidth == RULE_NONE && l->request_rate == RULE_NONE && l->spend == RULE_NONE;
}

/* Not in the list; or the host is, with another port: then what is asked of it there is asked of it
 * here. */
static void put_missing(struct buf *out, const struct rules *r, const struct want *w,
			const struct verdict *v)
{
	size_t at = out->len;
	struct rules_match known = v->reason == REASON_PORT ? rules_match(r, &w->host, 0)
							    : (struct rules_match){ .rule = -1 };
	const struct rule *rule = known.denied ? NULL : rule_at(r, known.rule);

	if (!remedy_may_name(&w->host)) {
		buf_puts(out, address_classify(&w->host.ip) == ADDRESS_METADATA
				      ? "this address hands out the machine's credentials, so ward "
					"suggests no rule for it"
				      : "no rule can allow such an address");
		return;
	}
	begin_line(out);
	if (!rule || is_plain(rule)) {
		buf_puts(out, "\"");
		put_target(out, &w->host, w->port);
		buf_puts(out, "\"");
		end_line(out, at, true);
		return;
	}
	end_line(out, at,
		 rule->n_ports &&
			 put_siblings(out, r, w, known.rule, r->ports[rule->first_port], NULL));
}

static bool looks_in(const struct rule *rule)
{
	return rule->moded && rule->mode >= RULE_INSPECT;
}

/* The connection is not what its port promises: the same rule in another mode. before, after: words
 * for a rule that names the host. */
static void put_other_mode(struct buf *out, const struct rules *r, const struct want *w,
			   const struct verdict *v, const char *mode, const char *before,
			   const char *after)
{
	const struct rule *rule = rule_at(r, v->rule);
	auto_instead i = { .mode = mode };
	size_t at = out->len;

	if (rule && looks_in(rule)) {
		buf_puts(out, "the rule inspects requests, and no inspect rule can allow this");
	} else if (rule && is_exact(rule)) {
		put_words(out, w, before, after);
	} else if (rule) {
		begin_line(out);
		end_line(out, at, put_rule(out, r, w, rule, &i));
	} else {
		begin_line(out);
		end_line(out, at,
			 put_rule(out, r, w,
				  &(struct rule){ .limits = { RULE_NONE, RULE_NONE, RULE_NONE,
							      RULE_NONE, RULE_NONE, RULE_NONE,
							      RULE_NONE } },
				  &i));
	}
}

static void put_private(struct buf *out, const struct rules *r, const struct want *w)
{
	struct rules_match m = rules_match(r, &w->host, w->port);
	const struct rule *rule = m.denied ? NULL : rule_at(r, m.rule);
	struct rule none = { .limits = { RULE_NONE, RULE_NONE, RULE_NONE, RULE_NONE, RULE_NONE,
					 RULE_NONE, RULE_NONE } };
	auto_instead i = { .private = true };
	size_t at = out->len;

	if (rule && is_exact(rule)) {
		put_words(out, w,
			  "if the sandbox may reach the private network there: set private: true "
			  "in the rule for ",
			  " in network.egress_allowlist");
		return;
	}
	begin_line(out);
	end_line(out, at,
		 rule ? put_siblings(out, r, w, m.rule, w->port, &i)
		      : put_rule(out, r, w, &none, &i));
}

/* The name leads to this machine. */
static void put_service(struct buf *out, const struct want *w, const struct verdict *v)
{
	struct host address = { .kind = HOST_ADDRESS, .ip = v->ip };
	size_t n = w->host.len;

	if (w->host.kind == HOST_NAME && n <= 63 &&
	    strspn(w->host.name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n) {
		buf_printf(out, "network.host_services: [\"%s=", w->host.name);
		put_target(out, &address, w->port);
		buf_puts(out, "\"]");
		return;
	}
	buf_puts(out, "give the host service a name without dots: SERVICE=");
	put_target(out, &address, w->port);
	buf_puts(out, " in network.host_services");
}

/* -- requests */

static bool is(const char *text, size_t n, const char *word)
{
	return text && strlen(word) == n && memcmp(text, word, n) == 0;
}

/* "METHOD /path KEY=ENTRY" and "use=... ref=...", taken apart; texts lie in there. */
struct said {
	const char *method, *path, *key, *entry, *use, *ref;
	size_t method_n, path_n, key_n, entry_n, use_n, ref_n;
	bool mixed;
};

static const char *next_word(const char **at, size_t *ret_n)
{
	const char *word = *at;

	*ret_n = strcspn(word, " ");
	*at = word + *ret_n;
	*at += **at == ' ';
	return word;
}

static bool read_said(const char *request, const char *more, struct said *ret)
{
	const char *at = request, *word, *sign;
	size_t n;

	*ret = (struct said){ .method = NULL };
	ret->method = next_word(&at, &ret->method_n);
	ret->path = next_word(&at, &ret->path_n);
	word = next_word(&at, &n);
	sign = memchr(word, '=', n);
	if (sign) {
		ret->key = word;
		ret->key_n = (size_t)(sign - word);
		ret->entry = sign + 1;
		ret->entry_n = n - ret->key_n - 1;
	}
	while (*more) {
		word = next_word(&more, &n);
		if (n > 4 && strncmp(word, "use=", 4) == 0) {
			ret->use = word + 4;
			ret->use_n = n - 4;
		} else if (n > 4 && strncmp(word, "ref=", 4) == 0) {
			ret->ref = word + 4;
			ret->ref_n = n - 4;
		} else {
			ret->mixed |= is(word, n, "mixed=1");
		}
	}
	return ret->method_n && ret->path_n && *ret->path == '/';
}

/* An entry of a list, if it is one of its kind. */
static bool put_shaped(struct buf *out, const char *shape, const char *text, size_t n)
{
	const char *expected, *hint;
	auto_buf entry = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&entry, text[i] == '*' ? "\\%c" : "%c", text[i]);
	return !entry.failed && http_shape(shape, buf_text(&entry), &expected, &hint) &&
	       remedy_literal(out, text, n);
}

/* A method as a rule has it: in capitals, and in quotes unless everybody knows it. */
static bool put_method(struct buf *out, const char *method, size_t n)
{
	static const char *const known[] = { "GET",   "HEAD",   "POST",   "PUT",
					     "PATCH", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i]) == n && memcmp(known[i], method, n) == 0) {
			buf_puts(out, known[i]);
			return true;
		}
	for (size_t i = 0; i < n; i++)
		if ((method[i] < 'A' || method[i] > 'Z') && method[i] != '-' && method[i] != '_')
			return false; /* a rule would mean another one */
	return put_shaped(out, "method", method, n);
}

/* The path in the form in which rules are asked about it. */
static bool put_path(struct buf *out, const char *path, size_t n)
{
	struct http_path *normal = malloc(sizeof(*normal));
	bool fine = normal && http_path_read(path, n, normal) && !normal->two &&
		    remedy_literal(out, normal->text, normal->len);

	out->failed |= !normal;
	free(normal);
	return fine;
}

/* The repository of a path of git's protocol. */
static bool put_repository(struct buf *out, const char *path, size_t n)
{
	static const char *const ends[] = { "/git-upload-pack", "/git-receive-pack", "/info/refs" };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		size_t k = strlen(ends[i]);

		if (n <= k || memcmp(path + n - k, ends[i], k) != 0)
			continue;
		n -= k;
		if (n > 4 && memcmp(path + n - 4, ".git", 4) == 0)
			n -= 4;
		return n > 1 && !memchr(path, '#', n) && remedy_literal(out, path, n);
	}
	return false;
}

/* What git wanted: "fetch", or "push+force" with its ref. False: it is not known whole. */
static bool replace_git(struct instead *i, const struct said *s)
{
	struct buf *git = &i->lists[POLICY_HTTP_GIT];
	const char *use = s->use ? s->use : s->entry;
	size_t n = s->use ? s->use_n : s->entry_n;
	bool fetch = is(use, n, "fetch");

	if (!s->use && !is(s->key, s->key_n, "git"))
		return false;
	for (size_t k = 0, word; k < n; k += word + 1) {
		for (word = 0; k + word < n && use[k + word] != '+'; word++)
			;
		buf_puts(git, k ? ", " : "");
		if (!put_shaped(git, "git", use + k, word))
			return false;
	}
	if (!git->len || !put_repository(&i->lists[POLICY_HTTP_REPOSITORY], s->path, s->path_n))
		return false;
	return fetch || (s->ref && put_shaped(&i->lists[POLICY_HTTP_REF], "ref", s->ref, s->ref_n));
}

/* A push whose ref is not known yet: the line is for a person, who names it. */
static bool put_template(struct buf *out, const struct want *w, const struct said *s)
{
	auto_buf repository = { 0 };
	char text[HOST_TEXT];

	if (is(s->use ? s->use : s->entry, s->use ? s->use_n : s->entry_n, "fetch") ||
	    !put_repository(&repository, s->path, s->path_n))
		return false;
	buf_printf(out,
		   "add a rule for the branch that may be pushed: {host: \"%s\", ports: [%u], git: "
		   "[push], repositories: [%s], refs: [\"refs/heads/...\"]}",
		   host_text(&w->host, text), w->port, buf_text(&repository));
	return true;
}

/* The entry of a list about the body, beside those that the rule has where the body asked for
 * several. */
static bool replace_asked(struct buf *list, const struct rules *r, const struct rule *rule,
			  char kind, const struct said *s)
{
	bool fine = true;

	for (size_t at = 0; s->mixed && at < rule->http_len;
	     at += strlen(r->text + rule->http + at) + 1) {
		const char *c = r->text + rule->http + at;

		if (*c != kind || !c[1])
			continue;
		fine &= policy_quote(list, c + 1);
		buf_puts(list, ", ");
	}
	return fine && put_shaped(list, kind == POLICY_HTTP_RPC ? "json_rpc" : "graphql", s->entry,
				  s->entry_n);
}

/* Whether the rule has it already: then something else about the request refused it (a header that
 * names another method or path). */
static bool has_already(const struct rules *r, const struct rule *rule, enum verdict_reason reason,
			const struct said *s)
{
	struct http_path *normal = malloc(sizeof(*normal));
	bool found =
		!normal || (reason == REASON_PATH && !http_path_read(s->path, s->path_n, normal));

	for (size_t at = 0; !found && at < rule->http_len;
	     at += strlen(r->text + rule->http + at) + 1) {
		const char *c = r->text + rule->http + at;

		if (reason == REASON_METHOD && *c == POLICY_HTTP_METHOD)
			found = is(s->method, s->method_n, c + 1);
		else if (reason == REASON_PATH && *c == POLICY_HTTP_PATH)
			found = http_glob(c + 1, strlen(c + 1), normal->text, normal->len);
	}
	free(normal);
	return found;
}

/* What the rule has to say for this request. False: nothing that would be this one alone. */
static bool replace(struct instead *i, const struct rules *r, const struct rule *rule,
		    enum verdict_reason reason, const struct said *s)
{
	i->requests = true;
	if (reason == REASON_GIT || reason == REASON_GIT_FORCE)
		return replace_git(i, s);
	if (!put_method(&i->lists[POLICY_HTTP_METHOD], s->method, s->method_n) ||
	    !put_path(&i->lists[POLICY_HTTP_PATH], s->path, s->path_n))
		return false;
	if (reason == REASON_WEBSOCKET)
		buf_puts(&i->lists[POLICY_HTTP_WEBSOCKET], "true");
	if (reason == REASON_GRAPHQL)
		return is(s->key, s->key_n, "graphql") &&
		       replace_asked(&i->lists[POLICY_HTTP_GRAPHQL], r, rule, POLICY_HTTP_GRAPHQL,
				     s);
	if (reason == REASON_RPC)
		return is(s->key, s->key_n, "json_rpc") &&
		       replace_asked(&i->lists[POLICY_HTTP_RPC], r, rule, POLICY_HTTP_RPC, s);
	return reason == REASON_METHOD || reason == REASON_PATH || reason == REASON_WEBSOCKET;
}

/* Which part of the rule refused it, where no line can be made of that. */
static const char *part_of(enum verdict_reason reason)
{
	static const char parts[VERDICT_REASONS][32] = {
		[REASON_METHOD] = "methods",
		[REASON_PATH] = "paths",
		[REASON_QUERY] = "query",
		[REASON_HEADER] = "headers",
		[REASON_TYPE] = "content_types",
		[REASON_REQUEST_SIZE] = "request_limit",
		[REASON_WEBSOCKET] = "websocket",
		[REASON_RESPONSE_SIZE] = "response_limit",
		[REASON_WAF] = "waf",
		[REASON_WAF_SIZE] = "waf",
		[REASON_GRAPHQL] = "graphql",
		[REASON_RPC] = "json_rpc",
		[REASON_GIT] = "git, repositories and refs",
		[REASON_GIT_FORCE] = "git, repositories and refs",
	};

	return *parts[reason] ? parts[reason] : "something";
}

static void put_http(struct buf *out, const struct rules *r, const struct want *w,
		     const struct verdict *v, const char *request, const char *more)
{
	const struct rule *rule = rule_at(r, v->rule);
	enum verdict_reason reason = (enum verdict_reason)v->reason;
	auto_instead i = { .requests = false };
	struct said s;
	size_t at = out->len;
	bool fine;

	if (!rule)
		return;
	if (!read_said(request, more, &s) || has_already(r, rule, reason, &s) ||
	    !replace(&i, r, rule, reason, &s)) {
		if ((reason != REASON_GIT && reason != REASON_GIT_FORCE) || s.ref ||
		    !put_template(out, w, &s)) {
			buf_printf(out, "%s of the rule for ", part_of(reason));
			put_target(out, &w->host, w->port);
			buf_puts(out, " in network.egress_allowlist decides it");
		}
		return;
	}
	begin_line(out);
	fine = is_exact(rule) ||
	       (put_siblings(out, r, w, rules_match(r, &w->host, w->port).rule, w->port, NULL) &&
		(buf_puts(out, ", "), true));
	end_line(out, at, fine && put_rule(out, r, w, rule, &i));
}

bool remedy_request(const struct rules *r, const struct want *w, int32_t index, const char *request,
		    const char *more, struct buf *out)
{
	const struct rule *asks = rule_at(r, index);
	struct rule rule;
	auto_instead i = { .requests = false };
	struct said s;

	/* a rule for the name itself would take the place of all that *.suffix allows */
	if (!asks || !is_exact(asks) || !read_said(request, more, &s))
		return false;
	rule = *asks;
	rule.ask = false;
	return replace(&i, r, &rule,
		       has_kind(r, asks, POLICY_HTTP_GIT)       ? REASON_GIT
		       : has_kind(r, asks, POLICY_HTTP_RPC)     ? REASON_RPC
		       : has_kind(r, asks, POLICY_HTTP_GRAPHQL) ? REASON_GRAPHQL
								: REASON_PATH,
		       &s) &&
	       put_rule(out, r, w, &rule, &i);
}

/* -- all of it */

static const char *limit_of(enum verdict_reason reason)
{
	static const char limits[VERDICT_REASONS][20] = {
		[REASON_REQUEST_RATE] = "request_rate",
		[REASON_SPENT] = "spend_limit",
		[REASON_SPEND_BUSY] = "spend_limit",
		[REASON_LIMIT_RATE] = "connection_rate",
		[REASON_LIMIT_RECEIVED] = "receive_limit",
		[REASON_LIMIT_SENT] = "send_limit",
		[REASON_LIMIT_CONNECTIONS] = "connection_limit",
	};

	return limits[reason];
}

bool remedy_is_open(const struct rules *r, const struct verdict *v)
{
	const struct rule *rule = rule_at(r, v->rule);

	return !rule || !has_kind(r, rule, POLICY_HTTP_HEADER);
}

void remedy_write(const struct rules *r, const struct want *w, const struct verdict *v,
		  const char *request, const char *more, struct buf *out)
{
	char text[HOST_TEXT];

	if (v->allow || v->reason >= VERDICT_REASONS)
		return;
	switch ((enum remedy)remedies[v->reason]) {
	case REMEDY_RULE:
		put_missing(out, r, w, v);
		break;
	case REMEDY_TCP:
		put_other_mode(out, r, w, v, "tcp", "if everything sent to ",
			       " may pass uninspected: set mode: tcp in its rule in "
			       "network.egress_allowlist");
		break;
	case REMEDY_INSPECT:
		put_other_mode(out, r, w, v, "inspect",
			       "turn ECH off in the program, or set mode: inspect in the rule for ",
			       " in network.egress_allowlist");
		break;
	case REMEDY_PRIVATE:
		put_private(out, r, w);
		break;
	case REMEDY_SPLICE:
		buf_puts(out, "make the program trust the sandbox's CA (see SSL_CERT_FILE); a rule "
			      "with mode: splice would inspect none of its requests");
		break;
	case REMEDY_HTTP:
		put_http(out, r, w, v, request, more);
		break;
	case REMEDY_ADDRESS:
		buf_puts(out, "only a rule that names this address allows it; it may hand out the "
			      "machine's credentials, so ward suggests none");
		break;
	case REMEDY_SERVICE:
		put_service(out, w, v);
		break;
	case REMEDY_LIMIT:
		buf_printf(out, "raise network.%s, or the limit of the rule",
			   limit_of((enum verdict_reason)v->reason));
		break;
	case REMEDY_NAME:
		buf_printf(out, "resolve the name again instead of using %s",
			   host_text(&w->host, text));
		break;
	case REMEDY_PRICE:
		buf_puts(out, v->reason == REASON_UNPRICED
				      ? "add a price for the model to network.prices: {model: "
					"NAME, input: PRICE, output: PRICE}"
				      : "send it as plain JSON with a limit on its output, so that "
					"its cost can be counted");
		break;
	case REMEDY_ASK:
		buf_puts(out, "set approvals.mode: ask, and answer with ward approve; or add a "
			      "rule without ask");
		break;
	case REMEDY_NONE:
		break;
	}
}

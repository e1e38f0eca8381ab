/*
 * Grants of a policy. In: a map of credentials.grants. Out: what in it does not go together, each
 * with its place; and, of the canonical line that struct policy holds, struct policy_grant. No
 * secret is looked at here: a grant says where one comes from. Pure functions, no rights; run by
 * the supervisor, by ward-secrets and by keys, which each read the line for themselves.
 */
#include "policy/policy_grant.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "policy/policy_value.h"
#include "policy/units.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char name_characters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* -- what a value may be */

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool grant_source_split(const char *text, enum grant_from *ret_from, const char **ret_rest)
{
	static const struct {
		const char *prefix;
		enum grant_from from;
		bool kept;
	} kinds[] = { { "env:", GRANT_ENV, false },    { "file:", GRANT_FILE, false },
		      { "cmd:", GRANT_CMD, false },    { "keyring:", GRANT_KEYRING, false },
		      { "http://", GRANT_HTTP, true }, { "https://", GRANT_HTTP, true },
		      { "http:", GRANT_HTTP, false },  { "handed:", GRANT_HANDED, false } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (starts(text, kinds[i].prefix)) {
			*ret_from = kinds[i].from;
			*ret_rest = text + (kinds[i].kept ? 0 : strlen(kinds[i].prefix));
			return true;
		}
	return false;
}

/* NAME, or NAME,NAME,NAME for what has several values. */
static bool are_variables(const char *text)
{
	unsigned count = 0;

	for (;;) {
		size_t n = strspn(text, name_characters);

		if (!n || isdigit((unsigned char)*text) || ++count > GRANT_VALUES ||
		    (text[n] && text[n] != ','))
			return false;
		if (!text[n])
			return true;
		text += n + 1;
	}
}

/* What carries a token or a secret is encrypted, or does not leave this machine. */
static bool is_url(const char *url)
{
	static const char *const near[] = { "http://127.0.0.1", "http://localhost",
					    "http://[::1]" };

	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 127)
			return false;
	if (starts(url, "https://"))
		return url[8] && !strchr("/:?#", url[8]);
	for (size_t i = 0; i < ARRAY_LEN(near); i++)
		if (starts(url, near[i]) && strchr(":/", url[strlen(near[i])]))
			return true;
	return false;
}

bool grant_source_is_sound(const char *text, const char **ret_expected, const char **ret_hint)
{
	enum grant_from from;
	const char *rest;
	auto_strv words = { 0 };

	*ret_expected = "env:NAME, file:PATH, cmd:COMMAND, keyring:NAME or https://URL";
	*ret_hint = "name the source of the secret, never the secret itself";
	if (!grant_source_split(text, &from, &rest) || from == GRANT_HANDED)
		return false;
	*ret_hint = NULL;
	switch (from) {
	case GRANT_ENV:
		*ret_expected = "env:NAME with the name of a variable";
		return are_variables(rest);
	case GRANT_FILE:
		*ret_expected = "file:PATH with an absolute path, or one that begins with ~/";
		return (*rest == '/' && rest[1]) || (starts(rest, "~/") && rest[2]);
	case GRANT_CMD:
		*ret_expected = "cmd:COMMAND with words, quotes closed";
		return grant_command_words(rest, &words) == 0;
	case GRANT_KEYRING:
		*ret_expected = "keyring:NAME with the description of a key";
		return *rest && strlen(rest) < 256;
	case GRANT_HTTP:
		*ret_expected = "https://HOST[:PORT]/PATH";
		*ret_hint = "without TLS, only this machine is allowed: http://127.0.0.1:PORT/PATH";
		return is_url(rest);
	case GRANT_HANDED:
		break;
	}
	return false;
}

/* What a secret in it would break or make worthless: framing, routing, and what the gateway itself
 * writes. */
static bool is_reserved_header(const char *name, size_t n)
{
	static const char *const reserved[] = { "host",
						"content-length",
						"transfer-encoding",
						"connection",
						"te",
						"trailer",
						"upgrade",
						"expect",
						"keep-alive",
						"proxy-connection",
						"content-type",
						"content-encoding",
						"accept-encoding",
						"date",
						"via",
						"forwarded" };

	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (strlen(reserved[i]) == n && strncasecmp(reserved[i], name, n) == 0)
			return true;
	return false;
}

bool grant_header_is_sound(const char *text, const char **ret_expected, const char **ret_hint)
{
	size_t n = strcspn(text, ":");
	const char *place = strstr(text, "{}");

	*ret_expected = "NAME: TEXT with one {} where the secret goes, such as \"Authorization: "
			"Bearer {}\"";
	*ret_hint = NULL;
	if (!n || n > 64 || text[n] != ':' || text[n + 1] != ' ' || !place || place < text + n ||
	    strstr(place + 2, "{}") || strlen(text) > 256)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr(letters, text[i]) && text[i] != '-' && text[i] != '_')
			return false;
	for (const char *c = text + n; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
			return false;
	*ret_hint = "this header belongs to the connection and cannot carry a secret";
	return !is_reserved_header(text, n);
}

int grant_command_words(const char *text, struct strv *ret)
{
	char quote = '\0';

	while (*text) {
		auto_buf word = { 0 };

		text += strspn(text, " \t");
		if (!*text)
			break;
		buf_puts(&word, ""); /* '' is a word, too */
		for (; *text && (quote || !strchr(" \t", *text)); text++) {
			if (quote ? *text == quote : *text == '\'' || *text == '"')
				quote = quote ? '\0' : *text;
			else if (*text == '\\' && quote != '\'' && text[1])
				buf_add(&word, ++text, 1);
			else if ((unsigned char)*text < ' ')
				return -EINVAL;
			else
				buf_add(&word, text, 1);
		}
		strv_take(ret, buf_take(&word));
	}
	if (ret->failed)
		return -ENOMEM;
	return quote || !ret->len || !*ret->items[0] ? -EINVAL : 0;
}

/* -- what goes together */

static void refuse(struct reader *r, const char *path, const struct node *n, const char *hint,
		   const char *why)
{
	reader_error(r, (struct place){ n->line, n->column }, hint, "%s: %s", path, why);
}

static const char *text_of(const struct node *map, const char *key)
{
	const struct node *n = node_get(map, key);

	return n && (n->kind == NODE_WORD || n->kind == NODE_STRING) ? n->text : NULL;
}

static void check_hosts(struct reader *r, const char *path, const struct node *list)
{
	unsigned i = 0;
	char here[VALUE_PATH], host[256];
	unsigned port;

	if (list->kind == NODE_LIST && !list->first)
		refuse(r, path, list, NULL, "expected at least one host");
	for (const struct node *n = list->kind == NODE_LIST ? list->first : NULL; n; n = n->next) {
		value_index_path(here, path, i++);
		if (!n->text || host_parse(n->text, false, host, &port))
			continue; /* said elsewhere */
		if (strcmp(host, "*") == 0)
			refuse(r, here, n, "name each host that may receive the secret",
			       "a secret cannot go to every host");
		else if (strchr(host, '/') || strchr(host, ':') ||
			 strspn(host, "0123456789.") == strlen(host))
			refuse(r, here, n, "use the name in the server's certificate",
			       "a secret goes to names only");
	}
}

static void check_methods(struct reader *r, const char *path, const struct node *list)
{
	unsigned i = 0;
	char here[VALUE_PATH];

	for (const struct node *n = list->kind == NODE_LIST ? list->first : NULL; n; n = n->next) {
		value_index_path(here, path, i++);
		if (n->text && (strspn(n->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(n->text) ||
				strlen(n->text) > 16))
			value_error(r, here, n, "an HTTP method in capitals, such as GET", NULL);
	}
}

static void check_paths(struct reader *r, const char *path, const struct node *list)
{
	unsigned i = 0;
	char here[VALUE_PATH];

	for (const struct node *n = list->kind == NODE_LIST ? list->first : NULL; n; n = n->next) {
		value_index_path(here, path, i++);
		if (n->text && ((*n->text != '/' && *n->text != '*') || strpbrk(n->text, "?# ")))
			value_error(r, here, n, "a path that begins with / or *, without ? and #",
				    NULL);
	}
}

/* REGION/SERVICE */
static bool is_scope(const char *text)
{
	static const char of_part[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strcspn(text, "/");
	const char *service = text + n + 1;

	return text[n] && n && *service &&
	       (strcmp(service, "*") == 0 || strspn(service, of_part) == strlen(service)) &&
	       ((n == 1 && *text == '*') || strspn(text, of_part) == n);
}

static void check_way(struct reader *r, const char *path, const struct node *map)
{
	static const char *const ways[] = { "header", "basic", "query", "sigv4" };
	const struct node *first = NULL;
	char here[VALUE_PATH];

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		const struct node *n = node_get(map, ways[i]);
		const char *text = n ? n->text : NULL;

		if (!n)
			continue;
		value_key_path(here, path, ways[i]);
		if (first)
			refuse(r, here, n, "split it into two grants",
			       "a grant has one place for the secret: header, basic, query or "
			       "sigv4");
		first = n;
		if (text && i == 1 && (strchr(text, ':') || strlen(text) > 128))
			value_error(r, here, n, "a user name without a colon", NULL);
		if (text && i == 2 &&
		    strspn(text, name_characters) +
				    strspn(text + strspn(text, name_characters), "-.") <
			    strlen(text))
			value_error(r, here, n, "the name of a parameter", NULL);
		if (text && i == 3 && !is_scope(text))
			value_error(r, here, n, "REGION/SERVICE such as us-east-1/s3, * for any",
				    NULL);
	}
}

static void check_source(struct reader *r, const char *path, const struct node *map)
{
	const char *text = text_of(map, "source"), *rest = NULL, *token = text_of(map, "token");
	static const char *const only[] = { "token", "field" };
	enum grant_from from = GRANT_HANDED, token_from = GRANT_ENV;
	char here[VALUE_PATH];

	if (!text || !grant_source_split(text, &from, &rest))
		return;
	value_key_path(here, path, "source");
	if (from == GRANT_ENV && strchr(rest, ',') && !node_get(map, "sigv4"))
		refuse(r, here, node_get(map, "source"),
		       "several variables are for sigv4: ID, secret and token",
		       "expected one variable");
	if (from == GRANT_ENV && !strchr(rest, ',') && node_get(map, "sigv4"))
		refuse(r, here, node_get(map, "source"),
		       "write env:AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY",
		       "sigv4 needs two variables or three");
	for (size_t i = 0; from != GRANT_HTTP && i < ARRAY_LEN(only); i++) {
		const struct node *n = node_get(map, only[i]);

		value_key_path(here, path, only[i]);
		if (n)
			refuse(r, here, n, "remove it", "only works with an https source");
	}
	value_key_path(here, path, "token");
	if (token && grant_source_split(token, &token_from, &rest) &&
	    (token_from == GRANT_HTTP || strchr(rest, ',')))
		refuse(r, here, node_get(map, "token"), "use env:, file:, cmd: or keyring:",
		       "a token cannot come from an https source");
}

void item_check_grant(struct reader *r, const char *path, const struct node *map)
{
	static const struct {
		const char *key;
		void (*check)(struct reader *r, const char *path, const struct node *list);
	} lists[] = { { "hosts", check_hosts },
		      { "methods", check_methods },
		      { "paths", check_paths } };
	const struct node *as = node_get(map, "as");
	char here[VALUE_PATH];

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct node *n = node_get(map, lists[i].key);

		value_key_path(here, path, lists[i].key);
		if (n)
			lists[i].check(r, here, n);
	}
	check_way(r, path, map);
	check_source(r, path, map);
	value_key_path(here, path, "as");
	if (as && node_get(map, "sigv4"))
		refuse(r, here, as, "name the variables in source: env:A,B,C",
		       "sigv4 has more than one value");
}

/* -- from a line to a grant */

void policy_grant_clear(struct policy_grant *g)
{
	char *const texts[] = { g->name,      g->source, g->header,  g->before, g->behind, g->user,
				g->parameter, g->region, g->service, g->token,  g->field };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	strv_free(&g->hosts);
	strv_free(&g->methods);
	strv_free(&g->paths);
	strv_free(&g->variables);
	*g = (struct policy_grant){ 0 };
}

static char *copy(const char *text, struct strv *failed)
{
	char *copied = text ? strdup(text) : NULL;

	failed->failed |= text && !copied;
	return copied;
}

static void copy_list(const struct node *list, struct strv *ret)
{
	for (const struct node *n = list && list->kind == NODE_LIST ? list->first : NULL; n;
	     n = n->next)
		strv_add(ret, n->text ? n->text : "");
}

static void copy_hosts(const struct node *list, struct strv *ret)
{
	char host[256];
	unsigned port;

	for (const struct node *n = list && list->kind == NODE_LIST ? list->first : NULL; n;
	     n = n->next)
		if (n->text && !host_parse(n->text, false, host, &port))
			strv_add(ret, host);
}

static void read_way(const struct node *map, struct policy_grant *g)
{
	const char *header = text_of(map, "header"), *scope = text_of(map, "sigv4"), *place;
	struct strv *failed = &g->hosts;

	g->user = copy(text_of(map, "basic"), failed);
	g->parameter = copy(text_of(map, "query"), failed);
	g->way = scope          ? GRANT_SIGV4
		 : g->parameter ? GRANT_QUERY
		 : g->user      ? GRANT_BASIC
				: GRANT_HEADER;
	if (scope) {
		size_t n = strcspn(scope, "/");

		g->region = strndup(scope, n);
		g->service = copy(scope[n] ? scope + n + 1 : "*", failed);
		failed->failed |= !g->region;
	}
	if (g->way != GRANT_HEADER)
		header = "Authorization: {}";
	if (!header)
		header = "Authorization: Bearer {}";
	place = strstr(header, "{}");
	g->header = strndup(header, strcspn(header, ":"));
	g->before = place ? strndup(header + strcspn(header, ":") + 2,
				    (size_t)(place - header) - strcspn(header, ":") - 2)
			  : NULL;
	g->behind = copy(place ? place + 2 : NULL, failed);
	failed->failed |= !g->header || !g->before;
}

static void read_variables(const struct node *map, struct policy_grant *g)
{
	static const char *const aws[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
					   "AWS_SESSION_TOKEN" };
	const char *as = text_of(map, "as"), *at = g->source;

	if (as) {
		strv_add(&g->variables, as);
	} else if (g->from == GRANT_ENV) {
		while (at && *at) {
			size_t n = strcspn(at, ",");

			strv_addf(&g->variables, "%.*s", (int)n, at);
			at += n + (at[n] == ',');
		}
	} else if (g->way == GRANT_SIGV4) {
		for (size_t i = 0; i < ARRAY_LEN(aws); i++)
			strv_add(&g->variables, aws[i]);
	}
}

static int read_numbers(const struct node *map, struct policy_grant *g)
{
	const struct node *ttl = node_get(map, "ttl_seconds"), *uses = node_get(map, "max_uses"),
			  *ask = node_get(map, "ask");

	g->ttl_ms = 900000;
	g->max_uses = POLICY_NONE;
	g->ask = ask && ask->text && strcmp(ask->text, "true") == 0;
	if (ttl &&
	    (!ttl->text || schema_number(TYPE_SECONDS, "1..31536000", ttl->text, &g->ttl_ms) < 0))
		return -EINVAL;
	return uses && (!uses->text || units_parse_uint(uses->text, &g->max_uses) < 0) ? -EINVAL
										       : 0;
}

int policy_grant_read(const char *line, struct policy_grant *ret, struct ward_err *e)
{
	struct reader reader = { .name = "grant", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));
	const char *name = map && map->kind == NODE_MAP ? text_of(map, "name") : NULL;
	const char *source = name ? text_of(map, "source") : NULL, *rest;

	memset(ret, 0, sizeof(*ret));
	if (reader.count)
		return -e->code;
	if (!source || !grant_source_split(source, &ret->from, &rest))
		return ward_fail(e, EINVAL, "not a grant");
	ret->name = copy(name, &ret->hosts);
	ret->source = copy(rest, &ret->hosts);
	ret->token = copy(text_of(map, "token"), &ret->hosts);
	ret->field = copy(text_of(map, "field"), &ret->hosts);
	copy_hosts(node_get(map, "hosts"), &ret->hosts);
	copy_list(node_get(map, "methods"), &ret->methods);
	copy_list(node_get(map, "paths"), &ret->paths);
	read_way(map, ret);
	read_variables(map, ret);
	if (ret->hosts.failed || ret->methods.failed || ret->paths.failed ||
	    ret->variables.failed) {
		policy_grant_clear(ret);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	if (read_numbers(map, ret) < 0 || !ret->hosts.len) {
		policy_grant_clear(ret);
		return ward_fail(e, EINVAL, "not a grant");
	}
	return 0;
}

int policy_grant_parse(const char *text, struct policy_grant *ret, char **ret_line,
		       struct ward_err *e)
{
	struct policy p = { 0 };
	int r = policy_defaults(&p, e);

	if (r == 0)
		r = policy_set(&p, "credentials.grants", text, true, POLICY_CLI, e);
	if (r == 0 && p.cred_grants.len != 1)
		r = ward_fail(e, EINVAL,
			      "expected one grant: {name: NAME, source: SOURCE, hosts: [HOST]}");
	if (r == 0)
		r = policy_grant_read(p.cred_grants.items[0], ret, e);
	if (r == 0 && ret_line) {
		*ret_line = take_ptr(p.cred_grants.items[0]);
		p.cred_grants.len = 0;
	}
	policy_clear(&p);
	return r;
}

/* -- matching */

/* %2f is %2F. */
static bool is_same(const char *begin, const char *at, char c)
{
	bool escape = (at > begin && at[-1] == '%') || (at > begin + 1 && at[-2] == '%');

	return *at && (*at == c || (escape && isxdigit((unsigned char)*at) &&
				    tolower((unsigned char)*at) == tolower((unsigned char)c)));
}

bool grant_path_matches(const char *pattern, const char *path, size_t n)
{
	const char *begin = pattern, *end = path + n, *star = NULL, *from = NULL;

	while (path < end) {
		if (*pattern == '*') {
			star = ++pattern;
			from = path;
		} else if (is_same(begin, pattern, *path)) {
			pattern++;
			path++;
		} else if (star) {
			pattern = star;
			path = ++from;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

bool grant_is_for_host(const struct policy_grant *g, const char *host)
{
	size_t n = strlen(host);

	for (size_t i = 0; i < g->hosts.len; i++) {
		const char *want = g->hosts.items[i];
		size_t m = strlen(want);

		if (strcmp(want, host) == 0)
			return true;
		if (starts(want, "*.") && n >= m && strcmp(host + n - (m - 1), want + 1) == 0)
			return true;
	}
	return false;
}

bool grant_host_covers(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	if (strcmp(a, b) == 0 || strcmp(a, "*") == 0)
		return true;
	/* "*.example" and "a.example", "*.a.example" */
	return starts(a, "*.") && m >= n && strcmp(b + m - (n - 1), a + 1) == 0;
}

static bool any_grant(const struct policy *p, const char *host,
		      bool (*fits)(const char *grant_host, const char *host))
{
	bool found = false;

	for (size_t i = 0; p->cred_mode != CRED_MODE_NONE && i < p->cred_grants.len && !found;
	     i++) {
		struct ward_err e = { 0 };
		auto_grant g = { 0 };

		if (policy_grant_read(p->cred_grants.items[i], &g, &e) < 0)
			continue;
		for (size_t k = 0; k < g.hosts.len && !found; k++)
			found = fits(g.hosts.items[k], host);
	}
	return found;
}

bool policy_grants_have(const struct policy *p, const char *host)
{
	return any_grant(p, host, grant_host_covers);
}

bool grant_hosts_touch(const char *a, const char *b)
{
	return grant_host_covers(a, b) || grant_host_covers(b, a);
}

bool policy_grants_touch(const struct policy *p, const char *rule_host)
{
	return any_grant(p, rule_host, grant_hosts_touch);
}

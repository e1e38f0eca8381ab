/*
 * Heads of requests that a rule about GraphQL, JSON-RPC or git is asked about (body_head.h). In:
 * the rule's conditions, a request as it was read. Out: refused, allowed, or allowed if its body
 * fits. Everything that could let a server see another request than the gateway is refused: a type
 * that is not said once and plainly, a method that a header overrides, a query beside a body. Runs
 * in front.
 */
#include "rules/body_head.h"

#include <string.h>
#include <strings.h>

#include "policy/policy_rule.h"
#include "rules/http_alias.h"

bool body_inspect_has(const char *conditions, size_t len, char sort, const char *text)
{
	for (size_t at = 0; at < len; at += strlen(conditions + at) + 1)
		if (conditions[at] == sort && (!text || strcmp(conditions + at + 1, text) == 0))
			return true;
	return false;
}

bool body_inspect_fits(const char *conditions, size_t len, char sort, const char *text, size_t n)
{
	bool some = false;

	for (size_t at = 0; at < len; at += strlen(conditions + at) + 1) {
		if (conditions[at] != sort)
			continue;
		some = true;
		if (conditions[at + 1] &&
		    http_glob(conditions + at + 1, strlen(conditions + at + 1), text, n))
			return true;
	}
	return !some;
}

/* The type is this one, with no parameter but that it is UTF-8. */
static bool is_type(const struct http_request *r, const char *type)
{
	unsigned count;
	struct http_text t = http_field_only(&r->fields, "content-type", &count);
	size_t n = strlen(type);

	if (!t.s || t.n < n || strncasecmp(t.s, type, n) != 0)
		return false;
	t = (struct http_text){ t.s + n, t.n - n };
	while (t.n && (*t.s == ' ' || *t.s == ';' || *t.s == '\t'))
		t.s++, t.n--;
	return t.n == 0 || http_text_is(t, "charset=utf-8") || http_text_is(t, "charset=\"utf-8\"");
}

/* A header, or a parameter, that some servers take the method from. */
static bool is_overridden(const struct http_request *r)
{
	return http_override(r, 0).s;
}

static bool is_coded_oddly(const struct http_request *r)
{
	unsigned count;
	struct http_text t = http_field_only(&r->fields, "content-encoding", &count);

	return count > 1 || (t.s && !http_text_is(t, "gzip") && !http_text_is(t, "x-gzip") &&
			     !http_text_is(t, "identity"));
}

static bool is_method(const struct http_request *r, const char *method)
{
	return r->method.n == strlen(method) && memcmp(r->method.s, method, r->method.n) == 0;
}

/* -- GraphQL and JSON-RPC */

static enum verdict_reason ask_graphql(const char *conditions, size_t len,
				       const struct http_request *r, struct asked *ret,
				       enum body_inspect_kind *ret_look)
{
	if (is_overridden(r)) {
		ret->wrong = "a header that overrides the method";
	} else if (is_method(r, "GET") && !r->body) {
		if (graphql_query_fits(conditions, len, r->query, ret))
			return REASON_ALLOWED;
		return ret->wrong ? REASON_GRAPHQL_BAD : REASON_GRAPHQL;
	} else if (!is_method(r, "POST")) {
		ret->wrong = "neither a POST nor a GET without a body";
	} else if (graphql_query_speaks(r->query)) {
		ret->wrong = "a POST with parameters of GraphQL in its URL";
	} else if (is_type(r, "application/json")) {
		*ret_look = BODY_INSPECT_GRAPHQL;
	} else if (is_type(r, "application/graphql")) {
		*ret_look = BODY_INSPECT_GRAPHQL_TEXT;
	} else {
		ret->wrong = "the content type is neither application/json nor "
			     "application/graphql, in UTF-8";
	}
	if (ret->wrong)
		return REASON_GRAPHQL_BAD;
	return is_coded_oddly(r) ? REASON_ENCODING : REASON_ALLOWED;
}

static enum verdict_reason ask_rpc(const struct http_request *r, struct asked *ret,
				   enum body_inspect_kind *ret_look)
{
	if (is_overridden(r))
		ret->wrong = "a header that overrides the method";
	else if (!is_method(r, "POST"))
		ret->wrong = "not a POST; another rule with methods may allow it";
	else if (!is_type(r, "application/json"))
		ret->wrong = "the content type is not application/json, in UTF-8";
	if (ret->wrong)
		return REASON_RPC_BAD;
	*ret_look = BODY_INSPECT_RPC;
	return is_coded_oddly(r) ? REASON_ENCODING : REASON_ALLOWED;
}

/* -- git */

static bool ends_in(const char *s, size_t n, const char *end, size_t *ret_before)
{
	size_t k = strlen(end);

	if (n <= k || memcmp(s + n - k, end, k) != 0)
		return false;
	*ret_before = n - k;
	return true;
}

static bool is_query(const struct http_request *r, const char *query)
{
	return r->query.s && r->query.n == strlen(query) &&
	       memcmp(r->query.s, query, r->query.n) == 0;
}

enum git_use { GIT_NOT, GIT_FETCH, GIT_PUSH };

/* What of git's protocol this is; *ret_n: how much of the path is the repository's. */
static enum git_use git_use(const struct http_request *r, const char *path, size_t n, size_t *ret_n,
			    bool *ret_body)
{
	*ret_body = true;
	if (is_method(r, "POST") && !r->query.s && ends_in(path, n, "/git-upload-pack", ret_n) &&
	    is_type(r, "application/x-git-upload-pack-request"))
		return GIT_FETCH;
	if (is_method(r, "POST") && !r->query.s && ends_in(path, n, "/git-receive-pack", ret_n) &&
	    is_type(r, "application/x-git-receive-pack-request"))
		return GIT_PUSH;
	*ret_body = false;
	if (!is_method(r, "GET") || r->body || !ends_in(path, n, "/info/refs", ret_n))
		return GIT_NOT;
	return is_query(r, "service=git-upload-pack")    ? GIT_FETCH
	       : is_query(r, "service=git-receive-pack") ? GIT_PUSH
							 : GIT_NOT;
}

bool body_inspect_is_git(const struct http_request *r)
{
	size_t n;
	bool body;

	return r->path.s && git_use(r, r->path.s, r->path.n, &n, &body) != GIT_NOT;
}

static enum verdict_reason ask_git(const char *conditions, size_t len, const struct http_request *r,
				   const struct http_path *path, struct asked *ret,
				   enum body_inspect_kind *ret_look)
{
	size_t n = 0;
	bool body;
	enum git_use use = path->two || is_overridden(r) || http_moves_path(r)
				   ? GIT_NOT
				   : git_use(r, path->text, path->len, &n, &body);

	if (use == GIT_NOT) {
		ret->wrong = "not a request of git's smart HTTP protocol";
		return REASON_GIT_BAD;
	}
	if (n > 4 && memcmp(path->text + n - 4, ".git", 4) == 0)
		n -= 4;
	if (!body_inspect_fits(conditions, len, POLICY_HTTP_REPOSITORY, path->text, n)) {
		asked_add(ret, "repositories=", 13);
		asked_add(ret, path->text, n);
		strcpy(ret->more, use == GIT_FETCH ? "use=fetch" : "use=push");
		return REASON_GIT;
	}
	asked_add(ret, use == GIT_FETCH ? "git=fetch" : "git=push", use == GIT_FETCH ? 9 : 8);
	if (use == GIT_FETCH)
		return body_inspect_has(conditions, len, POLICY_HTTP_GIT, "fetch") ? REASON_ALLOWED
										   : REASON_GIT;
	if (!body_inspect_has(conditions, len, POLICY_HTTP_GIT, "push") &&
	    !body_inspect_has(conditions, len, POLICY_HTTP_GIT, "force") &&
	    !body_inspect_has(conditions, len, POLICY_HTTP_GIT, "delete"))
		return REASON_GIT;
	if (body && is_coded_oddly(r))
		return REASON_ENCODING;
	*ret_look = body ? BODY_INSPECT_PUSH : BODY_INSPECT_NONE;
	return REASON_ALLOWED;
}

enum verdict_reason body_inspect_head(const char *conditions, size_t len,
				      const struct http_request *r, const struct http_path *path,
				      struct asked *ret, enum body_inspect_kind *ret_look)
{
	*ret = (struct asked){ 0 };
	*ret_look = BODY_INSPECT_NONE;
	if (body_inspect_has(conditions, len, POLICY_HTTP_GIT, NULL))
		return ask_git(conditions, len, r, path, ret, ret_look);
	if (body_inspect_has(conditions, len, POLICY_HTTP_RPC, NULL))
		return ask_rpc(r, ret, ret_look);
	return ask_graphql(conditions, len, r, ret, ret_look);
}

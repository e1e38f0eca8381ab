/*
 * A draft from an OpenAPI 3 document. In: the document, JSON or YAML, untrusted. Out: one tool for
 * each operation: its URL with the parameters of path and required query, a body as text, and a
 * scope of exactly its host, method and path. Only https servers; references are followed within
 * the document, one step. What deletes is drafted as destructive with approval.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/tool/init_parts.h"
#include "policy/policy_value.h"
#include "tools/json_schema.h"

#define TOOLS_MAX 250

struct draft {
	const struct node *root;
	const char *server; /* https://host[:port][/base], without a slash at its end */
	size_t server_len;
	char host[300];
	struct buf *out;
	struct strv names;
};

static const struct node *resolve(const struct draft *d, const struct node *n)
{
	const char *ref = init_text(n, "$ref");

	return ref ? json_schema_ref(d->root, ref) : n;
}

static bool read_server(struct draft *d, struct ward_err *e)
{
	const struct node *servers = init_member(d->root, "servers");
	const char *url = servers && servers->first ? init_text(servers->first, "url") : NULL;
	char host[256];
	unsigned port = 0;

	if (!url || strncmp(url, "https://", 8) != 0 || strpbrk(url, "{}?#@\\\" \n")) {
		ward_fail(e, EINVAL,
			  "the document names no server: add servers: [{url: https://HOST/...}]");
		return false;
	}
	d->server = url;
	d->server_len = strlen(url);
	while (d->server_len > 8 && url[d->server_len - 1] == '/')
		d->server_len--;
	snprintf(d->host, sizeof(d->host), "%.*s", (int)strcspn(url + 8, "/"), url + 8);
	if (host_parse(d->host, true, host, &port) || strchr(host, '*')) {
		ward_fail(e, EINVAL, "the server %.200s has no host that a scope can name", url);
		return false;
	}
	snprintf(d->host, sizeof(d->host), "%s\", ports: [%u]", host, port ? port : 443);
	return true;
}

/* operationId, or METHOD_path with what cannot stand in a name as _. */
static void make_name(struct draft *d, const struct node *path, const struct node *operation,
		      char ret[TOOLS_NAME_MAX + 1])
{
	const char *id = init_text(operation, "operationId");
	size_t n;

	if (id)
		snprintf(ret, TOOLS_NAME_MAX - 3, "%s", id);
	else
		snprintf(ret, TOOLS_NAME_MAX - 3, "%s%s", operation->key, path->key);
	for (char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-')
			*c = '_';
	if (*ret == '-' || !*ret)
		snprintf(ret, TOOLS_NAME_MAX, "tool");
	n = strlen(ret);
	for (unsigned i = 2; strv_has(&d->names, ret) && i < 100; i++)
		snprintf(ret + n, TOOLS_NAME_MAX + 1 - n, "_%u", i);
	strv_add(&d->names, ret);
}

/* Parameters of the path's and the operation's own lists. */
static void put_params(const struct draft *d, const struct node *list, struct buf *params,
		       struct buf *query, struct strv *names)
{
	for (const struct node *n = list && list->kind == NODE_LIST ? list->first : NULL; n;
	     n = n->next) {
		const struct node *p = resolve(d, n);
		const char *name = init_text(p, "name"), *in = init_text(p, "in");
		const char *required = init_text(p, "required");
		bool path = in && strcmp(in, "path") == 0;
		bool asked =
			in && strcmp(in, "query") == 0 && required && strcmp(required, "true") == 0;

		if (!name || !(path || asked) || strv_has(names, name) ||
		    !init_param(resolve(d, init_member(p, "schema")), name, true, params))
			continue;
		strv_add(names, name);
		if (asked)
			buf_printf(query, "%c%s={%s}", query->len ? '&' : '?', name, name);
	}
}

/* The URL, and the pattern of its path; false: it has a parameter that was not declared. */
static bool put_url(const struct draft *d, const struct node *path, const struct strv *names,
		    struct buf *url, struct buf *pattern)
{
	const char *base = strchr(d->server + 8, '/');

	buf_add(url, d->server, d->server_len);
	if (base && base < d->server + d->server_len)
		buf_add(pattern, base, (size_t)(d->server + d->server_len - base));
	for (const char *c = path->key; *c;) {
		size_t n = strcspn(c + 1, "}");
		auto_free char *name = *c == '{' ? strndup(c + 1, n) : NULL;

		if (name) {
			if (!strv_has(names, name))
				return false;
			buf_printf(url, "{%s}", name);
			buf_puts(pattern, "*");
			c += n + 1 + (c[n + 1] == '}');
		} else {
			if (!isgraph((unsigned char)*c) || strchr("\"\\#?*", *c))
				return false;
			buf_add(url, c, 1);
			buf_add(pattern, c++, 1);
		}
	}
	return true;
}

static void put_operation(struct draft *d, const struct node *path, const struct node *operation,
			  const char *method)
{
	auto_buf params = { 0 }, query = { 0 }, url = { 0 }, pattern = { 0 };
	const char *about = init_text(operation, "summary");
	bool body = init_member(operation, "requestBody") != NULL;
	bool deletes = strcmp(method, "DELETE") == 0;
	char name[TOOLS_NAME_MAX + 1];
	auto_strv names = { 0 };
	struct buf *out = d->out;

	put_params(d, init_member(path, "parameters"), &params, &query, &names);
	put_params(d, init_member(operation, "parameters"), &params, &query, &names);
	if (!put_url(d, path, &names, &url, &pattern)) {
		buf_printf(out, "  # %s ", method);
		text_escape(out, path->key);
		buf_puts(out, ": its URL cannot be built from simple parameters\n");
		return;
	}
	make_name(d, path, operation, name);
	buf_printf(out, "  \"%s\":\n    description: ", name);
	init_quote(out, about ? about : init_text(operation, "description"));
	buf_printf(out, "\n    http:\n      method: %s\n      url: ", method);
	if (query.len)
		buf_puts(&url, query.data);
	init_quote(out, buf_text(&url));
	if (body)
		buf_puts(out,
			 "\n      body: body\n      headers: {Content-Type: application/json}");
	buf_puts(out, "\n");
	if (body)
		buf_puts(&params, "      body: {type: string, lines: true, max_length: 65536}\n");
	if (params.len)
		buf_printf(out, "    parameters:\n%s", params.data);
	buf_printf(out, "    scope:\n      hosts: [{host: \"%s, methods: [%s], paths: [", d->host,
		   method);
	init_quote(out, buf_text(&pattern));
	buf_printf(out,
		   "]}]\n    nature:   # say private_data, untrusted_content%s too\n"
		   "      communicates_outside: true\n%s",
		   deletes ? "" : " and destructive",
		   deletes ? "      destructive: true\n      approval: always\n" : "");
}

static void put_path(struct draft *d, const struct node *path)
{
	static const struct {
		const char *key, *method;
	} methods[] = { { "get", "GET" }, { "head", "HEAD" },   { "post", "POST" },
			{ "put", "PUT" }, { "patch", "PATCH" }, { "delete", "DELETE" } };

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		const struct node *operation = init_member(path, methods[i].key);

		if (operation && operation->kind == NODE_MAP && d->names.len < TOOLS_MAX)
			put_operation(d, path, operation, methods[i].method);
	}
}

static int draft(struct draft *d, struct ward_err *e)
{
	const struct node *paths = init_member(d->root, "paths");

	if (!paths || paths->kind != NODE_MAP || !paths->first)
		return ward_fail(e, EINVAL, "the document has no paths: is it OpenAPI 3?");
	if (!read_server(d, e))
		return -e->code;
	buf_puts(d->out, "version: 1\ntools:\n");
	for (const struct node *p = paths->first; p; p = p->next)
		put_path(d, p);
	return d->names.len ? 0 : ward_fail(e, EINVAL, "no operation became a tool");
}

int init_openapi(const char *file, struct buf *out, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	struct reader r = { .name = file, .errors = &errors };
	struct draft d = { .out = out };
	auto_buf bytes = { 0 };
	auto_node root = NULL;
	int result = io_read_file(AT_FDCWD, file, NODE_BYTES_MAX, &bytes);

	if (result < 0)
		return ward_fail(e, -result, "cannot read %.300s: %s", file, strerror(-result));
	root = policy_is_json(file, (const uint8_t *)buf_text(&bytes), bytes.len)
		       ? json_read(&r, (const uint8_t *)buf_text(&bytes), bytes.len)
		       : yaml_read(&r, (const uint8_t *)buf_text(&bytes), bytes.len);
	if (!root || r.count)
		result = ward_fail(e, EINVAL, "%.600s",
				   errors.lines.len ? errors.lines.items[0] : "empty document");
	d.root = root;
	if (result == 0)
		result = draft(&d, e);
	strv_free(&d.names);
	strv_free(&errors.lines);
	return result;
}

/*
 * Lists of maps: host mounts, egress rules, grants, sinks; and the map of commands. In: nodes. Out:
 * what struct policy holds; rules, grants and sinks as one line of canonical JSON each, keys in the
 * order of the table, defaults left out (ports excepted), so that two ways of writing the same
 * thing compare equal. The keys come from the ITEM rows. Pure functions, no rights.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/policy_http.h"
#include "policy/policy_value.h"
#include "policy/units.h"

/* Unknown keys of the map, and required ones that are missing. */
static void check_keys(struct reader *r, const char *path, const char *object,
		       const struct node *map)
{
	const struct schema_item *item = NULL;
	auto_strv known = { 0 };

	while ((item = schema_next_item(object, item))) {
		strv_add(&known, item->name);
		if (item->required && !node_get(map, item->name))
			reader_error(r, (struct place){ map->line, map->column }, NULL,
				     "%s: the key \"%s\" is missing", path, item->name);
	}
	for (const struct node *n = map->first; n; n = n->next)
		if (!strv_has(&known, n->key))
			value_unknown_key(r, path, n, &known);
}

static void write_ports(struct reader *r, const char *path, const struct schema_item *item,
			const struct node *n, struct json *j)
{
	char here[VALUE_PATH];
	uint64_t value;
	unsigned i = 0;

	json_begin_array(j, item->name);
	if (n->kind != NODE_LIST && value_number(r, path, TYPE_UINTS, item->values, n, &value))
		json_uint(j, NULL, value);
	if (n->kind == NODE_LIST && !n->first)
		value_error(r, path, n, "at least one port", NULL);
	for (const struct node *c = n->kind == NODE_LIST ? n->first : NULL; c; c = c->next) {
		value_index_path(here, path, i++);
		if (value_number(r, here, TYPE_UINTS, item->values, c, &value))
			json_uint(j, NULL, value);
	}
	json_end_array(j);
}

static void write_strings(struct reader *r, const char *path, const struct schema_item *item,
			  const struct node *n, struct json *j)
{
	bool hosts = strcmp(item->values, "host") == 0;
	auto_strv list = { 0 };
	char host[256];
	unsigned port;

	value_strings(r, path, item->values, n, &list);
	json_begin_array(j, item->name);
	for (size_t i = 0; i < list.len; i++)
		json_string(j, NULL,
			    hosts && !host_parse(list.items[i], false, host, &port)
				    ? host
				    : list.items[i]);
	json_end_array(j);
	if (list.failed)
		reader_out_of_memory(r);
}

/* Only the ports are written where nothing is said: everything else that has its default is left
 * out. */
static void write_default(const struct schema_item *item, struct json *j)
{
	uint64_t value;

	if (item->type != TYPE_UINTS ||
	    schema_number(item->type, item->values, item->fallback, &value) < 0)
		return;
	json_begin_array(j, item->name);
	json_uint(j, NULL, value);
	json_end_array(j);
}

static bool is_default(const struct schema_item *item, uint64_t value)
{
	uint64_t fallback;

	return *item->fallback &&
	       schema_number(item->type, item->values, item->fallback, &fallback) == 0 &&
	       fallback == value;
}

static void write_seconds(const struct schema_item *item, uint64_t ms, struct json *j)
{
	auto_buf text = { 0 };

	schema_number_text(TYPE_SECONDS, ms, &text);
	if (ms % 1000)
		json_string(j, item->name, buf_text(&text));
	else
		json_uint(j, item->name, ms / 1000);
}

static void write_money(const struct schema_item *item, uint64_t millionths, struct json *j)
{
	auto_buf text = { 0 };

	units_put_money(millionths, &text);
	json_string(j, item->name, buf_text(&text));
}

static void write_member(struct reader *r, const char *path, const struct schema_item *item,
			 const struct node *n, struct json *j)
{
	char host[256];
	const char *text;
	unsigned index;
	uint64_t value;
	bool flag;

	if (item->type == TYPE_UINTS) {
		write_ports(r, path, item, n, j);
	} else if (item->type == TYPE_STRINGS) {
		write_strings(r, path, item, n, j);
	} else if (item->type == TYPE_BOOL) {
		if (value_bool(r, path, n, &flag) && strcmp(item->fallback, n->text) != 0)
			json_bool(j, item->name, flag);
	} else if (item->type == TYPE_ENUM) {
		if (value_enum(r, path, item->values, n, &index) &&
		    strcmp(item->fallback, n->text) != 0)
			json_string(j, item->name, n->text);
	} else if (item->type == TYPE_SECONDS) {
		if (value_number(r, path, item->type, item->values, n, &value) &&
		    !is_default(item, value))
			write_seconds(item, value, j);
	} else if (item->type == TYPE_MONEY) {
		if (value_number(r, path, item->type, item->values, n, &value) &&
		    !is_default(item, value))
			write_money(item, value, j);
	} else if (item->type == TYPE_UINT || item->type == TYPE_SIZE) {
		if (value_number(r, path, item->type, item->values, n, &value) &&
		    !is_default(item, value))
			json_uint(j, item->name, value);
	} else if (value_string(r, path, item->values, n, &text)) {
		if (strcmp(item->values, "host") == 0 && !host_parse(text, false, host, &index))
			text = host; /* its canonical form */
		json_string(j, item->name, text);
	}
}

/* Without a name there is no SNI to compare with; a block has not even an address. */
static void check_rule_host(struct reader *r, const char *path, const struct node *map,
			    const struct node *mode)
{
	const struct node *n = node_get(map, "host");
	char host[256];
	unsigned port;

	if (!n || !n->text || host_parse(n->text, false, host, &port) ||
	    strcmp(mode->text, "tcp") == 0)
		return;
	if (strchr(host, '/') ||
	    (strcmp(mode->text, "http") != 0 &&
	     (strspn(host, "0123456789.") == strlen(host) || strchr(host, ':'))))
		reader_error(r, (struct place){ mode->line, mode->column },
			     "remove mode: addresses are tcp", "%s.mode: %s works with names only",
			     path, mode->text);
}

/* HTTP knowledge needs inspect; so says the mode, or nothing does. */
static void check_rule(struct reader *r, const char *path, const struct node *map)
{
	static const char *const keys[] = { "methods",        "paths",         "query",
					    "headers",        "content_types", "request_limit",
					    "response_limit", "websocket",     "waf",
					    "request_rate",   "llm",           "spend_limit",
					    "graphql",        "json_rpc",      "git" };
	const struct node *mode = node_get(map, "mode");

	http_check_rule(r, path, map);
	if (mode && mode->text)
		check_rule_host(r, path, map, mode);
	if (!mode || !mode->text || strcmp(mode->text, "inspect") == 0 ||
	    strcmp(mode->text, "http") == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct node *n = node_get(map, keys[i]);

		if (n && !(n->text && strcmp(n->text, "off") == 0))
			reader_error(r, (struct place){ n->key_line, n->key_column },
				     "write mode: inspect", "%s.%s: works in mode inspect only",
				     path, keys[i]);
	}
}

static void write_map(struct reader *r, const char *path, const char *object,
		      const struct node *map, struct json *j)
{
	const struct schema_item *item = NULL;
	char here[VALUE_PATH];

	check_keys(r, path, object, map);
	if (strcmp(object, "rule") == 0)
		check_rule(r, path, map);
	if (strcmp(object, "grant") == 0)
		item_check_grant(r, path, map);
	if (strcmp(object, "ssh") == 0)
		item_check_ssh(r, path, map);
	if (strcmp(object, "sink") == 0)
		item_check_sink(r, path, map);
	if (strcmp(object, "watch") == 0)
		item_check_watch(r, path, map);
	if (strcmp(object, "label") == 0)
		item_check_label(r, path, map);
	while ((item = schema_next_item(object, item))) {
		const struct node *n = node_get(map, item->name);

		value_key_path(here, path, item->name);
		if (n)
			write_member(r, here, item, n, j);
		else
			write_default(item, j);
	}
}

/* "host[:port]" as the rule that it is short for: its host and one port, all else left out. Many
 * rules are written so: the table is not walked for each, and a canonical host needs no escapes. */
static void write_rule_text(struct reader *r, const char *path, unsigned index,
			    const struct node *n, uint64_t usual_port, struct buf *out)
{
	char host[256], here[VALUE_PATH];
	struct json j = { .out = out };
	unsigned port;
	const char *wrong = host_parse(n->text, true, host, &port);

	if (wrong) {
		const char *sign = strstr(n->text, "://"), *from = sign ? sign + 3 : n->text;
		size_t length = strcspn(from, "/?#");
		bool url = sign || from[length];
		auto_free char *own = strndup(from, length < 255 ? length : 255);
		auto_buf remedy = { 0 };

		buf_puts(&remedy, "a rule names a host and no URL: ");
		text_escape(&remedy, own ? own : "HOST");
		value_index_path(here, path, index);
		value_error(r, here, n, url ? "HOST or HOST:PORT" : wrong,
			    url ? buf_text(&remedy) : NULL);
		return;
	}
	buf_puts(out, "{\"host\":\"");
	buf_puts(out, host);
	buf_puts(out, "\",\"ports\":[");
	json_uint(&j, NULL, port ? port : usual_port);
	buf_puts(out, "]}");
}

static void write_object(struct reader *r, const char *path, const char *object,
			 const struct node *n, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	if (n->kind == NODE_MAP)
		write_map(r, path, object, n, &j);
	else
		value_error(r, path, n,
			    strcmp(object, "rule") == 0 ? "host[:port] or a map" : "a map", NULL);
	json_end_object(&j);
}

/* The port of a rule that names none. */
static uint64_t default_port(void)
{
	const struct schema_item *item = NULL;
	uint64_t port = 0;

	while ((item = schema_next_item("rule", item)))
		if (item->type == TYPE_UINTS &&
		    schema_number(item->type, item->values, item->fallback, &port) < 0)
			port = 0;
	return port;
}

void item_objects(struct reader *r, const char *path, const char *object, const struct node *n,
		  struct strv *ret)
{
	bool text_too = strcmp(object, "rule") == 0;
	uint64_t usual_port = text_too ? default_port() : 0;
	auto_buf line = { 0 };
	char here[VALUE_PATH];
	unsigned i = 0;

	if (n->kind != NODE_LIST) {
		value_error(r, path, n, "a list",
			    n->kind == NODE_NULL ? "an empty list is []" : "put it in [ ]");
		return;
	}
	for (const struct node *c = n->first; c; c = c->next, i++) {
		line.len = 0;
		buf_puts(&line, "");
		if (text_too && (c->kind == NODE_WORD || c->kind == NODE_STRING)) {
			write_rule_text(r, path, i, c, usual_port, &line);
		} else {
			value_index_path(here, path, i);
			write_object(r, here, object, c, &line);
		}
		strv_take(ret, line.failed ? NULL : strdup(line.data));
	}
}

/* What `at` may be: absolute, clean, and not the root. */
static bool is_target(const char *at)
{
	auto_free char *clean = path_clean(at);

	return clean && strcmp(clean, at) == 0 && at[1];
}

static const char *values_of(const char *object, const char *name)
{
	const struct schema_item *item = NULL;

	while ((item = schema_next_item(object, item)) && strcmp(item->name, name) != 0)
		;
	return item ? item->values : "";
}

static void add_mount_map(struct reader *r, const char *path, const struct node *map,
			  struct policy_mounts *ret)
{
	const struct node *n;
	const char *source = NULL, *at = NULL;
	unsigned mode = 0;
	char here[VALUE_PATH];

	check_keys(r, path, "mount", map);
	value_key_path(here, path, "path");
	n = node_get(map, "path");
	if (n && !value_string(r, here, "", n, &source))
		source = NULL;
	value_key_path(here, path, "mode");
	n = node_get(map, "mode");
	if (n && !value_enum(r, here, values_of("mount", "mode"), n, &mode))
		source = NULL;
	value_key_path(here, path, "at");
	n = node_get(map, "at");
	if (n && value_string(r, here, "", n, &at) && !is_target(at)) {
		value_error(r, here, n, "an absolute path without . and .., and not /", NULL);
		source = NULL;
	}
	if (source && policy_mounts_add(ret, source, at, mode == 1) < 0)
		reader_out_of_memory(r);
}

void item_mounts(struct reader *r, const char *path, const struct node *n,
		 struct policy_mounts *ret)
{
	char here[VALUE_PATH];
	const char *source;
	unsigned i = 0;

	if (n->kind != NODE_LIST) {
		value_error(r, path, n, "a list",
			    n->kind == NODE_NULL ? "an empty list is []" : "put it in [ ]");
		return;
	}
	for (const struct node *c = n->first; c; c = c->next) {
		value_index_path(here, path, i++);
		if (c->kind == NODE_MAP)
			add_mount_map(r, here, c, ret);
		else if (c->kind != NODE_WORD && c->kind != NODE_STRING)
			value_error(r, here, c, "a path or {path, mode, at}", NULL);
		else if (value_string(r, here, "", c, &source) &&
			 policy_mounts_add(ret, source, NULL, false) < 0)
			reader_out_of_memory(r);
	}
}

void item_commands(struct reader *r, const char *path, const struct node *n, struct strv *ret)
{
	const struct schema_item *item = NULL;
	char here[VALUE_PATH];

	if (n->kind != NODE_MAP) {
		value_error(r, path, n, "a map with allow, ask and deny",
			    n->kind == NODE_NULL ? "an empty map is {}" : NULL);
		return;
	}
	check_keys(r, path, "commands", n);
	while ((item = schema_next_item("commands", item))) {
		const struct node *list = node_get(n, item->name);
		auto_strv patterns = { 0 };

		if (!list)
			continue;
		value_key_path(here, path, item->name);
		value_strings(r, here, item->values, list, &patterns);
		for (size_t i = 0; i < patterns.len; i++)
			strv_addf(ret, "%s %s", item->name, patterns.items[i]);
	}
}

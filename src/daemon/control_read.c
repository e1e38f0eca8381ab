/*
 * Bodies of the control plane. In: JSON of a client. Out: values in their bounds. What ward does
 * not do is refused where it is asked for, so that nobody relies on it: a field that would be
 * ignored is one that a client believes in. Fields that ward does not know are skipped, as E2B's
 * own server does. Pure, fuzzed (fuzz/serve_route.c).
 */
#include <string.h>

#include "daemon/front.h"
#include "rules/json_in.h"

#define TIMEOUT_MAX (30 * 24 * 3600)
#define METADATA_MAX 4096 /* as JSON: it is kept in memory, and read for each list */

static bool wrong(struct create *c, unsigned status, const char *why)
{
	if (!c->status) {
		c->status = status;
		snprintf(c->wrong, sizeof(c->wrong), "%s", why);
	}
	return false;
}

static bool skip_null(struct json_in *j)
{
	if (json_in_peek(j) != 'n')
		return false;
	json_in_skip(j);
	return true;
}

static bool read_bool(struct json_in *j)
{
	char c = json_in_peek(j);

	if (c == 't' || c == 'f')
		json_in_skip(j);
	else
		j->bad = true;
	return c == 't';
}

static int64_t read_int(struct json_in *j)
{
	const uint8_t *at;
	int64_t value = 0;

	if (json_in_peek(j) != '-' && !(json_in_peek(j) >= '0' && json_in_peek(j) <= '9')) {
		j->bad = true;
		return 0;
	}
	at = j->at;
	json_in_skip(j);
	for (; at < j->at; at++) {
		if (*at < '0' || *at > '9' || value > INT32_MAX) {
			j->bad = true;
			return 0;
		}
		value = value * 10 + (*at - '0');
	}
	return value;
}

/* {"name":"text",...} as JSON again. */
static void read_metadata(struct json_in *j, struct create *c)
{
	struct json out = { .out = &c->metadata };
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	c->metadata.len = 0;
	json_begin_object(&out, NULL);
	while (json_in_next(j, &l, &key)) {
		auto_free char *name = strdup(key);
		auto_buf value = { 0 };

		json_in_string(j, &value);
		if (!name)
			j->bad = true;
		else
			json_string(&out, name, buf_text(&value));
	}
	json_end_object(&out);
	if (c->metadata.len > METADATA_MAX)
		wrong(c, 400, "metadata is larger than 4 KiB");
}

static bool is_variable(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	for (; *name; name++)
		if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
		      (*name >= '0' && *name <= '9') || *name == '_'))
			return false;
	return true;
}

static void read_variables(struct json_in *j, struct create *c)
{
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	c->config.len = 0;
	while (json_in_next(j, &l, &key)) {
		auto_buf value = { 0 };

		if (!is_variable(key))
			wrong(c, 400, "envVars: not the name of a variable");
		buf_printf(&c->config, "%s=", key);
		json_in_string(j, &value);
		buf_puts(&c->config, buf_text(&value));
		buf_add(&c->config, "", 1);
	}
	if (c->config.len > CONFIG_MAX)
		wrong(c, 400, "envVars are larger than 24 KiB together");
}

/* A list whose entries, if any, are all addresses; those of one family take both, for there is no
 * network with half of them. */
static void read_deny(struct json_in *j, struct create *c)
{
	struct json_level l;

	if (skip_null(j) || !json_in_open(j, '[', &l))
		return;
	while (json_in_next(j, &l, NULL)) {
		auto_buf text = { 0 };

		json_in_string(j, &text);
		if (strcmp(buf_text(&text), "0.0.0.0/0") == 0 ||
		    strcmp(buf_text(&text), "::/0") == 0)
			c->no_network = true;
		else
			wrong(c, 400,
			      "network.denyOut: ward serve knows 0.0.0.0/0 and ::/0, each of "
			      "which takes the whole network; a template's policy says more");
	}
}

/* Something that is refused unless it is empty. */
static void refuse_some(struct json_in *j, struct create *c, const char *why)
{
	const uint8_t *at;
	size_t n;

	if (skip_null(j))
		return;
	json_in_peek(j);
	at = j->at;
	json_in_skip(j);
	n = (size_t)(j->at - at);
	if (!j->bad && !(n == 2 && (memcmp(at, "[]", 2) == 0 || memcmp(at, "{}", 2) == 0)))
		wrong(c, 400, why);
}

bool control_mask_host(const char *text, uint16_t port, struct host *ret_host, uint16_t *ret_port)
{
	auto_buf whole = { 0 };
	const char *at = strstr(text, "${PORT}");

	buf_add(&whole, text, at ? (size_t)(at - text) : strlen(text));
	if (at)
		buf_printf(&whole, "%u%s", port, at + strlen("${PORT}"));
	if (whole.failed || !whole.len ||
	    host_read_port(whole.data, whole.len, ret_host, ret_port) != HOST_FINE)
		return false;
	*ret_port = *ret_port ? *ret_port : 80;
	return true;
}

static void read_mask_host(struct json_in *j, struct create *c)
{
	struct host host;
	uint16_t port;

	if (skip_null(j))
		return;
	c->mask_host.len = 0;
	json_in_string(j, &c->mask_host);
	if (!control_mask_host(buf_text(&c->mask_host), 65535, &host, &port))
		wrong(c, 400,
		      "network.maskRequestHost: a host, or HOST:PORT; ${PORT} stands for "
		      "the sandbox's port");
}

static const char no_such_network[] =
	"network: of its fields ward serve has denyOut 0.0.0.0/0, allowPublicTraffic and "
	"maskRequestHost; a template's policy says which hosts a sandbox may reach";

static void read_network(struct json_in *j, struct create *c)
{
	struct json_level l;
	const char *key;

	if (skip_null(j) || !json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key))
		if (strcmp(key, "denyOut") == 0)
			read_deny(j, c);
		else if (strcmp(key, "allowPublicTraffic") == 0)
			c->private_traffic = !skip_null(j) && !read_bool(j);
		else if (strcmp(key, "maskRequestHost") == 0)
			read_mask_host(j, c);
		else
			refuse_some(j, c, no_such_network);
}

static void read_auto_resume(struct json_in *j, struct create *c)
{
	struct json_level l;
	const char *key;

	if (skip_null(j) || !json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key))
		if (strcmp(key, "enabled") == 0)
			c->auto_resume = !skip_null(j) && read_bool(j);
		else
			json_in_skip(j);
}

static void read_template(struct json_in *j, struct create *c)
{
	auto_buf text = { 0 };

	json_in_string(j, &text);
	if (!route_read_template(buf_text(&text), c->template))
		wrong(c, 404, "there is no such template");
}

static void read_member(struct json_in *j, const char *key, struct create *c)
{
	if (strcmp(key, "templateID") == 0)
		read_template(j, c);
	else if (skip_null(j))
		;
	else if (strcmp(key, "metadata") == 0)
		read_metadata(j, c);
	else if (strcmp(key, "envVars") == 0)
		read_variables(j, c);
	else if (strcmp(key, "timeout") == 0)
		c->timeout_s = read_int(j);
	else if (strcmp(key, "allow_internet_access") == 0)
		c->internet = read_bool(j);
	else if (strcmp(key, "autoPause") == 0)
		c->auto_pause = read_bool(j);
	else if (strcmp(key, "autoPauseMemory") == 0)
		c->pause_files = !read_bool(j);
	else if (strcmp(key, "autoResume") == 0)
		read_auto_resume(j, c);
	else if (strcmp(key, "network") == 0)
		read_network(j, c);
	else if (strcmp(key, "iam") == 0 || strcmp(key, "volumeMounts") == 0)
		refuse_some(j, c, "iam and volumeMounts are not supported");
	else
		json_in_skip(j);
}

bool control_read_create(const uint8_t *bytes, size_t n, struct create *ret)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool fine;

	*ret = (struct create){ .timeout_s = -1, .internet = -1 };
	json_in_init(&j, bytes, n);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key)) {
			char name[64];

			snprintf(name, sizeof(name), "%s", key);
			read_member(&j, name, ret);
		}
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	if (!fine || ret->metadata.failed || ret->config.failed || ret->mask_host.failed) {
		ret->status = 0; /* whatever was wrong before: the body is not even that */
		return wrong(ret, 400, "the body is not JSON of the form that a create has");
	}
	if (!*ret->template)
		return wrong(ret, 400, "templateID is missing");
	if (ret->timeout_s > TIMEOUT_MAX || ret->timeout_s == 0)
		return wrong(ret, 400, "timeout: 1 to 2592000 seconds");
	ret->no_network |= ret->internet == 0;
	return !ret->status;
}

bool control_read_network(const uint8_t *bytes, size_t n, struct create *ret)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool fine;

	*ret = (struct create){ .timeout_s = -1, .internet = -1 };
	json_in_init(&j, bytes, n);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key))
			if (strcmp(key, "denyOut") == 0)
				read_deny(&j, ret);
			else if (strcmp(key, "allow_internet_access") != 0)
				refuse_some(&j, ret, no_such_network);
			else if (!skip_null(&j))
				ret->internet = read_bool(&j);
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	if (!fine) {
		ret->status = 0;
		return wrong(ret, 400, "the body is not JSON of the form that this call has");
	}
	ret->no_network |= ret->internet == 0;
	return !ret->status;
}

void control_free_create(struct create *c)
{
	buf_free(&c->mask_host);
	buf_free(&c->metadata);
	buf_free(&c->config);
}

static void read_small_member(struct json_in *j, const char *key, struct small_request *ret)
{
	auto_buf text = { 0 };
	bool timeout = strcmp(key, "timeout") == 0 || strcmp(key, "duration") == 0,
	     count = strcmp(key, "count") == 0, memory = strcmp(key, "memory") == 0,
	     name = strcmp(key, "name") == 0;

	if (skip_null(j))
		return;
	if (timeout) {
		ret->timeout_s = read_int(j);
	} else if (count) {
		ret->count = read_int(j);
	} else if (memory) {
		ret->memory = read_bool(j);
	} else if (name) {
		json_in_string(j, &text);
		if (!route_read_template(buf_text(&text), ret->name))
			j->bad = true;
	} else {
		json_in_skip(j);
	}
}

bool control_read_small(const uint8_t *bytes, size_t n, struct small_request *ret)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool fine;

	*ret = (struct small_request){ .timeout_s = -1, .count = -1, .memory = -1 };
	if (!n)
		return true;
	json_in_init(&j, bytes, n);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key))
			read_small_member(&j, key, ret);
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	return fine && ret->timeout_s <= TIMEOUT_MAX;
}

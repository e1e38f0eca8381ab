/*
 * Sinks of a policy. In: a map of audit.sinks. Out: what in it does not go together, each with its
 * place; and, of the canonical line that struct policy holds, struct policy_sink. Pure functions,
 * no rights; run by the supervisor and by ward-audit, which each read the line for themselves.
 */
#include "policy/policy_sink.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "policy/policy_grant.h"
#include "policy/policy_value.h"
#include "policy/units.h"

static const struct {
	const char *type, *prefix;
	enum sink_way way;
	unsigned port;
} ways[] = {
	{ "syslog", "unix:", SINK_UNIX, 0 },   { "syslog", "udp://", SINK_UDP, 514 },
	{ "syslog", "tcp://", SINK_TCP, 514 }, { "syslog", "tls://", SINK_TLS, 6514 },
	{ "otlp", "http://", SINK_HTTP, 80 },  { "otlp", "https://", SINK_HTTPS, 443 },
	{ "file", "", SINK_FILE, 0 },          { "command", "", SINK_COMMAND, 0 },
};

static bool is_path(const char *text)
{
	return text[0] == '/' && text[1] && text[strlen(text) - 1] != '/' && !strstr(text, "/../");
}

/* HOST[:PORT][/PATH]; [ADDRESS] for IPv6. */
static bool split_address(const char *text, bool url, struct policy_sink *ret)
{
	bool bracket = *text == '[';
	size_t n = bracket ? strcspn(++text, "]") : strcspn(text, ":/");
	const char *rest = text + n + bracket;
	uint64_t port = ret->port;

	if (!n || n > 253 || (bracket && text[n] != ']') ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") < n)
		return false;
	ret->host = strndup(text, n);
	if (*rest == ':') {
		size_t digits = strspn(++rest, "0123456789");
		char number[8];

		if (!digits || digits > 5)
			return false;
		snprintf(number, sizeof(number), "%.*s", (int)digits, rest);
		if (units_parse_uint(number, &port) < 0 || port < 1 || port > 65535)
			return false;
		rest += digits;
	}
	ret->port = (unsigned)port;
	if (*rest && (!url || *rest != '/'))
		return false;
	for (const char *c = rest; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 127 || *c == '#')
			return false;
	ret->path = url ? strdup(*rest && strcmp(rest, "/") != 0 ? rest : "/v1/logs") : NULL;
	return ret->host && (!url || ret->path);
}

bool sink_split(const char *type, const char *to, struct policy_sink *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		size_t n = strlen(ways[i].prefix);

		if (strcmp(ways[i].type, type) != 0 || strncmp(to, ways[i].prefix, n) != 0)
			continue;
		ret->way = ways[i].way;
		ret->port = ways[i].port;
		if (ret->port)
			return split_address(to + n,
					     ret->way == SINK_HTTP || ret->way == SINK_HTTPS, ret);
		if (ret->way == SINK_COMMAND)
			return grant_command_words(to, &ret->words) == 0;
		ret->path = is_path(to + n) ? strdup(to + n) : NULL;
		return ret->path && (ret->way != SINK_UNIX || strlen(ret->path) < 108);
	}
	return false;
}

void policy_sink_clear(struct policy_sink *s)
{
	char *const texts[] = {
		s->to, s->host, s->path, s->place, s->ca, s->cert, s->key, s->token
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	strv_free(&s->words);
	*s = (struct policy_sink){ 0 };
}

/* -- what goes together */

static bool is_near(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "::1") == 0;
}

void item_check_sink(struct reader *r, const char *path, const struct node *map)
{
	static const char *const files[] = { "ca", "cert", "key" };
	const char *type = value_text_of(map, "type"), *to = value_text_of(map, "to"),
		   *token = value_text_of(map, "token");
	struct policy_sink s = { 0 };

	if (!type || !to)
		return; /* said elsewhere */
	if (!sink_split(type, to, &s)) {
		value_refuse(
			r, path, map, "to", "not a destination for this type of sink",
			"file: an absolute path; syslog: unix:PATH, udp://HOST:PORT, "
			"tcp://HOST:PORT or tls://HOST:PORT; otlp: http://HOST:PORT or https://; "
			"command: the command line");
	} else {
		for (size_t i = 0; i < ARRAY_LEN(files); i++) {
			const char *file = value_text_of(map, files[i]);

			if (file && s.way != SINK_TLS && s.way != SINK_HTTPS)
				value_refuse(r, path, map, files[i],
					     "only works with tls:// and https://", "remove it");
			else if (file && *file != '/')
				value_refuse(r, path, map, files[i], "expected an absolute path",
					     NULL);
		}
		if (!!value_text_of(map, "cert") != !!value_text_of(map, "key"))
			value_refuse(r, path, map, value_text_of(map, "cert") ? "cert" : "key",
				     "a certificate needs its key, and a key its certificate",
				     NULL);
		if (token && strncmp(token, "env:", 4) != 0 && strncmp(token, "file:/", 6) != 0)
			value_refuse(r, path, map, "token", "expected env:NAME or file:PATH",
				     "name the source of the token, never the token itself");
		else if (token && s.way != SINK_HTTPS && !(s.way == SINK_HTTP && is_near(s.host)))
			value_refuse(r, path, map, "token", "a token needs https",
				     "or to this machine itself");
		if (value_text_of(map, "format") && (s.way == SINK_HTTP || s.way == SINK_HTTPS))
			value_refuse(r, path, map, "format", "OTLP has a format of its own",
				     "remove it");
	}
	policy_sink_clear(&s);
}

/* -- from a line to a sink */

static char *copy(const struct node *map, const char *key, bool *failed)
{
	const char *text = value_text_of(map, key);
	char *copied = text ? strdup(text) : NULL;

	*failed |= text && !copied;
	return copied;
}

static unsigned word_of(const struct node *map, const char *key, const char *const *words,
			unsigned count, unsigned fallback)
{
	const char *text = value_text_of(map, key);

	for (unsigned i = 0; text && i < count; i++)
		if (strcmp(words[i], text) == 0)
			return i;
	return fallback;
}

static bool read_numbers(const struct node *map, struct policy_sink *s)
{
	const char *bytes = value_text_of(map, "max_bytes"), *keep = value_text_of(map, "keep"),
		   *wait = value_text_of(map, "wait_seconds");

	s->max_bytes = 64 << 20;
	s->keep = 5;
	s->wait_ms = 5000;
	return (!bytes || units_parse_size(bytes, &s->max_bytes) == 0) &&
	       (!keep || units_parse_uint(keep, &s->keep) == 0) && s->keep <= 100 &&
	       (!wait || units_parse_seconds(wait, &s->wait_ms) == 0);
}

int policy_sink_read(const char *line, struct policy_sink *ret, struct ward_err *e)
{
	static const char *const formats[] = { "json", "ocsf", "cef", "syslog" },
				 *const severities[] = { "", "info", "low", "medium", "high" };
	struct reader reader = { .name = "sink", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));
	const char *type = map && map->kind == NODE_MAP ? value_text_of(map, "type") : NULL,
		   *to = type ? value_text_of(map, "to") : NULL, *lag;
	bool failed = false;

	*ret = (struct policy_sink){ 0 };
	if (!to || !sink_split(type, to, ret) || !read_numbers(map, ret)) {
		policy_sink_clear(ret);
		return ward_fail(e, EINVAL, "audit.sinks: %.200s is not a sink", line);
	}
	ret->format = ret->way == SINK_HTTP || ret->way == SINK_HTTPS
			      ? 4
			      : word_of(map, "format", formats, 4, ret->way >= SINK_UNIX ? 3 : 0);
	ret->severity = word_of(map, "severity", severities, 5, 1);
	ret->to = copy(map, "to", &failed);
	ret->place = copy(map, "place", &failed);
	ret->ca = copy(map, "ca", &failed);
	ret->cert = copy(map, "cert", &failed);
	ret->key = copy(map, "key", &failed);
	ret->token = copy(map, "token", &failed);
	lag = value_text_of(map, "on_lag");
	ret->stop = lag && strcmp(lag, "stop") == 0;
	if (!failed)
		return 0;
	policy_sink_clear(ret);
	return ward_fail(e, ENOMEM, "out of memory");
}

int policy_sink_write(const char *line, const struct policy_sink *s, struct buf *out,
		      struct ward_err *e)
{
	const char *const keys[] = { "place", "ca", "cert", "key", "token" };
	const char *const texts[] = { s->place, s->ca, s->cert, s->key, s->token };
	struct reader reader = { .name = "sink", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));
	struct json j = { .out = out };

	if (!map || map->kind != NODE_MAP)
		return ward_fail(e, EINVAL, "audit.sinks: %.200s is not a sink", line);
	json_begin_object(&j, NULL);
	for (const struct node *n = map->first; n; n = n->next) {
		bool found = !n->text;

		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			found |= strcmp(n->key, keys[i]) == 0;
		if (!found)
			/* numbers, too: they are read from texts */
			json_string(&j, n->key, n->text);
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (texts[i])
			json_string(&j, keys[i], texts[i]);
	json_end_object(&j);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

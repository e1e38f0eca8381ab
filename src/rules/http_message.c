/*
 * HTTP messages taken apart and written anew (http_message.h). In: bytes of both sides. Out:
 * fields, and heads in which nothing stands that was not read before. Fields about one connection
 * stay on it; how a body is framed is up to the writer of the head. Run by front. Pure.
 */
#include "rules/http_message.h"

#include <string.h>
#include <strings.h>

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_text_is(struct http_text t, const char *word)
{
	return t.n == strlen(word) && strncasecmp(t.s, word, t.n) == 0;
}

static struct http_text trim(struct http_text t)
{
	while (t.n && (t.s[0] == ' ' || t.s[0] == '\t'))
		t = (struct http_text){ t.s + 1, t.n - 1 };
	while (t.n && (t.s[t.n - 1] == ' ' || t.s[t.n - 1] == '\t'))
		t.n--;
	return t;
}

/* The line at *at, without its end; false: there is none. */
static bool next_line(struct http_text *rest, struct http_text *ret)
{
	const char *end = rest->n ? memchr(rest->s, '\n', rest->n) : NULL;

	if (!end)
		return false;
	*ret = (struct http_text){ rest->s, (size_t)(end - rest->s) };
	*rest = (struct http_text){ end + 1, rest->n - ret->n - 1 };
	if (ret->n && ret->s[ret->n - 1] == '\r')
		ret->n--;
	return true;
}

static bool add_field(struct http_fields *f, struct http_text line)
{
	const char *colon = line.n ? memchr(line.s, ':', line.n) : NULL;
	struct http_text name = { line.s, colon ? (size_t)(colon - line.s) : 0 };

	if (!name.n || f->count == HTTP_FIELDS_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!is_token(name.s[i]))
			return false;
	for (size_t i = name.n; i < line.n; i++)
		if (line.s[i] == '\r' || line.s[i] == '\0')
			return false;
	f->items[f->count++] =
		(struct http_field){ name,
				     trim((struct http_text){ colon + 1, line.n - name.n - 1 }) };
	return true;
}

struct http_text http_field_get(const struct http_fields *f, const char *name)
{
	for (unsigned i = 0; i < f->count; i++)
		if (http_text_is(f->items[i].name, name))
			return f->items[i].value;
	return (struct http_text){ 0 };
}

/* -- fields that stay on their connection */

static const char *const hops[] = { "connection",
				    "keep-alive",
				    "proxy-connection",
				    "proxy-authenticate",
				    "proxy-authorization",
				    "te",
				    "trailer",
				    "transfer-encoding",
				    "upgrade",
				    "http2-settings",
				    "content-length" };

static bool has_word(struct http_text list, struct http_text word)
{
	while (list.n) {
		const char *comma = memchr(list.s, ',', list.n);
		size_t n = comma ? (size_t)(comma - list.s) : list.n;
		struct http_text one = trim((struct http_text){ list.s, n });

		if (one.n == word.n && strncasecmp(one.s, word.s, one.n) == 0)
			return true;
		list = (struct http_text){ list.s + n + (comma ? 1 : 0),
					   list.n - n - (comma ? 1 : 0) };
	}
	return false;
}

static bool is_hop(const struct http_field *field)
{
	for (size_t i = 0; i < ARRAY_LEN(hops); i++)
		if (http_text_is(field->name, hops[i]))
			return true;
	return false;
}

bool http_field_is_hop(const struct http_fields *f, const struct http_field *field)
{
	if (is_hop(field))
		return true;
	for (unsigned i = 0; i < f->count; i++)
		if (http_text_is(f->items[i].name, "connection") &&
		    has_word(f->items[i].value, field->name))
			return true;
	return false;
}

/* Those that Connection names are not sent on, so nothing may be decided about them; how the
 * message itself is framed stays. */
static void drop_named(struct http_fields *f)
{
	bool gone[HTTP_FIELDS_MAX] = { false };
	unsigned kept = 0;

	for (unsigned i = 0; i < f->count; i++)
		gone[i] = !is_hop(&f->items[i]) && !http_text_is(f->items[i].name, "host") &&
			  http_field_is_hop(f, &f->items[i]);
	for (unsigned i = 0; i < f->count; i++)
		if (!gone[i])
			f->items[kept++] = f->items[i];
	f->count = kept;
}

/* -- requests */

/* "http://host/path" has its path behind the authority; an empty one is "/". */
static struct http_text path_of(struct http_text target, bool absolute)
{
	static const char root[] = "/";
	size_t at = 7;

	if (!absolute)
		return target;
	while (at < target.n && target.s[at] != '/' && target.s[at] != '?')
		at++;
	if (at == target.n)
		return (struct http_text){ root, 1 };
	return (struct http_text){ target.s + at, target.n - at };
}

bool http_request_read(const uint8_t *bytes, const struct http_head *head, struct http_request *ret)
{
	struct http_text rest = { (const char *)bytes, head->len - 2 }, line, target;
	const char *query;

	memset(ret, 0, offsetof(struct http_request, fields) + sizeof(ret->fields.count));
	if (!next_line(&rest, &line) || head->connect || line.n < (size_t)head->method_len + 10)
		return false;
	ret->method = (struct http_text){ line.s, head->method_len };
	target = path_of(
		(struct http_text){ line.s + head->method_len + 1, line.n - head->method_len - 10 },
		head->absolute);
	if (!target.n || memchr(target.s, '#', target.n))
		return false;
	query = memchr(target.s, '?', target.n);
	ret->path = (struct http_text){ target.s, query ? (size_t)(query - target.s) : target.n };
	if (query)
		ret->query = (struct http_text){ query + 1, target.n - ret->path.n - 1 };
	if (!ret->path.n) /* http://host?query */
		ret->path = (struct http_text){ "/", 1 };
	ret->has_length = head->has_length;
	ret->length = head->length;
	ret->body = head->chunked || head->length;
	ret->websocket = head->websocket;
	while (next_line(&rest, &line))
		if (!add_field(&ret->fields, line))
			return false;
	drop_named(&ret->fields);
	return true;
}

static void put(struct buf *out, struct http_text t)
{
	buf_add(out, t.s, t.n);
}

static void put_fields(const struct http_fields *f, bool skip_host, struct buf *out)
{
	for (unsigned i = 0; i < f->count; i++) {
		if (http_field_is_hop(f, &f->items[i]) ||
		    (skip_host && http_text_is(f->items[i].name, "host")))
			continue;
		put(out, f->items[i].name);
		buf_puts(out, ": ");
		put(out, f->items[i].value);
		buf_puts(out, "\r\n");
	}
}

void http_request_write(const struct http_request *r, const struct host *host, uint16_t port,
			uint16_t usual_port, struct http_text path, struct buf *out)
{
	char text[HOST_TEXT];
	bool six = host->kind == HOST_ADDRESS && host->ip.family == 6;

	put(out, r->method);
	buf_puts(out, " ");
	put(out, path);
	if (r->query.s) {
		buf_puts(out, "?");
		put(out, r->query);
	}
	buf_printf(out, six ? " HTTP/1.1\r\nHost: [%s]" : " HTTP/1.1\r\nHost: %s",
		   host_text(host, text));
	if (port != usual_port)
		buf_printf(out, ":%u", port);
	buf_puts(out, "\r\n");
	put_fields(&r->fields, true, out);
	if (has_word(http_field_get(&r->fields, "te"), (struct http_text){ "trailers", 8 }))
		buf_puts(out, "TE: trailers\r\nConnection: TE\r\n");
	if (r->websocket)
		buf_puts(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	if (r->has_length)
		buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	else if (r->body)
		buf_puts(out, "Transfer-Encoding: chunked\r\n");
	buf_puts(out, "\r\n");
}

/* -- responses */

static bool read_status(struct http_text line, struct http_response *ret)
{
	const char *s = line.s;

	if (line.n < 12 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') ||
	    s[8] != ' ')
		return false;
	ret->minor = (uint8_t)(s[7] - '0');
	for (unsigned i = 9; i < 12; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		ret->status = (uint16_t)(ret->status * 10 + (s[i] - '0'));
	}
	if (line.n > 12 && s[12] != ' ')
		return false;
	ret->reason = trim((struct http_text){ s + 12, line.n - 12 });
	for (size_t i = 0; i < ret->reason.n; i++)
		if ((uint8_t)ret->reason.s[i] < ' ' && ret->reason.s[i] != '\t')
			return false;
	return ret->status >= 100;
}

static bool read_length(struct http_text value, struct http_response *ret)
{
	uint64_t length = 0;

	if (!value.n || value.n > 18)
		return false;
	for (size_t i = 0; i < value.n; i++) {
		if (value.s[i] < '0' || value.s[i] > '9')
			return false;
		length = length * 10 + (uint64_t)(value.s[i] - '0');
	}
	if (ret->has_length && ret->length != length)
		return false;
	ret->has_length = true;
	ret->length = length;
	return true;
}

/* What the fields say about where the body ends. */
static bool read_framing(struct http_response *ret)
{
	static const struct http_text close = { "close", 5 }, keep = { "keep-alive", 10 };
	bool coded = false, kept = ret->minor == 1;

	for (unsigned i = 0; i < ret->fields.count; i++) {
		const struct http_field *f = &ret->fields.items[i];

		if (http_text_is(f->name, "content-length") && !read_length(f->value, ret))
			return false;
		if (http_text_is(f->name, "transfer-encoding")) {
			if (coded || !http_text_is(f->value, "chunked"))
				return false;
			coded = ret->chunked = true;
		}
		if (http_text_is(f->name, "connection"))
			kept = has_word(f->value, close) ? false : kept || has_word(f->value, keep);
	}
	ret->close = !kept;
	return !(ret->chunked && ret->has_length);
}

/* Where the head ends: behind the first empty line; 0: not yet. */
static size_t head_length(const char *s, size_t n)
{
	const char *at = s;

	while ((at = memchr(at, '\n', n - (size_t)(at - s)))) {
		size_t k = (size_t)(++at - s);

		if (k < n && s[k] == '\n')
			return k + 1;
		if (k + 1 < n && s[k] == '\r' && s[k + 1] == '\n')
			return k + 2;
		if (k >= n)
			break;
	}
	return 0;
}

int http_response_read(const uint8_t *bytes, size_t n, struct http_response *ret)
{
	struct http_text rest = { (const char *)bytes, 0 }, line;

	memset(ret, 0, offsetof(struct http_response, fields) + sizeof(ret->fields.count));
	if (n && bytes[0] != 'H')
		return -1;
	ret->len = head_length(rest.s, n);
	if ((ret->len ? ret->len : n) > HTTP_ANSWER_MAX)
		return -1;
	if (!ret->len)
		return 0;
	rest.n = ret->len;
	if (!next_line(&rest, &line) || !read_status(line, ret))
		return -1;
	while (next_line(&rest, &line) && line.n)
		if (!add_field(&ret->fields, line))
			return -1;
	return read_framing(ret) ? 1 : -1;
}

bool http_trailers_read(const uint8_t *bytes, size_t n, struct http_fields *ret)
{
	struct http_text rest = { (const char *)bytes, n }, line;

	ret->count = 0;
	while (next_line(&rest, &line) && line.n) {
		if (!add_field(ret, line))
			return false;
		if (http_field_is_hop(ret, &ret->items[ret->count - 1]) ||
		    http_text_is(ret->items[ret->count - 1].name, "host"))
			ret->count--;
	}
	return true;
}

void http_response_write(const struct http_response *r, bool chunked, bool close, struct buf *out)
{
	buf_printf(out, "HTTP/1.1 %03u ", r->status);
	put(out, r->reason);
	buf_puts(out, "\r\n");
	put_fields(&r->fields, false, out);
	if (r->status == 101)
		buf_puts(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (close)
		buf_puts(out, "Connection: close\r\n");
	if (chunked)
		buf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (r->has_length && r->status >= 200 && r->status != 204)
		buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	buf_puts(out, "\r\n");
}

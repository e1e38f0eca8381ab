/*
 * HTTP/1 request heads. In: the bytes of a connection that begin with a request. Out: what matters
 * of its head, or what is wrong with it. Strict on purpose: the server behind must not be able to
 * read another head out of the same bytes, so a head is lines that end in CRLF, each "name: value"
 * with a token directly in front of the colon, each header that frames a message at most once.
 * Pure, no allocation, nothing kept; run by the gateway's parsing process. Fuzzed (fuzz/http1.c).
 */
#include <string.h>
#include <strings.h>

#include "rules/http1.h"

struct text {
	const char *s;
	size_t n;
};

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool equals(struct text t, const char *word)
{
	return t.n == strlen(word) && strncasecmp(t.s, word, t.n) == 0;
}

/* Cuts the text at the first c; the rest is behind it. False: there is no c. */
static bool cut(struct text *t, char c, struct text *ret_front)
{
	const char *at = t->n ? memchr(t->s, c, t->n) : NULL;

	if (!at)
		return false;
	*ret_front = (struct text){ t->s, (size_t)(at - t->s) };
	*t = (struct text){ at + 1, t->n - ret_front->n - 1 };
	return true;
}

static struct text trim(struct text t)
{
	while (t.n && (t.s[0] == ' ' || t.s[0] == '\t'))
		t = (struct text){ t.s + 1, t.n - 1 };
	while (t.n && (t.s[t.n - 1] == ' ' || t.s[t.n - 1] == '\t'))
		t.n--;
	return t;
}

/* What a head is in the making: counts of what may be there once. */
struct making {
	struct http_head *head;
	struct host target; /* of CONNECT or an absolute target */
	uint16_t target_port;
	bool has_host, has_coding;
};

static bool take_host(struct making *m, struct text value)
{
	if (m->has_host)
		return false;
	m->has_host = true;
	return host_read_port(value.s, value.n, &m->head->host, &m->head->port) == HOST_FINE;
}

static bool take_length(struct making *m, struct text value)
{
	uint64_t length = 0;

	if (m->head->has_length || !value.n || value.n > 18)
		return false;
	for (size_t i = 0; i < value.n; i++) {
		if (value.s[i] < '0' || value.s[i] > '9')
			return false;
		length = length * 10 + (uint64_t)(value.s[i] - '0');
	}
	m->head->has_length = true;
	m->head->length = length;
	return true;
}

static bool take_coding(struct making *m, struct text value)
{
	if (m->has_coding || !equals(value, "chunked"))
		return false;
	m->has_coding = m->head->chunked = true;
	return true;
}

/* A header named here is dropped by proxies on the way: never one that frames or addresses the
 * message. */
static bool take_connection(struct making *m, struct text value)
{
	struct text word;
	bool more = true;

	(void)m;
	while (more) {
		more = cut(&value, ',', &word);
		word = trim(more ? word : value);
		if (equals(word, "host") || equals(word, "content-length") ||
		    equals(word, "transfer-encoding"))
			return false;
	}
	return true;
}

static bool take_upgrade(struct making *m, struct text value)
{
	m->head->websocket = !m->head->upgrade && equals(value, "websocket");
	m->head->upgrade = true;
	return true;
}

static bool never(struct making *m, struct text value)
{
	(void)m;
	(void)value;
	return false;
}

static const struct {
	const char *name;
	bool (*take)(struct making *m, struct text value);
} headers[] = {
	{ "host", take_host },
	{ "content-length", take_length },
	{ "transfer-encoding", take_coding },
	{ "connection", take_connection },
	{ "proxy-connection", take_connection },
	{ "upgrade", take_upgrade },
	/* some servers take _ for - */
	{ "content_length", never },
	{ "transfer_encoding", never },
};

static bool take_header(struct making *m, struct text line)
{
	struct text name;

	if (!cut(&line, ':', &name) || !name.n)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!is_token(name.s[i]))
			return false;
	for (size_t i = 0; i < line.n; i++)
		if (((unsigned char)line.s[i] < ' ' && line.s[i] != '\t') || line.s[i] == 0x7f)
			return false;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (equals(name, headers[i].name))
			return headers[i].take(m, trim(line));
	return true;
}

/* "http://host[:port]/...": the authority. */
static bool take_absolute(struct making *m, struct text target)
{
	struct text authority = { target.s + 7, target.n - 7 };
	size_t n = 0;

	while (n < authority.n && !strchr("/?#", authority.s[n]))
		n++;
	m->head->absolute = true;
	return host_read_port(authority.s, n, &m->target, &m->target_port) == HOST_FINE;
}

static bool take_target(struct making *m, struct text method, struct text target)
{
	for (size_t i = 0; i < target.n; i++)
		if ((unsigned char)target.s[i] <= ' ' || target.s[i] == 0x7f)
			return false;
	if (method.n == 7 && memcmp(method.s, "CONNECT", 7) == 0) {
		m->head->connect = true;
		return host_read_port(target.s, target.n, &m->target, &m->target_port) ==
			       HOST_FINE &&
		       m->target_port;
	}
	if (target.n > 7 && strncasecmp(target.s, "http://", 7) == 0)
		return take_absolute(m, target);
	if (target.n == 1 && target.s[0] == '*')
		return equals(method, "OPTIONS");
	return target.n && target.s[0] == '/';
}

static enum http_wrong take_request_line(struct making *m, struct text line)
{
	struct text method, target;

	if (!cut(&line, ' ', &method) || !cut(&line, ' ', &target) || line.n != 8 ||
	    memcmp(line.s, "HTTP/1.", 7) != 0 || (line.s[7] != '0' && line.s[7] != '1'))
		return HTTP_NOT;
	m->head->method = method.s;
	m->head->method_len = (uint16_t)method.n;
	m->head->minor = (uint8_t)(line.s[7] - '0');
	m->head->head = method.n == 4 && memcmp(method.s, "HEAD", 4) == 0;
	for (size_t i = 0; i < method.n; i++)
		if (!is_token(method.s[i]))
			return HTTP_NOT;
	return method.n && method.n <= HTTP_METHOD_MAX && take_target(m, method, target) ? HTTP_FINE
											 : HTTP_BAD;
}

static bool same_port(uint16_t a, uint16_t b)
{
	return (a ? a : 80) == (b ? b : 80);
}

/* What only the whole head shows. */
static bool fits_together(struct making *m)
{
	struct http_head *h = m->head;

	if (h->chunked && (h->has_length || h->minor == 0))
		return false;
	/* here Host is a courtesy; some leave it away, some leave its port away */
	if (h->connect) {
		if (h->chunked || h->has_length ||
		    (m->has_host && !host_equal(&h->host, &m->target)))
			return false;
		h->host = m->target;
		h->port = m->target_port;
		return true;
	}
	if (!m->has_host)
		return false;
	return !h->absolute ||
	       (host_equal(&h->host, &m->target) && same_port(h->port, m->target_port));
}

/* The head is whole, every line of it ends in CRLF; n is without the empty line. */
static enum http_wrong read_head(const char *bytes, size_t n, struct http_head *ret)
{
	struct making m = { .head = ret };
	struct text rest = { bytes, n }, line;
	unsigned count = 0;
	enum http_wrong wrong;

	if (!cut(&rest, '\n', &line))
		return HTTP_BAD;
	line.n--;
	wrong = take_request_line(&m, line);
	while (wrong == HTTP_FINE && cut(&rest, '\n', &line)) {
		line.n--;
		if (++count > HTTP1_HEADERS_MAX)
			wrong = HTTP_LARGE;
		else if (!take_header(&m, line))
			wrong = HTTP_BAD;
	}
	return wrong == HTTP_FINE && !fits_together(&m) ? HTTP_BAD : wrong;
}

/* Whether the bytes so far can be the beginning of a request; other protocols are recognized at
 * once. */
static bool begins_well(const char *bytes, size_t n)
{
	size_t at = 0;

	while (at < n && at <= HTTP_METHOD_MAX && is_token(bytes[at]))
		at++;
	return at == n ? at <= HTTP_METHOD_MAX : at && bytes[at] == ' ';
}

int http1_head(const uint8_t *bytes, size_t n, size_t *scanned, struct http_head *ret,
	       enum http_wrong *ret_wrong)
{
	const char *s = (const char *)bytes;

	*ret_wrong = HTTP_FINE;
	memset(ret, 0, sizeof(*ret));
	if (!begins_well(s, n < HTTP_METHOD_MAX + 1 ? n : HTTP_METHOD_MAX + 1)) {
		*ret_wrong = HTTP_NOT;
		return -1;
	}
	for (; *scanned < n; ++*scanned) {
		const char *end = memchr(s + *scanned, '\n', n - *scanned);

		if (!end) {
			*scanned = n;
			break;
		}
		*scanned = (size_t)(end - s);
		/* some servers see the end of such a line elsewhere */
		if (!*scanned || end[-1] != '\r') {
			*ret_wrong = HTTP_BAD;
			return -1;
		}
		if (*scanned >= 3 && memcmp(end - 3, "\r\n\r", 3) == 0) {
			ret->len = *scanned + 1;
			break;
		}
	}
	if ((ret->len ? ret->len : n) > HTTP1_HEAD_MAX)
		*ret_wrong = HTTP_LARGE;
	else if (ret->len)
		*ret_wrong = read_head(s, ret->len - 2, ret);
	if (*ret_wrong != HTTP_FINE)
		return -1;
	return ret->len ? 1 : 0;
}

int http1_proxy_head(const uint8_t *bytes, size_t n, size_t *scanned, struct http_proxy *ret,
		     enum http_wrong *ret_wrong)
{
	struct http_head head;
	int r = http1_head(bytes, n, scanned, &head, ret_wrong);

	memset(ret, 0, sizeof(*ret));
	if (r <= 0)
		return r;
	if (!head.connect && !head.absolute) { /* a request to the proxy itself */
		*ret_wrong = HTTP_BAD;
		return -1;
	}
	ret->host = head.host;
	ret->port = head.port ? head.port : 80;
	ret->tunnel = head.connect;
	ret->len = head.len;
	return 1;
}

const char *http1_proxy_reply(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} replies[] = {
		{ 200, "HTTP/1.1 200 Connection established\r\n\r\n" },
#define REPLY(status, reason, body)                                                                \
	{ status, "HTTP/1.1 " #status " " reason                                                   \
		  "\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" body "\n" }
		REPLY(400, "Bad Request", "ward: not a supported request"),
		REPLY(403, "Forbidden", "ward: the policy does not allow this destination"),
		REPLY(429, "Too Many Requests", "ward: a limit of the policy is reached"),
		REPLY(502, "Bad Gateway", "ward: the destination could not be reached"),
		REPLY(504, "Gateway Timeout", "ward: the destination did not answer"),
	};

	for (size_t i = 0; i < ARRAY_LEN(replies); i++)
		if (replies[i].status == status)
			return replies[i].text;
	return replies[1].text;
}

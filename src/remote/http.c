/*
 * HTTP (http.h). In: calls of the verbs. Out: requests to the one server that the user named, with
 * the key in a header of its own; the answer, or an error with ward's remedy. A server's message is
 * escaped before it becomes part of an error.
 */
#include "remote/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define CONNECT_S 20L
#define ANSWER_S 120L

struct http {
	const struct remote *remote;
	CURL *curl; /* for calls, one after the other: it keeps the connection */
};

static bool is_this_machine(const char *host)
{
	struct in_addr a;

	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

int http_check_url(const char *url, unsigned *ret_port, struct ward_err *e)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *user = NULL;
	CURLU *u = curl_url();
	int r = 0;

	if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK || strcmp(path, "/") != 0 ||
	    curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK || strpbrk(url, "?#") ||
	    (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)) {
		ward_fail(e, EINVAL, "not the address of a server: %.200s", url);
		r = ward_remedy(e, "for instance --host https://sandboxes.example:3000");
	} else if (strcmp(scheme, "http") == 0 && !is_this_machine(host)) {
		ward_fail(e, EINVAL, "%.200s would send the key in the clear", url);
		r = ward_remedy(e, "use https://, or a tunnel to this machine");
	} else {
		*ret_port = (unsigned)strtoul(port, NULL, 10);
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	curl_free(user);
	curl_url_cleanup(u);
	return r;
}

int http_open(const struct remote *r, struct http **ret, struct ward_err *e)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h || !(h->curl = curl_easy_init())) {
		free(h);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	h->remote = r;
	*ret = h;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->curl);
	free(h);
}

/* -- a request */

static size_t take(char *bytes, size_t size, size_t count, void *to)
{
	struct reply *a = to;
	size_t n = size * count;

	if (n > HTTP_ANSWER_MAX - a->body.len)
		return 0;
	buf_add(&a->body, bytes, n);
	return a->body.failed ? 0 : n;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *to)
{
	static const char next[] = "X-Next-Token:", retry[] = "Retry-After:";
	struct reply *a = to;
	size_t n = size * count, len = 0;

	if (n > sizeof(next) && strncasecmp(bytes, next, sizeof(next) - 1) == 0) {
		for (size_t at = sizeof(next) - 1; at < n && len + 1 < sizeof(a->next); at++)
			if (bytes[at] > ' ' && bytes[at] < 0x7f)
				a->next[len++] = bytes[at];
		a->next[len] = '\0';
	} else if (n > sizeof(retry) && strncasecmp(bytes, retry, sizeof(retry) - 1) == 0) {
		a->retry_s = strtol(bytes + sizeof(retry) - 1, NULL, 10);
	}
	return n;
}

static bool add_header(struct http_request *q, const char *name, const char *value)
{
	auto_buf line = { 0 };
	struct curl_slist *longer;

	buf_printf(&line, "%s: %s", name, value);
	longer = line.failed || strpbrk(value, "\r\n")
			 ? NULL
			 : curl_slist_append(q->headers, buf_text(&line));
	if (longer)
		q->headers = longer;
	return longer;
}

static void set_usual(CURL *c, const struct remote *r)
{
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR,
			 strncasecmp(r->host, "https", 5) == 0 ? "https" : "http");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	if (r->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, r->ca_file);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	/* a stream says something each 50 seconds */
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, ANSWER_S);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "ward/" WARD_VERSION);
	curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, NULL);
}

static bool add_headers(struct http_request *q, const struct remote *r, const struct http_box *box,
			const char *type)
{
	bool fine = add_header(q, "Expect", "");

	if (box)
		fine = fine && add_header(q, "E2b-Sandbox-Id", box->id) &&
		       add_header(q, "E2b-Sandbox-Port", "49983") &&
		       add_header(q, "X-Access-Token", box->token);
	else
		fine = fine && add_header(q, "X-API-Key", r->token);
	if (type)
		fine = fine && add_header(q, "Content-Type", type) &&
		       add_header(q, "Connect-Protocol-Version", "1") &&
		       add_header(q, "Keepalive-Ping-Interval", "50");
	return fine;
}

static int prepare(struct http *h, CURL *c, const char *method, const char *path,
		   const struct http_box *box, const char *type, const void *body, size_t n,
		   struct http_request *q, struct ward_err *e)
{
	auto_buf url = { 0 };

	*q = (struct http_request){ .curl = c, .reply.retry_s = -1 };
	buf_printf(&url, "%s%s", h->remote->host, path);
	buf_add(&q->sent, body ? body : "", n);
	if (url.failed || q->sent.failed || !add_headers(q, h->remote, box, type))
		return ward_fail(e, ENOMEM, "out of memory");
	set_usual(c, h->remote);
	curl_easy_setopt(c, CURLOPT_URL, buf_text(&url));
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, q->headers);
	if (body || strcmp(method, "POST") == 0) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, buf_text(&q->sent));
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	}
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &q->reply);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, &q->reply);
	return 0;
}

int http_begin(struct http *h, const char *method, const char *path, const struct http_box *box,
	       const char *type, const void *body, size_t n, struct http_request *ret,
	       struct ward_err *e)
{
	CURL *c = curl_easy_init();

	return c ? prepare(h, c, method, path, box, type, body, n, ret, e)
		 : ward_fail(e, ENOMEM, "out of memory");
}

static void forget(struct http_request *q)
{
	curl_slist_free_all(q->headers);
	buf_free(&q->reply.body);
	buf_free(&q->sent);
	q->headers = NULL;
}

void http_end(struct http_request *q)
{
	curl_easy_cleanup(q->curl);
	q->curl = NULL;
	forget(q);
}

/* -- what came of it */

/* status -> errno and remedy */
static const struct {
	long status;
	int code;
	const char *remedy;
} meanings[] = {
	{ 400, EINVAL, "" },
	{ 401, EACCES, "WARD_TOKEN or --token-file: a key or token of this server" },
	{ 403, EPERM, "ask for a key with another role: docs/serve.md" },
	{ 404, ENOENT, "ward --host URL ps lists what there is" },
	{ 409, EBUSY, "" },
	{ 429, EAGAIN, "end sandboxes that are not needed, or try again later" },
	{ 502, ESRCH, "it was killed, is paused, or its time is over: ward --host URL ps -a" },
	{ 503, EAGAIN, "try again later" },
	{ 507, ENOSPC, "remove files in the sandbox" },
};

static int fail_status(const struct reply *a, struct ward_err *e)
{
	struct values v = { 0 };
	auto_buf said = { 0 };
	int code = EIO;

	if (values_read((const uint8_t *)buf_text(&a->body), a->body.len, &v) == 0)
		text_escape(&said, value_text(&v, v.items, "message"));
	values_free(&v);
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].status == a->status)
			code = meanings[i].code;
	if (said.len)
		ward_fail(e, code, "%.600s", buf_text(&said));
	else
		ward_fail(e, code, "the server answered with status %ld", a->status);
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].status == a->status && *meanings[i].remedy)
			ward_remedy(e, "%s", meanings[i].remedy);
	return -code;
}

static int fail_curl(const struct http_request *q, CURLcode code, struct ward_err *e)
{
	if (code == CURLE_WRITE_ERROR && q->reply.body.len)
		return ward_fail(e, EFBIG, "the server's answer is too long");
	ward_fail(e, ECONNREFUSED, "the server cannot be reached: %s", curl_easy_strerror(code));
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return ward_remedy(e, "--ca-file FILE or WARD_CA_FILE: the certificate of the "
				      "authority that signed the server's");
	return ward_remedy(e, "is ward serve running there? --host, or WARD_HOST, names it");
}

int http_result(struct http_request *q, CURLcode code, struct ward_err *e)
{
	curl_easy_getinfo(q->curl, CURLINFO_RESPONSE_CODE, &q->reply.status);
	if (code != CURLE_OK)
		return fail_curl(q, code, e);
	return q->reply.status >= 200 && q->reply.status < 300 ? 0 : fail_status(&q->reply, e);
}

int http_end_with(struct http_request *q, CURLcode code, struct ward_err *e)
{
	int r = http_result(q, code, e);

	http_end(q);
	return r;
}

int http_call(struct http *h, const char *method, const char *path, const struct http_box *box,
	      const char *body, struct reply *ret, struct ward_err *e)
{
	struct http_request q;
	int r;

	curl_easy_reset(h->curl);
	r = prepare(h, h->curl, method, path, box, body ? "application/json" : NULL, body,
		    body ? strlen(body) : 0, &q, e);
	if (r == 0)
		r = http_result(&q, curl_easy_perform(h->curl), e);
	if (r == 0 && ret) {
		*ret = q.reply;
		q.reply.body = (struct buf){ 0 };
	}
	forget(&q);
	return r;
}

int http_values(struct http *h, const char *method, const char *path, const struct http_box *box,
		const char *body, struct values *ret, struct ward_err *e)
{
	struct reply a = { 0 };
	int r = http_call(h, method, path, box, body, &a, e);

	if (r == 0 && values_read((const uint8_t *)buf_text(&a.body), a.body.len, ret) < 0) {
		ward_fail(e, EPROTO, "the server's answer is not JSON");
		r = ward_remedy(e, "is it ward serve that answers there?");
	}
	buf_free(&a.body);
	return r;
}

int http_open_box(struct http *h, const char *id, struct http_box *ret, struct ward_err *e)
{
	struct values v = { 0 };
	char path[64];
	int r;

	*ret = (struct http_box){ 0 };
	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	r = http_values(h, "GET", path, NULL, NULL, &v, e);
	if (r < 0)
		return r;
	snprintf(ret->id, sizeof(ret->id), "%s", id);
	snprintf(ret->token, sizeof(ret->token), "%s", value_text(&v, v.items, "envdAccessToken"));
	values_free(&v);
	if (*ret->token)
		return 0;
	ward_fail(e, EPERM, "the key may not use sandbox %s", id);
	return ward_remedy(e, "ask for a key with the role runner: docs/serve.md");
}

void http_quote(struct buf *out, const char *text)
{
	for (; *text; text++)
		if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
		    (*text >= '0' && *text <= '9') || strchr("-._~", *text))
			buf_add(out, text, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
}

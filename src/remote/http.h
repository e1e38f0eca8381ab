/* HTTP to one server, by libcurl: TLS is verified, redirects and proxies are not followed, answers
 * are bounded, http:// reaches this machine alone. */
#ifndef WARD_REMOTE_HTTP_H
#define WARD_REMOTE_HTTP_H

#include <curl/curl.h>

#include "remote/remote.h"

#define HTTP_ANSWER_MAX (16u << 20)

/* A sandbox that a request goes to; NULL: to the server itself. */
struct http_box {
	char id[REMOTE_ID + 1];
	char token[512];
};

struct reply {
	long status;
	struct buf body;
	char next[128]; /* X-Next-Token */
	long retry_s;   /* Retry-After; -1: none */
};

struct http;

/* Whether the URL is one that a key may be sent to. */
must_check int http_check_url(const char *url, unsigned *ret_port, struct ward_err *e);
must_check int http_open(const struct remote *r, struct http **ret, struct ward_err *e);
void http_close(struct http *h);

/* A request that is prepared and not sent: for a stream. The caller gives the function that takes
 * the body, and frees both with http_end(). */
struct http_request {
	CURL *curl;
	struct curl_slist *headers;
	struct reply reply;
	struct buf sent; /* the request's body */
};

must_check int http_begin(struct http *h, const char *method, const char *path,
			  const struct http_box *box, const char *type, const void *body, size_t n,
			  struct http_request *ret, struct ward_err *e);
void http_end(struct http_request *q);
/* http_result() and http_end(). */
must_check int http_end_with(struct http_request *q, CURLcode code, struct ward_err *e);
/* What the server's status, or the failure to get one, means; 0: it went well. */
must_check int http_result(struct http_request *q, CURLcode code, struct ward_err *e);

/* One request with a JSON body (NULL: none), and its whole answer. */
must_check int http_call(struct http *h, const char *method, const char *path,
			 const struct http_box *box, const char *body, struct reply *ret,
			 struct ward_err *e);
/* The same with the answer read; the caller frees the values. */
must_check int http_values(struct http *h, const char *method, const char *path,
			   const struct http_box *box, const char *body, struct values *ret,
			   struct ward_err *e);
/* What opens a sandbox: its token. */
must_check int http_open_box(struct http *h, const char *id, struct http_box *ret,
			     struct ward_err *e);
/* Appends text for a part of a path or query. */
void http_quote(struct buf *out, const char *text);

#endif

/*
 * ward-webhook: sends one question to a URL. In, on standard input: the URL, lines of headers, an
 * empty line, the body. Out: the status, the answer's Ward-Signature header, an empty line, the
 * answer. Started by ward approve, locked up before anything is sent: no file but what names and
 * certificates need, no port but the URL's, no child. It has no key: what comes back is judged by
 * ward approve. TLS is always verified, redirects are not followed, no proxy is used, answers are
 * bounded. HTTP without TLS only to this machine itself.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "confine/confine.h"

#define REQUEST_MOST 65536
#define ANSWER_MOST 16384
#define SIGNATURE_MOST 200
#define TIMEOUT_S 40L /* an answer may take its time: the question waits */

struct answer {
	char bytes[ANSWER_MOST];
	size_t n;
	char signature[SIGNATURE_MOST];
};

static size_t take(char *bytes, size_t size, size_t count, void *to)
{
	struct answer *a = to;
	size_t n = size * count;

	if (n > sizeof(a->bytes) - a->n)
		return 0;
	memcpy(a->bytes + a->n, bytes, n);
	a->n += n;
	return n;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *to)
{
	static const char name[] = "Ward-Signature:";
	struct answer *a = to;
	size_t n = size * count, at = sizeof(name) - 1, len = 0;

	if (n <= at || strncasecmp(bytes, name, at) != 0)
		return n;
	while (at < n && bytes[at] == ' ')
		at++;
	for (; at < n && bytes[at] > ' ' && bytes[at] < 0x7f && len + 1 < SIGNATURE_MOST; at++)
		a->signature[len++] = bytes[at];
	a->signature[len] = '\0';
	return n;
}

/* HTTP without TLS: to this machine only. */
static int is_near(const char *url)
{
	static const char *const hosts[] = { "http://127.0.0.1", "http://localhost",
					     "http://[::1]" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t n = strlen(hosts[i]);

		if (strncmp(url, hosts[i], n) == 0 && (url[n] == ':' || url[n] == '/' || !url[n]))
			return 1;
	}
	return 0;
}

static unsigned port_of(const char *url)
{
	CURLU *parts = curl_url();
	char *text = NULL;
	unsigned port = 0;

	if (parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_PORT, &text, CURLU_DEFAULT_PORT) == CURLUE_OK)
		port = (unsigned)strtoul(text, NULL, 10);
	curl_free(text);
	curl_url_cleanup(parts);
	return port;
}

/* The next line, ended by a NUL in place of its end. */
static char *next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return line;
}

static CURLcode perform(CURL *c, const char *url, struct curl_slist *headers, const char *body,
			struct answer *answer, long *ret_status)
{
	CURLcode r;

	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, is_near(url) ? "http" : "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "ward");
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, answer);
	r = curl_easy_perform(c);
	if (r == CURLE_OK)
		r = curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, ret_status);
	return r;
}

static int finish(CURLcode r, long status, const struct answer *answer)
{
	if (r != CURLE_OK) {
		fprintf(stderr, "%s\n", curl_easy_strerror(r));
		return 1;
	}
	printf("%03ld\n%s\n\n", status, answer->signature);
	return fwrite(answer->bytes, 1, answer->n, stdout) == answer->n && fflush(stdout) == 0 ? 0
											       : 1;
}

int main(void)
{
	static struct answer answer;
	static char request[REQUEST_MOST + 1];
	struct curl_slist *headers = NULL;
	struct confine_own own = { 0 };
	struct ward_err e = { 0 };
	char *at = request, *url, *line;
	long status = 0;
	size_t n = 0;
	ssize_t got;
	CURLcode r;
	CURL *c;

	while (n < REQUEST_MOST && (got = read(STDIN_FILENO, request + n, REQUEST_MOST - n)) > 0)
		n += (size_t)got;
	url = next_line(&at);
	if (!url || n == REQUEST_MOST || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return 2;
	own.port = port_of(url);
	if (!own.port || confine_enter(PROC_WEBHOOK, &own, &e) < 0) {
		fprintf(stderr, "%s\n", own.port ? e.why : "not a URL");
		return 2;
	}
	while ((line = next_line(&at)) && *line)
		headers = curl_slist_append(headers, line);
	c = curl_easy_init();
	if (!c || !line)
		return 2;
	r = perform(c, url, headers, at, &answer, &status);
	return finish(r, status, &answer);
}

/*
 * Fuzzes what puts a secret into a head: one byte chooses the grant, the rest is a request. Of a
 * head that is accepted, the base has no secret and is itself a head; what is sent has it exactly
 * once, is a head for the same host, and has the base's framing.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "keys/inject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define SECRET "ZZSECRETZZ/+"
#define COMMON "\"name\":\"n\",\"source\":\"env:K\",\"hosts\":[\"a.example\"]"

static const char *const lines[] = {
	"{" COMMON "}",
	"{" COMMON ",\"header\":\"X-Key: <{}>\"}",
	"{" COMMON ",\"basic\":\"joe\"}",
	"{" COMMON ",\"query\":\"key\"}",
	"{\"name\":\"n\",\"source\":\"env:A,B,C\",\"hosts\":[\"a.example\"],\"sigv4\":\"*/*\"}",
};

static unsigned count(const uint8_t *bytes, size_t n, const char *text)
{
	const uint8_t *at = bytes;
	unsigned found = 0;

	while ((at = memmem(at, n - (size_t)(at - bytes), text, strlen(text)))) {
		found++;
		at++;
	}
	return found;
}

static void check_sent(const struct policy_grant *g, const struct http_head *before,
		       const uint8_t *out, size_t n, unsigned had)
{
	static const char *const forms[] = { SECRET, SECRET,
					     "am9lOlpaU0VDUkVUWlovKw==", "ZZSECRETZZ%2F%2B",
					     "Signature=" };
	struct http_head after;
	enum http_wrong wrong;
	size_t scanned = 0;

	if (n > HTTP1_HEAD_MAX || http1_head(out, n, &scanned, &after, &wrong) != 1)
		return; /* it has become too long */
	assert(after.len == n && host_equal(&after.host, &before->host) &&
	       after.chunked == before->chunked);
	assert(after.has_length == before->has_length && after.length == before->length &&
	       after.head == before->head);
	assert(count(out, n,
		     forms[g->way == GRANT_HEADER  ? 0
			   : g->way == GRANT_BASIC ? 2
			   : g->way == GRANT_QUERY ? 3
						   : 4]) >= 1);
	(void)had;
}

static struct inject_secret with_values(const struct policy_grant *g)
{
	struct inject_secret s = { .grant = g, .count = GRANT_VALUES };

	for (size_t i = 0; i < GRANT_VALUES; i++) {
		s.values[i] = (const uint8_t *)SECRET;
		s.bytes[i] = strlen(SECRET);
	}
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t out[HTTP1_HEAD_MAX + 8192];
	static struct http_request request;
	static struct http_path room;
	struct sigv4_request sign;
	auto_grant g = { 0 }, beside = { 0 };
	struct inject_secret secrets[2];
	size_t count_of = 1;
	auto_buf base = { 0 };
	struct ward_err e = { 0 };
	struct http_head head;
	enum http_wrong wrong;
	struct inject_line line;
	size_t scanned = 0, len, field;
	auto_free uint8_t *exact = NULL;

	if (n < 2 || policy_grant_read(lines[data[0] % 5], &g, &e) < 0)
		return 0;
	secrets[0] = with_values(&g);
	/* and a second one */
	if (data[0] >= 128 &&
	    policy_grant_read("{" COMMON ",\"query\":\"other\"}", &beside, &e) == 0)
		secrets[count_of++] = with_values(&beside);
	exact = malloc(n - 1);
	memcpy(exact, data + 1, n - 1);
	if (http1_head(exact, n - 1, &scanned, &head, &wrong) != 1 ||
	    !inject_line(exact, &head, &line))
		return 0;
	assert(line.path_len <= line.target_len && line.line_len <= head.len);
	if (http_request_read(exact, &head, &request) && inject_fits(&g, &request, &room))
		assert(!g.paths.len || grant_path_matches(g.paths.items[0], room.text, room.len) ||
		       g.paths.len > 1);
	if (!inject_base(secrets, count_of, exact, &head, &base, &sign))
		return 0;
	for (size_t at = 0; at < base.len; at += 7)
		(void)inject_field_at(&base, at, &field);
	if (g.way == GRANT_SIGV4 && sigv4_check(&sign, "*", "*") != SIGV4_FINE)
		return 0;
	if (g.way == GRANT_SIGV4 && !sign.has_hash)
		sigv4_hash_body(&sign, exact, n - 1);
	len = inject_write(secrets, count_of, &base, &sign, out, sizeof(out));
	if (len)
		check_sent(&g, &head, out, len, count(exact, n - 1, SECRET));
	return 0;
}

/*
 * Signing a request with AWS Signature Version 4, as "Authenticating Requests" of AWS describes it:
 * canonical request, string to sign, derived key. In: a head that was accepted before, and a key.
 * Out: headers. Runs in ward-keys; intermediate keys are zeroed.
 */
#include "keys/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "creds/forms.h"

#define FIELDS_MAX 128

struct text {
	const char *s;
	size_t n;
};

/* -- reading */

static bool copy(char *to, size_t room, const char *s, size_t n)
{
	if (!n || n >= room)
		return false;
	memcpy(to, s, n);
	to[n] = '\0';
	return true;
}

/* The value behind "Name=" up to a comma or the end. */
static struct text part(const char *value, size_t n, const char *name)
{
	size_t m = strlen(name);

	for (size_t i = 0; i + m <= n; i++) {
		struct text found = { value + i + m, 0 };

		if (memcmp(value + i, name, m) != 0 ||
		    (i && value[i - 1] != ' ' && value[i - 1] != ','))
			continue;
		while (found.s + found.n < value + n && found.s[found.n] != ',' &&
		       found.s[found.n] != ' ')
			found.n++;
		return found;
	}
	return (struct text){ NULL, 0 };
}

/* ID/DATE/REGION/SERVICE/aws4_request */
static bool read_scope(struct sigv4_request *s, struct text scope)
{
	struct text parts[5];
	size_t count = 0, from = 0;

	for (size_t i = 0; i <= scope.n; i++)
		if (i == scope.n || scope.s[i] == '/') {
			if (count == 5)
				return false;
			parts[count++] = (struct text){ scope.s + from, i - from };
			from = i + 1;
		}
	return count == 5 && parts[4].n == 12 && memcmp(parts[4].s, "aws4_request", 12) == 0 &&
	       parts[1].n == 8 && copy(s->date, sizeof(s->date), parts[1].s, 8) &&
	       copy(s->region, sizeof(s->region), parts[2].s, parts[2].n) &&
	       copy(s->service, sizeof(s->service), parts[3].s, parts[3].n);
}

void sigv4_read(struct sigv4_request *s, const char *value, size_t n)
{
	static const char kind[] = "AWS4-HMAC-SHA256 ";
	struct text scope, headers;

	if (n < sizeof(kind) || memcmp(value, kind, sizeof(kind) - 1) != 0)
		return;
	scope = part(value, n, "Credential=");
	headers = part(value, n, "SignedHeaders=");
	s->found = scope.s && headers.s && read_scope(s, scope) &&
		   copy(s->headers, sizeof(s->headers), headers.s, headers.n);
}

static bool is(const char *name, size_t n, const char *what)
{
	return n == strlen(what) && memcmp(name, what, n) == 0;
}

void sigv4_read_field(struct sigv4_request *s, const char *name, size_t name_len, const char *value,
		      size_t n)
{
	if (is(name, name_len, "x-amz-date"))
		(void)!copy(s->time, sizeof(s->time), value, n);
	else if (is(name, name_len, "x-amz-content-sha256"))
		s->has_hash = copy(s->hash, sizeof(s->hash), value, n);
}

static bool is_time(const struct sigv4_request *s)
{
	if (strlen(s->time) != 16 || s->time[8] != 'T' || s->time[15] != 'Z' ||
	    strncmp(s->time, s->date, 8) != 0)
		return false;
	for (int i = 0; i < 15; i++)
		if (i != 8 && (s->time[i] < '0' || s->time[i] > '9'))
			return false;
	return true;
}

/* Whether a name stands in a list with ";" between. */
static bool in_list(const char *list, const char *name, size_t n)
{
	while (*list) {
		size_t m = strcspn(list, ";");

		if (m == n && strncasecmp(list, name, n) == 0)
			return true;
		list += m + (list[m] == ';');
	}
	return false;
}

void sigv4_forget(struct sigv4_request *s, const char *name)
{
	size_t out = 0;

	for (const char *at = s->headers; *at;) {
		size_t n = strcspn(at, ";"), whole = n + (at[n] == ';');

		if (n != strlen(name) || strncasecmp(at, name, n) != 0) {
			memmove(s->headers + out, at, whole);
			out += whole;
		}
		at += whole;
	}
	s->headers[out] = '\0';
}

enum sigv4_wrong sigv4_check(const struct sigv4_request *s, const char *region, const char *service)
{
	if (!s->found)
		return SIGV4_UNSIGNED;
	if ((strcmp(region, "*") != 0 && strcmp(region, s->region) != 0) ||
	    (strcmp(service, "*") != 0 && strcmp(service, s->service) != 0))
		return SIGV4_SCOPE;
	if (strncmp(s->hash, "STREAMING-AWS4", 14) == 0)
		return SIGV4_STREAMED;
	if (!is_time(s))
		return SIGV4_DATE;
	return in_list(s->headers, "host", 4) ? SIGV4_FINE : SIGV4_HEADERS;
}

const char *sigv4_wrong_text(enum sigv4_wrong w)
{
	static const char *const texts[] = {
		[SIGV4_FINE] = "",
		[SIGV4_UNSIGNED] = "the request is not signed with the placeholder (AWS Signature "
				   "Version 4, in the Authorization header)",
		[SIGV4_SCOPE] = "the grant is for another region or service",
		[SIGV4_STREAMED] = "each chunk of the body is signed, which cannot be redone; use "
				   "an unsigned or a single payload",
		[SIGV4_DATE] =
			"the request has no X-Amz-Date that matches the day of its signature",
		[SIGV4_HEADERS] = "the request's signature does not cover its host",
	};

	return texts[w];
}

static void hash_hex(const void *bytes, size_t n, char *out)
{
	uint8_t digest[32];

	if (EVP_Digest(bytes, n, digest, NULL, EVP_sha256(), NULL) != 1)
		memset(digest, 0, sizeof(digest)); /* a signature that no verifier accepts */
	form_hex(digest, sizeof(digest), out);
}

void sigv4_hash_body(struct sigv4_request *s, const uint8_t *body, size_t n)
{
	hash_hex(n ? (const void *)body : "", n, s->hash);
}

/* -- the canonical request */

static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Appends encoded bytes; what is encoded already is decoded first (once), or taken as it is
 * (twice). */
static void encode(struct buf *out, const char *s, size_t n, bool twice, bool slash)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)s[i];

		if (!twice && c == '%' && i + 2 < n && digit(s[i + 1]) >= 0 &&
		    digit(s[i + 2]) >= 0) {
			c = (uint8_t)(digit(s[i + 1]) << 4 | digit(s[i + 2]));
			i += 2;
			if (c == '/' && slash) { /* an escaped slash is no separator */
				buf_puts(out, "%2F");
				continue;
			}
		}
		if (is_unreserved(c) || (slash && c == '/'))
			buf_add(out, &c, 1);
		else
			buf_printf(out, "%%%02X", c);
	}
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Parameters, each encoded in one way, sorted. */
static void canonical_query(struct buf *out, const char *query, size_t n)
{
	auto_strv sorted = { 0 };
	size_t from = 0;

	for (size_t i = 0; i <= n; i++) {
		auto_buf one = { 0 };
		const char *equals;

		if (i < n && query[i] != '&')
			continue;
		equals = memchr(query + from, '=', i - from);
		if (i > from) {
			encode(&one, query + from,
			       equals ? (size_t)(equals - query) - from : i - from, false, false);
			buf_puts(&one, "=");
			if (equals)
				encode(&one, equals + 1, (size_t)(query + i - equals) - 1, false,
				       false);
			strv_take(&sorted, buf_take(&one));
		}
		from = i + 1;
	}
	if (sorted.len)
		qsort(sorted.items, sorted.len, sizeof(*sorted.items), compare_texts);
	for (size_t i = 0; i < sorted.len; i++)
		buf_printf(out, "%s%s", i ? "&" : "", sorted.items[i]);
	out->failed |= sorted.failed;
}

/* The values of all fields of a name, spaces trimmed and made one, with commas between. False:
 * there is none. */
static bool add_field(struct buf *out, const char *fields, const char *end, const char *name,
		      size_t n)
{
	bool any = false;

	while (fields < end) {
		const char *line_end = memmem(fields, (size_t)(end - fields), "\r\n", 2), *colon;

		if (!line_end || line_end == fields)
			break;
		colon = memchr(fields, ':', (size_t)(line_end - fields));
		if (colon && (size_t)(colon - fields) == n && strncasecmp(fields, name, n) == 0) {
			const char *v = colon + 1, *last = line_end;
			bool space = false;

			if (any)
				buf_puts(out, ",");
			any = true;
			while (v < last && (*v == ' ' || *v == '\t'))
				v++;
			while (last > v && (last[-1] == ' ' || last[-1] == '\t'))
				last--;
			for (; v < last; v++) {
				if (*v == ' ' && space)
					continue;
				space = *v == ' ';
				buf_add(out, v, 1);
			}
		}
		fields = line_end + 2;
	}
	return any;
}

/* Which headers are signed: those that were, without a token, and with one where it is ours.
 * Sorted. */
static void signed_headers(const struct sigv4_request *s, bool token, struct strv *out)
{
	static const char token_name[] = "x-amz-security-token";
	const char *at = s->headers;

	while (*at) {
		size_t n = strcspn(at, ";");

		if (n && !(n == sizeof(token_name) - 1 && strncasecmp(at, token_name, n) == 0)) {
			strv_addf(out, "%.*s", (int)n, at);
			for (char *c = out->len ? out->items[out->len - 1] : NULL; c && *c; c++)
				*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
		}
		at += n + (at[n] == ';');
	}
	if (token)
		strv_add(out, token_name);
	if (out->len && !out->failed)
		qsort(out->items, out->len, sizeof(*out->items), compare_texts);
}

static bool canonical(const struct sigv4_request *s, const struct sigv4_key *key, const char *head,
		      size_t n, struct strv *names, struct buf *out)
{
	const char *end = head + n, *line_end = memmem(head, n, "\r\n", 2);
	const char *method_end = memchr(head, ' ', n), *target, *target_end, *query;
	bool s3 = strcmp(s->service, "s3") == 0 || strcmp(s->service, "s3-object-lambda") == 0;

	if (!line_end || !method_end || method_end > line_end)
		return false;
	target = method_end + 1;
	target_end = memchr(target, ' ', (size_t)(line_end - target));
	if (!target_end)
		return false;
	query = memchr(target, '?', (size_t)(target_end - target));
	buf_add(out, head, (size_t)(method_end - head));
	buf_puts(out, "\n");
	encode(out, target, (size_t)((query ? query : target_end) - target), !s3, true);
	buf_puts(out, "\n");
	if (query)
		canonical_query(out, query + 1, (size_t)(target_end - query) - 1);
	buf_puts(out, "\n");
	signed_headers(s, key->token_len > 0, names);
	for (size_t i = 0; i < names->len; i++) {
		buf_printf(out, "%s:", names->items[i]);
		if (key->token_len && strcmp(names->items[i], "x-amz-security-token") == 0)
			buf_add(out, key->token, key->token_len);
		else if (!add_field(out, line_end + 2, end, names->items[i],
				    strlen(names->items[i])))
			return false;
		buf_puts(out, "\n");
	}
	buf_puts(out, "\n");
	for (size_t i = 0; i < names->len; i++)
		buf_printf(out, "%s%s", i ? ";" : "", names->items[i]);
	buf_printf(out, "\n%s", s->hash);
	return !out->failed && !names->failed;
}

/* -- the signature */

static void hmac(const uint8_t *key, size_t key_len, const char *text, uint8_t out[32])
{
	unsigned n = 32;

	if (!HMAC(EVP_sha256(), key, (int)key_len, (const uint8_t *)text, strlen(text), out, &n))
		memset(out, 0, 32);
}

static void sign(const struct sigv4_request *s, const struct sigv4_key *key, const char *to_sign,
		 char hex[65])
{
	uint8_t first[4096 + 8], k[32], next[32];
	const char *const steps[] = { s->region, s->service, "aws4_request", to_sign };
	size_t n = key->secret_len < 4096 ? key->secret_len : 4096;

	memcpy(first, "AWS4", 4);
	memcpy(first + 4, key->secret, n);
	hmac(first, 4 + n, s->date, k);
	for (size_t i = 0; i < 4; i++) {
		hmac(k, sizeof(k), steps[i], next);
		memcpy(k, next, sizeof(k));
	}
	form_hex(k, sizeof(k), hex);
	explicit_bzero(first, sizeof(first));
	explicit_bzero(k, sizeof(k));
	explicit_bzero(next, sizeof(next));
}

size_t sigv4_sign(const struct sigv4_request *s, const struct sigv4_key *key, const uint8_t *head,
		  size_t n, char *out, size_t room)
{
	auto_buf request = { 0 }, to_sign = { 0 }, list = { 0 };
	auto_strv names = { 0 };
	char hash[65], signature[65];
	int len;

	if (!canonical(s, key, (const char *)head, n, &names, &request)) {
		if (request.data)
			explicit_bzero(request.data, request.len);
		return 0;
	}
	hash_hex(request.data, request.len, hash);
	explicit_bzero(request.data, request.len); /* the token stands in it */
	buf_printf(&to_sign, "AWS4-HMAC-SHA256\n%s\n%s/%s/%s/aws4_request\n%s", s->time, s->date,
		   s->region, s->service, hash);
	for (size_t i = 0; i < names.len; i++)
		buf_printf(&list, "%s%s", i ? ";" : "", names.items[i]);
	if (to_sign.failed || list.failed)
		return 0;
	sign(s, key, to_sign.data, signature);
	len = snprintf(out, room,
		       "Authorization: AWS4-HMAC-SHA256 Credential=%.*s/%s/%s/%s/aws4_request, "
		       "SignedHeaders=%s, Signature=%s\r\n"
		       "%s%.*s%s",
		       (int)key->id_len, (const char *)key->id, s->date, s->region, s->service,
		       buf_text(&list), signature, key->token_len ? "X-Amz-Security-Token: " : "",
		       (int)key->token_len, key->token_len ? (const char *)key->token : "",
		       key->token_len ? "\r\n" : "");
	return len > 0 && (size_t)len < room ? (size_t)len : 0;
}

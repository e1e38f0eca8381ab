/*
 * Requests in ward-keys (keys_ask.h). In: heads and bodies that front has decided about. Out: what
 * may go to the server. Which grant is for a request is decided here, from the request itself and
 * the host of its connection; front is not asked. Everything but the grant's own place is looked
 * through for secrets and placeholders before a byte of it leaves. Heads are put together in locked
 * memory.
 */
#include "keys/keys_ask.h"

#include <string.h>
#include <strings.h>

#include "base/io.h"
#include "rules/http_alias.h"

static const char gone[] = "the secrets are not available: requests cannot be scanned for them";

bool ask_refuse(struct ask *a, unsigned status, const char *why)
{
	a->status = status;
	snprintf(a->why, sizeof(a->why), "%s", why);
	for (char *w = a->why; *w; w++)
		if (*w == '"' || *w == '\\' || (unsigned char)*w < ' ' || (unsigned char)*w > '~')
			*w = '\'';
	return false;
}

void ask_words(struct buf *out, const char *why)
{
	buf_printf(out, "{\"error\":{\"type\":\"ward\",\"message\":\"ward: %s\"}}\n", why);
}

/* -- the head */

struct scan_for ask_looks_for(const struct keys *k)
{
	return (struct scan_for){
		.secrets = true, .shown = true, .replace = k->leaks == LEAKS_STRIP, .prompt = true
	};
}

/* Something was found where it does not belong. */
static bool may_pass(struct keys *k, struct ask *a, const struct scan_for *f, const char *where)
{
	char why[300];

	store_found(k, KEYS_EVENT_LEAK, f, a->host->name, where);
	a->leaked = true;
	if (k->leaks != LEAKS_BLOCK)
		return true;
	snprintf(why, sizeof(why),
		 "%s of grant %s is in %s, where it does not belong: the request was blocked "
		 "(credentials.leaks: block)",
		 PATTERN_SHOWN(f->first) ? "the placeholder" : "the secret",
		 k->grants[PATTERN_GRANT(f->first) % GRANTS_MAX].grant.name, where);
	return ask_refuse(a, 403, why);
}

static bool look_through_head(struct keys *k, struct ask *a)
{
	struct scan_for f = ask_looks_for(k);
	char where[100] = "the request line";
	const char *field;
	size_t n;

	scan_head(k->scan, (uint8_t *)a->base.data, a->base.len, &f);
	if (!f.count)
		return true;
	field = inject_field_at(&a->base, f.at ? f.at - 1 : 0, &n);
	if (field) {
		snprintf(where, sizeof(where), "the header %.*s", (int)(n < 64 ? n : 64), field);
		for (char *w = where; *w; w++)
			if (*w == '"' || *w == '\\' || (unsigned char)*w < ' ' ||
			    (unsigned char)*w > '~')
				*w = '?';
	}
	return may_pass(k, a, &f, where);
}

/* What the fields say about the body. */
static void read_coding(struct ask *a)
{
	const char *at = a->base.data, *end = a->base.data + a->base.len;
	enum unzip_kind whole = UNZIP_NONE, packed = UNZIP_NONE;

	while (at < end) {
		const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
		size_t n = line_end ? (size_t)(line_end - at) : 0;

		if (!n)
			break;
		/* more than one coding is unknown to unzip_kind() */
		if (n > 17 && strncasecmp(at, "content-encoding:", 17) == 0)
			whole = whole != UNZIP_NONE ? UNZIP_UNKNOWN : unzip_kind(at + 17, n - 17);
		if (n > 14 && strncasecmp(at, "grpc-encoding:", 14) == 0)
			packed = packed != UNZIP_NONE ? UNZIP_UNKNOWN : unzip_kind(at + 14, n - 14);
		if (n > 14 && strncasecmp(at, "content-type: ", 14) == 0)
			a->grpc = grpc_is_type(at + 14, n - 14);
		at = line_end + 2;
	}
	a->coding = whole != UNZIP_NONE ? whole : packed;
	/* messages that are compressed can be told apart in gRPC as it is meant, and in nothing
	 * else */
	if (packed != UNZIP_NONE && (whole != UNZIP_NONE || !a->grpc))
		a->coding = UNZIP_UNKNOWN;
	a->grpc &= whole == UNZIP_NONE;
}

/* A body that cannot be looked into does not leave, unless finding something would not stop it
 * either. */
static bool prepare_body(struct keys *k, struct ask *a, bool body)
{
	a->found = ask_looks_for(k);
	if (!body)
		return true;
	read_coding(a);
	if (a->coding == UNZIP_NONE || a->grpc)
		return a->coding != UNZIP_UNKNOWN || k->leaks != LEAKS_BLOCK ||
		       ask_refuse(a, 403,
				  "gRPC messages use a compression that cannot be scanned for "
				  "secrets; send them uncompressed or with gzip");
	if (a->coding != UNZIP_UNKNOWN) {
		a->unzip = unzip_new(a->coding);
		return a->unzip || ask_refuse(a, 503, "out of memory");
	}
	return k->leaks != LEAKS_BLOCK ||
	       ask_refuse(a, 403,
			  "the body uses a compression that cannot be scanned for secrets; send it "
			  "uncompressed or with gzip");
}

bool ask_refuse_grant(struct keys *k, struct ask *a, const char *name, const char *why)
{
	struct keys_event event = { .kind = KEYS_EVENT_REFUSED };
	char text[300];

	snprintf(event.grant, sizeof(event.grant), "%s", name);
	snprintf(event.host, sizeof(event.host), "%s", a->host->name);
	snprintf(event.detail, sizeof(event.detail), "%.110s", why);
	store_event(k, &event);
	snprintf(text, sizeof(text), "grant %s: %s", name, why);
	return ask_refuse(a, 403, text);
}

/* Parts are looked through only of what is read, and widened only there. */
static bool widen_part(struct keys *k, struct ask *a)
{
	bool reads = (http_text_is(k->request.method, "GET") ||
		      http_text_is(k->request.method, "HEAD")) &&
		     !http_override(&k->request, 0).s;

	if (!part_request(&a->base, scan_longest(k->scan), reads, &a->part))
		return false;
	for (unsigned i = 0; i < PART_NAMES; i++)
		if (a->part.gone & 1U << i)
			sigv4_forget(&a->sign, part_names[i]);
	return true;
}

static const struct policy_grant *signing_grant(const struct ask *a)
{
	for (size_t i = 0; i < a->grant_count; i++)
		if (a->grants[i]->grant.way == GRANT_SIGV4)
			return &a->grants[i]->grant;
	return NULL;
}

static size_t secrets_of(const struct ask *a, struct inject_secret secrets[INJECT_MAX])
{
	for (size_t i = 0; i < a->grant_count; i++) {
		const struct key_grant *g = a->grants[i];

		secrets[i] = (struct inject_secret){ .grant = &g->grant, .count = g->count };
		for (size_t v = 0; v < g->count; v++) {
			secrets[i].values[v] = g->values[v];
			secrets[i].bytes[v] = g->bytes[v];
		}
	}
	return a->grant_count;
}

static bool choose_grants(struct keys *k, struct ask *a, const uint8_t *bytes)
{
	struct inject_secret secrets[INJECT_MAX];
	const struct policy_grant *signing;
	const char *why = NULL, *name = NULL;
	enum sigv4_wrong wrong;

	if (!http_request_read(bytes, &a->head, &k->request) || k->request.path.s[0] != '/')
		return ask_refuse(a, 400, "not a request that can be forwarded");
	a->grant_count =
		store_find(k, a->host->name, &k->request, io_now_ms(), a->grants, &why, &name);
	if (!inject_base(secrets, secrets_of(a, secrets), bytes, &a->head, &a->base, &a->sign) ||
	    !widen_part(k, a))
		return ask_refuse(a, 400, "not a request that can be forwarded");
	signing = why ? NULL : signing_grant(a);
	if (signing) {
		/* front has answered it: it is not sent on */
		sigv4_forget(&a->sign, "expect");
		wrong = sigv4_check(&a->sign, signing->region, signing->service);
		why = wrong == SIGV4_FINE ? NULL : sigv4_wrong_text(wrong);
		name = signing->name;
	}
	return !why || ask_refuse_grant(k, a, name, why);
}

bool ask_begin(struct keys *k, struct ask *a, const struct host *host, uint16_t port,
	       const uint8_t *bytes, bool body)
{
	a->host = host;
	if (a->head.connect || !host_equal(&a->head.host, host) ||
	    (a->head.port && a->head.port != port))
		return ask_refuse(a, 403,
				  "the request is for a different host than the connection");
	if (!k->scan)
		return ask_refuse(a, 403, gone);
	return choose_grants(k, a, bytes) && look_through_head(k, a) && prepare_body(k, a, body);
}

bool ask_signs_body(const struct ask *a)
{
	return signing_grant(a) && !a->sign.has_hash;
}

bool ask_wants_all(const struct ask *a, bool body)
{
	return ask_signs_body(a) || (body && a->head.has_length && a->head.length <= ASK_WHOLE_MAX);
}

void ask_used(struct keys *k, const struct ask *a)
{
	for (size_t i = 0; i < a->grant_count; i++)
		store_used(k, a->grants[i], a->host->name);
}

bool ask_compose(struct keys *k, struct ask *a, bool again, size_t *ret_n)
{
	struct inject_secret secrets[INJECT_MAX];

	*ret_n = 0;
	for (size_t i = 0; i < a->grant_count; i++) {
		const struct key_grant *g = a->grants[i];
		const char *why = store_why_not(g, io_now_ms());

		/* others may have used it up since it was chosen */
		if (why && (!again || !g->there || g->revoked))
			return ask_refuse_grant(k, a, g->grant.name, why);
	}
	*ret_n = inject_write(secrets, secrets_of(a, secrets), &a->base, &a->sign, k->compose,
			      k->compose_bytes);
	return *ret_n || ask_refuse(a, 403,
				    "the secret cannot be injected into this request: it is too "
				    "long, or a signed header is missing");
}

/* -- the body */

/* Texts that have bytes of a flag in them might go on behind one. Behind what is no message
 * (g->bad) nothing is known. */
size_t ask_boundary(const struct keys *k, struct grpc *g, const struct buf *data, size_t before)
{
	size_t at = before, end = 0;
	enum grpc_part part;
	bool ends;

	while (at < data->len) {
		at += grpc_take(g, (const uint8_t *)data->data + at, data->len - at, &part, &ends);
		if (ends)
			end = at;
	}
	return k->odd_texts || g->bad ? 0 : end;
}

size_t ask_scan(const struct keys *k, struct buf *data, size_t boundary, bool final,
		struct scan_for *f)
{
	size_t clean = boundary ? scan_run(k->scan, (uint8_t *)data->data, boundary, true, f) : 0;

	if (clean == data->len)
		return clean;
	return clean +
	       scan_run(k->scan, (uint8_t *)data->data + clean, data->len - clean, final, f);
}

static bool unreadable(struct keys *k, struct ask *a)
{
	unzip_free(take_ptr(a->unzip));
	a->coding = UNZIP_NONE;
	return k->leaks != LEAKS_BLOCK || ask_refuse(a, 403,
						     "the compressed body cannot be scanned for "
						     "secrets: it is corrupt, or expands too much");
}

/* Compressed messages, each a stream of its own. */
static bool take_messages(struct keys *k, struct ask *a, const uint8_t *bytes, size_t n,
			  size_t before)
{
	enum grpc_part part;
	bool ends, fine = true;

	for (size_t at = 0; at < n && fine;) {
		size_t some = grpc_take(&a->messages, bytes + at, n - at, &part, &ends);

		if (part == GRPC_PACKED && !a->unzip)
			a->unzip = a->coding == UNZIP_GZIP || a->coding == UNZIP_DEFLATE
					   ? unzip_new(a->coding)
					   : NULL;
		/* what came before may have ended in the middle of a text, and been passed on for
		 * whole */
		if (part == GRPC_BAD)
			fine = k->leaks == LEAKS_LOG ||
			       ask_refuse(a, 403,
					  "the body claims to be gRPC but is not: it cannot be "
					  "scanned for secrets");
		else if (part == GRPC_PACKED &&
			 (!a->unzip || !unzip_look(a->unzip, k->scan, bytes + at, some, &a->found)))
			fine = unreadable(k, a);
		at += some;
		if (ends) {
			a->boundary = k->odd_texts ? 0 : before + at;
			unzip_free(take_ptr(a->unzip));
		}
	}
	return fine;
}

bool ask_take(struct keys *k, struct ask *a, const struct buf *data, size_t before)
{
	size_t n = data->len - before;
	const uint8_t *bytes;

	a->boundary = 0;
	if (!k->scan)
		return ask_refuse(a, 403, gone);
	if (!n)
		return true;
	bytes = (const uint8_t *)data->data + before;
	if (a->grpc)
		return take_messages(k, a, bytes, n, before);
	return !a->unzip || unzip_look(a->unzip, k->scan, bytes, n, &a->found) || unreadable(k, a);
}

bool ask_look(struct keys *k, struct ask *a, struct buf *data, bool ended, bool sent,
	      size_t *ret_clean)
{
	if (!k->scan)
		return ask_refuse(a, 403, gone);
	*ret_clean = ask_scan(k, data, a->boundary, ended, &a->found);
	/* a message goes when it is whole */
	if (a->grpc && !ended && !k->odd_texts && grpc_is_within(&a->messages, ASK_WHOLE_MAX))
		*ret_clean = a->boundary;
	a->boundary = 0;
	if (!a->found.count || a->reported)
		return true;
	a->reported = true;
	if (!sent || k->leaks != LEAKS_BLOCK)
		return may_pass(k, a, &a->found, "the body");
	/* its head has gone: the request stays incomplete */
	store_found(k, KEYS_EVENT_LEAK, &a->found, a->host->name, "the body");
	a->leaked = true;
	return ask_refuse(a, 403,
			  "a secret or its placeholder is in the body: the request was blocked "
			  "(credentials.leaks: block)");
}

bool ask_hold(struct keys *k, struct ask *a, size_t n)
{
	if (n > ASK_COLLECT_MAX)
		return ask_refuse(a, 413,
				  "the body is signed and larger than 4 MiB; send it with "
				  "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD");
	k->collected += n - a->collected;
	a->collected = n;
	return k->collected <= ASK_COLLECTED_MAX ||
	       ask_refuse(a, 503, "too many bodies are buffered at one time; try again");
}

bool ask_message(struct keys *k, struct ask *a, const struct scan_for *f)
{
	return !f->count || may_pass(k, a, f, "a message of the websocket");
}

bool ask_trailers(struct keys *k, struct ask *a, struct buf *lines)
{
	struct scan_for f = ask_looks_for(k);

	if (!k->scan)
		return ask_refuse(a, 403, gone);
	scan_head(k->scan, (uint8_t *)lines->data, lines->len, &f);
	return !f.count || may_pass(k, a, &f, "the trailers");
}

void ask_end(struct keys *k, struct ask *a)
{
	unzip_free(take_ptr(a->unzip));
	k->collected -= a->collected;
	a->collected = 0;
}

void ask_clear(struct keys *k, struct ask *a)
{
	ask_no_person(k, a);
	ask_end(k, a);
	buf_free(&a->base);
	*a = (struct ask){ 0 };
}

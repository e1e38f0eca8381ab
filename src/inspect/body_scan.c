/*
 * Secrets and canaries in requests (body_scan.h). The engine for secrets is ward scan's, with rules
 * that were compiled when ward was built and are loaded at the first request that needs them; a
 * policy without credentials.scan_requests loads nothing.
 *
 * A body is given on as far as it is known, see scan/scrub.h. One in gzip is inflated a second
 * time, only to be looked through: with a secret in it it is refused under redact, too, because it
 * cannot be overwritten. What cannot be looked through at all (another coding, a websocket) is
 * refused unless the mode is log. Fields whose purpose is a credential of the request itself are
 * left alone: a program that may call a service may log in to it.
 *
 * The values of canaries are looked for in all fields, those of a login too, and in the body as it
 * came and inflated; what cannot be read is not refused for their sake.
 *
 * Not seen: packs of git and other compressed files within a body; of secrets, what is encoded or
 * split.
 */
#include "inspect/body_scan.h"

#include <stdlib.h>
#include <string.h>

#include "inspect/gunzip.h"
#include "policy/policy.h"
#include "rules/canary_find.h"
#include "scan/scan_tables.h"
#include "scan/scrub.h"

#define PIECE 1024                 /* of a compressed body, and what it can become at most: */
#define INFLATED (2 * 1024 * 1024) /* more than zlib's format allows */

struct body_scan {
	struct scrub *scrub;   /* NULL: secrets are not looked for */
	struct gunzip *gunzip; /* NULL: as it is */
	struct canary_stream sent, unpacked;
	bool canary_reported;
	struct buf inflated;
	uint64_t count, reported;
	size_t rule; /* of the first secret */
	bool copies; /* what came goes on as it is */
	bool blind;  /* it turned out that it cannot be read; only with log */
};

bool body_scan_is_on(const struct front *f)
{
	return f->config.scan <= SCAN_LOG || f->canaries;
}

static void found(void *ctx, const struct scrub_hit *hit)
{
	struct body_scan *b = ctx;

	if (!b->count++)
		b->rule = hit->rule;
}

static const struct detect_rules *rules_of(struct inspector *i, bool personal)
{
	struct ward_err e;

	if (!i->scan_rules &&
	    detect_rules_load(DETECT_SECRET | (personal ? DETECT_PII : 0u),
			      personal ? scan_table_all : scan_table_secrets,
			      personal ? scan_table_all_bytes : scan_table_secrets_bytes,
			      &i->scan_rules, &e) < 0)
		i->scan_rules = NULL;
	return i->scan_rules;
}

static struct body_scan *begin(struct front *f)
{
	bool secrets = f->config.scan <= SCAN_LOG;
	const struct detect_rules *rules =
		secrets ? rules_of(inspector_of(f), f->config.scan_personal != 0) : NULL;
	struct body_scan *b = calloc(1, sizeof(*b));
	struct ward_err e;

	if (b && !secrets)
		return b;
	if (!b || !rules ||
	    scrub_new(rules, f->config.scan == SCAN_REDACT, found, b, &b->scrub, &e) < 0) {
		free(b);
		return NULL;
	}
	return b;
}

void body_scan_end(struct body_scan *b)
{
	if (!b)
		return;
	scrub_free(b->scrub);
	gunzip_free(b->gunzip);
	if (b->inflated.data)
		explicit_bzero(b->inflated.data, b->inflated.len);
	buf_free(&b->inflated);
	free(b);
}

/* -- what comes of it */

static enum verdict_reason refuse_blind(const struct front *f, struct exchange *ex, const char *why)
{
	if (f->config.scan >= SCAN_LOG)
		return REASON_ALLOWED;
	snprintf(ex->why, sizeof(ex->why),
		 "%s cannot be looked through for secrets (credentials.scan_requests)", why);
	return REASON_UNSCANNED;
}

/* stops: under redact, too. */
static enum verdict_reason judge(struct front *f, struct exchange *ex, struct body_scan *b,
				 const char *where, bool stops)
{
	uint32_t mode = stops && f->config.scan == SCAN_REDACT ? SCAN_BLOCK : f->config.scan;
	const struct detect_rule *rule = detect_rule(b->rule);

	if (b->count == b->reported)
		return REASON_ALLOWED;
	if (!b->reported || mode == SCAN_BLOCK)
		front_flow_report_secret(f, ex->flow, mode, rule->id, where + strlen("its "));
	b->reported = b->count;
	if (mode != SCAN_BLOCK)
		return REASON_ALLOWED;
	snprintf(ex->why, sizeof(ex->why),
		 "%s has what looks like a secret: %s, %s (credentials.scan_requests)", where,
		 rule->id, rule->title);
	return REASON_SECRET;
}

static enum verdict_reason look_for_canaries(struct front *f, struct exchange *ex,
					     struct body_scan *b, struct canary_stream *s,
					     const void *bytes, size_t n, const char *where)
{
	int value = f->canaries && n ? canary_find(f->canaries, s, bytes, n) : -1;

	if (value < 0 || b->canary_reported)
		return REASON_ALLOWED;
	b->canary_reported = true;
	front_flow_report_canary(f, ex->flow, value, where);
	return f->config.canary_passes ? REASON_ALLOWED : REASON_CANARY;
}

/* -- the head */

static bool is_credential(struct http_text name)
{
	static const char *const names[] = { "authorization",
					     "proxy-authorization",
					     "cookie",
					     "x-api-key",
					     "api-key",
					     "x-goog-api-key",
					     "private-token",
					     "x-auth-token",
					     "x-amz-security-token",
					     "sec-websocket-key" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (http_text_is(name, names[i]))
			return true;
	return false;
}

static void add_line(struct buf *out, struct http_text a, const char *between, struct http_text b)
{
	buf_add(out, a.s, a.n);
	buf_puts(out, between);
	buf_add(out, b.s, b.n);
	buf_puts(out, "\n");
}

/* The texts lie in front's own buffers. */
static const char *put_back(struct http_text t, const char *from)
{
	if (t.n)
		memcpy((char *)(uintptr_t)t.s, from, t.n);
	return from + t.n;
}

static void redact(struct http_request *r, struct http_text path, const char *from)
{
	from = put_back(path, from);
	from = put_back(r->query, from + 1) + 1;
	for (unsigned i = 0; i < r->fields.count; i++) {
		const struct http_field *field = &r->fields.items[i];

		if (!is_credential(field->name))
			from = put_back(field->value, from + field->name.n + 2) + 1;
	}
}

/* Also the fields that secrets are allowed in. */
static enum verdict_reason look_for_canaries_in_head(struct front *f, struct exchange *ex,
						     struct body_scan *b,
						     const struct http_request *r,
						     struct http_text path)
{
	auto_buf text = { 0 };

	if (!f->canaries)
		return REASON_ALLOWED;
	add_line(&text, path, "?", r->query);
	for (unsigned i = 0; i < r->fields.count; i++)
		add_line(&text, r->fields.items[i].name, ": ", r->fields.items[i].value);
	if (text.failed)
		return REASON_FULL;
	return look_for_canaries(f, ex, b, &b->sent, text.data, text.len, "head");
}

static enum verdict_reason look_through_head(struct front *f, struct exchange *ex,
					     struct body_scan *b, struct http_request *r,
					     struct http_text path)
{
	auto_buf text = { 0 }, clean = { 0 };
	struct ward_err e;
	enum verdict_reason reason = look_for_canaries_in_head(f, ex, b, r, path);

	if (reason != REASON_ALLOWED || !b->scrub)
		return reason;
	add_line(&text, path, "?", r->query);
	for (unsigned i = 0; i < r->fields.count; i++)
		if (!is_credential(r->fields.items[i].name))
			add_line(&text, r->fields.items[i].name, ": ", r->fields.items[i].value);
	if (text.failed || scrub_take(b->scrub, text.data, text.len, true, &clean, &e) < 0)
		return REASON_FULL;
	if (f->config.scan == SCAN_REDACT && b->count)
		redact(r, path, clean.data);
	return judge(f, ex, b, "its head", false);
}

/* -- the body */

/* gzip is read; false: a coding that is not. */
static bool read_coding(struct body_scan *b, const struct http_request *r)
{
	struct http_text coding = http_field_get(&r->fields, "content-encoding");

	if (!coding.n || http_text_is(coding, "identity"))
		return true;
	if (!http_text_is(coding, "gzip") && !http_text_is(coding, "x-gzip"))
		return false;
	b->gunzip = gunzip_new();
	return b->gunzip;
}

enum verdict_reason body_scan_begin(struct front *f, struct exchange *ex, struct http_request *r,
				    struct http_text path, struct body_scan **ret)
{
	struct body_scan *b, *head;
	enum verdict_reason reason;

	if (!body_scan_is_on(f))
		return REASON_ALLOWED;
	head = begin(f);
	if (!head)
		return REASON_FULL;
	reason = look_through_head(f, ex, head, r, path);
	body_scan_end(head);
	if (reason == REASON_ALLOWED && r->websocket)
		reason = refuse_blind(f, ex, "a websocket");
	if (reason != REASON_ALLOWED || !r->body)
		return reason;
	b = begin(f);
	if (!b)
		return REASON_FULL;
	if (!read_coding(b, r)) {
		reason = refuse_blind(f, ex, "a body in this coding");
		if (reason != REASON_ALLOWED || !f->canaries) {
			body_scan_end(b);
			return reason;
		}
	}
	b->copies = b->gunzip || f->config.scan >= SCAN_LOG;
	*ret = b;
	return REASON_ALLOWED;
}

/* A copy is inflated and looked through; what goes on is what came. */
static enum verdict_reason take_packed(struct front *f, struct exchange *ex, struct body_scan *b,
				       const uint8_t *bytes, size_t n, bool end)
{
	enum verdict_reason reason;
	struct ward_err e;

	for (size_t at = 0; (at < n || end) && !b->blind; at += PIECE) {
		size_t some = at < n ? (n - at < PIECE ? n - at : PIECE) : 0;

		b->inflated.len = 0;
		if ((some && !gunzip_take(b->gunzip, bytes + at, some, INFLATED, &b->inflated)) ||
		    (end && at + some >= n && !gunzip_is_done(b->gunzip))) {
			b->blind = true;
			return refuse_blind(f, ex, "a body that is not whole gzip");
		}
		if (b->scrub && scrub_take(b->scrub, b->inflated.data, b->inflated.len,
					   end && at + some >= n, NULL, &e) < 0)
			return REASON_FULL;
		reason = look_for_canaries(f, ex, b, &b->unpacked, b->inflated.data,
					   b->inflated.len, "body");
		if (reason != REASON_ALLOWED)
			return reason;
		if (at + some >= n)
			break;
	}
	return judge(f, ex, b, "its body", true);
}

enum verdict_reason body_scan_take(struct front *f, struct exchange *ex, struct body_scan *b,
				   const uint8_t *bytes, size_t n, bool end, struct buf *out)
{
	bool copies = b->copies;
	enum verdict_reason reason;
	struct ward_err e;

	if (copies)
		buf_add(out, bytes, n);
	reason = look_for_canaries(f, ex, b, &b->sent, bytes, n, "body");
	if (reason != REASON_ALLOWED)
		;
	else if (b->gunzip)
		reason = take_packed(f, ex, b, bytes, n, end);
	else if (!b->scrub)
		reason = REASON_ALLOWED;
	else if (scrub_take(b->scrub, bytes, n, end, copies ? NULL : out, &e) < 0)
		reason = REASON_FULL;
	else
		reason = judge(f, ex, b, "its body", false);
	if (out->failed)
		reason = REASON_FULL;
	if (reason != REASON_ALLOWED)
		out->len = 0;
	return reason;
}

enum verdict_reason body_scan_trailers(struct front *f, struct exchange *ex,
				       const struct http_fields *fields)
{
	struct body_scan *b = body_scan_is_on(f) ? begin(f) : NULL;
	enum verdict_reason reason = REASON_FULL;
	auto_buf text = { 0 };
	struct ward_err e;

	if (!body_scan_is_on(f))
		return REASON_ALLOWED;
	for (unsigned i = 0; i < fields->count; i++)
		add_line(&text, fields->items[i].name, ": ", fields->items[i].value);
	if (b && !text.failed)
		reason = look_for_canaries(f, ex, b, &b->sent, text.data, text.len, "trailers");
	if (reason == REASON_ALLOWED && b->scrub)
		reason = scrub_take(b->scrub, text.data, text.len, true, NULL, &e) < 0
				 ? REASON_FULL
				 : judge(f, ex, b, "its trailers", true);
	body_scan_end(b);
	return reason;
}

size_t body_scan_held(const struct body_scan *b)
{
	return b && b->scrub && !b->copies ? scrub_held(b->scrub) : 0;
}

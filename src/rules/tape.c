/*
 * Reading a recording (tape.h). In: the bytes of a file that may have been changed, cut or made up.
 * Out: where each exchange begins and what it is found by. Everything is checked once, when the
 * file is opened: hashes, kinds, lengths, and that the texts in heads can be said again without
 * becoming something else (no CR, LF or NUL). Pure. Runs in ward-gateway's process replay, and in
 * the supervisor for the last hash.
 */
#include "rules/tape.h"

#include <errno.h>
#include <string.h>

#define ENTRIES_STEP 256

static const char mark[TAPE_START - 1] = "ward recording"; /* the version follows */

_Static_assert(sizeof(struct tape_frame) == 32, "a frame's head has no holes");

void tape_start(uint8_t ret[TAPE_START])
{
	memcpy(ret, mark, sizeof(mark));
	ret[sizeof(mark)] = TAPE_VERSION;
}

void tape_hash(const uint8_t before[TAPE_HASH], const struct tape_frame *f, const void *bytes,
	       uint8_t ret[TAPE_HASH])
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, before, TAPE_HASH);
	sha256_add(&s, f, offsetof(struct tape_frame, hash));
	sha256_add(&s, bytes, f->bytes);
	sha256_end(&s, digest);
	memcpy(ret, digest, TAPE_HASH);
}

void tape_key(struct http_text method, const char *host, uint16_t port, struct http_text path,
	      struct http_text query, uint8_t ret[SHA256_BYTES])
{
	char place[16];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, method.s, method.n);
	sha256_add(&s, place, (size_t)snprintf(place, sizeof(place), " %u:", port));
	sha256_add(&s, host, strlen(host) + 1);
	sha256_add(&s, path.s, path.n);
	if (query.s) {
		sha256_add(&s, "?", 1);
		sha256_add(&s, query.s, query.n);
	}
	sha256_end(&s, ret);
}

/* -- the bytes of a frame */

struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t take_number(struct reader *r, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->at) < n) {
		r->bad = true;
		return 0;
	}
	memcpy(&v, r->at, n);
	r->at += n;
	return v;
}

/* Whether it may stand in a line of HTTP. */
static bool is_sound(const char *s, size_t n, bool name)
{
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)s[i] == 0x7f || ((uint8_t)s[i] < ' ' && (name || s[i] != '\t')) ||
		    (name && (s[i] <= ' ' || s[i] == ':' || (uint8_t)s[i] > '~')))
			return false;
	return !name || n > 0;
}

static struct http_text take_text(struct reader *r, bool name)
{
	size_t n = (size_t)take_number(r, 4);
	struct http_text t = { (const char *)r->at, n };

	if (r->bad || (size_t)(r->end - r->at) < n || !is_sound(t.s, n, name)) {
		r->bad = true;
		return (struct http_text){ "", 0 };
	}
	r->at += n;
	return t;
}

static void take_fields(struct reader *r, struct http_fields *ret)
{
	size_t count = (size_t)take_number(r, 4);

	if (ret)
		ret->count = 0;
	r->bad |= count > HTTP_FIELDS_MAX;
	for (size_t i = 0; i < count && !r->bad; i++) {
		struct http_field f = { .name = take_text(r, true) };

		f.value = take_text(r, false);
		if (ret && !r->bad)
			ret->items[ret->count++] = f;
	}
}

static bool is_done(const struct reader *r)
{
	return !r->bad && r->at == r->end;
}

bool tape_ask_read(const uint8_t *bytes, size_t n, struct tape_ask *ret)
{
	struct reader r = { bytes, bytes + n, false };

	ret->version = (uint8_t)take_number(&r, 1);
	ret->tls = take_number(&r, 1) == 1;
	ret->port = (uint16_t)take_number(&r, 2);
	if ((size_t)(r.end - r.at) < sizeof(ret->key))
		return false;
	memcpy(ret->key, r.at, sizeof(ret->key));
	r.at += sizeof(ret->key);
	ret->method = take_text(&r, true);
	ret->host = take_text(&r, true);
	ret->path = take_text(&r, false);
	take_fields(&r, ret->fields);
	return is_done(&r) && (ret->version == 1 || ret->version == 2) && ret->port;
}

bool tape_head_read(const uint8_t *bytes, size_t n, uint16_t *ret_status, struct http_fields *ret)
{
	struct reader r = { bytes, bytes + n, false };

	*ret_status = (uint16_t)take_number(&r, 2);
	take_fields(&r, ret);
	return is_done(&r) && *ret_status >= 200 && *ret_status <= 599;
}

bool tape_end_read(const uint8_t *bytes, size_t n, enum tape_end *ret, struct http_fields *trailers)
{
	struct reader r = { bytes, bytes + n, false };
	uint64_t how = take_number(&r, 1);

	take_fields(&r, trailers);
	*ret = how == TAPE_WHOLE ? TAPE_WHOLE : TAPE_BROKEN;
	return is_done(&r) && (how == TAPE_WHOLE || how == TAPE_BROKEN);
}

/* -- the file */

struct tape_frame tape_frame_at(const struct tape *t, uint64_t at)
{
	struct tape_frame f;

	memcpy(&f, t->bytes + at, sizeof(f));
	return f;
}

uint64_t tape_after(const struct tape *t, uint64_t at, uint32_t exchange)
{
	for (at += sizeof(struct tape_frame) + tape_frame_at(t, at).bytes; at < t->len;) {
		struct tape_frame f = tape_frame_at(t, at);

		if (f.exchange == exchange && f.kind != TAPE_CLOSE)
			return at;
		at += sizeof(f) + f.bytes;
	}
	return 0;
}

static bool add_entry(struct tape *t, uint64_t at, const uint8_t *bytes, const struct tape_frame *f)
{
	struct tape_ask ask = { 0 };

	if (f->exchange != t->count + 1 || t->count == TAPE_EXCHANGES_MAX ||
	    !tape_ask_read(bytes, f->bytes, &ask))
		return false;
	if (t->count % ENTRIES_STEP == 0) {
		struct tape_entry *grown =
			reallocarray(t->entries, t->count + ENTRIES_STEP, sizeof(*grown));

		if (!grown)
			return false;
		t->entries = grown;
	}
	t->entries[t->count] = (struct tape_entry){ .ask_at = at, .h2 = ask.version == 2 };
	memcpy(t->entries[t->count++].key, ask.key, sizeof(ask.key));
	return true;
}

static bool add_frame(struct tape *t, uint64_t at, const uint8_t *bytes, const struct tape_frame *f)
{
	struct tape_entry *entry =
		f->exchange && f->exchange <= t->count ? &t->entries[f->exchange - 1] : NULL;
	enum tape_end how;
	uint16_t status;

	if (f->kind == TAPE_ASK)
		return add_entry(t, at, bytes, f);
	if (f->kind == TAPE_CLOSE)
		return f->exchange == t->count && f->bytes == 0;
	if (!entry)
		return false;
	switch (f->kind) {
	case TAPE_BODY:
		if (f->bytes != sizeof(entry->body) || entry->has_body)
			return false;
		memcpy(&entry->body, bytes, sizeof(entry->body));
		entry->has_body = true;
		entry->early = entry->head_at != 0;
		return true;
	case TAPE_HEAD:
		if (entry->head_at || !tape_head_read(bytes, f->bytes, &status, NULL))
			return false;
		entry->head_at = at;
		entry->early = !entry->has_body;
		return true;
	case TAPE_DATA:
		return entry->head_at != 0 && f->bytes > 0;
	case TAPE_END:
		return tape_end_read(bytes, f->bytes, &how, NULL);
	default:
		return false;
	}
}

int tape_open(const uint8_t *bytes, uint64_t n, struct tape *ret, struct ward_err *e)
{
	uint8_t start[TAPE_START], before[TAPE_HASH] = { 0 };
	uint64_t at = TAPE_START;

	*ret = (struct tape){ .bytes = bytes };
	tape_start(start);
	if (n < TAPE_START || memcmp(bytes, start, TAPE_START - 1) != 0)
		return ward_fail(e, EINVAL, "it is not a ward recording");
	if (bytes[TAPE_START - 1] != TAPE_VERSION)
		return ward_fail(e, EINVAL,
				 "it is a recording of version %u, but this build reads version %u",
				 bytes[TAPE_START - 1], TAPE_VERSION);
	while (!ret->closed && n - at >= sizeof(struct tape_frame)) {
		struct tape_frame f = tape_frame_at(ret, at);
		const uint8_t *payload = bytes + at + sizeof(f);
		uint8_t hash[TAPE_HASH];

		if (f.bytes > TAPE_PAYLOAD_MAX || f.bytes > n - at - sizeof(f))
			break;
		tape_hash(before, &f, payload, hash);
		if (memcmp(hash, f.hash, sizeof(hash)) != 0 || !add_frame(ret, at, payload, &f))
			break;
		memcpy(before, hash, sizeof(hash));
		ret->closed = f.kind == TAPE_CLOSE;
		at += sizeof(f) + f.bytes;
		ret->len = at;
	}
	memcpy(ret->hash, before, sizeof(before));
	if (ret->len)
		return 0;
	tape_close(ret);
	return ward_fail(e, EINVAL,
			 "it is unreadable: it was truncated or changed at the very beginning");
}

void tape_close(struct tape *t)
{
	free(take_ptr(t->entries));
	t->count = 0;
}

int32_t tape_find(const struct tape *t, const uint8_t key[SHA256_BYTES],
		  const struct tape_body *body, uint32_t *ret_others)
{
	int32_t found = -1;

	*ret_others = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct tape_entry *e = &t->entries[i];

		if (memcmp(e->key, key, SHA256_BYTES) != 0 || !e->head_at)
			continue;
		++*ret_others;
		if (found >= 0 || e->used)
			continue;
		/* one whose request was never complete is known by its URL alone */
		if (body ? !e->has_body || memcmp(&e->body, body, sizeof(*body)) == 0 : e->early)
			found = (int32_t)i;
	}
	return found;
}

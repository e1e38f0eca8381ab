/*
 * The secrets of ward-keys. In: frames of ward-secrets, whose values go straight into locked
 * memory. Out: the grant for a request, the scanner, counts and events. A grant that is expired,
 * spent or revoked is found and refused, never silently left out: a request that should carry a
 * secret does not go without it.
 */
#include "keys/keys.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "creds/forms.h"
#include "keys/grpc.h"

#define SAID_MAX (64 * 1024)

/* -- to ward-secrets */

static void send_said(struct keys *k)
{
	ssize_t n;

	while (k->said.len && (n = send(k->secrets_fd, k->said.data, k->said.len,
					MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) {
		memmove(k->said.data, k->said.data + n, k->said.len - (size_t)n);
		k->said.len -= (size_t)n;
	}
}

bool store_say(struct keys *k, enum keys_op op, uint64_t number, const void *bytes, size_t n)
{
	struct keys_frame f = { .op = op, .bytes = (uint32_t)n, .number = number };

	if (k->said.len + sizeof(f) + n > SAID_MAX)
		return false; /* there is no reader: what is counted stays counted */
	buf_add(&k->said, &f, sizeof(f));
	buf_add(&k->said, bytes, n);
	send_said(k);
	return true;
}

static void tell_lost(struct keys *k)
{
	struct keys_event gap = { .kind = KEYS_EVENT_LOST, .count = k->lost };

	if (!k->lost || !store_say(k, KEYS_EVENT, 0, &gap, sizeof(gap)))
		return;
	k->lost = 0;
	for (size_t i = 0; i < GRANTS_MAX; i++) /* counts may have been among it */
		if (k->grants[i].uses)
			store_say(k, KEYS_USED,
				  (uint64_t)i << 32 | (k->grants[i].uses & UINT32_MAX), NULL, 0);
}

void store_flush(struct keys *k)
{
	send_said(k);
	tell_lost(k);
}

void store_event(struct keys *k, const struct keys_event *event)
{
	tell_lost(k);
	if (!store_say(k, KEYS_EVENT, 0, event, sizeof(*event)))
		k->lost++;
}

void store_found(struct keys *k, enum keys_event_kind kind, const struct scan_for *f,
		 const char *host, const char *where)
{
	struct keys_event event = { .kind = kind,
				    .action = kind == KEYS_EVENT_SCRUB ? LEAKS_STRIP : k->leaks,
				    .shown = PATTERN_SHOWN(f->first),
				    .count = f->count };
	const struct key_grant *g = &k->grants[PATTERN_GRANT(f->first) % GRANTS_MAX];

	snprintf(event.grant, sizeof(event.grant), "%s", g->grant.name ? g->grant.name : "");
	snprintf(event.host, sizeof(event.host), "%s", host);
	snprintf(event.detail, sizeof(event.detail), "%s", where);
	store_event(k, &event);
}

void store_used(struct keys *k, struct key_grant *g, const char *host)
{
	struct keys_event event = { .kind = KEYS_EVENT_USE, .count = 1 };

	g->uses++;
	if (g->uses_left != UINT64_MAX && g->uses_left)
		g->uses_left--;
	snprintf(event.grant, sizeof(event.grant), "%s", g->grant.name);
	snprintf(event.host, sizeof(event.host), "%s", host);
	store_say(k, KEYS_USED, (uint64_t)(g - k->grants) << 32 | (g->uses & UINT32_MAX), NULL, 0);
	store_event(k, &event);
}

/* -- from ward-secrets */

static bool receive(struct keys *k, void *bytes, size_t n)
{
	uint8_t *at = bytes;

	while (n) {
		ssize_t got = recv(k->secrets_fd, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static void forget(struct keys *k, struct key_grant *g)
{
	for (size_t i = 0; i < GRANT_VALUES; i++) {
		safe_give(&k->safe, g->values[i]);
		safe_give(&k->safe, g->shown[i]);
		g->values[i] = g->shown[i] = NULL;
	}
	g->count = 0;
	g->there = false;
}

/* The payload of KEYS_GRANT, which lies in the safe. */
static bool take_grant(struct keys *k, uint64_t number, const uint8_t *bytes, size_t n)
{
	struct key_grant *g = &k->grants[number % GRANTS_MAX];
	struct ward_err e = { 0 };
	struct keys_grant said;
	auto_free char *line = NULL;
	size_t at = sizeof(said), total;
	bool known = g->grant.name != NULL;

	if (number >= GRANTS_MAX || n < sizeof(said))
		return false;
	memcpy(&said, bytes, sizeof(said));
	total = sizeof(said) + said.line_bytes;
	for (size_t i = 0; i < said.values && i < GRANT_VALUES; i++)
		total += 2 * (size_t)said.value_bytes[i];
	if (said.values < 1 || said.values > GRANT_VALUES || total != n || said.line_bytes > n)
		return false;
	line = strndup((const char *)bytes + at, said.line_bytes);
	at += said.line_bytes;
	forget(k, g);
	policy_grant_clear(&g->grant);
	if (!line || policy_grant_read(line, &g->grant, &e) < 0)
		return false;
	for (size_t i = 0; i < 2 * said.values; i++) {
		size_t v = i % said.values, len = said.value_bytes[v];
		uint8_t *kept = len <= SECRET_MOST ? safe_take(&k->safe, len) : NULL;

		if (!kept)
			return false;
		memcpy(kept, bytes + at, len);
		at += len;
		*(i < said.values ? &g->values[v] : &g->shown[v]) = kept;
		g->bytes[v] = len;
	}
	g->count = said.values;
	g->expires_at_ms = said.expires_at_ms;
	/* renewed: what was used while its source was asked is known here alone */
	g->uses_left = known && g->uses_left < said.uses_left ? g->uses_left : said.uses_left;
	g->revoked = said.state == SECRET_REVOKED;
	g->there = true;
	return true;
}

static void drop_scanner(struct keys *k)
{
	scan_free(k->scan);
	k->scan = NULL;
	safe_give(&k->safe, k->db);
	safe_give(&k->safe, k->text_bytes);
	k->db = k->text_bytes = NULL;
	free(k->texts);
	k->texts = NULL;
	k->odd_texts = false;
}

/* The texts themselves, for what a piece of a stream may end with: behind the database stand (id,
 * length, bytes). */
static bool take_texts(struct keys *k, const uint8_t *bytes, size_t n, size_t *ret_count)
{
	size_t count = 0;

	k->text_bytes = safe_take(&k->safe, n);
	k->texts = calloc(n / 8 + 1, sizeof(*k->texts));
	if (!k->text_bytes || !k->texts)
		return false;
	memcpy(k->text_bytes, bytes, n);
	for (size_t at = 0; at + 8 <= n;) {
		struct scan_text *t = &k->texts[count++];

		memcpy(&t->id, k->text_bytes + at, 4);
		memcpy(&t->len, k->text_bytes + at + 4, 4);
		at += 8;
		if (!t->len || t->len > n - at)
			return false;
		t->bytes = k->text_bytes + at;
		for (uint32_t i = 0; i < t->len; i++)
			k->odd_texts |= t->bytes[i] <= GRPC_FLAG_MAX;
		at += t->len;
	}
	*ret_count = count;
	return true;
}

static bool take_scanner(struct keys *k, const uint8_t *bytes, size_t n)
{
	struct ward_err e = { 0 };
	uint64_t db_bytes;
	size_t room, count = 0;

	if (n < sizeof(db_bytes))
		return false;
	memcpy(&db_bytes, bytes, sizeof(db_bytes));
	bytes += sizeof(db_bytes);
	n -= sizeof(db_bytes);
	if (db_bytes > n || scan_room(bytes, db_bytes, &room, &e) < 0 ||
	    !take_texts(k, bytes + db_bytes, n - db_bytes, &count))
		return false;
	k->db = safe_take(&k->safe, room);
	return k->db && scan_new(bytes, db_bytes, k->db, k->texts, count, &k->scan, &e) == 0;
}

bool store_read(struct keys *k)
{
	static const struct keys_event no_scanner = {
		.kind = KEYS_EVENT_REFUSED,
		.detail = "cannot lock enough memory for the secrets (ulimit -l): no secret is "
			  "used any more"
	};
	struct keys_settings settings;
	struct keys_answer answer;
	struct keys_frame f;
	uint8_t *bytes = k->compose; /* between two heads nothing is in there */
	bool fine, small;

	if (!receive(k, &f, sizeof(f)) || f.bytes > KEYS_FRAME_MAX)
		return false;
	if (f.op ==
	    KEYS_SCANNER) /* their memory is for the new one; until it is there nothing passes */
		drop_scanner(k);
	small = f.bytes <= k->compose_bytes;
	if (!small)
		bytes = safe_take(&k->safe, f.bytes);
	fine = bytes && receive(k, bytes, f.bytes);
	if (fine && f.op == KEYS_SETTINGS) {
		fine = f.bytes == sizeof(settings);
		memcpy(&settings, bytes, fine ? sizeof(settings) : 0);
		k->leaks = fine ? settings.leaks : LEAKS_BLOCK;
	} else if (fine && f.op == KEYS_GRANT) {
		fine = take_grant(k, f.number, bytes, f.bytes);
	} else if (fine && f.op == KEYS_SCANNER) {
		fine = take_scanner(k, bytes, f.bytes);
		if (!fine)
			store_event(k, &no_scanner);
	} else if (fine && f.op == KEYS_REVOKE && f.number < GRANTS_MAX) {
		forget(k, &k->grants[f.number]);
		k->grants[f.number].revoked = true;
	} else if (fine && f.op == KEYS_READY) {
		k->ready = true;
	} else if (fine && f.op == KEYS_ANSWER) {
		fine = f.bytes == sizeof(answer);
		memcpy(&answer, bytes, fine ? sizeof(answer) : 0);
	} else {
		fine = false;
	}
	if (small)
		explicit_bzero(bytes, f.bytes);
	else
		safe_give(&k->safe, bytes);
	if (fine && f.op == KEYS_ANSWER)
		person_answered(k, &answer);
	return fine;
}

/* -- for requests */

const char *store_why_not(const struct key_grant *g, uint64_t now)
{
	if (g->revoked)
		return "it was revoked";
	if (!g->uses_left)
		return "it reached max_uses";
	return now >= g->expires_at_ms ? "it has expired and could not be renewed" : NULL;
}

/* The request goes without: reported once for each grant, or the reason would stay unknown. */
static void tell_passed_over(struct keys *k, struct key_grant *g)
{
	struct keys_event event = {
		.kind = KEYS_EVENT_REFUSED,
		.detail = "was not injected into a request to its host: the grant does not cover "
			  "the path or the method (reported once)"
	};

	if (g->passed_over)
		return;
	g->passed_over = true;
	snprintf(event.grant, sizeof(event.grant), "%s", g->grant.name);
	store_event(k, &event);
}

static bool is_for(const struct key_grant *g, const char *host)
{
	return (g->there || g->revoked) && g->grant.name && grant_is_for_host(&g->grant, host);
}

size_t store_find(struct keys *k, const char *host, const struct http_request *request,
		  uint64_t now, struct key_grant *ret[INJECT_MAX], const char **ret_why,
		  const char **ret_name)
{
	struct key_grant *other = NULL, *revoked = NULL, *fits[GRANTS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < GRANTS_MAX; i++) {
		struct key_grant *g = &k->grants[i];

		if (!is_for(g, host))
			continue;
		if (!inject_fits(&g->grant, request, &k->path))
			other = other ? other : g;
		else if (g->revoked)
			revoked = g;
		else
			fits[count++] = g;
	}
	if (other && !count && !revoked)
		tell_passed_over(k, other);
	if (revoked &&
	    !count) { /* where others are for the request, they are what was decided since */
		*ret_why = store_why_not(revoked, now);
		*ret_name = revoked->grant.name;
	}
	for (size_t i = 0; i < count && !*ret_why; i++) {
		*ret_why = i < INJECT_MAX ? store_why_not(fits[i], now)
					  : "too many grants match this request";
		*ret_name = fits[i]->grant.name;
		ret[i % INJECT_MAX] = fits[i];
	}
	return *ret_why ? 0 : count;
}

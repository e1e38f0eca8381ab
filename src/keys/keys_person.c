/*
 * Secrets that a person allows first. In: a request that waits for nothing but its secret, one of
 * whose grants asks; answers. Out: a question, by way of ward-secrets, for the supervisor; the
 * request goes on, or is refused. Neither front nor the sandbox is heard about it: what is asked
 * about is read here from the request itself, and the answer names the digest of what will be sent
 * beside the secret. A request that is broken off withdraws its question. Runs in ward-keys.
 */
#include <string.h>

#include "base/sha256.h"
#include "keys/keys_conn.h"
#include "keys/keys_h2.h"
#include "rules/decide.h"

static bool is_asking(const struct ask *a)
{
	bool asks = false;

	for (size_t i = 0; i < a->grant_count; i++)
		asks |= a->grants[i]->grant.ask;
	return asks;
}

#define HASH_DIGITS 12

/* Printable; cut in the middle, with a hash of all of it. room: at least 64. */
static void put_text(char *out, size_t room, const char *text, size_t n)
{
	char hex[SHA256_HEX];
	size_t left = room - sizeof("... (sha256 )") - HASH_DIGITS, head = left / 2;

	if (n < room) {
		memcpy(out, text, n);
		out[n] = '\0';
	} else {
		sha256_hex(text, n, hex);
		memcpy(out, text, head);
		memcpy(out + head, "...", 3);
		memcpy(out + head + 3, text + n - (left - head), left - head);
		snprintf(out + left + 3, room - left - 3, " (sha256 %.*s)", HASH_DIGITS, hex);
	}
	for (char *c = out; *c; c++)
		*c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
}

/* False: the names of the grants do not fit, so that nobody could be shown what a yes is for. */
static bool describe(const struct ask *a, uint16_t port, struct keys_asked *ret)
{
	const char *line = a->base.data, *end = memmem(line, a->base.len, " HTTP/1.1\r\n", 11);
	size_t n = end ? (size_t)(end - line) : 0;
	const char *query = memchr(line, '?', n);
	size_t at = 0;

	ret->port = port;
	snprintf(ret->host, sizeof(ret->host), "%s", a->host->name);
	put_text(ret->what, sizeof(ret->what), line, query ? (size_t)(query - line) : n);
	if (query)
		put_text(ret->query, sizeof(ret->query), query + 1, n - (size_t)(query + 1 - line));
	for (size_t i = 0; i < a->grant_count; i++) {
		at += (size_t)snprintf(ret->grants + at, sizeof(ret->grants) - at, "%s%s",
				       at ? ", " : "", a->grants[i]->grant.name);
		if (at >= sizeof(ret->grants))
			return false;
	}
	return true;
}

static bool begin(struct keys *k, struct ask *a, uint16_t port, const void *bytes, size_t n,
		  bool whole)
{
	struct keys_asked asked = { .serial = ++k->questions };
	struct sha256 sum;

	if (!describe(a, port, &asked))
		return false;
	sha256_begin(&sum);
	sha256_add(&sum, a->base.data, a->base.len);
	if (n)
		sha256_add(&sum, bytes, n);
	if (!whole) /* no other has this body */
		sha256_add(&sum, &asked.serial, sizeof(asked.serial));
	sha256_end(&sum, asked.exact);
	a->question = asked.serial;
	a->port = port;
	memcpy(a->exact, asked.exact, sizeof(a->exact));
	return store_say(k, KEYS_ASK, 0, &asked, sizeof(asked));
}

enum person_say ask_person(struct keys *k, struct ask *a, uint16_t port, const void *bytes,
			   size_t n, bool whole)
{
	if (!is_asking(a))
		return PERSON_FINE;
	if (a->person == PERSON_UNASKED && begin(k, a, port, bytes, n, whole)) {
		a->person = PERSON_ASKED;
		return PERSON_WAITS;
	}
	if (a->person == PERSON_ASKED)
		return PERSON_WAITS;
	if (a->person == PERSON_ANSWERED && a->answer == REASON_ALLOWED)
		return PERSON_FINE;
	ask_refuse_grant(
		k, a, a->grants[0]->grant.name,
		verdict_reason_text(a->person == PERSON_ANSWERED && a->answer < VERDICT_REASONS
					    ? (enum verdict_reason)a->answer
					    : REASON_ASKED_FULL));
	return PERSON_NO;
}

void ask_no_person(struct keys *k, struct ask *a)
{
	struct keys_asked asked = { .serial = a->question, .port = a->port };

	if (a->person != PERSON_ASKED)
		return;
	a->person = PERSON_UNASKED;
	snprintf(asked.host, sizeof(asked.host), "%s", a->host->name);
	memcpy(asked.exact, a->exact, sizeof(asked.exact));
	/* where there is no room for that, the question ends at its deadline */
	(void)store_say(k, KEYS_UNASK, 0, &asked, sizeof(asked));
}

static bool take(struct ask *a, const struct keys_answer *answer)
{
	if (a->person != PERSON_ASKED || a->question > answer->serial ||
	    memcmp(a->exact, answer->exact, sizeof(a->exact)) != 0)
		return false;
	a->person = PERSON_ANSWERED;
	a->answer = answer->reason;
	return true;
}

void person_answered(struct keys *k, const struct keys_answer *answer)
{
	struct conn *next;

	for (struct conn *c = k->conns; c; c = next) {
		bool some = take(&c->ask, answer);

		next = c->next;
		for (struct keys_stream *s = c->h2 ? c->h2->streams : NULL; s; s = s->next)
			some |= take(&s->ask, answer);
		if (some)
			conn_ready(k, c);
	}
}

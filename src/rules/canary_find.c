/*
 * Looking for the values of canaries (canary_find.h). In: bytes that a sandbox sends, which may be
 * anything. Out: which value is among them. Pure functions, fuzzed (fuzz/canary_find.c).
 *
 * Each value has forms: itself, itself backwards, and the characters of its base64, base32 and
 * hexadecimal that do not depend on what stands beside it. Of each form every CANARY_FOUND
 * characters in a row are a key of a hash table. The bytes are read twice, as they come and with
 * escapes undone; of each reading only letters and digits count, in small letters, so line breaks,
 * quotes, dots between labels and capitals hide nothing. The last CANARY_FOUND of them have a
 * rolling hash; where the table knows it, the characters are compared.
 *
 * A value of 20 characters out of 32 has 100 bits; 16 characters of any form of it do not come up
 * by chance.
 */
#include "rules/canary_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x100000001b3)
#define FORM_MAX (2 * CANARY_TOKEN + 8)
#define FILTER_BITS 17 /* of the hash: most characters end here */

struct key {
	uint8_t text[CANARY_FOUND];
	uint32_t value; /* + 1; 0: free */
	uint64_t hash;
};

struct canary_finder {
	uint64_t oldest; /* BASE to the power of CANARY_FOUND */
	size_t slots;    /* a power of two */
	struct key *keys;
	uint8_t filter[1 << (FILTER_BITS - 3)];
};

/* -- the hash */

/* What counts of a byte: a letter or a digit, in small letters; 0: it does not. */
static uint8_t fold(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint8_t)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : 0;
}

static uint64_t mix(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static void add(const struct canary_finder *f, struct canary_reading *r, uint8_t c)
{
	uint8_t *place = &r->last[r->count % CANARY_FOUND];

	r->hash = r->hash * BASE + c - (r->count >= CANARY_FOUND ? *place * f->oldest : 0);
	*place = c;
	r->count++;
	if (r->count == 1u << 31) /* so that it stays above CANARY_FOUND for ever */
		r->count = 1u << 30;
}

static bool may_be(const struct canary_finder *f, uint64_t mixed)
{
	size_t bit = mixed >> (64 - FILTER_BITS);

	return f->filter[bit / 8] >> (bit % 8) & 1;
}

static bool is_same(const struct canary_reading *r, const struct key *k)
{
	for (uint32_t i = 0; i < CANARY_FOUND; i++)
		if (r->last[(r->count + i) % CANARY_FOUND] != k->text[i])
			return false;
	return true;
}

/* The value that the last characters are; -1: none. */
static int look(const struct canary_finder *f, const struct canary_reading *r)
{
	uint64_t mixed = mix(r->hash);

	if (r->count < CANARY_FOUND || !may_be(f, mixed))
		return -1;
	for (size_t at = mixed & (f->slots - 1); f->keys[at].value; at = (at + 1) & (f->slots - 1))
		if (f->keys[at].hash == r->hash && is_same(r, &f->keys[at]))
			return (int)f->keys[at].value - 1;
	return -1;
}

/* -- the forms */

static void put_key(struct canary_finder *f, const struct canary_reading *r, size_t value)
{
	uint64_t mixed = mix(r->hash);
	size_t at = mixed & (f->slots - 1), bit = mixed >> (64 - FILTER_BITS);

	while (f->keys[at].value)
		at = (at + 1) & (f->slots - 1);
	for (uint32_t i = 0; i < CANARY_FOUND; i++)
		f->keys[at].text[i] = r->last[(r->count + i) % CANARY_FOUND];
	f->keys[at].hash = r->hash;
	f->keys[at].value = (uint32_t)value + 1;
	f->filter[bit / 8] |= (uint8_t)(1 << (bit % 8));
}

/* All pieces of a form that are long enough. */
static void put_form(struct canary_finder *f, const char *form, size_t n, size_t value)
{
	struct canary_reading r = { 0 };

	for (size_t i = 0; i < n; i++) {
		uint8_t c = fold((uint8_t)form[i]);

		if (!c)
			continue;
		add(f, &r, c);
		if (r.count >= CANARY_FOUND && look(f, &r) < 0)
			put_key(f, &r, value);
	}
}

/* The characters of `bits` bits each that a value decides alone, where `shift` unknown bytes stand
 * before it. */
static void put_bits(struct canary_finder *f, const char *token, unsigned shift, unsigned bits,
		     const char *alphabet, size_t value)
{
	char form[FORM_MAX];
	size_t len = 0, first = (8 * (size_t)shift + bits - 1) / bits,
	       end = 8 * ((size_t)shift + CANARY_TOKEN) / bits;

	for (size_t i = first; i < end; i++) {
		unsigned c = 0;

		for (size_t b = bits * i; b < bits * (i + 1); b++)
			c = c << 1 | ((unsigned)(uint8_t)token[b / 8 - shift] >> (7 - b % 8) & 1U);
		form[len++] = alphabet[c];
	}
	put_form(f, form, len, value);
}

static void put_value(struct canary_finder *f, const char *token, size_t value)
{
	static const char sixty_four[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const char thirty_two[] = "abcdefghijklmnopqrstuvwxyz234567";
	static const char thirty_two_hex[] = "0123456789abcdefghijklmnopqrstuv";
	char back[CANARY_TOKEN];

	for (size_t i = 0; i < CANARY_TOKEN; i++)
		back[i] = token[CANARY_TOKEN - 1 - i];
	put_form(f, token, CANARY_TOKEN, value);
	put_form(f, back, CANARY_TOKEN, value);
	put_bits(f, token, 0, 4, "0123456789abcdef", value);
	for (unsigned shift = 0; shift < 3; shift++)
		put_bits(f, token, shift, 6, sixty_four, value);
	for (unsigned shift = 0; shift < 5; shift++) {
		put_bits(f, token, shift, 5, thirty_two, value);
		put_bits(f, token, shift, 5, thirty_two_hex, value);
	}
}

int canary_finder_new(const char *tokens, size_t count, struct canary_finder **ret,
		      struct ward_err *e)
{
	struct canary_finder *f = calloc(1, sizeof(*f));

	if (count > CANARY_VALUES_MAX) {
		free(f);
		return ward_fail(e, E2BIG, "at most %d canaries", CANARY_VALUES_MAX);
	}
	if (f) {
		/* a value has about 260 keys */
		for (f->slots = 1024; f->slots < 512 * count; f->slots *= 2)
			;
		f->keys = calloc(f->slots, sizeof(*f->keys));
	}
	if (!f || !f->keys) {
		canary_finder_free(f);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	f->oldest = 1;
	for (unsigned i = 0; i < CANARY_FOUND; i++)
		f->oldest *= BASE;
	for (size_t i = 0; i < count; i++)
		put_value(f, tokens + i * CANARY_TOKEN, i);
	*ret = f;
	return 0;
}

void canary_finder_free(struct canary_finder *f)
{
	if (!f)
		return;
	free(f->keys);
	free(f);
}

/* -- the stream */

static int take(const struct canary_finder *f, struct canary_reading *r, uint8_t byte)
{
	uint8_t c = fold(byte);

	if (!c)
		return -1;
	add(f, r, c);
	return look(f, r);
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether what waits, with the next byte, is an escape: 1 it is whole and stands for *ret (0:
 * nothing), 0 it may become one, -1 it is none. */
static int read_escape(const uint8_t *at, unsigned n, uint8_t *ret)
{
	bool percent = at[0] == '%';
	unsigned digits = percent ? 1 : 2, more = percent || (n > 1 && at[1] == 'x') ? 2 : 4;

	*ret = 0;
	if (n == 1)
		return 0;
	if (!percent && n == 2 && (at[1] == 'n' || at[1] == 'r' || at[1] == 't'))
		return 1;
	if (!percent && at[1] != 'u' && at[1] != 'x')
		return -1;
	for (unsigned i = digits; i < n; i++)
		if (hex_digit(at[i]) < 0)
			return -1;
	if (n < digits + more)
		return 0;
	for (unsigned i = digits; i < digits + more - 2; i++)
		if (at[i] != '0')
			return 1; /* not a letter of ours */
	*ret = (uint8_t)(hex_digit(at[n - 2]) << 4 | hex_digit(at[n - 1]));
	return 1;
}

/* A byte of the reading without escapes. */
static int take_unescaped(const struct canary_finder *f, struct canary_stream *s, uint8_t byte)
{
	uint8_t c = 0;
	int found = -1, whole;

	if (!s->waiting_count && byte != '%' && byte != '\\')
		return take(f, &s->unescaped, byte);
	s->waiting[s->waiting_count++] = byte;
	whole = read_escape(s->waiting, s->waiting_count, &c);
	if (whole == 0)
		return -1;
	if (whole > 0) {
		s->waiting_count = 0;
		return take(f, &s->unescaped, c);
	}
	/* none: the bytes are what they are, and the last one may begin another */
	whole = s->waiting_count - 1;
	s->waiting_count = 0;
	for (int i = 0; i < whole && found < 0; i++)
		found = take(f, &s->unescaped, s->waiting[i]);
	if (found < 0)
		found = take_unescaped(f, s, byte);
	return found;
}

int canary_find(const struct canary_finder *f, struct canary_stream *s, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++) {
		int found = take(f, &s->plain, at[i]), other = take_unescaped(f, s, at[i]);

		if (found >= 0 || other >= 0)
			return found >= 0 ? found : other;
	}
	return -1;
}

/*
 * The checks of tables/scan.def. In: the bytes of one hit, which anyone may have written. Out: yes
 * or no. Pure functions without I/O, fuzzed by fuzz/detect.c; tests/unit/detect.c has an
 * example that passes and one that fails for each.
 */
#include "scan/check.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/sha256.h"

#define ARRAY(a) (sizeof(a) / sizeof(*(a)))

/* -- what the bytes are made of */

struct classes {
	size_t lower, upper, digit, other;
};

static struct classes count_classes(struct part p)
{
	struct classes c = { 0 };

	for (size_t i = 0; i < p.n; i++) {
		uint8_t b = p.bytes[i];

		c.lower += b >= 'a' && b <= 'z';
		c.upper += b >= 'A' && b <= 'Z';
		c.digit += b >= '0' && b <= '9';
	}
	c.other = p.n - c.lower - c.upper - c.digit;
	return c;
}

static unsigned kinds_of(const struct classes *c)
{
	return (unsigned)(!!c->lower + !!c->upper + !!c->digit + !!c->other);
}

unsigned check_entropy(struct part p)
{
	unsigned counts[256] = { 0 };
	double bits = 0;

	if (!p.n)
		return 0;
	for (size_t i = 0; i < p.n; i++)
		counts[p.bytes[i]]++;
	for (int i = 0; i < 256; i++)
		if (counts[i])
			bits -= counts[i] * log2((double)counts[i] / (double)p.n);
	return (unsigned)(bits / (double)p.n * 10 + 0.5);
}

static bool has_text(struct part p, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i + n <= p.n; i++) {
		size_t same = 0;

		while (same < n && tolower(p.bytes[i + same]) == text[same])
			same++;
		if (same == n)
			return true;
	}
	return false;
}

/* Neighbours that are equal, or count up or down. */
static size_t count_steps(struct part p)
{
	size_t steps = 0;

	for (size_t i = 1; i < p.n; i++) {
		int d = p.bytes[i] - p.bytes[i - 1];

		steps += d >= -1 && d <= 1;
	}
	return steps;
}

bool check_is_placeholder(struct part p)
{
	static const char *const words[] = {
		"example", "xxxx",     "changeme", "change_me", "change-me", "placeholder",
		"your_",   "your-",    "redacted", "dummy",     "${",        "{{",
		"$(",      "%(",       "<",        "****",      "....",      "insert",
		"replace", "12345678", "abcdefg",  "deadbeef",  "0000000",   "notreal",
		"foobar",  "sample",   "not-a-",   "fake_",     "fake-",     "aaaaaa"
	};

	for (size_t i = 0; i < ARRAY(words); i++)
		if (has_text(p, words[i]))
			return true;
	return p.n > 1 && count_steps(p) * 10 > p.n * 6;
}

static bool is_mixed(struct part p)
{
	struct classes c = count_classes(p);

	return c.lower + c.upper >= 2 && c.digit >= 2;
}

/* Parts between separators that are words: a name of a program, not a value. */
static bool is_name(struct part p)
{
	size_t letters = 0, run = 0, longest = 0;

	for (size_t i = 0; i < p.n; i++) {
		bool letter = (p.bytes[i] | 32) >= 'a' && (p.bytes[i] | 32) <= 'z';
		bool goes_on =
			i && letter && (p.bytes[i] >= 'a' || p.bytes[i - 1] < 'a'); /* not aB */

		letters += letter;
		run = letter ? (goes_on ? run + 1 : 1) : 0;
		longest = run > longest ? run : longest;
	}
	return longest >= 7 || letters * 10 > p.n * 9;
}

static bool is_random(struct part p, bool quoted)
{
	struct classes c = count_classes(p);
	static const char *const code[] = { "://", "->", "::", "./", "/usr", "/etc", "$" };

	if (!is_mixed(p) || is_name(p) || c.other * 4 > p.n)
		return false;
	for (size_t i = 0; i < ARRAY(code); i++)
		if (has_text(p, code[i]))
			return false;
	return quoted || (p.n >= 20 && check_entropy(p) >= 36 && c.digit >= 3);
}

static bool is_known_word(struct part p)
{
	static const char *const words[] = { "password", "passwd", "pass",   "secret", "user",
					     "token",    "test",   "mypass", "pwd",    "admin",
					     "guest",    "root",   "hunter2" };
	size_t n = p.n;

	while (n && (p.bytes[n - 1] < 'A' || (p.bytes[n - 1] | 32) > 'z'))
		n--; /* password1! */
	for (size_t i = 0; i < ARRAY(words); i++)
		if (n == strlen(words[i]) && has_text((struct part){ p.bytes, n }, words[i]))
			return true;
	return false;
}

static bool is_url_password(struct part p)
{
	struct classes c = count_classes(p);

	for (size_t i = 0; i < p.n; i++)
		if (p.bytes[i] <= ' ' || p.bytes[i] >= 0x7f)
			return false;
	return !is_known_word(p) && !memchr("$%<[(*", p.bytes[0], 6) &&
	       (c.digit || kinds_of(&c) >= 3) && c.lower + c.upper && check_entropy(p) >= 20;
}

static bool is_passphrase(struct part p, bool quoted)
{
	struct classes c = count_classes(p);
	static const char *const code[] = { "://", "->", "::", "()", "\\", "%s", "%d",
					    "{",   "}",  "=",  "|",  "..", "/" };

	for (size_t i = 0; i < p.n; i++)
		if (p.bytes[i] <= ' ' || p.bytes[i] >= 0x7f)
			return false;
	for (size_t i = 0; i < ARRAY(code); i++)
		if (has_text(p, code[i]))
			return false;
	if (is_known_word(p) || memchr("$%<[(*&@-.", p.bytes[0], 10) || !c.digit)
		return false;
	return quoted ? kinds_of(&c) >= 3 || (c.digit >= 2 && check_entropy(p) >= 30)
		      : kinds_of(&c) >= 3 && c.digit >= 2 && !is_name(p);
}

/* -- checksums */

static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static uint32_t crc32_of(struct part p)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < p.n; i++) {
		crc ^= p.bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static bool is_crc62(struct part p)
{
	uint32_t crc;

	if (p.n <= 6)
		return false;
	crc = crc32_of((struct part){ p.bytes, p.n - 6 });
	for (size_t i = 0; i < 6; i++, crc /= 62)
		if (p.bytes[p.n - 1 - i] != (uint8_t)base62[crc % 62])
			return false;
	return true;
}

static uint32_t bech32_step(uint32_t sum, unsigned value)
{
	static const uint32_t generator[] = { 0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
					      0x2a1462b3 };
	uint32_t top = sum >> 25;

	sum = (sum & 0x1ffffff) << 5 ^ value;
	for (int i = 0; i < 5; i++)
		if (top >> i & 1)
			sum ^= generator[i];
	return sum;
}

/* The name stands in front of the last 1. */
static bool is_bech32(struct part hit, const struct part *secret)
{
	static const char digits[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
	size_t name = (size_t)(secret->bytes - hit.bytes);
	uint32_t sum = 1;

	if (!name || hit.bytes[name - 1] != '1')
		return false;
	for (size_t i = 0; i + 1 < name; i++)
		sum = bech32_step(sum, (unsigned)tolower(hit.bytes[i]) >> 5);
	sum = bech32_step(sum, 0);
	for (size_t i = 0; i + 1 < name; i++)
		sum = bech32_step(sum, (unsigned)tolower(hit.bytes[i]) & 31);
	for (size_t i = 0; i < secret->n; i++) {
		int c = tolower(secret->bytes[i]);
		const char *at = c ? strchr(digits, c) : NULL;

		if (!at)
			return false;
		sum = bech32_step(sum, (unsigned)(at - digits));
	}
	return sum == 1;
}

#define BASE58_BYTES 82 /* of an extended key with its checksum */

static bool is_base58(struct part p)
{
	static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
	uint8_t number[BASE58_BYTES] = { 0 }, sum[SHA256_BYTES];
	struct sha256 s;

	for (size_t i = 0; i < p.n; i++) {
		const char *at = p.bytes[i] ? strchr(digits, p.bytes[i]) : NULL;
		unsigned carry = at ? (unsigned)(at - digits) : 0;

		if (!at)
			return false;
		for (size_t k = BASE58_BYTES; k-- > 0;) {
			carry += number[k] * 58u;
			number[k] = (uint8_t)carry;
			carry >>= 8;
		}
		if (carry)
			return false;
	}
	sha256_begin(&s);
	sha256_add(&s, number, BASE58_BYTES - 4);
	sha256_end(&s, sum);
	sha256_begin(&s);
	sha256_add(&s, sum, sizeof(sum));
	sha256_end(&s, sum);
	return memcmp(sum, number + BASE58_BYTES - 4, 4) == 0;
}

static size_t digits_of(struct part p, uint8_t *out, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < p.n; i++)
		if (p.bytes[i] >= '0' && p.bytes[i] <= '9') {
			if (n < most)
				out[n] = (uint8_t)(p.bytes[i] - '0');
			n++;
		}
	return n;
}

static bool is_card(struct part *p)
{
	uint8_t d[19];
	unsigned sum = 0, first;
	size_t n;

	while (p->n && (p->bytes[p->n - 1] < '0' || p->bytes[p->n - 1] > '9'))
		p->n--;
	n = digits_of(*p, d, sizeof(d));
	if (n < 13 || n > 19 || check_entropy(*p) < 18)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned v = d[n - 1 - i] * (i & 1 ? 2u : 1u);

		sum += v > 9 ? v - 9 : v;
	}
	first = d[0] * 100u + d[1] * 10u + d[2];
	return sum % 10 == 0 &&
	       ((first / 100 == 4 && (n == 13 || n == 16 || n == 19)) ||
		(n == 16 && ((first >= 510 && first < 560) || (first >= 222 && first <= 272) ||
			     first / 10 == 65 || first == 601 || (first >= 352 && first < 359))) ||
		(n == 15 && (first / 10 == 34 || first / 10 == 37)));
}

/* Countries and the length of their numbers. */
static size_t iban_length(const uint8_t *country)
{
	static const char lengths[] =
		"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24"
		"FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IS26IT27JO30KW30KZ20LB28LI21"
		"LT20LU20LV21MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24"
		"SE24SI19SK24SM27TN24TR26UA29VA22VG24XK20";

	for (size_t i = 0; i + 4 < sizeof(lengths); i += 4)
		if (memcmp(lengths + i, country, 2) == 0)
			return (size_t)((lengths[i + 2] - '0') * 10 + lengths[i + 3] - '0');
	return 0;
}

static unsigned iban_add(unsigned rest, uint8_t c)
{
	return c >= 'A' ? (rest * 100 + (unsigned)(c - 'A' + 10)) % 97
			: (rest * 10 + (unsigned)(c - '0')) % 97;
}

static bool is_iban(struct part *p)
{
	uint8_t text[34];
	size_t n = 0, used = 0, want = p->n > 4 ? iban_length(p->bytes) : 0;
	unsigned rest = 0;

	for (; used < p->n && n < want && n < sizeof(text); used++)
		if (p->bytes[used] != ' ')
			text[n++] = p->bytes[used];
	if (!want || n < want)
		return false;
	p->n = used;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = text[(i + 4) % n];

		if (!isdigit(c) && !(c >= 'A' && c <= 'Z'))
			return false;
		rest = iban_add(rest, c);
	}
	return rest == 1;
}

static bool is_ssn(struct part p)
{
	uint8_t d[9];
	unsigned area, group, serial;

	if (digits_of(p, d, sizeof(d)) != 9)
		return false;
	area = d[0] * 100u + d[1] * 10u + d[2];
	group = d[3] * 10u + d[4];
	serial = d[5] * 1000u + d[6] * 100u + d[7] * 10u + d[8];
	return area && area != 666 && area < 900 && group && serial &&
	       !(area == 78 && group == 5 && serial == 1120) &&
	       !(area == 219 && group == 9 && serial == 9999);
}

/* +49 30 901820, (415) 555-2671; 555-01xx is kept for films. */
static bool is_phone(struct part *p)
{
	uint8_t d[15];
	size_t n;

	while (p->n && !isdigit(p->bytes[p->n - 1]))
		p->n--;
	n = digits_of(*p, d, sizeof(d));
	if (p->bytes[0] == '(')
		return n == 10 && p->n >= 13 && p->bytes[4] == ')' && d[0] >= 2 && d[3] >= 2 &&
		       !(d[3] == 5 && d[4] == 5 && d[5] == 5 && d[6] == 0 && d[7] == 1);
	return n >= 9 && n <= 15 && d[0] && !memchr(p->bytes, '(', p->n > 4 ? 0 : p->n);
}

static bool is_email(struct part *p)
{
	static const char *const none[] = {
		"@example.", ".example", "@localhost", "@test.",   ".invalid", ".local",
		"noreply",   "no-reply", ".png",       "@domain.", "@host.",   "@users.noreply"
	};
	const uint8_t *at = memchr(p->bytes, '@', p->n), *dot = NULL;
	size_t top;

	while (p->n && (p->bytes[p->n - 1] == '.' || p->bytes[p->n - 1] == '-'))
		p->n--;
	for (size_t i = 0; at && at + 1 + i < p->bytes + p->n; i++)
		if (at[1 + i] == '.')
			dot = at + 1 + i;
	if (!dot || p->bytes[0] == '.' || at[1] == '.' || at[1] == '-')
		return false;
	top = (size_t)(p->bytes + p->n - dot - 1);
	for (size_t i = 0; i < top; i++)
		if (!isalpha(dot[1 + i]))
			return false;
	for (size_t i = 0; i < ARRAY(none); i++)
		if (has_text(*p, none[i]))
			return false;
	return top >= 2 && top <= 18;
}

/* -- structure */

static int base64_value(uint8_t c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+' || c == '-' ? 62
	       : c == '/' || c == '_' ? 63
				      : -1;
}

/* At most `most` bytes of what the text encodes; stops where it is no base64. */
static size_t base64_decode(struct part p, uint8_t *out, size_t most)
{
	uint32_t bits = 0;
	size_t n = 0;
	unsigned have = 0;

	for (size_t i = 0; i < p.n && n < most && base64_value(p.bytes[i]) >= 0; i++) {
		bits = bits << 6 | (uint32_t)base64_value(p.bytes[i]);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (uint8_t)(bits >> have);
		}
	}
	return n;
}

static bool is_jwt(struct part p)
{
	uint8_t head[256];
	size_t n = base64_decode(p, head, sizeof(head));
	struct part h = { head, n };

	return n > 8 && head[0] == '{' && has_text(h, "\"alg\"") && !has_text(h, "\"none\"");
}

static bool is_basic(struct part p)
{
	uint8_t text[256];
	size_t n = base64_decode(p, text, sizeof(text));
	const uint8_t *colon = memchr(text, ':', n);
	struct part password;

	if (!colon || colon == text)
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] >= 0x7f)
			return false;
	password = (struct part){ colon + 1, n - (size_t)(colon + 1 - text) };
	return password.n >= 6 && !is_known_word(password) && !check_is_placeholder(password);
}

#define PEM_RUN 40 /* characters of base64 that a body has at least in one line */

static bool is_pem(struct part hit, struct part *secret)
{
	size_t run = 0, longest = 0;

	if (!has_text((struct part){ hit.bytes, (size_t)(secret->bytes - hit.bytes) },
		      "private key"))
		return false;
	for (size_t i = 0; i + 5 <= secret->n; i++)
		if (memcmp(secret->bytes + i, "-----", 5) == 0)
			secret->n = i;
	for (size_t i = 0; i < secret->n; i++) {
		run = base64_value(secret->bytes[i]) >= 0 ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest >= PEM_RUN && check_entropy(*secret) >= 35;
}

bool check_secret(enum check c, struct part hit, struct part *secret, bool quoted)
{
	if (!secret->n)
		return false;
	switch (c) {
	case CHECK_NONE:
		return true;
	case CHECK_MIXED:
		return is_mixed(*secret);
	case CHECK_RANDOM:
		return is_random(*secret, quoted);
	case CHECK_PASSWORD:
		return is_url_password(*secret);
	case CHECK_PASSPHRASE:
		return is_passphrase(*secret, quoted);
	case CHECK_CRC62:
		return is_crc62(*secret);
	case CHECK_BECH32:
		return is_bech32(hit, secret);
	case CHECK_BASE58:
		return is_base58(*secret);
	case CHECK_JWT:
		return is_jwt(*secret);
	case CHECK_PEM:
		return is_pem(hit, secret);
	case CHECK_BASIC:
		return is_basic(*secret);
	case CHECK_EMAIL:
		return is_email(secret);
	case CHECK_CARD:
		return is_card(secret);
	case CHECK_IBAN:
		return is_iban(secret);
	case CHECK_SSN:
		return is_ssn(*secret);
	case CHECK_PHONE:
		return is_phone(secret);
	}
	return false;
}

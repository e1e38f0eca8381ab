/*
 * Placeholders. In: a secret and random bytes. Out: a text of the same length that programs which
 * check the shape of a key accept: the prefix that its kind is known by, the same alphabet,
 * separators where they are; all else is random. Only what the kind of key says anyway is taken
 * from the secret. Pure; runs in ward-secrets.
 */
#include "creds/placeholder.h"

#include <stdbool.h>
#include <string.h>

/* How keys of well-known services begin; the longest that fits is kept. */
static const char *const prefixes[] = {
	"sk-ant-api03-", "sk-ant-oat01-", "sk-ant-admin01-",
	"sk-ant-",       "sk-proj-",      "sk-svcacct-",
	"sk-or-v1-",     "sk-",           "sk_live_",
	"sk_test_",      "rk_live_",      "rk_test_",
	"ghp_",          "gho_",          "ghs_",
	"ghu_",          "ghr_",          "github_pat_",
	"glpat-",        "gldt-",         "AKIA",
	"ASIA",          "xoxb-",         "xoxp-",
	"xapp-",         "AIza",          "ya29.",
	"hf_",           "npm_",          "pypi-",
	"gsk_",          "SG.",           "dop_v1_",
	"hvs.",          "hvb.",          "s.",
	"eyJ",           "lin_api_",      "ntn_",
	"secret_",       "r8_",           "pplx-",
	"xai-",          "nvapi-",        "tvly-",
	"fc-",           "dckr_pat_",     "shpat_",
	"sq0atp-",       "key-",          "Bearer ",
};

static size_t prefix_of(const uint8_t *value, size_t n)
{
	size_t best = 0;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (len > best && len + 8 <= n && memcmp(value, prefixes[i], len) == 0)
			best = len;
	}
	return best;
}

static bool is_separator(uint8_t c)
{
	return c && strchr("-_.:/+= ", c);
}

static size_t add_range(char *out, size_t len, int first, int last)
{
	for (int c = first; c <= last; c++)
		out[len++] = (char)c;
	return len;
}

/* The alphabet of what is neither prefix nor separator. */
static size_t alphabet_of(const uint8_t *value, size_t n, char out[64])
{
	bool upper = false, lower = false, digit = false, beyond_hex = false, beyond_base32 = false;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = value[i];

		upper |= c >= 'A' && c <= 'Z';
		lower |= c >= 'a' && c <= 'z';
		digit |= c >= '0' && c <= '9';
		beyond_hex |= (c > 'f' && c <= 'z') || (c > 'F' && c <= 'Z');
		beyond_base32 |= c == '0' || c == '1' || c == '8' || c == '9';
	}
	if (!upper && !lower && !digit)
		upper = lower = true;
	if (digit && upper && !lower && beyond_hex && !beyond_base32)
		len = add_range(out, len, '2', '7');
	else if (digit)
		len = add_range(out, len, '0', '9');
	if (upper)
		len = add_range(out, len, 'A', beyond_hex || !digit ? 'Z' : 'F');
	if (lower)
		len = add_range(out, len, 'a', beyond_hex || !digit ? 'z' : 'f');
	return len;
}

/* WARD in the alphabet's own letters; "" where it has none of them. */
static const char *mark_of(const char *alphabet, size_t n)
{
	if (memchr(alphabet, 'W', n))
		return "WARD";
	return memchr(alphabet, 'w', n) ? "ward" : "";
}

void placeholder_write(const uint8_t *value, size_t n, const uint8_t *random, uint8_t *out)
{
	size_t at = prefix_of(value, n), letters;
	const char *mark;
	char alphabet[64];

	memcpy(out, value, at);
	letters = alphabet_of(value + at, n - at, alphabet);
	mark = n - at >= 12 ? mark_of(alphabet, letters) : "";
	for (; at < n; at++) {
		if (is_separator(value[at]))
			out[at] = value[at];
		else if (*mark)
			out[at] = (uint8_t)*mark++;
		else
			out[at] = (uint8_t)alphabet[random[at] % letters];
	}
}

/*
 * Numbers with units. In: text from a policy or an option. Out: an integer in the smallest unit
 * (bytes, thousandths of a processor, milliseconds, millionths of a currency). Pure functions,
 * integer arithmetic only, fuzzed (fuzz/units.c). Refused: signs, spaces, exponents, hexadecimal
 * and octal looking numbers (a leading zero means different things to different readers), what does
 * not fit 64 bits (-ERANGE) and everything else that is not a plain decimal number with a known
 * unit (-EINVAL). A fraction of the smallest unit is cut off.
 */
#include "policy/units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

struct decimal {
	uint64_t whole;
	uint64_t fraction; /* in billionths */
	bool has_fraction;
};

struct unit {
	const char *name; /* compared without case */
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1000 },
	{ "kb", 1000 },
	{ "ki", 1ULL << 10 },
	{ "kib", 1ULL << 10 },
	{ "m", 1000000 },
	{ "mb", 1000000 },
	{ "mi", 1ULL << 20 },
	{ "mib", 1ULL << 20 },
	{ "g", 1000000000 },
	{ "gb", 1000000000 },
	{ "gi", 1ULL << 30 },
	{ "gib", 1ULL << 30 },
	{ "t", 1000000000000 },
	{ "tb", 1000000000000 },
	{ "ti", 1ULL << 40 },
	{ "tib", 1ULL << 40 },
	{ "p", 1000000000000000 },
	{ "pb", 1000000000000000 },
	{ "pi", 1ULL << 50 },
	{ "pib", 1ULL << 50 },
};

/* From the longest to the shortest: the parts of "1h30m" must come in this order. */
static const struct unit time_units[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits[.digits] at *at and moves it behind them. */
static int read_decimal(const char **at, struct decimal *ret)
{
	struct decimal d = { 0 };
	const char *s = *at;

	if (!is_digit(*s) || (s[0] == '0' && is_digit(s[1])))
		return -EINVAL;
	for (; is_digit(*s); s++)
		if (__builtin_mul_overflow(d.whole, 10, &d.whole) ||
		    __builtin_add_overflow(d.whole, (uint64_t)(*s - '0'), &d.whole))
			return -ERANGE;
	if (*s == '.') {
		uint64_t place = 1000000000 / 10;

		if (!is_digit(*++s))
			return -EINVAL;
		d.has_fraction = true;
		for (; is_digit(*s); s++, place /= 10)
			d.fraction += (uint64_t)(*s - '0') * place;
	}
	*at = s;
	*ret = d;
	return 0;
}

static int scale(struct decimal d, uint64_t factor, uint64_t *ret)
{
	unsigned __int128 v = (unsigned __int128)d.whole * factor;

	v += (unsigned __int128)d.fraction * factor / 1000000000;
	if (v >= UINT64_MAX) /* the largest value means "none" */
		return -ERANGE;
	*ret = (uint64_t)v;
	return 0;
}

int units_parse_uint(const char *text, uint64_t *ret_value)
{
	struct decimal d;
	int r = read_decimal(&text, &d);

	if (r < 0)
		return r;
	if (*text || d.has_fraction)
		return -EINVAL;
	return scale(d, 1, ret_value);
}

int units_parse_size(const char *text, uint64_t *ret_bytes)
{
	struct decimal d;
	int r = read_decimal(&text, &d);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(size_units); i++) {
		if (strcasecmp(text, size_units[i].name) != 0)
			continue;
		if (d.has_fraction && size_units[i].factor == 1)
			return -EINVAL;
		return scale(d, size_units[i].factor, ret_bytes);
	}
	return -EINVAL;
}

int units_parse_cpus(const char *text, uint64_t *ret_milli)
{
	struct decimal d;
	int r = read_decimal(&text, &d);

	if (r < 0)
		return r;
	if (strcmp(text, "m") == 0)
		return d.has_fraction ? -EINVAL : scale(d, 1, ret_milli);
	return *text ? -EINVAL : scale(d, 1000, ret_milli);
}

int units_parse_money(const char *text, uint64_t *ret_millionths)
{
	struct decimal d;
	int r = read_decimal(&text, &d);

	if (r < 0)
		return r;
	return *text ? -EINVAL : scale(d, 1000000, ret_millionths);
}

/* Two digits behind the point, or as many as it takes. */
void units_put_money(uint64_t millionths, struct buf *out)
{
	char digits[8];
	size_t n = 6;

	snprintf(digits, sizeof(digits), "%06u", (unsigned)(millionths % 1000000));
	while (n > 2 && digits[n - 1] == '0')
		digits[--n] = '\0';
	buf_printf(out, "%" PRIu64 ".%s", millionths / 1000000, digits);
}

void units_json_money(struct json *j, const char *key, uint64_t millionths)
{
	auto_buf text = { 0 };

	units_put_money(millionths, &text);
	json_string(j, key, buf_text(&text));
}

/* The unit that stands at s, at or behind *next in the table; NULL if there is none. */
static const struct unit *find_time_unit(const char *s, size_t *next)
{
	size_t n = strspn(s, "dhms");

	for (; *next < ARRAY_LEN(time_units); (*next)++) {
		const struct unit *u = &time_units[*next];

		if (strlen(u->name) == n && strncmp(s, u->name, n) == 0) {
			(*next)++;
			return u;
		}
	}
	return NULL;
}

int units_parse_seconds(const char *text, uint64_t *ret_ms)
{
	uint64_t total = 0, part;
	size_t next = 0;
	bool first = true;

	do {
		const struct unit *u;
		struct decimal d;
		int r;

		while (!first && text[0] == '0' && is_digit(text[1]))
			text++; /* 1h05m */
		r = read_decimal(&text, &d);
		if (r < 0)
			return r;
		if (first && !*text)
			return scale(d, 1000, ret_ms);
		u = find_time_unit(text, &next);
		if (!u || (d.has_fraction && u->factor == 1))
			return -EINVAL;
		text += strlen(u->name);
		r = scale(d, u->factor, &part);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(total, part, &total) || total == UINT64_MAX)
			return -ERANGE;
		first = false;
	} while (*text);
	*ret_ms = total;
	return 0;
}

void units_format_size(uint64_t bytes, char *out, size_t n)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned i = 0;
	uint64_t tenths;

	while (i + 1 < ARRAY_LEN(names) && bytes >> (10 * (i + 1)))
		i++;
	if (i == 0) {
		snprintf(out, n, "%" PRIu64 " B", bytes);
		return;
	}
	tenths = (bytes >> (10 * i)) * 10 + ((bytes >> (10 * (i - 1))) & 1023) * 10 / 1024;
	if (tenths % 10 == 0 || tenths >= 1000)
		snprintf(out, n, "%" PRIu64 " %s", tenths / 10, names[i]);
	else
		snprintf(out, n, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, names[i]);
}

void units_format_ms(uint64_t ms, char *out, size_t n)
{
	if (ms < 1000)
		snprintf(out, n, "%" PRIu64 " ms", ms);
	else if (ms < 60000)
		snprintf(out, n, "%" PRIu64 ".%" PRIu64 " s", ms / 1000, ms % 1000 / 100);
	else if (ms < 3600000)
		snprintf(out, n, "%" PRIu64 " min %" PRIu64 " s", ms / 60000, ms % 60000 / 1000);
	else
		snprintf(out, n, "%" PRIu64 " h %" PRIu64 " min", ms / 3600000,
			 ms % 3600000 / 60000);
}

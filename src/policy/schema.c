/*
 * The table of the policy as data. In: tables/policy.def, at compile time. Out: rows that reader,
 * comparison, texts and messages walk, and the one place that knows how a number of each type is
 * written and bounded. Pure functions over constant data, in every process that handles a policy,
 * no rights.
 */
#include "policy/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "policy/units.h"

static const struct schema_row rows[POLICY_FIELDS] = {
#define FIELD(path, member, type, values, fallback, narrow, later, help)                           \
	{ { path, #type, values, fallback, #narrow, later, help },                                 \
	  TYPE_##type,                                                                             \
	  NARROW_##narrow,                                                                         \
	  offsetof(struct policy, member) },
#include "policy.def"
};

static const struct schema_group groups[] = {
#define GROUP(name, help) { name },
#include "policy.def"
};

/* What stands in place of an item's default. */
#define OPTIONAL ""
#define REQUIRED "", .required = true

static const struct schema_item items[] = {
#define ITEM(o, n, t, v, d, h)                                                                     \
	{ .object = o, .name = n, .type = TYPE_##t, .values = v, .fallback = d },
#include "policy.def"
};

/* Each text has room for its NUL; longer ones do not compile at all. */
#define FITS(text, type, member)                                                                   \
	_Static_assert(sizeof(text) <= sizeof(((type *)0)->member), "too long: " text)
#define GROUP(n, h) FITS(n, struct schema_group, name);
#define FIELD(p, m, t, v, d, w, l, h)                                                              \
	FITS(p, struct policy_row, path);                                                          \
	FITS(v, struct policy_row, values);                                                        \
	FITS(d, struct policy_row, fallback);                                                      \
	FITS(l, struct policy_row, later);                                                         \
	FITS(h, struct policy_row, help);
#define ITEM(o, n, t, v, d, h)                                                                     \
	FITS(o, struct schema_item, object);                                                       \
	FITS(n, struct schema_item, name);                                                         \
	FITS(v, struct schema_item, values);
#include "policy.def"

static const unsigned char held[SCHEMA_TYPES] = {
	[TYPE_STRING] = HELD_TEXT,   [TYPE_ENUM] = HELD_INDEX,     [TYPE_BOOL] = HELD_FLAG,
	[TYPE_UINT] = HELD_NUMBER,   [TYPE_SIZE] = HELD_NUMBER,    [TYPE_MEMORY] = HELD_NUMBER,
	[TYPE_CPUS] = HELD_NUMBER,   [TYPE_SECONDS] = HELD_NUMBER, [TYPE_STRINGS] = HELD_LIST,
	[TYPE_ENUMS] = HELD_LIST,    [TYPE_MOUNTS] = HELD_MOUNTS,  [TYPE_INGRESS] = HELD_LIST,
	[TYPE_GPUS] = HELD_LIST,     [TYPE_RULES] = HELD_LIST,     [TYPE_GRANTS] = HELD_LIST,
	[TYPE_COMMANDS] = HELD_LIST, [TYPE_SINKS] = HELD_LIST,     [TYPE_UINTS] = HELD_LIST,
	[TYPE_PRICES] = HELD_LIST,   [TYPE_MONEY] = HELD_NUMBER,   [TYPE_TOOLCHAINS] = HELD_LIST,
	[TYPE_SSH] = HELD_LIST,      [TYPE_WATCH] = HELD_LIST,     [TYPE_LABELS] = HELD_LIST,
	[TYPE_CHANNELS] = HELD_LIST,
};

const struct schema_row *schema_row(enum policy_field field)
{
	return &rows[field];
}

const struct policy_row *policy_row(enum policy_field field)
{
	return &rows[field].row;
}

enum policy_field schema_find(const char *path)
{
	unsigned i = 0;

	while (i < POLICY_FIELDS && strcmp(rows[i].row.path, path) != 0)
		i++;
	return (enum policy_field)i;
}

const struct schema_group *schema_groups(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(groups);
	return groups;
}

const struct schema_item *schema_next_item(const char *object, const struct schema_item *item)
{
	const struct schema_item *at = item ? item + 1 : items;

	for (; at < items + ARRAY_LEN(items); at++)
		if (strcmp(at->object, object) == 0)
			return at;
	return NULL;
}

enum schema_held schema_held(enum schema_type type)
{
	return (enum schema_held)held[type];
}

void *schema_member(struct policy *p, const struct schema_row *row)
{
	return (char *)p + row->offset;
}

const void *schema_const_member(const struct policy *p, const struct schema_row *row)
{
	return (const char *)p + row->offset;
}

const char *schema_nth_word(const char *words, unsigned index, size_t *ret_len)
{
	for (; index; index--) {
		words += strcspn(words, "|");
		if (!*words++)
			return NULL;
	}
	*ret_len = strcspn(words, "|");
	return words;
}

bool schema_word(const char *words, const char *text, size_t n, unsigned *ret_index)
{
	const char *word;
	size_t len;

	for (unsigned i = 0; (word = schema_nth_word(words, i, &len)); i++)
		if (len == n && memcmp(word, text, n) == 0) {
			*ret_index = i;
			return true;
		}
	return false;
}

static bool allows_none(const char *values)
{
	unsigned index;

	return schema_word(values, "none", 4, &index);
}

static int parse_plain(enum schema_type type, const char *text, uint64_t *ret_value)
{
	if (type == TYPE_SIZE || type == TYPE_MEMORY)
		return units_parse_size(text, ret_value);
	if (type == TYPE_CPUS)
		return units_parse_cpus(text, ret_value);
	if (type == TYPE_SECONDS)
		return units_parse_seconds(text, ret_value);
	if (type == TYPE_MONEY)
		return units_parse_money(text, ret_value);
	return units_parse_uint(text, ret_value);
}

static void copy_short(char out[32], const char *text, size_t n)
{
	n = n < 31 ? n : 31;
	memcpy(out, text, n);
	out[n] = '\0';
}

/* Splits "min..max|none" into texts that are empty where there is no bound. */
static void split_range(const char *values, char min[32], char max[32])
{
	size_t n = strcspn(values, "|");
	const char *dots = memmem(values, n, "..", 2);
	size_t low = dots ? (size_t)(dots - values) : 0;

	copy_short(min, values, low);
	copy_short(max, dots ? dots + 2 : "", dots ? n - low - 2 : 0);
}

static int parse_percent(const char *text, uint64_t *ret_value)
{
	size_t n = strlen(text);
	char digits[8];
	uint64_t share;
	int r;

	if (n - 1 >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, n - 1);
	digits[n - 1] = '\0';
	r = units_parse_uint(digits, &share);
	if (r < 0)
		return r;
	if (share < 1 || share > 100)
		return -ERANGE;
	*ret_value = POLICY_PERCENT | share;
	return 0;
}

int schema_number(enum schema_type type, const char *values, const char *text, uint64_t *ret_value)
{
	char min[32], max[32];
	uint64_t value, bound;
	int r;

	if (strcmp(text, "none") == 0 && allows_none(values)) {
		*ret_value = POLICY_NONE;
		return 0;
	}
	if (type == TYPE_MEMORY && *text && text[strlen(text) - 1] == '%')
		return parse_percent(text, ret_value);
	r = parse_plain(type, text, &value);
	if (r < 0)
		return r;
	split_range(values, min, max);
	if (*min && (parse_plain(type, min, &bound) < 0 || value < bound))
		return -ERANGE;
	if (*max && (parse_plain(type, max, &bound) < 0 || value > bound))
		return -ERANGE;
	if (type == TYPE_MEMORY && value >= POLICY_PERCENT)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

void schema_expected(enum schema_type type, const char *values, struct buf *out)
{
	static const char *const nouns[SCHEMA_TYPES] = {
		[TYPE_UINT] = "a whole number",
		[TYPE_UINTS] = "a whole number",
		[TYPE_SIZE] = "a size such as 512Mi or 4Gi",
		[TYPE_MEMORY] = "a size such as 512Mi or 4Gi, a share such as 50%",
		[TYPE_CPUS] = "a number of processors such as 2 or 0.5",
		[TYPE_SECONDS] = "seconds such as 300, 0.5 or 5m",
		[TYPE_MONEY] = "an amount such as 5 or 0.25",
	};
	char min[32], max[32];

	split_range(values, min, max);
	buf_puts(out, nouns[type] ? nouns[type] : "a value");
	if (*min && strcmp(min, max) == 0)
		buf_printf(out, ", only %s", min);
	else if (*min && *max)
		buf_printf(out, ", from %s to %s", min, max);
	else if (*min)
		buf_printf(out, ", at least %s", min);
	if (allows_none(values))
		buf_puts(out, ", or none");
}

/* In the unit that gives the smallest whole number. */
static void size_text(uint64_t bytes, struct buf *out)
{
	static const struct {
		uint64_t factor;
		const char *unit;
	} units[] = { { 1, "" },           { 1ULL << 10, "Ki" },
		      { 1000000, "M" },    { 1ULL << 20, "Mi" },
		      { 1000000000, "G" }, { 1ULL << 30, "Gi" },
		      { 1ULL << 40, "Ti" } };
	size_t best = 0;

	for (size_t i = 0; bytes && i < ARRAY_LEN(units); i++)
		if (bytes % units[i].factor == 0)
			best = i;
	buf_printf(out, "%" PRIu64 "%s", bytes / units[best].factor, units[best].unit);
}

void schema_number_text(enum schema_type type, uint64_t value, struct buf *out)
{
	if (value == POLICY_NONE) {
		buf_puts(out, "none");
	} else if (type == TYPE_MEMORY && (value & POLICY_PERCENT)) {
		buf_printf(out, "%" PRIu64 "%%", value & ~POLICY_PERCENT);
	} else if (type == TYPE_SIZE || type == TYPE_MEMORY) {
		size_text(value, out);
	} else if (type == TYPE_MONEY) {
		units_put_money(value, out);
	} else if (type == TYPE_CPUS || type == TYPE_SECONDS) {
		buf_printf(out, "%" PRIu64, value / 1000);
		if (value % 1000) {
			char digits[8];

			snprintf(digits, sizeof(digits), "%03u", (unsigned)(value % 1000));
			for (size_t n = 3; digits[n - 1] == '0'; n--)
				digits[n - 1] = '\0';
			buf_printf(out, ".%s", digits);
		}
	} else {
		buf_printf(out, "%" PRIu64, value);
	}
}

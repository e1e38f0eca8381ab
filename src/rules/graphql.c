/*
 * Reading GraphQL documents (graphql.h). In: text from inside. Out: a question for each field of
 * the root. Two walks: the first checks the grammar of all of it (executable definitions only;
 * GraphQL of October 2021) and notes where each definition's selections are, the second follows
 * those of the operation that is meant. Refused beside errors: letters outside of ASCII in anything
 * but strings and comments, control characters, other line ends in comments, a backslash in a block
 * string (old servers read those otherwise), two definitions of one name, an operation without a
 * name beside others. Bounded in depth and number. Runs in front.
 */
#include "rules/graphql.h"

#include <string.h>

#define DEPTH_MAX 64
#define DEFINITIONS_MAX 256

const char graphql_words[GRAPHQL_KINDS][16] = { "query", "mutation", "subscription" };

struct word {
	const char *s;
	size_t n;
};

/* VALUE: a number or string */
enum token { TOKEN_END, TOKEN_MARK, TOKEN_NAME, TOKEN_SPREAD, TOKEN_VALUE };

struct definition {
	struct word name;       /* .n 0: none */
	const char *selections; /* where its { is */
	uint8_t kind;           /* enum graphql_kind, GRAPHQL_KINDS: a fragment */
	bool followed;
};

struct document {
	const char *at, *end;
	const char *wrong; /* NULL: nothing so far */
	uint8_t token;     /* enum token: the one that stands here */
	char mark;         /* MARK: which */
	struct word word;  /* of the token */
	unsigned depth;
	unsigned count;
	struct definition items[DEFINITIONS_MAX];
};

static void fail(struct document *d, const char *why)
{
	if (!d->wrong)
		d->wrong = why;
	d->at = d->end;
	d->token = TOKEN_END;
}

/* -- tokens */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Line ends that only some readers know would end a comment there. */
static void skip_comment(struct document *d)
{
	while (d->at < d->end && *d->at != '\n' && *d->at != '\r') {
		size_t left = (size_t)(d->end - d->at);

		if ((uint8_t)*d->at < 0x20 && *d->at != '\t')
			fail(d, "a control character in a comment");
		else if ((left >= 3 && (memcmp(d->at, "\xe2\x80\xa8", 3) == 0 ||
					memcmp(d->at, "\xe2\x80\xa9", 3) == 0)) ||
			 (left >= 2 && memcmp(d->at, "\xc2\x85", 2) == 0))
			fail(d, "a line terminator in a comment that not every server recognizes");
		else
			d->at++;
	}
}

static void skip_ignored(struct document *d)
{
	while (d->at < d->end) {
		if (*d->at == '#')
			skip_comment(d);
		else if (*d->at == ' ' || *d->at == '\t' || *d->at == '\n' || *d->at == '\r' ||
			 *d->at == ',')
			d->at++;
		else
			return;
	}
}

static void take_block(struct document *d)
{
	for (d->at += 3; d->end - d->at >= 3; d->at++) {
		if (memcmp(d->at, "\"\"\"", 3) == 0) {
			d->at += 3;
			return;
		}
		if (*d->at == '\\' || ((uint8_t)*d->at < 0x20 && *d->at != '\t' && *d->at != '\n' &&
				       *d->at != '\r')) {
			fail(d, "a backslash or control character in a block string");
			return;
		}
	}
	fail(d, "a string without an end");
}

static bool take_hex(struct document *d, size_t most)
{
	size_t n = 0;

	for (; d->at < d->end && n < most; d->at++, n++)
		if (!is_digit(*d->at) && !((*d->at | 0x20) >= 'a' && (*d->at | 0x20) <= 'f'))
			break;
	return n > 0 && (most != 4 || n == 4);
}

/* Behind the backslash. */
static bool take_escape(struct document *d)
{
	char c = d->at < d->end ? *d->at++ : 0;

	if (c != 'u')
		return c && strchr("\"\\/bfnrt", c);
	if (d->at == d->end || *d->at != '{')
		return take_hex(d, 4);
	d->at++;
	return take_hex(d, 6) && d->at < d->end && *d->at++ == '}';
}

static void take_string(struct document *d)
{
	d->token = TOKEN_VALUE;
	if (d->end - d->at >= 3 && memcmp(d->at, "\"\"\"", 3) == 0) {
		take_block(d);
		return;
	}
	for (d->at++; d->at < d->end && *d->at != '"';) {
		if ((uint8_t)*d->at < 0x20 && *d->at != '\t')
			fail(d, "a control character in a string");
		else if (*d->at++ == '\\' && !take_escape(d))
			fail(d, "an invalid string");
	}
	if (d->at >= d->end || *d->at != '"')
		fail(d, "an invalid string");
	else
		d->at++;
}

static bool take_digits(struct document *d)
{
	const char *first = d->at;

	while (d->at < d->end && is_digit(*d->at))
		d->at++;
	return d->at > first;
}

static void take_number(struct document *d)
{
	const char *first;
	bool fine;

	d->token = TOKEN_VALUE;
	d->at += *d->at == '-';
	first = d->at;
	fine = take_digits(d) && !(*first == '0' && d->at - first > 1);
	if (fine && d->at < d->end && *d->at == '.') {
		d->at++;
		fine = take_digits(d);
	}
	if (fine && d->at < d->end && (*d->at | 0x20) == 'e') {
		d->at++;
		d->at += d->at < d->end && (*d->at == '+' || *d->at == '-');
		fine = take_digits(d);
	}
	if (!fine || (d->at < d->end && (is_letter(*d->at) || *d->at == '.')))
		fail(d, "an invalid number");
}

/* The next token becomes the one that stands here. */
static void next(struct document *d)
{
	skip_ignored(d);
	d->token = TOKEN_END;
	if (d->at == d->end)
		return;
	d->word = (struct word){ d->at, 0 };
	if (is_letter(*d->at)) {
		while (d->at < d->end && (is_letter(*d->at) || is_digit(*d->at)))
			d->at++;
		d->word.n = (size_t)(d->at - d->word.s);
		d->token = TOKEN_NAME;
	} else if (*d->at == '"') {
		take_string(d);
	} else if (*d->at == '-' || is_digit(*d->at)) {
		take_number(d);
	} else if (d->end - d->at >= 3 && memcmp(d->at, "...", 3) == 0) {
		d->at += 3;
		d->token = TOKEN_SPREAD;
	} else if (*d->at && strchr("!$&()[]{}:=@|", *d->at)) {
		d->mark = *d->at++;
		d->token = TOKEN_MARK;
	} else {
		fail(d, "a character that is not valid in GraphQL");
	}
}

static bool is_mark(const struct document *d, char c)
{
	return d->token == TOKEN_MARK && d->mark == c;
}

static bool is_word(const struct document *d, const char *word)
{
	return d->token == TOKEN_NAME && d->word.n == strlen(word) &&
	       memcmp(d->word.s, word, d->word.n) == 0;
}

static bool take_mark(struct document *d, char c)
{
	if (!is_mark(d, c))
		return false;
	next(d);
	return true;
}

static void need_mark(struct document *d, char c)
{
	if (!take_mark(d, c))
		fail(d, "not valid GraphQL");
}

static struct word need_name(struct document *d)
{
	struct word name = d->word;

	if (d->token != TOKEN_NAME) {
		fail(d, "a name is missing");
		return (struct word){ "", 0 };
	}
	next(d);
	return name;
}

static bool deeper(struct document *d)
{
	if (++d->depth > DEPTH_MAX)
		fail(d, "nested too deeply");
	return !d->wrong;
}

/* -- what stands between names */

static void skip_value(struct document *d)
{
	if (!deeper(d))
		return;
	if (take_mark(d, '$')) {
		need_name(d);
	} else if (take_mark(d, '[')) {
		while (!d->wrong && !take_mark(d, ']'))
			skip_value(d);
	} else if (take_mark(d, '{')) {
		while (!d->wrong && !take_mark(d, '}')) {
			need_name(d);
			need_mark(d, ':');
			skip_value(d);
		}
	} else if (d->token == TOKEN_VALUE || d->token == TOKEN_NAME) {
		next(d);
	} else {
		fail(d, "a value is missing");
	}
	d->depth--;
}

static void skip_arguments(struct document *d)
{
	if (!take_mark(d, '('))
		return;
	do {
		need_name(d);
		need_mark(d, ':');
		skip_value(d);
	} while (!d->wrong && !take_mark(d, ')'));
}

static void skip_directives(struct document *d)
{
	while (!d->wrong && take_mark(d, '@')) {
		need_name(d);
		skip_arguments(d);
	}
}

static void skip_type(struct document *d)
{
	if (!deeper(d))
		return;
	if (take_mark(d, '[')) {
		skip_type(d);
		need_mark(d, ']');
	} else {
		need_name(d);
	}
	take_mark(d, '!');
	d->depth--;
}

static void skip_variables(struct document *d)
{
	if (!take_mark(d, '('))
		return;
	do {
		need_mark(d, '$');
		need_name(d);
		need_mark(d, ':');
		skip_type(d);
		if (take_mark(d, '='))
			skip_value(d);
		skip_directives(d);
	} while (!d->wrong && !take_mark(d, ')'));
}

/* -- selections */

struct asking {
	struct document *d;
	enum graphql_kind kind;
	graphql_field *ask;
	void *context;
	bool allowed;
};

static void skip_selections(struct document *d);

/* The field that stands here; returns what it is called, whatever its alias. */
static struct word take_field(struct document *d)
{
	struct word name = need_name(d);

	if (take_mark(d, ':'))
		name = need_name(d);
	skip_arguments(d);
	skip_directives(d);
	if (is_mark(d, '{'))
		skip_selections(d);
	return name;
}

/* Behind "...": up to the selections of an inline fragment, or all of a spread, whose name is
 * returned. */
static struct word take_spread(struct document *d)
{
	struct word name = { "", 0 };

	if (d->token == TOKEN_NAME && !is_word(d, "on")) {
		name = need_name(d);
		skip_directives(d);
		return name;
	}
	if (is_word(d, "on")) {
		next(d);
		need_name(d);
	}
	skip_directives(d);
	if (!is_mark(d, '{'))
		fail(d, "selections are missing");
	return name;
}

static void skip_selections(struct document *d)
{
	if (!deeper(d))
		return;
	need_mark(d, '{');
	do {
		if (d->token == TOKEN_SPREAD) {
			next(d);
			if (!take_spread(d).n)
				skip_selections(d);
		} else {
			take_field(d);
		}
	} while (!d->wrong && !take_mark(d, '}'));
	d->depth--;
}

static void follow(struct asking *a, const char *selections);

static struct definition *find_fragment(struct document *d, struct word name)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->items[i].kind == GRAPHQL_KINDS && d->items[i].name.n == name.n &&
		    memcmp(d->items[i].name.s, name.s, name.n) == 0)
			return &d->items[i];
	return NULL;
}

/* A spread among the root's selections: those of its fragment are the root's, too. */
static void follow_spread(struct asking *a, struct word name)
{
	struct definition *fragment = find_fragment(a->d, name);
	struct document *d = a->d;
	const char *at = d->at;
	struct word word = d->word;
	uint8_t token = d->token;
	char mark = d->mark;

	if (!fragment)
		fail(d, "a fragment is missing");
	if (!fragment || fragment->followed || !deeper(d))
		return;
	fragment->followed = true;
	follow(a, fragment->selections);
	d->depth--;
	if (d->wrong)
		return;
	d->at = at;
	d->token = token;
	d->mark = mark;
	d->word = word;
}

static void follow_selections(struct asking *a)
{
	struct document *d = a->d;

	if (!deeper(d))
		return;
	need_mark(d, '{');
	do {
		struct word name;

		if (d->token != TOKEN_SPREAD) {
			name = take_field(d);
			a->allowed &= !d->wrong &&
				      (!a->allowed || a->ask(a->context, a->kind, name.s, name.n));
			continue;
		}
		next(d);
		name = take_spread(d);
		if (name.n)
			follow_spread(a, name);
		else
			follow_selections(a);
	} while (!d->wrong && !take_mark(d, '}'));
	d->depth--;
}

static void follow(struct asking *a, const char *selections)
{
	a->d->at = selections;
	next(a->d);
	follow_selections(a);
}

/* -- definitions */

static void add(struct document *d, uint8_t kind, struct word name, const char *selections)
{
	for (unsigned i = 0; i < d->count && !d->wrong; i++) {
		const struct definition *old = &d->items[i];
		bool both = (old->kind == GRAPHQL_KINDS) == (kind == GRAPHQL_KINDS);

		if (both && (!name.n || !old->name.n ||
			     (old->name.n == name.n && memcmp(old->name.s, name.s, name.n) == 0)))
			fail(d, "duplicate definitions, or an anonymous one among others");
	}
	if (d->count == DEFINITIONS_MAX)
		fail(d, "too many definitions");
	if (!d->wrong)
		d->items[d->count++] =
			(struct definition){ .kind = kind, .name = name, .selections = selections };
}

static void read_definition(struct document *d)
{
	struct word name = { "", 0 };
	uint8_t kind = GRAPHQL_QUERY;
	const char *selections;

	if (!is_mark(d, '{')) {
		while (kind < GRAPHQL_KINDS && !is_word(d, graphql_words[kind]))
			kind++;
		if (kind == GRAPHQL_KINDS && !is_word(d, "fragment")) {
			fail(d, "not an operation or fragment");
			return;
		}
		next(d);
		if (kind == GRAPHQL_KINDS && is_word(d, "on"))
			fail(d, "a fragment without a name");
		if (kind == GRAPHQL_KINDS || d->token == TOKEN_NAME)
			name = need_name(d);
		if (kind == GRAPHQL_KINDS && !is_word(d, "on"))
			fail(d, "a fragment without a type");
		if (kind == GRAPHQL_KINDS) {
			next(d);
			need_name(d);
		} else {
			skip_variables(d);
		}
		skip_directives(d);
	}
	selections = d->word.s;
	skip_selections(d);
	add(d, kind, name, selections);
}

static struct definition *find_operation(struct document *d, const char *operation)
{
	struct definition *found = NULL;
	size_t n = operation ? strlen(operation) : 0;

	for (unsigned i = 0; i < d->count && !d->wrong; i++) {
		struct definition *item = &d->items[i];

		if (item->kind == GRAPHQL_KINDS ||
		    (n && (item->name.n != n || memcmp(item->name.s, operation, n) != 0)))
			continue;
		if (found)
			fail(d, "several operations, and none is named");
		found = item;
	}
	if (!found)
		fail(d, "there is no such operation in it");
	return d->wrong ? NULL : found;
}

const char *graphql_read(const char *text, size_t n, const char *operation, graphql_field *ask,
			 void *context, bool *ret_allowed)
{
	struct document d = { .at = text, .end = text + n };
	struct asking a = { .d = &d, .ask = ask, .context = context, .allowed = true };
	struct definition *meant;

	*ret_allowed = false;
	next(&d);
	while (!d.wrong && d.token != TOKEN_END)
		read_definition(&d);
	meant = d.wrong ? NULL : find_operation(&d, operation);
	if (meant) {
		a.kind = (enum graphql_kind)meant->kind;
		d.depth = 0;
		follow(&a, meant->selections);
	}
	*ret_allowed = !d.wrong && a.allowed;
	return d.wrong;
}

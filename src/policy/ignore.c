/*
 * gitignore patterns. In: text that a policy or a project wrote, paths that a walk found. Out: one
 * of three verdicts. Pure: no file, clock or global is touched; runs in the supervisor with the
 * user's rights, on hostile bytes.
 *
 * The reading is git's to the letter, oddities included (tests/unit/ignore_git.py compares): the
 * last pattern that matches decides; a pattern without a slash is about names at any depth, one
 * with a slash about paths from the top; the literal beginning of a pattern is cut off before the
 * rest is matched, so that "a**" + "/b" has its stars at a beginning.
 *
 * No pattern can make the matcher explode. A star only ever goes back to the last "*" of its own
 * segment, and when that is used up to the last "**": earlier ones cannot find what later ones
 * missed. That is at most the product of pattern and path for each segment of the path.
 *
 * A tree has many names and a list few hits. Nearly every pattern ends in a literal component, so
 * patterns are filed by the hash of that component and a name that no pattern ends in costs one
 * look; the others are in one chain of their own. Chains run from the newest pattern to the oldest,
 * as verdicts do.
 *
 * A list may lie over another one that was compiled when ward was built (ignore_internal.h): what
 * is added comes behind all of that, so the lower list is asked about what no pattern of the upper
 * one matches.
 */
#include "policy/ignore_internal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct span {
	const char *at, *end;
};

static bool is_special(char c)
{
	return c == '*' || c == '?' || c == '[' || c == '\\';
}

static uint32_t name_hash(const char *name, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h ^ h >> 16;
}

static const struct {
	const char *name;
	int (*test)(int);
} named_classes[] = {
	{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
	{ "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
	{ "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
};

/* Whether c is in the class called name; -1: there is none of that name. ASCII only, as git
 * does. */
static int in_named_class(const char *name, size_t n, unsigned char c)
{
	for (size_t i = 0; i < ARRAY_LEN(named_classes); i++)
		if (strlen(named_classes[i].name) == n &&
		    memcmp(named_classes[i].name, name, n) == 0)
			return c < 128 && named_classes[i].test(c);
	return -1;
}

/* One "[:name:]" at *p ("[" and ":" are known to be there). Returns as in_named_class(), -2: it is
 * not one after all. */
static int match_named(const char **p, const char *end, unsigned char c)
{
	const char *name = *p + 2, *close = memchr(name, ']', (size_t)(end - name));
	int found;

	if (!close)
		return -1;
	if (close == name || close[-1] != ':')
		return -2;
	found = in_named_class(name, (size_t)(close - 1 - name), c);
	*p = close;
	return found;
}

/* The end of a range "-x" at *p; -1: the pattern ends too early. */
static int range_end(const char **p, const char *end)
{
	++*p;
	if (**p == '\\' && ++*p == end)
		return -1;
	return (unsigned char)**p;
}

/* Matches c against the class that *p points behind the "[" of, and moves *p behind its "]". -1:
 * malformed, which makes the whole pattern match nothing. */
static int match_class(const char **at, const char *end, unsigned char c)
{
	const char *p = *at;
	bool negated = p < end && (*p == '!' || *p == '^'), matched = false;
	int previous = 0, last, named;

	if (negated)
		p++;
	do {
		if (p >= end)
			return -1;
		if (*p == '\\') {
			if (++p == end)
				return -1;
			previous = (unsigned char)*p;
			matched |= c == previous;
		} else if (*p == '-' && previous && p + 1 < end && p[1] != ']') {
			last = range_end(&p, end);
			if (last < 0)
				return -1;
			matched |= c >= previous && c <= last;
			previous = 0;
		} else if (*p == '[' && p + 1 < end && p[1] == ':' &&
			   (named = match_named(&p, end, c)) != -2) {
			if (named < 0)
				return -1;
			matched |= named;
			previous = 0;
		} else {
			previous = (unsigned char)*p;
			matched |= c == previous;
		}
		p++;
	} while (p >= end || *p != ']');
	*at = p + 1;
	return c != '/' && matched != negated;
}

/* Matches the one token at *p (no star) with c, and moves *p behind it. -1: nothing can match this
 * pattern. */
static int match_token(const char **p, const char *end, char c)
{
	char want = *(*p)++;

	switch (want) {
	case '?':
		return c != '/';
	case '[':
		return match_class(p, end, (unsigned char)c);
	case '\\':
		if (*p == end)
			return -1;
		want = *(*p)++;
		return c == want;
	default:
		return c == want;
	}
}

/* Where a failed match goes on: the last "*" of this segment, or the last "**" with a slash behind
 * it. */
struct retry {
	const char *star, *star_text;
	const char *deep, *deep_text;
};

static bool retry(struct retry *r, struct span *p, struct span *t)
{
	const char *slash;

	if (r->star && r->star_text < t->end && *r->star_text != '/') {
		p->at = r->star;
		t->at = ++r->star_text;
		return true;
	}
	r->star = NULL;
	if (!r->deep || r->deep_text >= t->end)
		return false;
	slash = memchr(r->deep_text, '/', (size_t)(t->end - r->deep_text));
	if (!slash)
		return false;
	p->at = r->deep;
	t->at = r->deep_text = slash + 1;
	return true;
}

enum star { STAR_GO_ON, STAR_MATCHED, STAR_FAILED };

/* Takes the run of stars at p->at. */
static enum star take_stars(struct span *p, const struct span *t, const char *start,
			    struct retry *r)
{
	const char *run = p->at, *q = run;
	bool slash, escaped;

	while (q < p->end && *q == '*')
		q++;
	escaped = q + 1 < p->end && q[0] == '\\' && q[1] == '/';
	slash = q < p->end && *q == '/';
	if (q - run > 1 && (run == start || run[-1] == '/') && (q == p->end || slash || escaped)) {
		if (q == p->end)
			return STAR_MATCHED;
		*r = (struct retry){ .deep = q + (escaped ? 2 : 1), .deep_text = t->at };
		p->at = r->deep;
		return escaped ? STAR_FAILED : STAR_GO_ON; /* "\/" wants a slash to be there */
	}
	if (q == p->end && !memchr(t->at, '/', (size_t)(t->end - t->at)))
		return STAR_MATCHED;
	if (q == p->end)
		return STAR_FAILED;
	r->star = q;
	r->star_text = t->at;
	p->at = q;
	return STAR_GO_ON;
}

static bool glob_match(struct span p, struct span t)
{
	const char *start = p.at;
	struct retry r = { 0 };

	for (;;) {
		int matched = 0;

		if (p.at < p.end && *p.at == '*') {
			enum star s = take_stars(&p, &t, start, &r);

			if (s == STAR_MATCHED)
				return true;
			if (s == STAR_GO_ON)
				continue;
			/* behind a last star there is a slash, and no other place of it changes
			 * that */
			r.star = NULL;
		} else if (t.at == t.end) {
			return p.at == p.end; /* later places have even less text */
		} else if (p.at < p.end) {
			matched = match_token(&p.at, p.end, *t.at);
			if (matched < 0)
				return false;
			if (matched && *t.at++ == '/')
				r.star = NULL;
		}
		if (!matched && !retry(&r, &p, &t))
			return false;
	}
}

/* Whether the directory of name is the one that a pattern "**" "/DIR/GLOB" is about. */
static bool lies_in(const char *text, size_t len, struct span path, struct span name)
{
	const char *last = memrchr(text, '/', len), *dir = text + 3;
	size_t n = (size_t)(last - dir), above = (size_t)(name.at - path.at);

	return above > n && memcmp(name.at - 1 - n, dir, n) == 0 &&
	       (above == n + 1 || name.at[-2 - (ptrdiff_t)n] == '/');
}

static bool pattern_matches(const struct ignore *ig, const struct pattern *p, struct span path,
			    struct span name)
{
	const char *text = ig->text.data + p->offset;
	struct span subject = p->flags & NAME_ONLY ? name : path;
	size_t n = (size_t)(subject.end - subject.at);

	if (p->literal > n || memcmp(text, subject.at, p->literal) != 0)
		return false;
	if (p->flags & IN_NAMED && !lies_in(text, p->len, path, name))
		return false;
	if (p->literal == p->len)
		return p->literal == n;
	if (p->flags & ENDS_WITH)
		return n >= p->len - 1 &&
		       memcmp(text + 1, subject.end - (p->len - 1), p->len - 1) == 0;
	if (!(p->flags & NAME_ONLY))
		return glob_match((struct span){ text + p->literal, text + p->len },
				  (struct span){ subject.at + p->literal, subject.end });
	return glob_match((struct span){ text, text + p->len }, subject);
}

static uint64_t byte_bit(char c)
{
	return (uint64_t)1 << ((unsigned char)c & 63);
}

/* Whether a pattern of the general chain may match a name that ends so, in a directory that ends
 * so. Most names need no look. */
static bool may_be_general(const struct ignore *ig, char last, char above)
{
	return ig->lasts & byte_bit(last) || ig->aboves & byte_bit(above);
}

enum ignore_verdict ignore_decide_at(const struct ignore *ig, const char *path, size_t path_len,
				     size_t name_at, bool is_dir)
{
	struct span whole = { path, path + path_len }, name = { path + name_at, path + path_len };
	uint32_t best = CHAIN_END, hash, i;
	char last = path_len ? path[path_len - 1] : '\0',
	     above = name_at >= 2 ? path[name_at - 2] : '\0';

	if (!ig)
		return IGNORE_NONE;
	hash = name_hash(name.at, path_len - name_at);
	for (i = ig->chains[hash % BUCKETS]; i != CHAIN_END && best == CHAIN_END;
	     i = ig->items[i].next)
		if (ig->items[i].hash == hash && (is_dir || !(ig->items[i].flags & MUST_BE_DIR)) &&
		    pattern_matches(ig, &ig->items[i], whole, name))
			best = i;
	for (i = may_be_general(ig, last, above) ? ig->chains[GENERAL] : CHAIN_END;
	     i != CHAIN_END && (best == CHAIN_END || i > best); i = ig->items[i].next)
		if ((!ig->items[i].last || ig->items[i].last == last) &&
		    (!ig->items[i].above || ig->items[i].above == above) &&
		    (is_dir || !(ig->items[i].flags & MUST_BE_DIR)) &&
		    pattern_matches(ig, &ig->items[i], whole, name)) {
			best = i;
			break;
		}
	if (best == CHAIN_END)
		return ignore_decide_at(ig->below, path, path_len, name_at, is_dir);
	return ig->items[best].flags & NEGATIVE ? IGNORE_INCLUDED : IGNORE_EXCLUDED;
}

enum ignore_verdict ignore_decide(const struct ignore *ig, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');

	return ignore_decide_at(ig, path, strlen(path), slash ? (size_t)(slash + 1 - path) : 0,
				is_dir);
}

bool ignore_match(const struct ignore *ig, const char *path, bool is_dir)
{
	return ignore_decide(ig, path, is_dir) == IGNORE_EXCLUDED;
}

/* The chain of a pattern, and its hash: by its last component if nothing but that very name can
 * match it. */
static uint32_t chain_of(struct pattern *p, const char *text)
{
	const char *last = p->flags & NAME_ONLY ? NULL : memrchr(text, '/', p->len);
	const char *name = last ? last + 1 : text;
	size_t n = p->len - (size_t)(name - text);

	if (last && memchr(text, '[', (size_t)(last - text)))
		return GENERAL; /* the slash may be inside a class */
	if (last && p->literal && text[p->literal - 1] != '/' && text[p->literal] == '*')
		return GENERAL; /* "a**" with "/b" behind it matches "ab" too */
	for (size_t i = 0; i < n; i++)
		if (is_special(name[i]))
			return GENERAL;
	p->hash = name_hash(name, n);
	return p->hash % BUCKETS;
}

static bool grow(struct ignore *ig)
{
	uint32_t cap = ig->cap ? ig->cap * 2 : 64;
	struct pattern *items;

	if (ig->count < ig->cap)
		return true;
	if (cap < ig->cap || cap >= CHAIN_END / 2)
		return false;
	items = reallocarray(ig->items, cap, sizeof(*items));
	if (!items)
		return false;
	ig->items = items;
	ig->cap = cap;
	return true;
}

/* "**" "/DIR/GLOB"; a GLOB of "**" would match at any depth. */
static bool is_in_named(const char *text, size_t n)
{
	const char *last = n && text ? memrchr(text, '/', n) : NULL;

	if (!last || n < 4 || memcmp(text, "**/", 3) != 0 || last < text + 4 ||
	    memmem(last, (size_t)(text + n - last), "**", 2) ||
	    memchr(last, '[', (size_t)(text + n - last)))
		return false;
	for (const char *c = text + 3; c < last; c++)
		if (is_special(*c))
			return false;
	return true;
}

/* Adds one line that is neither blank nor a comment, its end trimmed already. */
static int add_pattern(struct ignore *ig, const char *line, size_t n)
{
	struct pattern p = { .next = CHAIN_END };
	const char *text = line;
	uint32_t chain;

	if (n && *text == '!') {
		p.flags |= NEGATIVE;
		text++;
		n--;
	}
	if (n && text[n - 1] == '/') {
		p.flags |= MUST_BE_DIR;
		n--;
	}
	if (!memchr(text, '/', n))
		p.flags |= NAME_ONLY;
	if (n && *text == '/') {
		text++;
		n--;
	}
	while (p.literal < n && !is_special(text[p.literal]))
		p.literal++;
	if (n > 1 && p.flags & NAME_ONLY && *text == '*') {
		size_t i = 1;

		while (i < n && !is_special(text[i]))
			i++;
		if (i == n)
			p.flags |= ENDS_WITH;
	}
	if (n == 0)
		return 0; /* matches no name at all */
	if (!is_special(text[n - 1]) && text[n - 1] != ']')
		p.last = text[n - 1];
	if (is_in_named(text, n)) {
		p.flags |= IN_NAMED;
		p.above = ((const char *)memrchr(text, '/', n))[-1];
	}
	if (ig->text.len > UINT32_MAX / 2 || n > UINT32_MAX / 2 || !grow(ig))
		return -ENOMEM;
	p.offset = (uint32_t)ig->text.len;
	p.len = (uint32_t)n;
	buf_add(&ig->text, text, n);
	if (ig->text.failed)
		return -ENOMEM;
	chain = chain_of(&p, text);
	if (chain == GENERAL && p.last)
		ig->lasts |= byte_bit(p.last);
	else if (chain == GENERAL)
		ig->aboves |= p.above ? byte_bit(p.above) : UINT64_MAX;
	p.next = ig->chains[chain];
	ig->chains[chain] = ig->count;
	ig->items[ig->count++] = p;
	return 0;
}

/* The length of a line without its trailing blanks; one behind a backslash stays. */
static size_t trimmed(const char *line, size_t n)
{
	size_t keep = 0;

	if (n && line[n - 1] != ' ')
		return n;
	for (size_t i = 0; i < n; i++) {
		if (line[i] == '\\') {
			if (++i >= n)
				return n;
			keep = i + 1;
		} else if (line[i] != ' ') {
			keep = i + 1;
		}
	}
	return keep;
}

int ignore_add(struct ignore **ig, const char *text, size_t n)
{
	const char *at = text, *end = text + n;

	if (!*ig || (*ig)->built) {
		struct ignore *own = calloc(1, sizeof(*own));

		if (!own)
			return -ENOMEM;
		own->below = *ig;
		for (size_t i = 0; i <= BUCKETS; i++)
			own->chains[i] = CHAIN_END;
		*ig = own;
	}
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line = at, *stop = newline ? newline : end, *nul;
		int status;

		at = newline ? newline + 1 : end;
		if (line == stop || *line == '#')
			continue;
		if (stop[-1] == '\r')
			stop--;
		nul = memchr(line, '\0', (size_t)(stop - line));
		if (nul)
			stop = nul;
		status = add_pattern(*ig, line, trimmed(line, (size_t)(stop - line)));
		if (status < 0)
			return status;
	}
	return 0;
}

void ignore_free(struct ignore *ig)
{
	if (!ig || ig->built)
		return;
	buf_free(&ig->text);
	free(ig->items);
	free(ig);
}

bool ignore_is_empty(const struct ignore *ig)
{
	return !ig || (!ig->count && ignore_is_empty(ig->below));
}

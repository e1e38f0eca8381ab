/*
 * What may lie in a git directory. In: a path. Out: the row of tables/gitdata.def that names it.
 * Pure; run by the importer and the sweep, in the supervisor; fuzzed (fuzz/git_judge.c).
 *
 * modules/NAME is a repository again, and NAME may have slashes: the shortest name with which a row
 * fits what follows is taken. Only where no row fits is the name extended, and never by a component
 * below which a repository keeps its own files
 * ("a/hooks" would lie in a's hooks). worktrees/ID has rows of its own.
 *
 * A directory may be there if a row that keeps something reaches into it: git makes no other.
 */
#include "rules/git_path.h"

#include <string.h>
#include <strings.h>

#include "rules/git_ref.h"

#define DEPTH_MAX 8 /* submodules within submodules */

enum { WHERE_M = 1, WHERE_W = 2, WHERE_A = 3 };
#define GIT_FORM_NONE GIT_FORM_UNKNOWN

static const struct row {
	unsigned where;
	const char *pattern;
	enum git_form form;
	enum git_treat treat;
	const char *why;
} rows[] = {
#define GITDATA(where, pattern, form, treat, why)                                                  \
	{ WHERE_##where, pattern, GIT_FORM_##form, GIT_TREAT_##treat, why },
#include "gitdata.def"
};

static const char unknown[] = "is not a file that git keeps in its directory";

#define ALL SIZE_MAX
#define ANY SIZE_MAX
#define SMALL ((size_t)64 << 10)
#define TEXT ((size_t)16 << 20)
#define MUCH ((size_t)1 << 30)

static const struct {
	size_t needs, max;
} forms[] = {
	{ 0, 0 },
#define GIT_FORM(name, needs, max, what) { needs, max },
#include "gitforms.def"
};

size_t git_form_needs(enum git_form form)
{
	return forms[form].needs;
}

size_t git_form_max(enum git_form form)
{
	return forms[form].max;
}

/* A path and how far it has been read. */
struct cursor {
	const char *all, *at; /* at is "" at the end, otherwise the start of a component */
	size_t hex;           /* digits of an object id */
};

static size_t component(const char *s)
{
	return strcspn(s, "/");
}

static const char *next_component(const char *s)
{
	s += component(s);
	return *s == '/' ? s + 1 : s;
}

/* The component before the one at `at`; NULL: there is none. */
static const char *component_before(const char *all, const char *at)
{
	if (at == all)
		return NULL;
	for (at--; at > all && at[-1] != '/';)
		at--;
	return at;
}

/* Whether n digits begin with those of the two components before, as git-lfs names its objects. */
static bool is_lfs(const struct cursor *c, const char *digits, size_t n)
{
	const char *second = component_before(c->all, c->at);
	const char *first = second ? component_before(c->all, second) : NULL;

	return first && n == 64 && git_is_hex(digits, n) && strncmp(first, digits, 2) == 0 &&
	       strncmp(second, digits + 2, 2) == 0;
}

/* How many characters at s a class of the pattern takes; 0: it does not fit. */
static size_t take_class(const struct cursor *c, char class, const char *s, size_t n)
{
	size_t digits = 0;

	switch (class) {
	case 'H':
		return n >= c->hex && git_is_hex(s, c->hex) ? c->hex : 0;
	case 'h':
		return n == c->hex - 2 && git_is_hex(s, n) ? n : 0;
	case 'x':
		return n == 2 && git_is_hex(s, n) ? n : 0;
	case 'L':
		return is_lfs(c, s, n) ? n : 0;
	case 'n':
		while (digits < n && s[digits] >= '0' && s[digits] <= '9')
			digits++;
		return digits;
	default:
		return 0;
	}
}

/* Whether one component (n characters at s) fits one of the pattern (pn at p). A '*' stands at one
 * place only, at most. */
static bool fits_component(const struct cursor *c, const char *p, size_t pn, const char *s,
			   size_t n)
{
	const char *star = memchr(p, '*', pn);

	if (star) {
		size_t before = (size_t)(star - p), after = pn - before - 1;

		return n > before + after && memcmp(p, s, before) == 0 &&
		       memcmp(star + 1, s + n - after, after) == 0;
	}
	while (pn && n) {
		size_t skip = 1, taken = *p == *s;

		if (*p == '%') {
			skip = 2;
			taken = take_class(c, p[1], s, n);
		}
		if (!taken)
			return false;
		p += skip;
		pn -= skip;
		s += taken;
		n -= taken;
	}
	return !pn && !n;
}

static bool all_ref_components(const char *s)
{
	for (; *s; s = next_component(s))
		if (!git_ref_component_ok(s, component(s)))
			return false;
	return true;
}

enum fit { FIT_NOT, FIT_BEFORE, FIT_WHOLE };

/* How a path fits a pattern: WHOLE, or BEFORE where it ends at a directory that the pattern goes on
 * below. */
static enum fit fit(const char *p, struct cursor c)
{
	while (*p && *c.at) {
		size_t pn = component(p), n = component(c.at);

		if (pn == 2 && memcmp(p, "**", 2) == 0) {
			if (!p[2])
				return FIT_WHOLE;
			for (const char *from = c.at; *from; from = next_component(from)) {
				c.at = from;
				if (fit(p + 3, c) == FIT_WHOLE)
					return FIT_WHOLE;
			}
			return FIT_NOT;
		}
		if (pn == 2 && memcmp(p, "%r", 2) == 0)
			return all_ref_components(c.at) ? FIT_WHOLE : FIT_NOT;
		if (!fits_component(&c, p, pn, c.at, n))
			return FIT_NOT;
		if (p[pn] == '/' && !p[pn + 1]) /* a directory's row */
			return c.at[n] ? FIT_NOT : FIT_BEFORE;
		p = next_component(p);
		c.at = next_component(c.at);
	}
	if (*c.at)
		return FIT_NOT;
	return *p && strcmp(p, "**") != 0 ? FIT_BEFORE : FIT_WHOLE;
}

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);

	return n >= t && strcmp(s + n - t, tail) == 0;
}

/* Whether a row admits a directory, or refuses it; *ret_why is the reason. */
static bool row_has_dir(const struct row *r, struct cursor c, const char **ret_why)
{
	enum fit f;

	if (strncmp(r->pattern, "**", 2) == 0)
		return false; /* a file of that name may be anywhere, which admits no directory */
	f = fit(r->pattern, c);
	if (r->treat == GIT_TREAT_REFUSE) {
		if (f == FIT_WHOLE)
			*ret_why = r->why;
		return *ret_why != NULL;
	}
	return f == FIT_BEFORE ||
	       (f == FIT_WHOLE && (ends_with(r->pattern, "%r") || ends_with(r->pattern, "/**")));
}

/* Looks up a path that is not below modules or worktrees. */
static struct git_place find_row(const char *path, enum git_dir_kind kind, unsigned hash, bool dir)
{
	unsigned where = kind == GIT_DIR_WORKTREE ? WHERE_W : WHERE_M;
	struct git_place place = { .kind = kind, .treat = GIT_TREAT_REFUSE, .why = unknown };
	struct cursor c = { .all = path, .at = path, .hex = (size_t)hash * 2 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const char *why = NULL;

		if (!(r->where & where))
			continue;
		if (dir && row_has_dir(r, c, &why)) {
			place.treat = why ? GIT_TREAT_REFUSE : GIT_TREAT_ADMIT;
			place.why = why ? why : "";
			return place;
		}
		if (!dir && fit(r->pattern, c) == FIT_WHOLE) {
			place.form = r->form;
			place.treat = r->treat;
			place.why = r->why;
			return place;
		}
	}
	return place;
}

static bool is_barred(const char *s, size_t n)
{
	static const char *const names[] = { "hooks", "info",    "objects",  "refs",
					     "logs",  "modules", "worktrees" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == n && strncasecmp(names[i], s, n) == 0)
			return true;
	return false;
}

static bool module_component_ok(const char *s, size_t n)
{
	if (!n || *s == '-' || (n == 1 && *s == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return !git_name_is_dotgit(s, n);
}

bool git_module_name_ok(const char *name, size_t n)
{
	if (!n || n > 1024)
		return false;
	for (size_t at = 0; at <= n;) {
		const char *stop = at < n ? memchr(name + at, '/', n - at) : NULL;
		size_t len = stop ? (size_t)(stop - name) - at : n - at;

		if (!module_component_ok(name + at, len) || (at && is_barred(name + at, len)))
			return false;
		at += len + 1;
	}
	return true;
}

bool git_worktree_id_ok(const char *id, size_t n)
{
	return n <= 255 && git_ref_component_ok(id, n) && !git_name_is_dotgit(id, n);
}

static struct git_place find(const char *path, enum git_dir_kind kind, unsigned hash, bool dir,
			     unsigned depth);

/* A path below modules/: rest is what follows. */
static struct git_place find_in_modules(const char *rest, unsigned hash, bool dir, unsigned depth)
{
	struct git_place place = { .kind = GIT_DIR_MODULE,
				   .treat = GIT_TREAT_REFUSE,
				   .why = unknown };

	for (const char *at = rest; *at; at = next_component(at)) {
		if (at != rest) {
			place = find(at, GIT_DIR_MODULE, hash, dir, depth + 1);
			place.inner += (size_t)(at - rest);
			if (place.treat != GIT_TREAT_REFUSE || place.why != unknown ||
			    is_barred(at, component(at)))
				return place;
		}
		if (!module_component_ok(at, component(at))) {
			place.why = "is not below a name that git gives a submodule's repository";
			return place;
		}
	}
	place.treat =
		dir ? GIT_TREAT_ADMIT : GIT_TREAT_REFUSE; /* a part of a name is a directory */
	place.inner = 0;
	return place;
}

static struct git_place find_in_worktrees(const char *rest, unsigned hash, bool dir, unsigned depth)
{
	struct git_place place = { .kind = GIT_DIR_WORKTREE,
				   .treat = GIT_TREAT_REFUSE,
				   .why = unknown };
	const char *inner = next_component(rest);

	if (!*rest || (!*inner && git_worktree_id_ok(rest, component(rest))))
		place.treat = dir ? GIT_TREAT_ADMIT : GIT_TREAT_REFUSE;
	else if (!git_worktree_id_ok(rest, component(rest)))
		place.why = "is not below a name that git gives a worktree";
	else {
		place = find(inner, GIT_DIR_WORKTREE, hash, dir, depth + 1);
		place.inner += (size_t)(inner - rest);
	}
	return place;
}

static bool is_in(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || !path[n]);
}

static struct git_place find(const char *path, enum git_dir_kind kind, unsigned hash, bool dir,
			     unsigned depth)
{
	struct git_place place = { .kind = kind,
				   .treat = GIT_TREAT_REFUSE,
				   .why = "is in too many nested repositories" };
	const char *rest = next_component(path);

	if (depth > DEPTH_MAX)
		return place;
	if (is_in(path, "modules"))
		place = find_in_modules(rest, hash, dir, depth);
	else if (is_in(path, "worktrees") && kind != GIT_DIR_WORKTREE)
		place = find_in_worktrees(rest, hash, dir, depth);
	else
		return find_row(path, kind, hash, dir);
	place.inner += (size_t)(rest - path);
	return place;
}

struct git_place git_path_find(const char *path, enum git_dir_kind kind, unsigned hash, bool dir)
{
	struct git_place place = { .kind = kind, .treat = GIT_TREAT_REFUSE, .why = unknown };
	size_t n = strlen(path);

	if (hash != GIT_SHA1 && hash != GIT_SHA256)
		return place;
	if (!n) {
		place.treat = dir ? GIT_TREAT_ADMIT : GIT_TREAT_REFUSE;
		return place;
	}
	if (*path == '/' || path[n - 1] == '/' || strstr(path, "//"))
		return place;
	return find(path, kind, hash, dir, 0);
}

/*
 * What rules and grants may say about HTTP. In: one entry of a list as it was written. Out: whether
 * it is one, else what was expected; and the form in which the gateway compares it. What an entry
 * means is the gateway's business. Pure functions, no rights.
 */
#include "policy/policy_http.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_value.h"

static bool is_token(const char *s, size_t n)
{
	static const char more[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr(more, s[i]))
			return false;
	return n > 0;
}

bool http_is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
			return false;
	return true;
}

static bool fits_method(const char *s)
{
	return is_token(s, strlen(s)) && strlen(s) <= 32;
}

/* A backslash stands only in front of a star that is meant. */
static bool escapes_stars(const char *s)
{
	while ((s = strchr(s, '\\')))
		if (*++s != '*')
			return false;
	return true;
}

static bool fits_path(const char *s)
{
	return (*s == '/' || *s == '*') && http_is_printable(s) && !strpbrk(s, " ?#") &&
	       escapes_stars(s);
}

/* NAME stands for NAME=*. */
static bool fits_parameter(const char *s)
{
	return *s != '=' && http_is_printable(s) && !strpbrk(s, " &#");
}

static bool fits_condition(const char *s)
{
	const char *colon = strchr(s, ':');

	return colon && is_token(s, (size_t)(colon - s)) && http_is_printable(colon);
}

static bool fits_media(const char *s)
{
	return http_is_printable(s) && !strpbrk(s, " ;,");
}

/* OPERATION, OPERATION:FIELD, or the word for queries that the server keeps. */
static bool fits_graphql(const char *s)
{
	static const char words[][16] = { "query", "mutation", "subscription" };
	size_t n = strcspn(s, ":");

	if (strcmp(s, "persisted") == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (n == strlen(words[i]) && memcmp(s, words[i], n) == 0)
			return !s[n] ||
			       (s[n + 1] &&
				strspn(s + n + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
						  "WXYZ0123456789_*") == strlen(s + n + 1));
	return false;
}

static bool fits_rpc(const char *s)
{
	size_t n = strcspn(s, ":");

	return n && http_is_printable(s) && !strchr(s, ' ') && (!s[n] || s[n + 1]);
}

static bool fits_git(const char *s)
{
	return schema_word("fetch|push|force|delete|options", s, strlen(s), &(unsigned){ 0 });
}

static bool fits_repository(const char *s)
{
	return fits_path(s) && strcmp(s, "/") != 0;
}

static bool fits_ref(const char *s)
{
	return (strncmp(s, "refs/", 5) == 0 || strcmp(s, "*") == 0) && http_is_printable(s) &&
	       !strpbrk(s, " ~^:?[") && escapes_stars(s) && !strstr(s, "..");
}

static const struct {
	const char *shape;
	bool (*fits)(const char *text);
	/* words: what it may begin with, for the nearest one */
	const char *expected, *hint, *words;
} rows[] = {
	{ "method", fits_method, "a method such as GET", NULL, NULL },
	{ "path", fits_path,
	  "a path that begins with / or *, without ? and #, with \\* for a literal star", NULL,
	  NULL },
	{ "parameter", fits_parameter, "NAME or NAME=PATTERN", NULL, NULL },
	{ "condition", fits_condition, "\"Name: PATTERN\"", NULL, NULL },
	{ "media", fits_media, "a media type such as application/json", NULL, NULL },
	{ "graphql", fits_graphql,
	  "query, mutation or subscription, with or without :FIELD, or persisted", NULL,
	  "query|mutation|subscription|persisted" },
	{ "json_rpc", fits_rpc, "a method, or METHOD:NAME, such as tools/call:search", NULL, NULL },
	{ "git", fits_git, "fetch, push, force, delete or options", NULL,
	  "fetch|push|force|delete|options" },
	{ "repository", fits_repository, "the path of a repository such as /team/project", NULL,
	  NULL },
	{ "ref", fits_ref, "a full name such as refs/heads/agent/*",
	  "a branch is refs/heads/NAME, a tag is refs/tags/NAME", NULL },
};

/* "did you mean ...?" for the word that an entry begins with; static text. */
static const char *nearest(const char *words, const char *text)
{
	static const struct {
		const char *word, *hint;
	} hints[] = { { "query", "did you mean \"query\"?" },
		      { "mutation", "did you mean \"mutation\"?" },
		      { "subscription", "did you mean \"subscription\"?" },
		      { "persisted", "did you mean \"persisted\"?" },
		      { "fetch", "did you mean \"fetch\"?" },
		      { "push", "did you mean \"push\"?" },
		      { "force", "did you mean \"force\"?" },
		      { "delete", "did you mean \"delete\"?" },
		      { "options", "did you mean \"options\"?" } };
	char word[32];
	size_t n = strcspn(text, ":");
	unsigned distance = UINT_MAX;
	const char *best = NULL;

	snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), text);
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (schema_word(words, hints[i].word, strlen(hints[i].word), &(unsigned){ 0 }))
			text_nearest(word, hints[i].word, &best, &distance);
	for (size_t i = 0; best && distance && i < ARRAY_LEN(hints); i++)
		if (hints[i].word == best)
			return hints[i].hint;
	return NULL;
}

bool http_shape(const char *shape, const char *text, const char **ret_expected,
		const char **ret_hint)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].shape, shape) != 0)
			continue;
		*ret_expected = rows[i].expected;
		if (*text && rows[i].fits(text))
			return true;
		*ret_hint = rows[i].words ? nearest(rows[i].words, text) : rows[i].hint;
		return false;
	}
	return true;
}

void http_canonical(const char *shape, char *text)
{
	size_t n = strlen(text);
	char *colon = strchr(text, ':');

	if (strcmp(shape, "method") == 0) {
		for (char *c = text; *c; c++)
			*c = (char)toupper((unsigned char)*c);
	} else if (strcmp(shape, "media") == 0) {
		for (char *c = text; *c; c++)
			*c = (char)tolower((unsigned char)*c);
	} else if (strcmp(shape, "condition") == 0 &&
		   colon) { /* "Name: pattern" becomes "name:pattern" */
		char *value = colon + 1 + strspn(colon + 1, " ");

		for (char *c = text; c < colon; c++)
			*c = (char)tolower((unsigned char)*c);
		memmove(colon + 1, value, strlen(value) + 1);
	} else if (strcmp(shape, "repository") == 0 && n > 5 && strcmp(text + n - 4, ".git") == 0) {
		text[n - 4] = '\0';
	}
}

/* -- what goes together */

static void refuse(struct reader *r, const char *path, const struct node *n, const char *hint,
		   const char *why)
{
	reader_error(r, (struct place){ n->key_line, n->key_column }, hint, "%s.%s: %s", path,
		     n->key, why);
}

void http_check_rule(struct reader *r, const char *path, const struct node *map)
{
	static const char *const bodies[] = { "graphql", "json_rpc", "git" }, *const parts[] = {
		"repositories", "refs"
	};
	const struct node *git = node_get(map, "git"), *first = NULL, *n;
	bool push = false;

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		n = node_get(map, bodies[i]);
		if (n && first)
			refuse(r, path, n, "write two rules for the host, with paths",
			       "a rule has one of graphql, json_rpc and git");
		if (n && n->kind == NODE_LIST && !n->first)
			refuse(r, path, n, "list what is allowed, or remove the key",
			       "an empty list has no effect");
		first = first ? first : n;
	}
	for (const struct node *c = git ? git->first : NULL; c; c = c->next)
		push |= c->text && strcmp(c->text, "fetch") != 0;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		n = node_get(map, parts[i]);
		if (n && !git)
			refuse(r, path, n, "add git: [fetch] or git: [fetch, push]",
			       "has no effect without git");
	}
	n = node_get(map, "waf");
	if (n && first && n->text && strcmp(n->text, "off") != 0)
		refuse(r, path, n, "remove waf: these rules parse strictly anyway",
		       "cannot be combined with graphql, json_rpc and git");
	n = node_get(map, "refs");
	if (n && git && !push)
		refuse(r, path, n, "write git: [fetch, push]",
		       "restricts pushes, but the rule does not allow push");
}

/*
 * Command lines of guarded programs. In: a request that a process of the sandbox sent
 * (approve/command_read.h), rules of the policy. Out: what the rules say about it. The supervisor
 * decides on its own copy, shows that copy, and has ward-init start it: there is nothing that
 * changes between the three. Pure. Fuzzed (fuzz/command_rule.c).
 */
#include "rules/command_rule.h"

#include <string.h>

#include "rules/http_path.h"

/* -- patterns */

bool command_is_pattern(const char *pattern)
{
	size_t n = strlen(pattern);

	for (const char *c = pattern; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return !n || (pattern[0] != ' ' && pattern[n - 1] != ' ' && !strstr(pattern, "  "));
}

bool command_matches(const char *pattern, const struct command_said *said)
{
	const char *word = said->words + strlen(said->words) + 1;

	if (!*pattern)
		return true;
	for (size_t i = 1; *pattern; i++) {
		size_t n = strcspn(pattern, " ");
		bool last = !pattern[n];

		if (last && n == 1 && *pattern == '*')
			return true;
		if (i == said->word_count || !http_glob(pattern, n, word, strlen(word)))
			return false;
		if (last)
			return i + 1 == said->word_count;
		pattern += n + 1;
		word += strlen(word) + 1;
	}
	return false;
}

/* What stands behind the kind; NULL: it is a rule of another one. */
static const char *pattern_of(const char *rule, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(rule, kind, n) == 0 ? rule + n : NULL;
}

enum command_verdict command_decide(const struct strv *rules, enum command_verdict otherwise,
				    const struct command_said *said, const char **ret_rule)
{
	static const struct {
		const char *kind;
		enum command_verdict verdict;
	} kinds[] = { { "deny ", COMMAND_DENY },
		      { "ask ", COMMAND_ASK },
		      { "allow ", COMMAND_ALLOW } };

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < rules->len; i++) {
			const char *pattern = pattern_of(rules->items[i], kinds[k].kind);

			if (pattern && command_matches(pattern, said)) {
				*ret_rule = rules->items[i];
				return kinds[k].verdict;
			}
		}
	*ret_rule = NULL;
	return otherwise;
}

/* -- as a person reads it */

static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_@%+=:,./-";

	return *word && word[strspn(word, plain)] == '\0';
}

void command_text(const struct command_said *said, struct buf *out)
{
	const char *word = said->words;

	for (size_t i = 0; i < said->word_count; i++, word += strlen(word) + 1) {
		/* what it is called is its own choice: which program it is stands in front */
		const char *text = i ? word : said->program;

		buf_puts(out, i ? " " : "");
		if (is_plain(text)) {
			buf_puts(out, text);
			continue;
		}
		buf_puts(out, "'");
		for (const char *c = text; *c; c++)
			if (*c == '\'')
				buf_puts(out, "'\\''");
			else
				buf_add(out, c, 1);
		buf_puts(out, "'");
	}
}

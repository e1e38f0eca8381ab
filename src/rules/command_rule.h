/*
 * Which command lines of a guarded program (process.commands) may run: patterns of words.
 * Pure functions over untrusted bytes. Fuzzed (fuzz/command_rule.c).
 */
#ifndef WARD_RULES_COMMAND_RULE_H
#define WARD_RULES_COMMAND_RULE_H

#include "base/buf.h"

enum command_verdict { COMMAND_ALLOW, COMMAND_ASK, COMMAND_DENY };

/* A request that was checked; everything points into its bytes. */
struct command_said {
	const char *program; /* its path inside */
	const char *words;   /* count of them, each ended by NUL; the first is argv[0] */
	size_t word_count, words_len;
	const char *variables; /* NAME=VALUE, only names of command_keeps() */
	size_t variable_count, variables_len;
};

/* Whether the words behind the program's name are those of the pattern: words with one blank
 * between them. * stands for any characters of one word, alone at the end for any more words, also
 * none; \* is a star. "": any words. */
bool command_matches(const char *pattern, const struct command_said *said);
/* What the rules of a program ("allow PATTERN", "ask PATTERN", "deny PATTERN") say about a command
 * line: a deny that matches, else an ask, else an allow; what none matches is `otherwise`.
 * *ret_rule: the rule, NULL: none. */
enum command_verdict command_decide(const struct strv *rules, enum command_verdict otherwise,
				    const struct command_said *said, const char **ret_rule);
/* Whether a pattern can be one: no empty words. */
bool command_is_pattern(const char *pattern);
/* The command line as a person reads it: words in quotes where they need them. */
void command_text(const struct command_said *said, struct buf *out);

#endif

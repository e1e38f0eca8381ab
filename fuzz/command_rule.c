/*
 * Fuzzes command lines of guarded programs: a request, and behind its end a pattern. What is read
 * stays within its bytes; a plain match agrees with a slow one.
 */
#include <assert.h>
#include <string.h>

#include "approve/command_read.h"
#include "approve/show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* * within one word, \* a star: by trying everything. */
static bool slow(const char *p, size_t n, const char *s, size_t left)
{
	if (!n)
		return !left;
	if (n >= 2 && p[0] == '\\' && p[1] == '*')
		return left && s[0] == '*' && slow(p + 2, n - 2, s + 1, left - 1);
	if (p[0] == '*') {
		for (size_t i = 0; i <= left; i++)
			if (slow(p + 1, n - 1, s + i, left - i))
				return true;
		return false;
	}
	return left && p[0] == s[0] && slow(p + 1, n - 1, s + 1, left - 1);
}

static bool slow_match(const char *pattern, const struct command_said *said)
{
	const char *word = said->words + strlen(said->words) + 1;
	size_t i = 1;

	if (!*pattern)
		return true;
	for (;; i++) {
		size_t n = strcspn(pattern, " ");

		if (!pattern[n] && n == 1 && *pattern == '*')
			return true;
		if (i == said->word_count || !slow(pattern, n, word, strlen(word)))
			return false;
		if (!pattern[n])
			return i + 1 == said->word_count;
		pattern += n + 1;
		word += strlen(word) + 1;
	}
}

static void check(const struct command_said *said, const char *pattern)
{
	auto_strv rules = { 0 };
	const char *rule = NULL;
	bool found;

	if (!command_is_pattern(pattern))
		return;
	found = command_matches(pattern, said);
	if (strlen(pattern) < 24 && said->words_len < 64)
		assert(found == slow_match(pattern, said));
	strv_addf(&rules, "allow %s", pattern);
	strv_addf(&rules, "ask %s", pattern);
	if (rules.failed)
		return;
	assert(command_decide(&rules, COMMAND_DENY, said, &rule) ==
	       (found ? COMMAND_ASK : COMMAND_DENY));
	assert(!found == !rule);
}

static bool is_shown(const char *text, size_t cap)
{
	size_t n = strnlen(text, cap);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return n < cap;
}

static bool begins_with_label(const char *line)
{
	static const char *const labels[] = {
		"warning: ",       "words go on: ",    "directory: ",      "standard input: ",
		"standard output", "standard error: ", "a yes for the run"
	};

	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (strncmp(line, labels[i], strlen(labels[i])) == 0)
			return true;
	return !*line;
}

/* Nothing in a question acts on a terminal or looks like another line, and what is not shown whole
 * is said to be. */
static void check_shown(const struct command_said *said)
{
	struct command_place place = { { "pipe:[1]", "/o", "/o", "/a\033[1m/dir" },
				       { "1:1", "1:2", "1:2", "1:4" } };
	struct question q, other;

	show_command(said, &place, "ask *", 1, &q);
	place.where[0] = "pipe:[2]"; /* another question, which a yes for the run covers */
	show_command(said, &place, "ask *", 1, &other);
	assert(memcmp(q.exact, other.exact, sizeof(q.exact)) != 0);
	assert(memcmp(q.like, other.like, sizeof(q.like)) == 0);
	place.exact[1] = "1:3";
	show_command(said, &place, "ask *", 1, &other);
	assert(memcmp(q.like, other.like, sizeof(q.like)) != 0);
	assert(is_shown(q.subject, sizeof(q.subject)) && is_shown(q.rule, sizeof(q.rule)));
	for (size_t i = 0; i < QUESTION_DETAILS_MAX; i++)
		assert(is_shown(q.details[i], sizeof(q.details[i])) &&
		       begins_with_label(q.details[i]));
	assert(*q.subject == '/' || *q.subject == '\'' || *q.subject == '\\');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t bytes[4096];
	struct command_message m = { COMMAND_MAGIC, COMMAND_START, 0, 0 };
	struct command_said said;
	char pattern[256];
	auto_buf text = { 0 };
	size_t len;

	if (n < 3 || n > 2048)
		return 0;
	len = data[2] < n - 3 ? data[2] : n - 3;
	if (len >= sizeof(pattern))
		return 0;
	memcpy(pattern, data + 3, len);
	pattern[len] = '\0';
	m.a = data[0] % 8;
	m.b = data[1] % 4;
	memcpy(bytes, &m, sizeof(m));
	memcpy(bytes + sizeof(m), data + 3 + len, n - 3 - len);
	if (command_read(bytes, sizeof(m) + n - 3 - len, &said)) {
		const char *end = (const char *)bytes + sizeof(m) + n - 3 - len;

		assert(said.words + said.words_len == said.variables);
		assert(said.variables + said.variables_len == end);
		check(&said, pattern);
		command_text(&said, &text);
		check_shown(&said);
	}
	(void)command_read(data, n, &said);
	return 0;
}

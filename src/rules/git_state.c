/*
 * State files. In: the bytes of what merge, rebase, am, cherry-pick, revert and bisect keep while
 * they are under way. Out: whether they have the form in which git writes them. Pure; run by the
 * importer and the sweep, in the supervisor; fuzzed (fuzz/git_judge.c).
 *
 * `git rebase --continue` runs the "exec" lines of a todo list, even where no rebase ever ran, and
 * hands options from other files to programs. So a todo list has only commands of a table, options
 * are words of tables, and the rest are ids, names, numbers and text. Text may say anything: it
 * becomes a commit's message, which nothing interprets.
 */
#include "rules/git_state.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "rules/git_config.h"
#include "rules/git_ref.h"

/* Text and how far it has been read. */
struct text {
	const char *at, *end;
};

/* The next line without its newline; the last one may lack it. NULL: there is none. */
static const char *next_line(struct text *t, size_t *ret_n)
{
	const char *line = t->at, *stop;

	if (line == t->end)
		return NULL;
	stop = memchr(line, '\n', (size_t)(t->end - line));
	*ret_n = (size_t)((stop ? stop : t->end) - line);
	t->at = stop ? stop + 1 : t->end;
	return line;
}

static bool has_control(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
			return true;
	return false;
}

static bool is_word_in(const char *s, size_t n, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == n && memcmp(words[i], s, n) == 0)
			return true;
	return false;
}

bool git_text_ok(const uint8_t *bytes, size_t n)
{
	return !n || !memchr(bytes, '\0', n);
}

/* One line with a newline at its end, which must be there; *n is its length without it. */
static bool one_line(const char *s, size_t *n)
{
	if (!*n || s[*n - 1] != '\n')
		return false;
	--*n;
	return !memchr(s, '\n', *n) && !has_control(s, *n);
}

static bool is_short_id(const char *s, size_t n)
{
	return n >= 4 && n <= 64 && git_is_hex(s, n);
}

/* What the words behind a command of a todo list are. */
enum args { ARGS_NONE, ARGS_COMMIT, ARGS_FIXUP, ARGS_LABEL, ARGS_MERGE, ARGS_REF };

static const struct {
	const char *name;
	char letter;
	enum args args;
} commands[] = {
	{ "pick", 'p', ARGS_COMMIT },    { "revert", 0, ARGS_COMMIT },
	{ "edit", 'e', ARGS_COMMIT },    { "reword", 'r', ARGS_COMMIT },
	{ "squash", 's', ARGS_COMMIT },  { "fixup", 'f', ARGS_FIXUP },
	{ "drop", 'd', ARGS_COMMIT },    { "break", 'b', ARGS_NONE },
	{ "noop", 0, ARGS_NONE },        { "label", 'l', ARGS_LABEL },
	{ "reset", 't', ARGS_LABEL },    { "merge", 'm', ARGS_MERGE },
	{ "update-ref", 'u', ARGS_REF },
};

/* Takes a word and the blanks behind it. */
static size_t take_word(const char **s, size_t *n, const char **ret)
{
	size_t len = 0;

	while (len < *n && (*s)[len] != ' ' && (*s)[len] != '\t')
		len++;
	*ret = *s;
	*s += len;
	*n -= len;
	while (*n && (**s == ' ' || **s == '\t')) {
		++*s;
		--*n;
	}
	return len;
}

/* The option -C or -c in front of a commit, where there is one. */
static void skip_option(const char **s, size_t *n)
{
	const char *word;

	if (*n > 3 && (*s)[0] == '-' && ((*s)[1] == 'C' || (*s)[1] == 'c') && (*s)[2] == ' ')
		take_word(s, n, &word);
}

static bool is_label(const char *s, size_t n)
{
	auto_buf name = { 0 };

	buf_puts(&name, "refs/rewritten/");
	buf_add(&name, s, n);
	return !name.failed && git_ref_name_ok(name.data, name.len);
}

/* "[-C ID] LABEL... [# SUBJECT]" */
static bool merge_ok(const char *s, size_t n)
{
	const char *word;
	size_t len;

	if (n && *s == '-') {
		skip_option(&s, &n);
		len = take_word(&s, &n, &word);
		if (!is_short_id(word, len))
			return false;
	}
	for (bool some = false; n; some = true) {
		len = take_word(&s, &n, &word);
		if (len == 1 && *word == '#')
			return some;
		if (!is_label(word, len))
			return false;
	}
	return true;
}

static bool args_ok(enum args args, const char *s, size_t n)
{
	const char *word;
	size_t len;

	switch (args) {
	case ARGS_NONE:
		return !n || *s == '#';
	case ARGS_FIXUP:
		skip_option(&s, &n);
		len = take_word(&s, &n, &word);
		return is_short_id(word, len);
	case ARGS_COMMIT:
		len = take_word(&s, &n, &word);
		return is_short_id(word, len);
	case ARGS_LABEL:
		if (n >= 10 && memcmp(s, "[new root]", 10) == 0)
			return true;
		len = take_word(&s, &n, &word);
		return is_label(word, len) && (!n || *s == '#');
	case ARGS_MERGE:
		return merge_ok(s, n);
	case ARGS_REF:
		return git_ref_name_ok(s, n);
	}
	return false;
}

static const char *todo_line(const char *s, size_t n)
{
	const char *word;
	size_t len;

	if (has_control(s, n))
		return "a todo list with a control character";
	while (n && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	if (!n || *s == '#')
		return NULL;
	len = take_word(&s, &n, &word);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if ((strlen(commands[i].name) == len && memcmp(commands[i].name, word, len) == 0) ||
		    (len == 1 && *word == commands[i].letter))
			return args_ok(commands[i].args, s, n) ? NULL
							       : "a todo list with a command that "
								 "git does not write like this";
	return (len == 1 && *word == 'x') || (len == 4 && memcmp(word, "exec", 4) == 0)
		       ? "a todo list that runs a program (exec)"
		       : "a todo list with a command that ward does not know";
}

const char *git_todo_next_refused(const uint8_t *bytes, size_t n, size_t *at, size_t *ret_len)
{
	struct text t = { .at = (const char *)bytes + *at, .end = (const char *)bytes + n };
	const char *line;

	while ((line = next_line(&t, ret_len)))
		if (todo_line(line, *ret_len))
			break;
	*at = (size_t)(t.at - (const char *)bytes);
	return line;
}

const char *git_todo_refused(const uint8_t *bytes, size_t n, unsigned hash)
{
	size_t at = 0, len = 0;
	const char *line = git_todo_next_refused(bytes, n, &at, &len);

	(void)hash; /* ids may be abbreviated */
	return line ? todo_line(line, len) : NULL;
}

/* "NAME='TEXT'", where a quote in TEXT is written '\'' and an exclamation mark may be '\!'. */
static bool author_line(const char *s, size_t n, const char *name)
{
	size_t at = strlen(name);

	if (n < at + 2 || memcmp(s, name, at) != 0 || s[at] != '\'' || has_control(s, n))
		return false;
	for (at++; at < n; at++) {
		if (s[at] != '\'')
			continue;
		if (at + 1 == n)
			return true;
		if (n - at < 4 || s[at + 1] != '\\' || (s[at + 2] != '\'' && s[at + 2] != '!') ||
		    s[at + 3] != '\'')
			return false;
		at += 3;
	}
	return false;
}

static bool author_ok(const char *s, size_t n)
{
	static const char *const names[] = { "GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=",
					     "GIT_AUTHOR_DATE=" };
	struct text t = { .at = s, .end = s + n };
	const char *line;
	size_t len, i = 0;

	for (; (line = next_line(&t, &len)); i++)
		if (i == ARRAY_LEN(names) || !author_line(line, len, names[i]))
			return false;
	return i == ARRAY_LEN(names) || !n;
}

/* Whether every line fits; line_ok gets its number too. */
static bool each_line(const char *s, size_t n, unsigned hash,
		      bool (*line_ok)(const char *line, size_t n, unsigned hash, size_t i))
{
	struct text t = { .at = s, .end = s + n };
	const char *line;
	size_t len;

	for (size_t i = 0; (line = next_line(&t, &len)); i++)
		if (!line_ok(line, len, hash, i))
			return false;
	return true;
}

static bool rewritten_line(const char *s, size_t n, unsigned hash, size_t unused_arg i)
{
	size_t digits = (size_t)hash * 2;

	return n == 2 * digits + 1 && git_is_id(s, digits, hash) && s[digits] == ' ' &&
	       git_is_id(s + digits + 1, digits, hash);
}

static bool fixup_line(const char *s, size_t n, unsigned hash, size_t unused_arg i)
{
	const char *word;
	size_t len = take_word(&s, &n, &word);

	if (!(len == 5 && memcmp(word, "fixup", 5) == 0) &&
	    !(len == 6 && memcmp(word, "squash", 6) == 0))
		return false;
	skip_option(&s, &n);
	return git_is_id(s, n, hash);
}

static bool ref_line(const char *s, size_t n, unsigned unused_arg hash, size_t unused_arg i)
{
	return git_ref_name_ok(s, n);
}

static bool update_line(const char *s, size_t n, unsigned hash, size_t i)
{
	return i % 3 == 0 ? git_ref_name_ok(s, n) : git_is_id(s, n, hash);
}

static bool bisect_line(const char *s, size_t n, unsigned unused_arg hash, size_t unused_arg i)
{
	return !has_control(s, n) &&
	       (!n || *s == '#' || (n > 11 && memcmp(s, "git bisect ", 11) == 0));
}

static bool term_line(const char *s, size_t n, unsigned unused_arg hash, size_t i)
{
	for (size_t k = 0; k < n; k++)
		if (!((s[k] >= 'a' && s[k] <= 'z') || (s[k] >= 'A' && s[k] <= 'Z') ||
		      (k && s[k] == '-') || (k && s[k] >= '0' && s[k] <= '9')))
			return false;
	return n && n < 64 && i < 2;
}

/* Whether n characters are a value such as "=40%" or "=histogram" behind an option, or nothing. */
static bool option_value_ok(const char *s, size_t n)
{
	if (!n)
		return true;
	if (*s != '=' || n == 1 || n > 32)
		return false;
	for (size_t i = 1; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-' ||
		      s[i] == '%'))
			return false;
	return true;
}

static bool strategy_option_ok(const char *s, size_t n)
{
	static const char *const plain[] = { "ours",
					     "theirs",
					     "patience",
					     "histogram",
					     "minimal",
					     "renormalize",
					     "no-renormalize",
					     "no-renames",
					     "ignore-space-change",
					     "ignore-all-space",
					     "ignore-space-at-eol",
					     "ignore-cr-at-eol" };
	static const char *const valued[] = { "find-renames", "rename-threshold",
					      "diff-algorithm" };

	if (n >= 2 && s[0] == '-' && s[1] == '-') {
		s += 2;
		n -= 2;
	}
	if (is_word_in(s, n, plain, ARRAY_LEN(plain)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(valued); i++) {
		size_t len = strlen(valued[i]);

		if (n >= len && memcmp(s, valued[i], len) == 0)
			return option_value_ok(s + len, n - len);
	}
	return false;
}

static bool apply_option_ok(const char *s, size_t n)
{
	static const char *const plain[] = { "-3", "--3way", "--reject", "--ignore-space-change",
					     "--ignore-whitespace" };
	static const char space[] = "--whitespace";

	if (is_word_in(s, n, plain, ARRAY_LEN(plain)))
		return true;
	if (n > sizeof(space) - 1 && memcmp(s, space, sizeof(space) - 1) == 0)
		return option_value_ok(s + sizeof(space) - 1, n - sizeof(space) + 1);
	if (n < 3 || n > 6 || s[0] != '-' || (s[1] != 'p' && s[1] != 'C'))
		return false;
	for (size_t i = 2; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return true;
}

/* Words with blanks between them, each in quotes or not. */
static bool options_ok(const char *s, size_t n, bool (*option_ok)(const char *s, size_t n))
{
	if (n && s[n - 1] == '\n')
		n--;
	while (n) {
		char quote = *s == '\'' || *s == '"' ? *s : ' ';
		const char *from = s + (quote != ' '), *end;
		size_t len, room = n - (quote != ' ');

		if (*s == ' ') {
			s++;
			n--;
			continue;
		}
		end = room ? memchr(from, quote, room) : NULL;
		if (!end && quote != ' ')
			return false;
		len = end ? (size_t)(end - from) : room;
		if (!option_ok(from, len))
			return false;
		n = room - len - (end != NULL);
		s = from + len + (end != NULL);
	}
	return true;
}

static int see_option(void *ctx, const struct gitconfig_entry *entry)
{
	static const char *const flags[] = { "edit",
					     "no-commit",
					     "signoff",
					     "record-origin",
					     "allow-ff",
					     "allow-empty",
					     "allow-empty-message",
					     "keep-redundant-commits",
					     "allow-rerere-auto" };
	static const char *const words[] = { "true",  "false",    "verbatim", "whitespace",
					     "strip", "scissors", "default" };
	const char *value = entry->value;
	size_t n = strlen(value);
	bool ok = false;

	(void)ctx;
	if (strcmp(entry->section, "options") != 0 || *entry->subsection)
		return -EINVAL;
	if (is_word_in(entry->key, strlen(entry->key), flags, ARRAY_LEN(flags)))
		ok = is_word_in(value, n, words, 2);
	else if (strcmp(entry->key, "default-msg-cleanup") == 0)
		ok = is_word_in(value, n, words, ARRAY_LEN(words));
	else if (strcmp(entry->key, "mainline") == 0)
		ok = n && n < 6 && strspn(value, "0123456789") == n;
	else if (strcmp(entry->key, "strategy") == 0)
		ok = !git_state_refused(GIT_FORM_STRATEGY, (const uint8_t *)value, n, GIT_SHA1);
	else if (strcmp(entry->key, "strategy-option") == 0)
		ok = strategy_option_ok(value, n);
	return ok ? 0 : -EINVAL;
}

static bool strategy_ok(const char *s, size_t n)
{
	static const char *const names[] = { "ort",     "recursive", "resolve",
					     "octopus", "ours",      "subtree" };

	if (n && s[n - 1] == '\n')
		n--;
	return is_word_in(s, n, names, ARRAY_LEN(names));
}

static bool flag_ok(const char *s, size_t n)
{
	if (n && s[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-'))
			return false;
	return n <= 64;
}

static bool number_ok(const char *s, size_t n)
{
	if (n && s[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return n && n < 10;
}

static bool sign_ok(const char *s, size_t n)
{
	if (!one_line(s, &n) || n < 2 || s[0] != '-' || s[1] != 'S')
		return false;
	for (size_t i = 2; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (s[i] >= '0' && s[i] <= '9') || (i > 2 && strchr("@.+_-", s[i]))))
			return false;
	return n < 128;
}

/* The branch that git bisect goes back to: its name without refs/heads/, or an id. */
static bool start_ok(const char *s, size_t n, unsigned hash)
{
	auto_buf name = { 0 };

	if (!one_line(s, &n))
		return false;
	buf_puts(&name, "refs/heads/");
	buf_add(&name, s, n);
	return git_is_id(s, n, hash) || (!name.failed && git_ref_name_ok(name.data, name.len));
}

static bool head_name_ok(const char *s, size_t n)
{
	return one_line(s, &n) &&
	       ((n == 13 && memcmp(s, "detached HEAD", 13) == 0) ||
		(n > 11 && memcmp(s, "refs/heads/", 11) == 0 && git_ref_name_ok(s, n)));
}

static bool notes_ref_ok(const char *s, size_t n)
{
	return one_line(s, &n) && n > 16 && memcmp(s, "ref: refs/notes/", 16) == 0 &&
	       git_ref_name_ok(s + 5, n - 5);
}

static bool id_ok(const char *s, size_t n, unsigned hash)
{
	return n && s[n - 1] == '\n' && git_is_id(s, n - 1, hash);
}

static bool short_ok(const char *s, size_t n)
{
	return one_line(s, &n) && is_short_id(s, n);
}

/* Forms of one line or word. */
static bool small_ok(enum git_form form, const char *s, size_t n, unsigned hash)
{
	switch ((int)form) {
	case GIT_FORM_ID:
		return id_ok(s, n, hash);
	case GIT_FORM_SHORT_ID:
		return short_ok(s, n);
	case GIT_FORM_EMPTY:
		return !n || (n == 1 && *s == '\n');
	case GIT_FORM_FLAG:
		return flag_ok(s, n);
	case GIT_FORM_NUMBER:
		return number_ok(s, n);
	case GIT_FORM_MERGE_MODE:
		return !n || (n >= 5 && n <= 6 && memcmp(s, "no-ff\n", n) == 0);
	case GIT_FORM_HEAD_NAME:
		return head_name_ok(s, n);
	case GIT_FORM_NOTES_REF:
		return notes_ref_ok(s, n);
	case GIT_FORM_STRATEGY:
		return strategy_ok(s, n);
	case GIT_FORM_STRATEGY_OPTS:
		return options_ok(s, n, strategy_option_ok);
	case GIT_FORM_APPLY_OPTS:
		return options_ok(s, n, apply_option_ok);
	case GIT_FORM_SIGN_OPT:
		return sign_ok(s, n);
	case GIT_FORM_BISECT_START:
		return start_ok(s, n, hash);
	default:
		return false;
	}
}

/* Forms of several lines. */
static bool lines_ok(enum git_form form, const char *s, size_t n, unsigned hash)
{
	const char *why;

	switch ((int)form) {
	case GIT_FORM_TEXT:
		return git_text_ok((const uint8_t *)s, n);
	case GIT_FORM_IDS:
		return git_id_lines_ok(s, n, hash, 1);
	case GIT_FORM_AUTHOR:
		return author_ok(s, n);
	case GIT_FORM_REWRITTEN:
		return each_line(s, n, hash, rewritten_line);
	case GIT_FORM_FIXUPS:
		return each_line(s, n, hash, fixup_line);
	case GIT_FORM_REF_NAMES:
		return each_line(s, n, hash, ref_line);
	case GIT_FORM_UPDATE_REFS:
		return each_line(s, n, hash, update_line);
	case GIT_FORM_BISECT_LOG:
		return each_line(s, n, hash, bisect_line);
	case GIT_FORM_BISECT_TERMS:
		return each_line(s, n, hash, term_line);
	case GIT_FORM_SEQUENCER_OPTS:
		return git_config_read(s, n, see_option, NULL, &why, NULL) == 0;
	default:
		return small_ok(form, s, n, hash);
	}
}

static const char *const refusals[] = {
	"has a format that ward does not know",
#define GIT_FORM(name, needs, max, what) "is not " what,
#include "gitforms.def"
};

const char *git_state_refused(enum git_form form, const uint8_t *bytes, size_t n, unsigned hash)
{
	if (form == GIT_FORM_TODO)
		return git_todo_refused(bytes, n, hash);
	return lines_ok(form, (const char *)bytes, n, hash) ? NULL : refusals[form];
}

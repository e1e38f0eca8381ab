/*
 * Version files. In: the bytes of a file that names the versions of a project's tools. Out: whether
 * it names versions and nothing else. Pure: no I/O; runs in the supervisor and in the verbs on
 * files that a sandbox wrote.
 *
 * mise reads these files when a person enters a directory, and takes "path:DIR" for a directory
 * whose programs go into PATH. So a version may have the characters that versions, aliases and
 * ranges have, and a colon only where version managers want one: "latest:" of tfenv, and the
 * address of a package manager. A version that looks like a path is refused as well; older version
 * managers walked out of their directory with "../".
 *
 * The forms of the other readers are kept simple where two readers might differ: in a toolchain
 * file a comment is a line of its own and strings do not span lines, and a package.json that the
 * strict reader cannot understand may not hold what could be read as "path:".
 *
 * A .env file has as many readers as languages. So no line of it is parsed: no variable of
 * tables/envfile.def may be followed by what assigns, anywhere but in a comment, and nothing may be
 * a command substitution.
 */
#include "rules/version_file.h"

#include <string.h>
#include <strings.h>

#include "rules/json_in.h"

#define WORDS_MAX 65536u /* a version file is a line or two */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool begins(const char *text, size_t n, const char *with)
{
	size_t k = strlen(with);

	return n >= k && memcmp(text, with, k) == 0;
}

/* Whether a word is a path, or has ".." for a part. */
static bool is_path(const char *word, size_t n)
{
	if (word[0] == '/' || begins(word, n, "./") || begins(word, n, "~/") ||
	    (n > 1 && word[0] == '~' && is_letter_or_digit(word[1]) &&
	     !(word[1] >= '0' && word[1] <= '9')))
		return true;
	for (size_t at = 0, end; at <= n; at = end + 1) {
		end = at;
		while (end < n && word[end] != '/')
			end++;
		if (end - at == 2 && word[at] == '.' && word[at + 1] == '.')
			return true;
	}
	return false;
}

static const char *word_fault(const char *word, size_t n)
{
	static const char latest[] = "latest:";
	size_t at = begins(word, n, latest) ? sizeof(latest) - 1 : 0;

	for (; at < n; at++)
		if (!is_letter_or_digit(word[at]) && !strchr("._+@~^<>=!*|,/-", word[at]))
			return "a version that has characters versions do not have";
	return is_path(word, n) ? "a path in place of a version" : NULL;
}

/* One line without its end: words, and a comment behind a "#" that begins one. */
static const char *line_fault(const char *line, size_t n)
{
	for (size_t at = 0, end; at < n; at = end) {
		const char *why;

		end = at + 1;
		if (is_blank(line[at]))
			continue;
		if (line[at] == '#')
			return NULL;
		while (end < n && !is_blank(line[end]))
			end++;
		why = word_fault(line + at, end - at);
		if (why)
			return why;
	}
	return NULL;
}

/* Whether a byte is one that editors and readers disagree about. */
static bool has_odd_bytes(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == 0x7f || (c < ' ' && c != '\n' && c != '\t' &&
				  !(c == '\r' && i + 1 < n && text[i + 1] == '\n')))
			return true;
	}
	return false;
}

/* Calls fault for each line, without its end. */
static const char *each_line(const char *text, size_t n,
			     const char *(*fault)(const char *line, size_t n))
{
	for (size_t at = 0; at < n;) {
		const char *end = memchr(text + at, '\n', n - at), *why;
		size_t len = end ? (size_t)(end - text) - at : n - at;
		size_t shown = len && text[at + len - 1] == '\r' ? len - 1 : len;

		why = fault(text + at, shown);
		if (why)
			return why;
		at += len + 1;
	}
	return NULL;
}

/* A line of a toolchain file: a comment, or no colon and no escape. */
static const char *toolchain_line_fault(const char *line, size_t n)
{
	while (n && is_blank(*line)) {
		line++;
		n--;
	}
	if (!n || *line == '#')
		return NULL;
	if (memmem(line, n, "path", 4))
		return "a toolchain that is a directory";
	if (memchr(line, ':', n) || memchr(line, '\\', n) || memmem(line, n, "\"\"\"", 3) ||
	    memmem(line, n, "'''", 3))
		return "a toolchain that has characters names of toolchains do not have";
	return NULL;
}

/* ---- package.json ---- */

static bool is_plain_value(const char *text, size_t n)
{
	for (size_t at = 0; at < n; at++) {
		if (begins(text + at, n - at, "https://"))
			at += 7;
		else if (!is_letter_or_digit(text[at]) &&
			 (!text[at] || !strchr(" ._+@~^<>=!*|,/-#%?&()", text[at])))
			return false;
	}
	return true;
}

/* Every string beneath a value; false: one is no version. */
static bool are_plain(struct json_in *j, unsigned depth)
{
	char kind = json_in_peek(j);
	struct json_level level;
	const char *key;
	bool good = true;

	if (kind == '"') {
		auto_buf text = { 0 };

		json_in_string(j, &text);
		return !text.failed && is_plain_value(buf_text(&text), text.len);
	}
	if ((kind != '{' && kind != '[') || depth > JSON_IN_DEPTH) {
		json_in_skip(j);
		return true;
	}
	if (!json_in_open(j, kind, &level))
		return false;
	while (json_in_next(j, &level, &key))
		good &= are_plain(j, depth + 1);
	return good;
}

static const char *package_fault(const char *text, size_t n)
{
	static const char why[] = "a packageManager or devEngines that is not a version";
	bool mark = begins(text, n, "\xef\xbb\xbf"), good = true;
	struct json_level level;
	struct json_in j;
	const char *key;

	json_in_init(&j, (const uint8_t *)text + (mark ? 3 : 0), n - (mark ? 3 : 0));
	if (json_in_peek(&j) != '{' || !json_in_open(&j, '{', &level))
		j.bad = true;
	while (!j.bad && json_in_next(&j, &level, &key)) {
		if (strcmp(key, "packageManager") == 0 || strcmp(key, "devEngines") == 0)
			good &= are_plain(&j, 0);
		else
			json_in_skip(&j);
	}
	if (!json_in_end(&j))
		j.bad = true;
	/* another reader may understand it: then a string says "path:" as it is, or escaped */
	if (j.bad)
		good = !memmem(text, n, "path:", 5) && !memmem(text, n, "\\u", 2);
	json_in_free(&j);
	return good ? NULL : why;
}

/* ---- .env ---- */

static bool is_name_char(char c)
{
	return is_letter_or_digit(c) || c == '_';
}

static bool runs_others(const char *name, size_t n)
{
	static const char *const names[] = {
#define ENV_RUNS(name, why) name,
#include "envfile.def"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return true;
	/* npm takes its own in any letters */
	return n == 23 && strncasecmp(name, "npm_config_script_shell", n) == 0;
}

/* Whether every word of a value of NODE_OPTIONS is an option by which node runs nothing more. */
static bool are_plain_options(const char *value, size_t n)
{
	static const char *const plain[] = { "--max-old-space-size=",
					     "--max-semi-space-size=",
					     "--max-http-header-size=",
					     "--stack-trace-limit=",
					     "--no-warnings",
					     "--no-deprecation",
					     "--enable-source-maps",
					     "--trace-warnings",
					     "--trace-deprecation",
					     "--disable-warning=",
					     "--unhandled-rejections=",
					     "--dns-result-order=",
					     "--openssl-legacy-provider",
					     "--experimental-vm-modules",
					     "--expose-gc" };

	for (size_t at = 0, end; at < n; at = end) {
		bool known = false;

		end = at + 1;
		if (is_blank(value[at]) || value[at] == '"' || value[at] == '\'')
			continue;
		while (end < n && !is_blank(value[end]) && value[end] != '"' && value[end] != '\'')
			end++;
		for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
			known |= begins(value + at, end - at, plain[i]);
		if (!known)
			return false;
	}
	return true;
}

/* What the name in front of an assignment at `at` does: static text; NULL: nothing. */
static const char *assignment_fault(const char *line, size_t n, size_t at)
{
	static const char options[] = "NODE_OPTIONS";
	size_t end = at, begin;

	while (end && (is_blank(line[end - 1]) || line[end - 1] == '+' || line[end - 1] == '\v' ||
		       line[end - 1] == '\f'))
		end--;
	for (begin = end; begin && is_name_char(line[begin - 1]);)
		begin--;
	if (runs_others(line + begin, end - begin))
		return "a variable by which programs run others";
	if (end - begin == sizeof(options) - 1 && begins(line + begin, end - begin, options) &&
	    !are_plain_options(line + at + 1, n - at - 1))
		return "a NODE_OPTIONS by which node may load more";
	return NULL;
}

static const char *env_line_fault(const char *line, size_t n)
{
	const char *why = NULL;

	while (n && is_blank(*line)) {
		line++;
		n--;
	}
	if (n && *line == '#')
		return NULL;
	if (memchr(line, '`', n) || memmem(line, n, "$(", 2))
		return "a command";
	for (size_t at = 0; at < n && !why; at++)
		if (line[at] == '=' || line[at] == ':')
			why = assignment_fault(line, n, at);
	return why;
}

/* Lines as JavaScript has them, too. */
static const char *env_fault(const char *text, size_t n)
{
	for (size_t at = 0, end; at < n; at = end + 1) {
		const char *why;

		for (end = at; end < n && text[end] != '\n' && text[end] != '\r' &&
			       !begins(text + end, n - end, "\xe2\x80\xa8") &&
			       !begins(text + end, n - end, "\xe2\x80\xa9");)
			end++;
		why = env_line_fault(text + at, end - at);
		if (why)
			return why;
	}
	return memchr(text, '\0', n) ? "bytes that text does not have" : NULL;
}

const char *version_file_fault(enum version_form form, const char *text, size_t n)
{
	if (n > VERSION_FILE_MAX)
		return "too long for a version file";
	switch (form) {
	case VERSION_PACKAGE:
		return package_fault(text, n);
	case VERSION_TOOLCHAIN:
		if (has_odd_bytes(text, n))
			return "bytes that text does not have";
		return each_line(text, n, toolchain_line_fault);
	case VERSION_ENV:
		return env_fault(text, n);
	case VERSION_WORDS:
	default:
		if (n > WORDS_MAX)
			return "too long for a version file";
		if (has_odd_bytes(text, n))
			return "bytes that text does not have";
		return each_line(text, n, line_fault);
	}
}

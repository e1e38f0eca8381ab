/*
 * Words of a command line. In: the text of a setting that git hands to a shell, or of a hook. Out:
 * every word that may name a file. Pure: no file, clock or global is touched; runs in the
 * supervisor, on text that a hostile project may have brought.
 *
 * This is no shell. A shell decides which words are programs, this one looks at all of them: the
 * text is cut at blanks and at everything that means something to a shell, a quoted text with
 * blanks counts as a whole, too, and what stands behind an expansion is handed over with a mark.
 * The caller asks whether a word names a file. What no such reading can tell is reported as opaque.
 */
#include "policy/command.h"

#include <errno.h>
#include <string.h>

static const char *const interpreters[] = {
	"python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh",
	"pwsh", "Rscript", "julia", "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "source",
	".", "tsx", "ts-node", "npx", "awk", "gawk", "sed",
	/* functions of direnv's .envrc */
	"source_env", "source_env_if_exists", "dotenv", "dotenv_if_exists", "direnv_load"
};
static const char *const runners[] = { "env",    "exec",   "command", "nice",   "timeout", "nohup",
				       "sudo",   "xargs",  "time",    "stdbuf", "setsid",  "uv",
				       "poetry", "pipenv", "run",     "eval",   "then",    "do",
				       "else",   "if",     "while",   "!" };
static const char *const goers[] = { "cd",       "pushd", "-C",     "--directory",
				     "--prefix", "--cwd", "--chdir" };
static const char *const opaque_words[] = { "cd",    "pushd", "eval",  "source", ".",   "xargs",
					    "-exec", "alias", "make",  "npm",    "npx", "yarn",
					    "pnpm",  "just",  "cargo", "-m" };

struct words {
	command_fn *fn;
	void *ctx;
	struct buf word;
	bool expanded, value;
	bool first, interpreter, any_interpreter, go; /* what the words in front of this one were */
	bool opaque;
};

static bool is_among(const char *const *list, size_t n, const char *word, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && memcmp(list[i], word, len) == 0)
			return true;
	return false;
}

#define IS_AMONG(list, word) is_among(list, ARRAY_LEN(list), word, strlen(word))

/* /usr/bin/python3.11 is python. */
static bool is_interpreter(const char *word)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
	size_t n = strlen(name);

	while (n > 1 && (name[n - 1] == '.' || (name[n - 1] >= '0' && name[n - 1] <= '9')))
		n--;
	return is_among(interpreters, ARRAY_LEN(interpreters), name, n) ||
	       IS_AMONG(interpreters, name);
}

bool command_is_script(const char *name)
{
	static const char *const ends[] = { "sh",  "bash", "zsh", "ksh",  "fish", "py",  "pl",
					    "rb",  "js",   "cjs", "mjs",  "ts",   "mts", "cts",
					    "php", "lua",  "tcl", "ps1",  "R",    "jl",  "exs",
					    "awk", "sed",  "jar", "envrc" };
	const char *dot = strrchr(name, '.');

	return dot && dot != name && !strchr(dot, '/') && IS_AMONG(ends, dot + 1);
}

/* What a word says about those behind it. */
static void note_word(struct words *w, const char *text)
{
	bool option = *text == '-';

	w->go = IS_AMONG(goers, text);
	if (is_interpreter(text))
		w->interpreter = w->any_interpreter = true;
	else if (!option)
		w->interpreter = false;
	w->first = w->first && IS_AMONG(runners, text);
	w->opaque |= IS_AMONG(opaque_words, text);
}

static int hand_over(struct words *w, const char *text)
{
	struct command_word word = { .text = text,
				     .is_expanded = w->expanded,
				     .is_script = w->interpreter,
				     .is_argument = w->any_interpreter,
				     .is_directory = w->go,
				     .is_value = w->value,
				     .is_first = w->first };

	return *text ? w->fn(w->ctx, &word) : 0;
}

static int end_word(struct words *w)
{
	int status = 0;

	if (w->word.failed)
		return -ENOMEM;
	if (w->word.len) {
		status = hand_over(w, w->word.data);
		note_word(w, w->word.data);
		w->value = false;
	}
	w->word.len = 0;
	w->expanded = false;
	return status;
}

static void end_command(struct words *w)
{
	w->first = true;
	w->interpreter = w->any_interpreter = w->go = w->value = false;
}

/* A quoted text with blanks in it may be one name. */
static int whole_quote(struct words *w, const char *at, const char *end)
{
	const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
	auto_buf whole = { 0 };

	if (!close || close - at > 4096 || !memchr(at, ' ', (size_t)(close - at)) ||
	    !memchr(at, '/', (size_t)(close - at)))
		return 0;
	buf_add(&whole, at + 1, (size_t)(close - at - 1));
	return whole.failed ? -ENOMEM : hand_over(w, buf_text(&whole));
}

static int next_char(struct words *w, const char *text, size_t n, size_t *at)
{
	char c = text[*at];
	int status = 0;

	if (c == '\\' && *at + 1 < n && text[*at + 1] != '\n') {
		++*at;
		buf_add(&w->word, &text[*at], 1);
	} else if (c == '"' || c == '\'') {
		bool behind = w->expanded; /* "$PWD"/x */

		status = end_word(w);
		w->expanded = behind;
		if (status == 0)
			status = whole_quote(w, text + *at, text + n);
	} else if (c == '$' || c == '`' || c == ')' || c == '}') {
		status = end_word(w);
		w->expanded = c != '`';
		w->opaque |= c == '$' || c == '`';
	} else if (strchr(" \t\r\\=:,<>{[]", c)) {
		status = end_word(w);
		w->value |= c == '=';
	} else if (strchr("\n;&|(", c)) {
		status = end_word(w);
		end_command(w);
	} else {
		w->opaque |= c == '*' || c == '?';
		buf_add(&w->word, &c, 1);
	}
	return status;
}

int command_words(const char *text, size_t n, command_fn *fn, void *ctx, bool *ret_opaque)
{
	struct words w = { .fn = fn, .ctx = ctx, .first = true };
	const char *stop = n ? memchr(text, '\0', n) : NULL;
	int status = 0;

	n = stop ? (size_t)(stop - text) : n;
	for (size_t at = 0; at < n && status == 0; at++)
		status = next_char(&w, text, n, &at);
	if (status == 0)
		status = end_word(&w);
	*ret_opaque = w.opaque;
	buf_free(&w.word);
	return status;
}

/*
 * The last words of a command that failed. In: the end of what it wrote to standard error, bytes of
 * a sandbox. Out: what it complains about: a path or a program that does not exist, a file that
 * cannot be written, a host that is not reached, a limit (tables/complaints.def). Runs in the
 * supervisor when the sandbox is dead; a pure function.
 *
 * Why: in an ordinary run nobody watches the opens of files, and a limit that the kernel holds
 * (RLIMIT_DATA, RLIMIT_NOFILE) is a failed call that ward never sees. But nearly every program says
 * what failed, and with which name. It is a guess: the caller must check the name against the
 * plan and the host (src/run/box_words.c), and nothing is decided by it.
 *
 * A line counts if it has a phrase of the table. Its words are split at spaces, quotes, brackets
 * and colons; those that look like a path are of interest, and where a line that says that
 * something does not exist has none, those that look like the name of a program.
 */
#include "observe/complaint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"

#define LINE_LEN_MAX 2000 /* a longer one is no message for a person */
#define NAME_LEN_MAX 63

static const struct phrase {
	enum complaint_kind kind;
	const char *text;
} phrases[] = {
#define PHRASE(kind, text) { COMPLAINT_##kind, text },
#include "complaints.def"
};

static const struct need {
	const char *text, *path;
} needs[] = {
#define NEEDS(text, path) { text, path },
#include "complaints.def"
};

static const struct login {
	const char *text, *option;
} logins[] = {
#define LOGIN(text, option) { text, option },
#include "complaints.def"
};

static const struct saying {
	const char *text, *advice;
} sayings[] = {
#define SAYS(text, advice) { text, advice },
#include "complaints.def"
};

static const char *const libraries[] = {
#define LIBRARY(text, path, up, variable) text,
#include "complaints.def"
};

static const char *const writes[] = {
#define WRITES(text) text,
#include "complaints.def"
};

struct list {
	struct complaint *out;
	size_t count;
	bool writes; /* the line that is read */
};

static const struct phrase *find_phrase(const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(phrases); i++)
		if (strcasestr(line, phrases[i].text))
			return &phrases[i];
	return NULL;
}

static void add(struct list *l, enum complaint_kind kind, const char *word, size_t n)
{
	struct complaint *c = &l->out[l->count];

	if (n >= sizeof(c->word) || l->count == COMPLAINTS_MAX)
		return;
	for (size_t i = 0; i < l->count; i++)
		if (l->out[i].kind == kind && strlen(l->out[i].word) == n &&
		    memcmp(l->out[i].word, word, n) == 0)
			return;
	*c = (struct complaint){ .kind = kind, .writes = l->writes };
	memcpy(c->word, word, n);
	c->word[n] = '\0';
	l->count++;
}

static bool is_path(const char *word, size_t n)
{
	return (word[0] == '/' && n > 1) || (n > 2 && memcmp(word, "./", 2) == 0) ||
	       (n > 3 && memcmp(word, "../", 3) == 0);
}

static bool is_name(const char *word, size_t n)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-.+";

	return n > 1 && n <= NAME_LEN_MAX && word[0] != '-' && word[0] != '.' &&
	       strspn(word, plain) >= n;
}

/* A name of a file in the working directory, or a path from there. */
static bool is_relative(const char *word, size_t n)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-.+/";

	return n > 1 && word[0] != '-' && word[0] != '/' && strspn(word, plain) >= n;
}

/* Length of a UTF-8 quotation mark (U+2018 to U+201F) at s, else 0. */
static size_t quote_length(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	return u[0] == 0xe2 && u[1] == 0x80 && u[2] >= 0x98 && u[2] <= 0x9f ? 3 : 0;
}

static size_t word_length(const char *s)
{
	size_t n = 0;

	while (s[n] && !strchr(" \t'\"`()[]{}<>,;:=\\", s[n]) && !quote_length(s + n))
		n++;
	/* the full stop of a sentence */
	return n > 1 && s[n - 1] == '.' && s[n - 2] != '.' && s[n - 2] != '/' ? n - 1 : n;
}

/* The words of a line that `wanted` takes. */
static bool add_words(struct list *l, enum complaint_kind kind, const char *line,
		      bool (*wanted)(const char *, size_t))
{
	bool found = false;

	while (*line) {
		size_t n = word_length(line), quote;

		if (n && wanted(line, n)) {
			add(l, kind, line, n);
			found = true;
		}
		line += n;
		quote = quote_length(line);
		line += quote ? quote : *line != '\0';
	}
	return found;
}

/* A name with a dot in it, as hosts outside have. */
static bool is_host(const char *word, size_t n)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-.";
	const char *dot = memrchr(word, '.', n);

	return dot && dot > word && dot < word + n - 1 && (dot[1] < '0' || dot[1] > '9') &&
	       word[0] != '-' && word[0] != '.' && strspn(word, plain) >= n;
}

/* "Could not resolve host: NAME", "getaddrinfo ENOTFOUND NAME": the first word behind the phrase
 * that can be one. Words elsewhere in the line may be those of a program: socket.gaierror. */
static void add_name(struct list *l, const char *line, const char *phrase)
{
	const char *at = strcasestr(line, phrase) + strlen(phrase);

	while (*at) {
		size_t n = word_length(at), quote;

		if (n && is_host(at, n)) {
			add(l, COMPLAINT_HOST, at, n);
			return;
		}
		at += n;
		quote = quote_length(at);
		at += quote ? quote : *at != '\0';
	}
	add(l, COMPLAINT_HOST, "", 0);
}

/* "could not read Username for 'https://HOST': ...": the first row that fits, and the host behind
 * its "https://". */
static void add_login(struct list *l, const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(logins); i++) {
		const char *at = strcasestr(line, logins[i].text), *from;
		size_t n = 0, before = l->count;

		if (!at)
			continue;
		from = strstr(at, "://");
		if (from)
			n = strspn(from + 3, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "0123456789-.");
		add(l, COMPLAINT_LOGIN, from ? from + 3 : "", n);
		if (l->count > before)
			l->out[before].advice = logins[i].option;
		return;
	}
}

static void add_saying(struct list *l, const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(sayings); i++) {
		size_t before = l->count;

		if (!strcasestr(line, sayings[i].text))
			continue;
		add(l, COMPLAINT_SAYS, "", 0);
		if (l->count > before)
			l->out[before].advice = sayings[i].advice;
		return;
	}
}

/* "sh: 1: NAME: not found", "bash: line 1: NAME: command not found". */
static void add_command(struct list *l, const char *line)
{
	const char *end = strstr(line, ": command not found"), *from;

	end = end ? end : strstr(line, ": not found");
	for (from = end; end && from > line && from[-1] != ' ' && from[-1] != ':';)
		from--;
	if (end && is_name(from, (size_t)(end - from)))
		add(l, COMPLAINT_COMMAND, from, (size_t)(end - from));
}

/* "No module named 'NAME.x'", "cannot load such file -- NAME/x". */
static void add_libraries(struct list *l, const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		const char *at = strcasestr(line, libraries[i]);
		size_t n;

		if (!at)
			continue;
		at += strlen(libraries[i]);
		n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
		if (n && n <= NAME_LEN_MAX && *at != '-')
			add(l, COMPLAINT_LIBRARY, at, n);
	}
}

/* "192.0.2.1:443", or "192.0.2.1 port 443" as curl has it. */
static bool add_addresses(struct list *l, const char *line)
{
	static const char digits[] = "0123456789";
	bool found = false;

	for (const char *at = line; *(at += strcspn(at, digits));) {
		size_t n = strspn(at, "0123456789."), gap, m;
		char word[64];

		gap = at[n] == ':' ? 1 : strncmp(at + n, " port ", 6) == 0 ? 6 : 0;
		m = gap ? strspn(at + n + gap, digits) : 0;
		if (m && m <= 5 && n >= 7 && n <= 15 && (at == line || strchr(" ('\"[", at[-1]))) {
			snprintf(word, sizeof(word), "%.*s:%.*s", (int)n, at, (int)m, at + n + gap);
			add(l, COMPLAINT_ADDRESS, word, strlen(word));
			found = true;
		}
		at += n;
	}
	return found;
}

/* "ssh: Could not resolve hostname NAME: ...", "USER@NAME: Permission denied (publickey)." */
static void add_host(struct list *l, const char *line, const char *phrase)
{
	const char *at = strcasestr(line, phrase), *from;
	size_t n;

	if (strcasestr(phrase, "hostname")) {
		from = at + strlen(phrase);
		from += strspn(from, " ");
		n = word_length(from);
	} else {
		from = line;
		n = word_length(line);
	}
	/* "Host key verification failed." names none */
	if (from == line && !memchr(from, '@', n))
		n = 0;
	add(l, COMPLAINT_SSH, from,
	    n && strspn(from, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
			      "STUVWXYZ0123456789_-.@") >= n
		    ? n
		    : 0);
}

/* "/bin/sh: 1: ", "./build.sh: line 3: ": who complains. */
static const char *skip_shell(const char *line)
{
	const char *at = strstr(line, ": ");

	if (!at || !is_path(line, (size_t)(at - line)) || memchr(line, ' ', (size_t)(at - line)))
		return line;
	at += strncmp(at, ": line ", 7) == 0 ? 7 : 2;
	at += strspn(at, "0123456789");
	return strncmp(at, ": ", 2) == 0 ? at + 2 : line;
}

static void read_line(struct list *l, const char *line)
{
	const struct phrase *p = find_phrase(line);

	for (size_t i = 0; i < ARRAY_LEN(needs); i++)
		if (strcasestr(line, needs[i].text))
			add(l, COMPLAINT_NEEDS, needs[i].path, strlen(needs[i].path));
	add_login(l, line);
	add_libraries(l, line);
	add_saying(l, line);
	add_command(l, line);
	if (!p)
		return;
	l->writes = false;
	for (size_t i = 0; i < ARRAY_LEN(writes); i++)
		l->writes |= strcasestr(line, writes[i]) != NULL;
	switch (p->kind) {
	case COMPLAINT_SSH:
		add_host(l, line, p->text);
		return;
	case COMPLAINT_HOST:
		add_name(l, line, p->text);
		return;
	case COMPLAINT_ADDRESS:
		if (!add_addresses(l, line) && strcasestr(line, "unreachable"))
			add(l, COMPLAINT_HOST, "", 0);
		return;
	case COMPLAINT_MEMORY:
	case COMPLAINT_PIDS:
	case COMPLAINT_OPEN_FILES:
	case COMPLAINT_DISK:
	case COMPLAINT_CERTIFICATE:
	case COMPLAINT_REPOSITORY:
	case COMPLAINT_UNNAMED:
		add(l, p->kind, "", 0);
		return;
	case COMPLAINT_LOGIN:
	case COMPLAINT_LIBRARY:
	case COMPLAINT_COMMAND:
	case COMPLAINT_SAYS:
	case COMPLAINT_NEEDS:
	case COMPLAINT_ABSENT:
	case COMPLAINT_DENIED:
	case COMPLAINT_READ_ONLY:
		break;
	}
	line = skip_shell(line);
	if (add_words(l, p->kind, line, is_path))
		return;
	if (p->kind == COMPLAINT_ABSENT)
		add_words(l, p->kind, line, is_name);
	else
		add_words(l, p->kind, line, is_relative);
	if (p->kind == COMPLAINT_READ_ONLY)
		add(l, p->kind, "./", 2); /* a name without a directory, whatever it is */
}

size_t complaint_read(const uint8_t *text, size_t len, struct complaint out[COMPLAINTS_MAX])
{
	struct list l = { .out = out };
	char line[LINE_LEN_MAX + 1];
	size_t at = 0;

	while (at < len) {
		const uint8_t *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - (text + at)) : len - at;

		if (n <= LINE_LEN_MAX && !memchr(text + at, '\0', n)) {
			memcpy(line, text + at, n);
			line[n && line[n - 1] == '\r' ? n - 1 : n] = '\0';
			read_line(&l, line);
		}
		at += n + 1;
	}
	return l.count;
}

static bool is_of_name(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

bool complaint_names(const uint8_t *text, size_t len, const char *name)
{
	const uint8_t *at = text, *end = text + len;
	size_t n = strlen(name);

	while (n && len && (at = memmem(at, (size_t)(end - at), name, n))) {
		if ((at == text || !is_of_name(at[-1])) && (at + n == end || !is_of_name(at[n])))
			return true;
		at++;
	}
	return false;
}

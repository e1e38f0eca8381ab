/*
 * The command line of ward-remote, and the key. In: argv; the environment; files of the user. Out:
 * struct remote. Refuses options that its verb does not take, and a file with a key that others
 * could read.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "base/text.h"
#include "remote/remote.h"

enum {
#define VERB(id, ...) V_##id = 1 << REMOTE_##id,
#include "remote/verbs.def"
	V_ALL = (1 << REMOTE_VERBS) - 1
};

static const struct {
	const char *name;
	size_t min, max;
} verbs[] = {
#define VERB(id, name, min, max, about) { #name, min, max },
#include "remote/verbs.def"
};

enum takes { FLAG, TEXT };

static const struct {
	unsigned verbs;
	char letter;
	const char *name;
	size_t offset;
	enum takes takes;
} rows[] = {
#define OPTION(verbs, letter, name, member, takes)                                                 \
	{ verbs, letter, name, offsetof(struct remote, member), takes },
#include "remote/verbs.def"
};

#define GLOBALS 3

static const struct {
	const char *name;
	size_t offset;
} globals[GLOBALS] = {
	{ "host", offsetof(struct remote, host) },
	{ "token-file", offsetof(struct remote, token_file) },
	{ "ca-file", offsetof(struct remote, ca_file) },
};

static int find_verb(struct remote *r, const char *name, struct ward_err *e)
{
	unsigned distance = UINT_MAX;
	const char *best = NULL;

	for (int v = 0; v < REMOTE_VERBS; v++) {
		if (strcmp(verbs[v].name, name) == 0) {
			r->verb = (enum remote_verb)v;
			return 0;
		}
		text_nearest(name, verbs[v].name, &best, &distance);
	}
	ward_fail(e, EINVAL, "ward %.80s does not work on a server", name);
	return ward_remedy(e, "%s%s%sward --host URL --help lists the verbs that do",
			   best ? "did you mean " : "", best ? best : "", best ? "? " : "");
}

/* Options before the verb: *at is the first word that is none. */
static int read_globals(struct remote *r, int argc, char **argv, int *at, struct ward_err *e)
{
	for (; *at < argc && argv[*at][0] == '-'; ++*at) {
		const char *word = argv[*at] + 2, *value = NULL;
		size_t n = strcspn(word, "="), i = 0;

		while (i < GLOBALS &&
		       (strncmp(argv[*at], "--", 2) != 0 || strlen(globals[i].name) != n ||
			strncmp(word, globals[i].name, n) != 0))
			i++;
		if (i == GLOBALS) {
			ward_fail(e, EINVAL, "unknown option %.200s before the verb", argv[*at]);
			return ward_remedy(e, "--host URL, --token-file FILE, --ca-file FILE");
		}
		value = word[n] ? word + n + 1 : *at + 1 < argc ? argv[++*at] : "";
		if (!*value)
			return ward_fail(e, EINVAL, "--%s needs a value", globals[i].name);
		*(const char **)(void *)((char *)r + globals[i].offset) = value;
	}
	return 0;
}

static int take(struct remote *r, size_t i, const char *value)
{
	char *member = (char *)r + rows[i].offset;

	if (rows[i].takes == FLAG)
		*(bool *)member = true;
	else
		*(const char **)(void *)member = value;
	if (member == (char *)&r->env)
		strv_add(&r->envs, value);
	return 0;
}

/* The rows of the verb, as getopt wants them: val is the row's number, from 256 on. */
static void list_options(enum remote_verb verb, struct option *ret, char *letters)
{
	size_t n = 0, at = 1;

	letters[0] = verb == REMOTE_EXEC ? '+' : '-';
	if (verb != REMOTE_EXEC)
		at = 0; /* words may stand anywhere */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!(rows[i].verbs & 1u << verb))
			continue;
		ret[n++] = (struct option){ rows[i].name,
					    rows[i].takes == TEXT ? required_argument : no_argument,
					    NULL, 256 + (int)i };
		if (rows[i].letter) {
			letters[at++] = rows[i].letter;
			if (rows[i].takes == TEXT)
				letters[at++] = ':';
		}
	}
	ret[n] = (struct option){ 0 };
	letters[at] = '\0';
}

static int read_options(struct remote *r, int argc, char **argv, struct ward_err *e)
{
	struct option options[ARRAY_LEN(rows) + 1];
	char letters[2 * ARRAY_LEN(rows) + 2];
	int o;

	list_options(r->verb, options, letters);
	opterr = 0;
	while ((o = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		size_t i = o >= 256 ? (size_t)o - 256 : 0;

		while (o < 256 && i < ARRAY_LEN(rows) &&
		       !(rows[i].letter == o && rows[i].verbs & 1u << r->verb))
			i++;
		if (o == '?' || i == ARRAY_LEN(rows)) {
			ward_fail(e, EINVAL,
				  "not an option of %s on a server, or without its value: "
				  "%.200s",
				  verbs[r->verb].name, argv[optind - 1]);
			return ward_remedy(e, "docs/serve.md lists them");
		}
		(void)take(r, i, optarg);
	}
	r->words = argv + optind;
	r->word_count = (size_t)(argc - optind);
	if (r->word_count < verbs[r->verb].min || r->word_count > verbs[r->verb].max)
		return ward_fail(e, EINVAL, "ward %s takes %zu to %zu words, not %zu",
				 verbs[r->verb].name, verbs[r->verb].min, verbs[r->verb].max,
				 r->word_count);
	return 0;
}

int remote_read(struct remote *r, int argc, char **argv, struct ward_err *e)
{
	int at = 1, result;

	*r = (struct remote){ .host = getenv("WARD_HOST"), .ca_file = getenv("WARD_CA_FILE") };
	if (r->ca_file && !*r->ca_file)
		r->ca_file = NULL;
	result = read_globals(r, argc, argv, &at, e);
	if (result == 0 && at == argc) {
		ward_fail(e, EINVAL, "no verb given");
		result = ward_remedy(e, "for instance ward --host URL ps");
	}
	if (result == 0)
		result = find_verb(r, argv[at], e);
	if (result == 0)
		result = read_options(r, argc - at, argv + at, e);
	if (result == 0 && (!r->host || !*r->host)) {
		ward_fail(e, EINVAL, "no server given");
		result = ward_remedy(e, "--host URL, or WARD_HOST");
	}
	return result;
}

/* -- the key */

static int check_file(int fd, const char *path, struct ward_err *e)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !(st.st_mode & 077))
		return 0;
	ward_fail(e, EACCES, "%.300s is not a file that only you can read", path);
	return ward_remedy(e, "chmod 600 %.300s", path);
}

static int usual_file(char *ret, size_t n, struct ward_err *e)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		snprintf(ret, n, "%s/ward/token", config);
	else if (home && *home == '/')
		snprintf(ret, n, "%s/.config/ward/token", home);
	else
		return ward_fail(e, EACCES, "no key for the server: HOME is not set");
	return 0;
}

static int take_token(struct remote *r, const char *text, const char *from, struct ward_err *e)
{
	size_t n = strcspn(text, " \t\r\n");

	if (!n || n >= sizeof(r->token) || text[n + strspn(text + n, " \t\r\n")])
		return ward_fail(e, EINVAL, "%.300s holds no key: one word is expected", from);
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f)
			return ward_fail(e, EINVAL, "%.300s: a key is plain ASCII", from);
	memcpy(r->token, text, n);
	r->token[n] = '\0';
	return 0;
}

int remote_read_token(struct remote *r, struct ward_err *e)
{
	const char *given = getenv("WARD_TOKEN"), *path = r->token_file;
	char usual[PATH_MAX];
	auto_buf text = { 0 };
	auto_fd fd = -1;

	if (!path && given && *given)
		return take_token(r, given, "WARD_TOKEN", e);
	if (!path && usual_file(usual, sizeof(usual), e) < 0)
		return -e->code;
	path = path ? path : usual;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		ward_fail_errno(e, "no key for the server: %.300s", path);
		return ward_remedy(e, "set WARD_TOKEN, or write a key of ward serve --add-key "
				      "there (chmod 600)");
	}
	if (check_file(fd, path, e) < 0)
		return -EACCES;
	if (io_read_all(fd, 4096, &text) < 0)
		return ward_fail(e, EINVAL, "cannot read %.300s, or it is too long", path);
	return take_token(r, buf_text(&text), path, e);
}

/*
 * sudo, as programs and people of a sandbox call it. In: its usual options, from inside. Out: the
 * command, executed in place of this program as the user that was asked for. No rights come with
 * that: all users of a sandbox are names of one id, and "root" is the name whose home is /root
 * (person.h). So no password is asked for, and what needs real rights of root fails as it would
 * without sudo. The environment is reset as sudo's own default has it.
 */
#include "envd/sudo.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "envd/person.h"

#define SHELL "/bin/sh"
#define USAGE_EXIT 1

/* What of the caller's variables stays without -E; "*" at the end: any rest. */
static const char *const kept[] = { "PATH", "TERM",  "COLORTERM", "LANG",   "LANGUAGE", "LC_*",
				    "TZ",   "WARD*", "E2B_*",     "TMPDIR", "DISPLAY" };

struct request {
	const char *user;
	const char *keep; /* more names with commas between; NULL: none */
	bool keep_all, shell, login, check_only;
};

static bool matches(const char *name, size_t n, const char *pattern, size_t m)
{
	if (m && pattern[m - 1] == '*')
		return n >= m - 1 && memcmp(name, pattern, m - 1) == 0;
	return n == m && memcmp(name, pattern, n) == 0;
}

static bool stays(const struct request *q, const char *line)
{
	size_t n = strcspn(line, "="), m;

	if (q->keep_all)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (matches(line, n, kept[i], strlen(kept[i])))
			return true;
	for (const char *at = q->keep; at && *at; at += m + (at[m] == ',')) {
		m = strcspn(at, ",");
		if (matches(line, n, at, m))
			return true;
	}
	return false;
}

static const struct option options[] = {
	{ "user", required_argument, NULL, 'u' },
	{ "preserve-env", optional_argument, NULL, 'e' },
	{ "set-home", no_argument, NULL, 'H' },
	{ "non-interactive", no_argument, NULL, 'n' },
	{ "stdin", no_argument, NULL, 'S' },
	{ "shell", no_argument, NULL, 's' },
	{ "login", no_argument, NULL, 'i' },
	{ "validate", no_argument, NULL, 'v' },
	{ "list", no_argument, NULL, 'l' },
	{ "reset-timestamp", no_argument, NULL, 'k' },
	{ "remove-timestamp", no_argument, NULL, 'K' },
	{ 0 },
};

static bool read_options(int argc, char **argv, struct request *q)
{
	int o;

	opterr = 0;
	while ((o = getopt_long(argc, argv, "+u:EHnSsivlkK", options, NULL)) != -1)
		if (o == 'u')
			q->user = optarg;
		else if (o == 'E' || (o == 'e' && !optarg))
			q->keep_all = true;
		else if (o == 'e')
			q->keep = optarg;
		else if (o == 's')
			q->shell = true;
		else if (o == 'i')
			q->login = q->shell = true;
		else if (o == 'v' || o == 'l' || o == 'k' || o == 'K')
			q->check_only = true;
		else if (o == '?')
			return false;
	return true;
}

static void make_env(const struct request *q, const struct person *p, struct strv *out)
{
	const char *name = getenv("LOGNAME"), *shell = getenv("SHELL");

	for (char **e = environ; *e; e++)
		if (stays(q, *e))
			strv_add(out, *e);
	strv_addf(out, "HOME=%s", p->home);
	strv_addf(out, "USER=%s", p->name);
	strv_addf(out, "LOGNAME=%s", p->name);
	strv_addf(out, "SHELL=%s", shell ? shell : SHELL);
	strv_addf(out, "SUDO_USER=%s", name ? name : "user");
	strv_addf(out, "SUDO_UID=%u", (unsigned)getuid());
	strv_addf(out, "SUDO_GID=%u", (unsigned)getgid());
}

/* The variable that a word in front of the command sets. */
static bool is_setting(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n && word[n] == '=' && !(*word >= '0' && *word <= '9');
}

/* A shell gets the words as one line, each character that might mean something to it escaped. */
static void quote(char **words, struct buf *out)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-$";

	for (char **w = words; *w; w++) {
		buf_puts(out, w == words ? "" : " ");
		for (const char *c = *w; *c; c++)
			buf_printf(out, strchr(plain, *c) ? "%c" : "\\%c", *c);
	}
}

/* The words that are executed. */
static void make_words(const struct request *q, char **words, struct strv *out)
{
	const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : SHELL;
	auto_buf line = { 0 };

	if (!q->shell) {
		for (; *words; words++)
			strv_add(out, *words);
		return;
	}
	strv_add(out, shell);
	if (q->login)
		strv_add(out, "-l");
	if (!*words)
		return;
	quote(words, &line);
	strv_add(out, "-c");
	strv_add(out, buf_text(&line));
	out->failed |= line.failed;
}

static int run(const struct request *q, const struct person *p, char **words)
{
	auto_strv env = { 0 }, argv = { 0 };

	make_env(q, p, &env);
	for (; *words && is_setting(*words); words++)
		strv_add(&env, *words);
	make_words(q, words, &argv);
	if (env.failed || argv.failed) {
		fprintf(stderr, "sudo: out of memory\n");
		return USAGE_EXIT;
	}
	if (!argv.len) {
		fprintf(stderr, "usage: sudo [-EHnSis] [-u user] [VAR=value] [command]\n");
		return USAGE_EXIT;
	}
	if (q->login && chdir(p->home) < 0)
		fprintf(stderr, "sudo: cannot change to %s: %s\n", p->home, strerror(errno));
	execvpe(argv.items[0], argv.items, env.items);
	fprintf(stderr, "sudo: %s: %s\n", argv.items[0],
		errno == ENOENT ? "command not found" : strerror(errno));
	return USAGE_EXIT;
}

int sudo_main(int argc, char **argv)
{
	struct request q = { .user = "root" };
	struct person p;

	if (!read_options(argc, argv, &q)) {
		fprintf(stderr, "sudo: this sandbox's sudo has -E, -H, -i, -n, -S, -s and -u\n");
		return USAGE_EXIT;
	}
	if (person_find(q.user, &p) < 0) {
		fprintf(stderr, "sudo: there is no user %s in this sandbox\n", q.user);
		return USAGE_EXIT;
	}
	if (q.check_only && !argv[optind])
		return 0;
	return run(&q, &p, argv + optind);
}

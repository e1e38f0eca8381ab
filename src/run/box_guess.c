/*
 * A command that failed without a refusal that ward has seen. In: its words, and what `sh -c` in
 * them says. Out: a denial for each path in them that the host has and the sandbox does not, a
 * note for one that is read-only inside and that a program writes to, and a note for a program
 * that no sandbox lets do its work (tables/known.def). Opens of files are not watched in an
 * ordinary run, because that costs every program time: this is a guess from what the user typed,
 * as box_words.c guesses from what the command said, and --hints is the way to know, which a note
 * says where nothing else was found and the command had worked for a while. Looks at names alone
 * (walk_names.h); runs in the supervisor after the sandbox is dead.
 */
#include "run/box_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "event/table_names.h"
#include "model/inner.h"
#include "observe/learn_path.h"
#include "observe/unreached.h"
#include "observe/walk_names.h"
#include "plan/path_view.h"

#define REPORTED_MAX 3
#define WORD_MAX 1024
#define WORDS_MAX 500
#define NOT_FOUND 127
/* A shorter run that fails is often an answer (grep, test, diff), and nobody misses a file. */
#define WORK_MS 2000

bool box_is_on_host(const char *path)
{
	auto_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char ignored[PATH_MAX];

	return root >= 0 && walk_names(root, path, false, ignored) == WALK_THERE;
}

/* It was seen: no guess is needed. */
bool box_is_reported(const struct result *r, const char *path)
{
	for (size_t i = 0; i < r->denial_count; i++)
		if (r->denials[i].what && strstr(r->denials[i].what, path))
			return true;
	return false;
}

/* remedy: words, or NULL for the mount itself. */
static void report_file(struct result *r, const char *path, const char *host, const char *why,
			const char *words)
{
	struct ward_event v = event_make(EVENT_FILE_MISSING, ACTION_DENY, path);
	auto_buf what = { 0 }, remedy = { 0 };

	buf_puts(&what, "file ");
	text_escape(&what, path);
	if (words)
		buf_puts(&remedy, words);
	else if (strcmp(path, host) == 0)
		buf_printf(&remedy, "filesystem.host_mounts: [{path: \"%s\"}]", path);
	else
		buf_printf(&remedy, "filesystem.host_mounts: [{path: \"%s\", at: \"%s\"}]", host,
			   path);
	if (what.failed || remedy.failed)
		return;
	event_text(&v, FIELD_RULE, "filesystem.host_mounts");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(r->events, &v);
	result_deny(r, buf_text(&what), why, buf_text(&remedy));
}

void box_report_mount(struct result *r, const char *path, const char *host, const char *why)
{
	report_file(r, path, host, why, NULL);
}

void box_report_missing(struct result *r, const char *path, const char *host, const char *why)
{
	const char *words = unreached_socket_advice(host);

	if ((!words || !*words) &&
	    (!text_is_plain(host) || !learn_may_advise(host, getenv("HOME"), false)))
		words = "it may contain credentials, or too much, so ward suggests no option; "
			"mount a copy without them: --ro DIR";
	report_file(r, path, host, why, words && *words ? words : NULL);
}

/* Directories of the system: no sandbox can write there, whether the file exists inside or not. */
bool box_is_systems(const char *path)
{
	static const char *const dirs[] = { "/etc", "/usr", "/opt", "/var", "/lib", "/srv" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (path_is_beneath(path, dirs[i]))
			return true;
	return false;
}

/* A directory of the host that a command may be shown to write to: not the system's, not one that
 * the workspace lies in. */
static bool may_be_written(const struct box *b, const char *dir)
{
	return text_is_plain(dir) && !box_is_systems(dir) &&
	       !path_is_beneath(b->plan->workspace, dir) && box_is_on_host(dir) &&
	       learn_may_advise(dir, getenv("HOME"), false);
}

/* A directory around the workspace that has nothing else of worth: builds write packages there. */
static bool is_around(const struct box *b, const char *dir)
{
	return strcmp(dir, b->plan->workspace) != 0 && path_is_beneath(b->plan->workspace, dir) &&
	       text_is_plain(dir) && learn_may_advise(dir, getenv("HOME"), false);
}

void box_report_kernels(struct box *b, const char *path)
{
	static const char why[] = "of the kernel's own files, a sandbox has its own processes' and "
				  "a few others, read-only",
			  remedy[] = "no option gives it; run the command outside";
	struct ward_event v = event_make(EVENT_FILE_MISSING, ACTION_DENY, path);
	auto_buf what = { 0 };

	if (box_is_reported(b->result, path))
		return;
	buf_puts(&what, "file ");
	text_escape(&what, path);
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, remedy);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	if (!what.failed)
		result_deny(b->result, buf_text(&what), why, remedy);
}

/* verb: what the command wanted with it. */
static void report_unwritable(struct box *b, const char *path, const char *verb, const char *why)
{
	struct ward_event v = event_make(EVENT_FILE_CHANGE, ACTION_DENY, path);
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	auto_buf what = { 0 }, remedy = { 0 };

	if (box_is_reported(b->result, path))
		return;
	buf_printf(&what, "%s ", verb);
	text_escape(&what, path);
	if (path_is_beneath(path, b->plan->workspace))
		buf_puts(&remedy, "--set filesystem.mode=read_write");
	else if (dir && is_around(b, dir))
		buf_printf(&remedy, "--workspace %s; it is the directory around the project", dir);
	else if (dir && may_be_written(b, dir))
		buf_printf(&remedy, "filesystem.host_mounts: [{path: \"%s\", mode: read_write}]",
			   dir);
	else
		buf_puts(&remedy, "write to the workspace, /tmp or ~, or mount a directory of the "
				  "host writable: --rw DIR");
	if (what.failed || remedy.failed)
		return;
	event_text(&v, FIELD_RULE, "filesystem.host_mounts");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&remedy));
}

void box_report_unwritable(struct box *b, const char *path)
{
	if (path_is_beneath(path, "/proc") || path_is_beneath(path, "/sys"))
		box_report_kernels(b, path);
	else
		report_unwritable(b, path, "writing", "it cannot be written inside");
}

void box_report_absent(struct box *b, const char *path)
{
	report_unwritable(b, path, "file",
			  "the host does not have it either; nor can it be made inside, where its "
			  "directory does not exist");
}

struct look {
	struct box *b;
	struct path_view view;
	bool writes; /* one of the words so far is a program that writes, or a redirection */
	bool noted;  /* one note is enough */
	size_t words, reported;
};

static bool is_writer(const char *word)
{
	static const char *const writers[] = { "touch", "mkdir", "cp",  "mv",      "rm",   "tee",
					       "ln",    "dd",    "sed", "install", "chmod" };

	for (size_t i = 0; i < ARRAY_LEN(writers); i++)
		if (strcmp(word, writers[i]) == 0)
			return true;
	return strchr(word, '>') != NULL;
}

/* Below a directory that the sandbox has for itself, such as /tmp. That directory itself is there,
 * and what the command may have written there is its own. */
static bool is_elsewhere(const struct look *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *parent = strndup(path, (size_t)(slash - path));

	return !l->writes && parent && *parent &&
	       path_view_find(&l->view, parent, NULL) == PATH_VIEW_PRIVATE;
}

static void look_at_path(struct look *l, const char *word)
{
	auto_free char *path = path_clean(word);
	enum path_view_access access;

	if (!path || strcmp(path, "/") == 0 || l->reported == REPORTED_MAX ||
	    box_is_reported(l->b->result, path))
		return;
	access = path_view_find(&l->view, path, NULL);
	if (l->writes && box_is_systems(path) && access < PATH_VIEW_PRIVATE) {
		if (!l->noted)
			box_report_unwritable(l->b, path);
		l->noted = true;
	} else if (access == PATH_VIEW_ABSENT && box_is_on_host(path)) {
		box_report_missing(l->b->result, path, path,
				   "the host has it, the sandbox does not");
		l->reported++;
	} else if (access == PATH_VIEW_PRIVATE && is_elsewhere(l, path) && box_is_on_host(path)) {
		box_report_missing(l->b->result, path, path,
				   "the host has it; the sandbox has a directory of its own there");
		l->reported++;
	}
}

const char *box_known_program(const char *word)
{
	static const struct {
		const char *program, *advice;
	} known[] = {
#define KNOWN(program, advice) { program, advice },
#include "known.def"
	};
	const char *slash = strrchr(word, '/');

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(slash ? slash + 1 : word, known[i].program) == 0)
			return known[i].advice;
	return NULL;
}

static void look_at_program(struct look *l, const char *word)
{
	const char *advice = l->noted ? NULL : box_known_program(word), *slash = strrchr(word, '/'),
		   *name = slash ? slash + 1 : word;
	struct ward_event v = event_make(EVENT_EXEC, ACTION_DENY, name);

	if (!advice)
		return;
	l->noted = true;
	strv_addf(&l->b->result->loud, "%s: %s", name, advice);
	strv_addf(&l->b->result->notes, "%s: %s", name, advice);
	event_text(&v, FIELD_WHY, "it does not work in a sandbox as it does outside");
	event_text(&v, FIELD_REMEDY, advice);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(l->b->result->events, &v);
}

/* Each word of a text; where it is a command, the first one and those behind an operator are
 * programs. */
static void look_at_text(struct look *l, const char *text, bool command)
{
	static const char between[] = " \t\n;|&()'\"`<\\";
	bool first = command;

	while (*text && l->words++ < WORDS_MAX) {
		size_t gap = strspn(text, between), n;
		char word[WORD_MAX];
		const char *at = word;

		if (command && (memchr(text, ';', gap) || memchr(text, '|', gap) ||
				memchr(text, '&', gap) || memchr(text, '\n', gap))) {
			first = true;
			l->writes = false; /* that was another command */
		}
		text += gap;
		n = strcspn(text, between);
		if (!n)
			break;
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		text += n;
		l->writes |= is_writer(word);
		at += strspn(at, "0123456789>");
		if (first)
			look_at_program(l, at);
		if (*at == '/')
			look_at_path(l, at);
		first = false;
	}
}

bool box_is_script(char *const *argv, size_t i)
{
	return i && argv[i - 1][0] == '-' && strchr(argv[i - 1], 'c');
}

/* Behind an inner runtime most refusals are its own. A status of 1 without a word is an answer (of
 * grep, test, diff) rather than a failure. */
static bool name_unseen(struct box *b)
{
	const struct unseen *u = unseen_behind(plan_isolation(b->plan));
	struct result *r = b->result;

	/* --hints shows which programs are looked for, where the files are those of the sandbox */
	if (!u || (r->exit_code == NOT_FOUND && b->plan->spec->inner->own_view))
		return false;
	if (r->exit_code != 1 || b->streams.tail.kept.len || io_now_ms() - b->started_ms >= WORK_MS)
		strv_addf(&r->loud,
			  "the command failed; ward saw no refusal, but it does not see %s%s%s",
			  u->what, *u->next ? "; remedy: " : "", u->next);
	return true;
}

/* A build or a test that misses a file deep inside must not fail in silence. */
static void name_hints(struct box *b)
{
	struct result *r = b->result;

	if (r->denial_count || r->loud.len > b->told || r->exit_signal || name_unseen(b))
		return;
	if (r->exit_code == NOT_FOUND && b->uncalled[0])
		strv_addf(&r->loud,
			  "exit 127: %s is not on your PATH either: check its name, install it, or "
			  "mount its directory with --ro DIR",
			  b->uncalled);
	else if (r->exit_code == NOT_FOUND)
		strv_add(&r->loud,
			 "exit 127: a program that the command called was not found inside; "
			 "remedy: --hints; it names what was looked for");
	else if (b->unnamed)
		strv_add(&r->loud,
			 "the command could not open or write a file that its message does not "
			 "name; remedy: --hints; it names it");
	else if (io_now_ms() - b->started_ms >= WORK_MS)
		strv_add(&r->loud,
			 "the command failed, and ward saw no refusal, but an ordinary run does "
			 "not watch for files that do not exist inside; remedy: --hints; it names "
			 "them");
}

void box_guess(struct box *b)
{
	struct look l = { .b = b };
	char *const *argv = b->plan->argv;

	if (!b->result->exit_code || b->limited || b->failed || b->forwarded || !argv || !argv[0])
		return;
	if (b->plan->image.root || b->plan->spec->observe) {
		/* its files are the image's, or are watched */
		if (b->plan->spec->inner)
			name_hints(b);
		return;
	}
	l.view = path_view_of(b->plan);
	l.writes = is_writer(argv[0]);
	look_at_program(&l, argv[0]);
	for (size_t i = 1; argv[i]; i++) {
		if (box_is_script(argv, i))
			look_at_text(&l, argv[i], true);
		else if (argv[i][0] == '/' && !strpbrk(argv[i], " \n"))
			look_at_path(&l, argv[i]);
	}
	name_hints(b);
}

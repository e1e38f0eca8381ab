/*
 * A command that ended with 127: a shell in it did not find a program. In: the words of the
 * command, and the script or makefile that they name in the workspace. Out: one denial for each
 * program that is called there, that the host's PATH has, and that the sandbox does not, with the
 * mount that shows it; or a note how to find out. Shells look up programs with calls that ward does
 * not watch, so this file reads what the shell read: a guess, not evidence. The texts are hostile:
 * ward reads at most TEXT_MAX bytes and WORDS_MAX words, and only checks whether a program of that
 * name exists. Runs in the supervisor after the sandbox is dead.
 */
#include "run/box.h"
#include "run/box_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "observe/learn_path.h"
#include "plan/path_view.h"

#define TEXT_MAX (64 * 1024)
#define WORDS_MAX 2000
#define NAME_MAX_LEN 64
#define REPORTED_MAX 3
#define NOT_FOUND 127

/* What a program that runs others reads when nothing else is named. */
static const struct reader {
	const char *program, *file;
} readers[] = {
	{ "make", "Makefile" },    { "make", "makefile" },          { "gmake", "Makefile" },
	{ "npm", "package.json" }, { "yarn", "package.json" },      { "pnpm", "package.json" },
	{ "just", "justfile" },    { "task", "Taskfile.yml" },      { "rake", "Rakefile" },
	{ "bun", "package.json" }, { "composer", "composer.json" }, { "deno", "deno.json" },
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_shell(const char *name)
{
	static const char shells[][5] = { "sh", "bash", "dash", "ash", "zsh", "ksh" };

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (strcmp(last_part(name), shells[i]) == 0)
			return true;
	return false;
}

/* A file of the workspace, as the command names it. */
static void add_file(const struct plan *p, const char *name, struct buf *out)
{
	auto_free char *path = path_join(p->cwd, name);
	auto_fd root = -1, fd = -1;
	struct ward_err ignored = { 0 };
	auto_buf text = { 0 };
	struct stat st;

	if (!path || !path_is_beneath(path, p->workspace) || strcmp(path, p->workspace) == 0)
		return;
	root = open(p->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0)
		fd = path_open_beneath(root, path + strlen(p->workspace) + 1,
				       O_RDONLY | O_NONBLOCK | O_NOCTTY, &ignored);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > TEXT_MAX ||
	    io_read_all(fd, TEXT_MAX, &text) < 0 || memchr(buf_text(&text), 0, text.len))
		return;
	buf_add(out, buf_text(&text), text.len);
	buf_puts(out, "\n");
}

/* Everything that a shell of the command may have read. */
static void collect(const struct plan *p, struct buf *out)
{
	char *const *argv = p->argv;

	for (size_t i = 0; argv[i] && out->len < TEXT_MAX; i++) {
		if (box_is_script(argv, i)) {
			buf_puts(out, argv[i]);
			buf_puts(out, "\n");
		} else if (argv[i][0] != '-' && !is_shell(argv[i])) {
			add_file(p, argv[i], out);
		}
		for (size_t k = 0; k < ARRAY_LEN(readers); k++)
			if (strcmp(last_part(argv[i]), readers[k].program) == 0)
				add_file(p, readers[k].file, out);
	}
}

/* The directory of the host's PATH that has the program, where no directory that is seen inside has
 * it; NULL: none. The caller frees. */
static char *find_on_host(const struct path_view *view, const char *name)
{
	char *found = NULL;

	for (const char *dirs = getenv("PATH"); dirs && *dirs; dirs += *dirs == ':') {
		size_t n = strcspn(dirs, ":");
		auto_free char *dir = *dirs == '/' ? strndup(dirs, n) : NULL;
		auto_free char *file = dir ? path_join(dir, name) : NULL;
		enum path_view_access access;
		struct stat st;

		dirs += n;
		if (!file || stat(file, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
			continue;
		access = path_view_find(view, file, NULL);
		if (access != PATH_VIEW_ABSENT && access != PATH_VIEW_PRIVATE) {
			free(found);
			return NULL; /* it was found inside */
		}
		if (!found)
			found = take_ptr(dir);
	}
	return found;
}

static void tell(struct box *b, const char *name, const char *dir)
{
	struct result *r = b->result;
	struct ward_event v = event_make(EVENT_EXEC, ACTION_DENY, name);
	auto_buf what = { 0 }, why = { 0 }, remedy = { 0 };

	buf_printf(&what, "program %s", name);
	buf_puts(&why, "the host has it in ");
	text_escape(&why, dir);
	buf_puts(&why, ", the sandbox does not");
	if (b->plan->level == LEVEL_LANDLOCK)
		box_put_path(dir, name, &remedy);
	else if (text_is_plain(dir) && learn_may_advise(dir, getenv("HOME"), true))
		buf_printf(&remedy, "filesystem.host_mounts: [{path: \"%s\"}]", dir);
	else
		buf_printf(&remedy, "filesystem.programs: [\"%s\"]", name);
	if (what.failed || why.failed || remedy.failed)
		return;
	event_text(&v, FIELD_WHY, buf_text(&why));
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_emit(r->events, &v);
	result_deny(r, buf_text(&what), buf_text(&why), buf_text(&remedy));
}

bool box_report_called(struct box *b, const char *name)
{
	struct path_view view = path_view_of(b->plan);
	auto_free char *dir = NULL;
	auto_buf what = { 0 };

	buf_printf(&what, "program %s", name);
	for (size_t i = 0; i < b->result->denial_count; i++)
		if (b->result->denials[i].what &&
		    strcmp(b->result->denials[i].what, buf_text(&what)) == 0)
			return true;
	dir = find_on_host(&view, name);
	if (dir)
		tell(b, name, dir);
	return dir;
}

static bool is_part(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == '+';
}

static void tell_words(struct box *b, const char *text)
{
	auto_strv seen = { 0 };
	size_t reported = 0;

	for (; *text && seen.len < WORDS_MAX && reported < REPORTED_MAX;) {
		auto_free char *name = NULL;
		size_t n = 0;

		while (is_part(text[n]))
			n++;
		name = n && n < NAME_MAX_LEN ? strndup(text, n) : NULL;
		text += n ? n : 1;
		if (!name || *name == '.' || *name == '-' || strv_has(&seen, name))
			continue;
		strv_add(&seen, name);
		reported += box_report_called(b, name);
	}
}

void box_explain_called(struct box *b)
{
	auto_buf text = { 0 };

	if (b->failed || b->result->exit_code != NOT_FOUND || !b->plan->argv ||
	    b->plan->image.root || b->plan->spec->observe)
		return;
	collect(b->plan, &text);
	if (!text.failed)
		tell_words(b, buf_text(&text));
}

/*
 * What mise runs and loads when a person enters a directory. In: the text of a configuration that
 * was there before the run, which is the person's. Out: the files that it names, guarded whether
 * they are there or not. Runs in the supervisor before the sandbox starts; changes nothing.
 *
 * Strings count, not TOML: each one is read as a command in hooks and in templates with exec(),
 * and as a file where its statement loads files (env._.source, env._.file). Sections of tasks do
 * not count, which a person runs on purpose, unless hooks are there that may start one.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "guard/guard_leads.h"

#define DEPTH_MAX 3

struct reading {
	struct follow *f;
	const char *origin;
	const char *const *bases;
	size_t base_count;
};

bool calls_is_mise(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(path);

	if (n < 5 || strcmp(path + n - 5, ".toml") != 0)
		return false;
	name += *name == '.';
	return strncmp(name, "mise", 4) == 0 || strncmp(path, "mise/", 5) == 0 ||
	       strncmp(path, ".mise/", 6) == 0 || strstr(path, "/mise/") || strstr(path, "/.mise/");
}

/* The length of dir without the part that is mise's own: .config/mise/conf.d/x of a/.config/... */
static size_t root_length(const char *dir)
{
	static const char *const own[] = { "/.config/mise/", "/.mise/", "/mise/", "/.config/" };
	auto_free char *text = NULL;

	if (asprintf(&text, "%s/", dir) < 0)
		text = NULL;
	for (size_t i = 0; text && i < sizeof(own) / sizeof(*own); i++) {
		const char *at = strstr(text, own[i]), *last = NULL;

		for (; at; at = strstr(at + 1, own[i]))
			last = at;
		if (last)
			return (size_t)(last - text);
	}
	return strlen(dir);
}

static int follow_text(const struct reading *r, const char *text, bool is_file)
{
	struct leads_command c = { .text = text,
				   .len = strlen(text),
				   .bases = r->bases,
				   .base_count = r->base_count,
				   .programs_only = !is_file,
				   .missing = true,
				   .origin = r->origin };
	bool opaque;

	return leads_command(r->f, &c, &opaque);
}

/* One string: n bytes. Templates in front of a path stand for the configuration's directory. */
static int on_string(const struct reading *r, const char *text, size_t n, bool is_file)
{
	const char *end = text + n, *tail = text;
	auto_buf word = { 0 };
	const char *open;

	while ((open = memmem(tail, (size_t)(end - tail), "}}", 2)))
		tail = open + 2;
	if (tail > text)
		tail += strspn(tail, "/ ") < (size_t)(end - tail) ? strspn(tail, "/ ")
								  : (size_t)(end - tail);
	if (!is_file)
		buf_add(&word, text, n);
	else if (tail < end && !memchr(tail, '\'', (size_t)(end - tail)))
		buf_printf(&word, *tail == '/' || *tail == '~' ? "%.*s" : "'./%.*s'",
			   (int)(end - tail), tail);
	if (word.failed)
		return ward_fail(r->f->e, ENOMEM, "out of memory");
	return word.len ? follow_text(r, word.data, is_file) : 0;
}

/* Every string of the text, and those inside of strings. */
static int on_strings(const struct reading *r, const char *text, size_t n, bool is_file, int depth)
{
	int status = 0;

	for (size_t i = 0; i < n && status >= 0; i++) {
		const char *end;
		size_t len;

		if (text[i] != '"' && text[i] != '\'')
			continue;
		end = memchr(text + i + 1, text[i], n - i - 1);
		len = end ? (size_t)(end - text) - i - 1 : n - i - 1;
		status = on_string(r, text + i + 1, len, is_file);
		if (status >= 0 && depth < DEPTH_MAX)
			status = on_strings(r, text + i + 1, len, is_file, depth + 1);
		i += len + 1;
	}
	return status;
}

/* The length of the statement at text: up to a line that begins with a key or a section. */
static size_t statement(const char *text, size_t n)
{
	const char *line = memchr(text, '\n', n);

	while (line && line + 1 < text + n) {
		size_t left = n - (size_t)(line + 1 - text), len;
		const char *next = memchr(line + 1, '\n', left);

		len = next ? (size_t)(next - line) - 1 : left;
		if (line[1] == '[' || (line[1] != ' ' && line[1] != '\t' && line[1] != ']' &&
				       line[1] != '}' && memchr(line + 1, '=', len)))
			return (size_t)(line + 1 - text);
		line = next;
	}
	return n;
}

static bool has(const char *text, size_t n, const char *what)
{
	return memmem(text, n, what, strlen(what));
}

/* Whether the strings of a statement are commands: of hooks, or of templates. */
static bool is_command(const char *section, size_t section_len, const char *s, size_t n)
{
	return has(section, section_len, "hooks") || has(section, section_len, "watch_files") ||
	       has(s, n, "exec(") || strncmp(s, "hooks", 5) == 0 ||
	       strncmp(s, "watch_files", 11) == 0;
}

/* Whether they are files that mise loads: env._.source, env._.file, in whatever way TOML writes
 * that. A variable whose value is a file's name is none. */
static bool is_loading(const char *section, size_t section_len, const char *s, size_t n)
{
	if (has(s, n, "_.source") || has(s, n, "_.file") || strncmp(s, "env_file", 8) == 0)
		return true;
	return (has(s, n, "source") || has(s, n, "file")) &&
	       (has(section, section_len, "._") || *s == '_' || strncmp(s, "env", 3) == 0);
}

static int read_statements(const struct reading *r, const char *text, size_t n)
{
	bool hooks = has(text, n, "hooks");
	const char *section = "";
	size_t section_len = 0;
	int status = 0;

	for (size_t at = 0, len; at < n && status >= 0; at += len) {
		const char *s = text + at;

		len = statement(s, n - at);
		if (*s == '[') {
			section = s;
			section_len = strcspn(s, "\n") < len ? strcspn(s, "\n") : len;
		}
		if (!hooks && has(section, section_len, "tasks"))
			continue;
		if (is_command(section, section_len, s, len) ||
		    (hooks && has(section, section_len, "tasks")))
			status = on_strings(r, s, len, false, 0);
		if (status >= 0 && is_loading(section, section_len, s, len))
			status = on_strings(r, s, len, true, DEPTH_MAX);
	}
	return status;
}

int calls_follow_mise(struct follow *f, const char *path, const struct buf *text)
{
	const char *slash = strrchr(path, '/');
	auto_free char *part = strndup(path, slash ? (size_t)(slash - path) : 0);
	auto_free char *dir = part ? path_join(f->g->path, *part ? part : ".") : NULL;
	auto_free char *top = NULL;
	const char *bases[2];

	if (dir && !*part)
		dir[strlen(f->g->path)] = '\0';
	if (dir)
		top = strndup(dir, root_length(dir));
	if (!top)
		return ward_fail(f->e, ENOMEM, "out of memory");
	bases[0] = path_is_beneath(top, f->g->path) ? top : f->g->path;
	bases[1] = dir;
	return read_statements(&(struct reading){ .f = f,
						  .origin = path,
						  .bases = bases,
						  .base_count = strcmp(top, dir) == 0 ? 1 : 2 },
			       text->data, text->len);
}

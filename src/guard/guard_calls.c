/*
 * What hooks call. In: the words of a command line, or a hook's text. Out: the files of the tree
 * among them, guarded. Runs in the supervisor before the sandbox starts; changes nothing.
 *
 * A hook that is there before the run is the operator's; a script of the project that it starts is
 * what an agent would rewrite. So the text of hooks and of what configures hook managers is read
 * for words that name a program of the tree: an executable file, the first word of a command, or
 * what stands behind an interpreter. Other files (what a linter looks at) stay writable. A shell
 * script that is found in this way is read like a hook, up to a bound. A script that is named and
 * not there must not be made; what direnv's functions load is guarded, too, and what an .envrc
 * names by a pattern or in a directory that a variable holds.
 */
#include "guard/guard_leads.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <string.h>

#include "base/io.h"
#include "base/path.h"
#include "policy/command.h"

#define CALLS_BYTES_MAX (256u << 10)
#define BASES_MAX 16

struct naming {
	struct follow *f;
	const struct leads_command *c;
	struct strv bases;
};

struct probe {
	const struct guard_root *g;
	bool is_inside, is_file, is_dir, is_executable, is_missing;
};

static int see_place(void *ctx, const struct trail_place *place)
{
	struct probe *p = ctx;

	if (place->kind == TRAIL_LINK || place->kind == TRAIL_BACK) {
		p->is_inside |=
			place->kind == TRAIL_LINK && path_is_beneath(place->path, p->g->path);
		return 0;
	}
	p->is_inside |= path_is_beneath(place->path, p->g->path);
	p->is_missing = place->kind == TRAIL_MISSING;
	if (p->is_missing)
		return 0;
	p->is_file = S_ISREG(place->st->st_mode);
	p->is_dir = S_ISDIR(place->st->st_mode);
	p->is_executable = p->is_file && place->st->st_mode & 0111;
	return 0;
}

static bool is_plain(const char *text)
{
	return !strpbrk(text, "{}()*?[]|<>$;=\"'`");
}

static bool is_wanted(const struct naming *n, const struct probe *p,
		      const struct command_word *word, const char *text)
{
	bool script = word->is_script || command_is_script(text);

	if (!p->is_inside)
		return false;
	if (n->c->programs_only && p->is_missing)
		return n->c->missing && (n->c->loads || !word->is_expanded) &&
		       (word->is_script || (word->is_first && strchr(text, '/'))) && is_plain(text);
	if (n->c->programs_only)
		return p->is_file && (p->is_executable || word->is_script || word->is_first ||
				      (n->c->by_name && script));
	if (p->is_dir)
		return word->is_script && !word->is_directory;
	return p->is_file || (p->is_missing && (strchr(text, '/') || script));
}

/* A directory that the command goes to, or that a variable of a script holds: what is named from
 * there on may lie in it, also where the directory is not there yet. */
static void add_base(struct naming *n, const struct command_word *word, const struct probe *p,
		     const char *base, const char *text)
{
	bool held = word->is_value && n->c->missing, path = word->is_expanded || strchr(text, '/');
	auto_free char *there = NULL, *real = NULL;

	if (!p->is_inside || n->bases.len >= BASES_MAX || !(word->is_directory || held))
		return;
	there = path_join(base, text);
	if (there && p->is_dir)
		real = realpath(there, NULL);
	else if (there && held && path && p->is_missing && is_plain(text) && !strstr(text, ".."))
		real = take_ptr(there);
	if (real && !strv_has(&n->bases, real))
		strv_add(&n->bases, real);
}

/* One reading of a word in one directory. */
static int try_word(struct naming *n, const struct command_word *word, const char *base,
		    const char *text)
{
	struct probe p = { .g = n->f->g };
	int status;

	if (!*text || *text == '-' || *text == '%' || (word->is_first && !strchr(text, '/')))
		return 0;
	status = trail_follow(base, text, &n->f->root, see_place, &p);
	if (status < 0)
		return ward_fail(n->f->e, -status, "out of memory");
	add_base(n, word, &p, base, text);
	return is_wanted(n, &p, word, text)
		       ? follow_path(n->f, base, text, FOLLOW_NAMED, n->c->origin)
		       : 0;
}

/* "~/x" and "~user/x"; NULL: it is something else. */
char *leads_expand_home(const char *text)
{
	const char *home = getenv("HOME"), *rest = text + strcspn(text, "/");
	auto_buf passwd = { 0 };
	char *line, *all;

	if (*text != '~')
		return NULL;
	if (rest == text + 1)
		return home && *home == '/' ? path_join(home, *rest ? rest + 1 : ".") : NULL;
	if (io_read_file(AT_FDCWD, "/etc/passwd", 1u << 20, &passwd) < 0)
		return NULL;
	all = passwd.data;
	while ((line = strsep(&all, "\n"))) {
		char *name = strsep(&line, ":");

		if (strlen(name) != (size_t)(rest - text - 1) ||
		    strncmp(name, text + 1, strlen(name)) != 0)
			continue;
		for (int field = 0; field < 4 && line; field++)
			strsep(&line, ":");
		name = line ? strsep(&line, ":") : NULL;
		return name && *name == '/' ? path_join(name, *rest ? rest + 1 : ".") : NULL;
	}
	return NULL;
}

/* What functions of direnv load by themselves: a word of an .envrc, and files beside it. */
static const struct {
	const char *word, *file;
} loaded[] = {
	{ "dotenv", ".env" },
	{ "dotenv_if_exists", ".env" },
	{ "nix", "shell.nix" },
	{ "nix", "default.nix" },
	{ "use_nix", "shell.nix" },
	{ "use_nix", "default.nix" },
	{ "flake", "flake.nix" },
	{ "flake", "flake.lock" },
	{ "use_flake", "flake.nix" },
	{ "use_flake", "flake.lock" },
	{ "devenv", "devenv.nix" },
	{ "devenv", "devenv.yaml" },
	{ "devenv", "devenv.lock" },
	{ "use_devenv", "devenv.nix" },
	{ "use_devenv", "devenv.yaml" },
	{ "use_devenv", "devenv.lock" },
	{ "devbox", "devbox.json" },
	{ "devbox", "devbox.lock" },
	{ "guix", "guix.scm" },
	{ "guix", "manifest.scm" },
};

/* Programs in these directories are the project's, and agents install them. */
static const char *const path_words[] = { "PATH_add", "path_add", "load_prefix", "layout" };

static int on_function(struct naming *n, const char *word)
{
	int status = 0;

	for (size_t i = 0; i < ARRAY_LEN(loaded) && status >= 0; i++)
		if (strcmp(word, loaded[i].word) == 0)
			status = follow_path(n->f, n->c->bases[0], loaded[i].file, FOLLOW_NAMED,
					     n->c->origin);
	for (size_t i = 0; i < ARRAY_LEN(path_words) && status >= 0; i++) {
		auto_buf note = { 0 };

		if (strcmp(word, path_words[i]) != 0)
			continue;
		buf_printf(&note,
			   "%s prepends directories to PATH (%s): programs that the command writes "
			   "there would shadow others",
			   n->c->origin, word);
		if (!note.failed && !strv_has(&n->f->g->notes, note.data))
			strv_add(&n->f->g->notes, note.data);
		if (note.failed || n->f->g->notes.failed)
			status = ward_fail(n->f->e, ENOMEM, "out of memory");
	}
	return status;
}

/* Files that an .envrc names by a pattern: those of a shell's, and what is in a directory "x.d".
 * Those that are there are guarded, and no other may come. */
static int on_pattern(struct naming *n, const char *text)
{
	const char *base = n->c->bases[0], *root = n->f->g->path, *slash = strrchr(text, '/');
	bool wanted = command_is_script(text) ||
		      (slash && slash - text > 2 && strncmp(slash - 2, ".d", 2) == 0);
	auto_free char *full = NULL;
	auto_buf rule = { 0 };
	glob_t found = { 0 };
	int status = 0;

	if (!wanted || *text == '/' || strstr(text, "..") || !path_is_beneath(base, root))
		return 0;
	for (const char *c = base + strlen(root); *c; c++)
		buf_printf(&rule, "%s%c", strchr("*?[\\! #", *c) ? "\\" : "", *c);
	text += strncmp(text, "./", 2) == 0 ? 2 : 0;
	full = path_join(base, text);
	buf_printf(&rule, "/%s", text);
	if (!full || rule.failed)
		return ward_fail(n->f->e, ENOMEM, "out of memory");
	if (glob(full, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && status >= 0; i++)
			status = follow_path(n->f, base, found.gl_pathv[i], FOLLOW_NAMED,
					     n->c->origin);
	globfree(&found);
	if (status < 0)
		return status;
	strv_add(&n->f->g->rules, rule.data);
	return n->f->g->rules.failed ? ward_fail(n->f->e, ENOMEM, "out of memory")
				     : guard_add_rules(n->f->g, rule.data, rule.len, n->f->e);
}

static int on_word(void *ctx, const struct command_word *word)
{
	struct naming *n = ctx;
	auto_free char *home = leads_expand_home(word->text);
	const char *text = home ? home : word->text, *slash = strchr(text, '/');
	int status = n->c->loads ? on_function(n, word->text) : 0;

	if (status >= 0 && n->c->loads && strpbrk(text, "*?"))
		status = on_pattern(n, text);
	if (status < 0)
		return status;
	if (word->is_expanded && slash) /* whatever the expansion gives: from the worktree, and from
					   the home directory */
		text = slash + strspn(slash, "/");
	else if (word->is_expanded)
		return 0;
	for (size_t i = 0; i < n->bases.len && status >= 0; i++)
		status = try_word(n, word, n->bases.items[i], text);
	if (status >= 0 && word->is_expanded && getenv("HOME") && *getenv("HOME") == '/') {
		auto_free char *real = realpath(getenv("HOME"), NULL);

		status = real ? try_word(n, word, real, text) : 0;
	}
	return status;
}

int leads_command(struct follow *f, const struct leads_command *c, bool *ret_opaque)
{
	struct naming n = { .f = f, .c = c };
	int status = 0;

	for (size_t i = 0; i < c->base_count; i++)
		strv_add(&n.bases, c->bases[i]);
	for (int round = 0; status >= 0 && round < 2;
	     round++) { /* "./x; cd y": a directory that is named last counts for all */
		size_t before = n.bases.len;

		status = command_words(c->text, c->len, on_word, &n, ret_opaque);
		if (n.bases.len == before)
			break;
	}
	if (n.bases.failed || (status == -ENOMEM && !f->e->code))
		status = ward_fail(f->e, ENOMEM, "out of memory");
	strv_free(&n.bases);
	return status;
}

/* Protected files that call others: the name of the directory (NULL: any) and of the file. */
static const struct {
	const char *dir, *name;
} callers[] = {
	{ "hooks", "*" },
	{ ".husky", "*" },
	{ ".githooks", "*" },
	{ NULL, ".pre-commit-config.y*ml" },
	{ NULL, "lefthook*" },
	{ NULL, ".lefthook*" },
	{ NULL, ".overcommit.yml" },
	{ NULL, ".simple-git-hooks*" },
	{ NULL, ".envrc" },
	{ NULL, ".autoenv*" },
	{ NULL, ".mcp.json" },
	{ ".claude", "settings*.json" },
	{ ".vscode", "tasks.json" },
	{ ".vscode", "mcp.json" },
	{ ".cursor", "mcp.json" },
	{ ".cursor", "hooks.json" },
	{ ".gemini", "settings.json" },
	{ ".codex", "config.toml" },
	{ NULL, "opencode.json*" },
	{ NULL, ".crush.json" },
	{ NULL, "crush.json" },
};

bool calls_others(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dir = slash;
	size_t n = strlen(name);

	if (calls_is_mise(path))
		return true;
	while (dir && dir > path && dir[-1] != '/')
		dir--;
	if (n > 7 && strcmp(name + n - 7, ".sample") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
		size_t len = callers[i].dir ? strlen(callers[i].dir) : 0;

		if (len &&
		    (!dir || (size_t)(slash - dir) != len || memcmp(dir, callers[i].dir, len) != 0))
			continue;
		if (fnmatch(callers[i].name, name, 0) == 0)
			return true;
	}
	return false;
}

/* Of an agent's settings only what names commands counts: its permissions name many a program that
 * it may ask for. */
static void keep_commands(struct buf *text)
{
	size_t kept = 0;

	for (size_t at = 0; at < text->len;) {
		const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
		size_t n = end ? (size_t)(end - line) + 1 : text->len - at;

		if (memmem(line, n, "command", 7) || memmem(line, n, "args", 4)) {
			memmove(text->data + kept, line, n);
			kept += n;
		}
		at += n;
	}
	text->len = kept;
}

static bool has_end(const char *path, const char *end)
{
	size_t n = strlen(path), len = strlen(end);

	return n > len && strcmp(path + n - len, end) == 0;
}

/* A script for a shell, by its name or its first line; what has neither is a file that a shell
 * reads into itself. */
static bool is_shell(const char *path, const struct buf *text)
{
	const char *slash = strrchr(path, '/');
	size_t line = strcspn(text->data, "\n");

	if (strncmp(text->data, "#!", 2) != 0 && !memchr(text->data, '\0', text->len) &&
	    !command_is_script(slash ? slash + 1 : path))
		return true;

	if (has_end(path, ".sh") || has_end(path, ".bash") || has_end(path, ".zsh"))
		return true;
	return line > 2 && strncmp(text->data, "#!", 2) == 0 && memmem(text->data, line, "sh", 2);
}

/* Whether direnv reads it: an .envrc, or a file that something loads instead of executing it. */
static bool is_loaded(const char *path, const struct buf *text)
{
	const char *slash = strrchr(path, '/');

	if (strncmp(slash ? slash + 1 : path, ".envrc", 6) == 0)
		return true;
	return strncmp(text->data, "#!", 2) != 0 && !strstr(path, "hooks/") &&
	       !strstr(path, ".husky/");
}

/* Hooks and managers start their commands at the top of a worktree, which is one of the directories
 * above them. */
static size_t list_bases(const char *root, const char *path, char *bases[BASES_MAX])
{
	size_t count = 0, n = strlen(path);

	while (count < BASES_MAX - 1) {
		while (n && path[n - 1] != '/')
			n--;
		if (asprintf(&bases[count], "%s%s%.*s", root[1] ? root : "",
			     n || !root[1] ? "/" : "", (int)(n ? n - 1 : 0), path) < 0)
			break;
		count++;
		if (!n)
			break;
		n--;
	}
	return count;
}

int calls_follow(struct follow *f, const char *path)
{
	char *bases[BASES_MAX];
	size_t count;
	struct ward_err gone;
	auto_fd fd = path_open_nolink(f->root_fd, path,
				      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, &gone);
	auto_buf text = { 0 };
	struct leads_command c = { .programs_only = true, .origin = path };
	struct stat st;
	bool opaque;
	int status;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, CALLS_BYTES_MAX, &text) < 0 || !text.len)
		return 0;
	if (!calls_others(path) && !is_shell(path, &text))
		return 0;
	c.by_name = has_end(path, ".json") || has_end(path, ".toml");
	c.missing = !c.by_name && !has_end(path, ".yml") && !has_end(path, ".yaml");
	c.loads = c.missing && is_loaded(path, &text);
	if (has_end(path, ".json") && strstr(path, ".claude/"))
		keep_commands(&text);
	count = list_bases(f->g->path, path, bases);
	if (!count)
		return ward_fail(f->e, ENOMEM, "out of memory");
	c.text = text.data;
	c.len = text.len;
	c.bases = (const char *const *)bases;
	c.base_count = count;
	status = leads_command(f, &c, &opaque);
	if (status >= 0 && calls_is_mise(path))
		status = calls_follow_mise(f, path, &text);
	while (count)
		free(bases[--count]);
	return status;
}

int calls_follow_outside(struct follow *f, const char *file, const char *base)
{
	auto_fd fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf text = { 0 };
	struct leads_command c = {
		.programs_only = true, .origin = file, .bases = &base, .base_count = 1
	};
	struct stat st;
	bool opaque;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || has_end(file, ".sample") ||
	    io_read_all(fd, CALLS_BYTES_MAX, &text) < 0 || !text.len)
		return 0;
	c.text = text.data;
	c.len = text.len;
	return leads_command(f, &c, &opaque);
}

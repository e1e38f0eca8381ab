/*
 * Where git configuration leads. In: the configuration of repositories in the tree, of those that
 * the tree is a part of, of the user and of the system. Out: whatever of it lies in the tree is
 * guarded. Runs in the supervisor before the sandbox starts, with the user's rights, on files that
 * a hostile project may have brought; changes nothing.
 *
 * A setting whose value is known to be harmless (tables/gitconfig.def) leads nowhere. hooksPath and
 * the like name a directory, includes name more configuration, and every other value is read as a
 * command line: each word that names a file in the tree, or could name one there, is guarded. Paths
 * are resolved as git does: "~", then from where git runs the command, through links. What a
 * command line does beyond its words (expansions, "cd") is said in the run's notes where it
 * concerns the tree.
 *
 * The user's own configuration counts in every worktree, also in one that the run makes. So what it
 * names by a relative path is a rule for any depth ("core.hooksPath = .githooks" protects every
 * .githooks).
 */
#include "guard/guard_leads.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/path.h"
#include "policy/command.h"
#include "policy/gitconfig.h"
#include "rules/git_config.h"

#define CONFIG_MAX (1u << 20)
#define INCLUDES_MAX 64
#define NOTE_MAX 120

enum lead_kind { LEAD_NONE, LEAD_CONFIG, LEAD_DIRECTORY, LEAD_COMMAND };

/* Settings that are no command lines. */
static const struct {
	const char *section, *key;
	enum lead_kind kind;
} named[] = {
	{ "include", "path", LEAD_CONFIG },
	{ "includeif", "path", LEAD_CONFIG },
	{ "core", "hookspath", LEAD_DIRECTORY },
	{ "init", "templatedir", LEAD_DIRECTORY },
};

/* Reads a regular file; anything else has no text. */
static bool read_regular(const char *path, size_t max, struct buf *text)
{
	auto_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       io_read_all(fd, max, text) == 0;
}

static enum lead_kind kind_of(const struct gitconfig_entry *entry)
{
	if (!entry->value || !*entry->value)
		return LEAD_NONE;
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (strcmp(named[i].section, entry->section) == 0 &&
		    strcmp(named[i].key, entry->key) == 0)
			return named[i].kind;
	if (strcmp(entry->section, "alias") == 0 && entry->value[0] != '!')
		return LEAD_NONE;
	return git_config_runs(entry) ? LEAD_COMMAND : LEAD_NONE;
}

/* One configuration with all that it includes. */
struct config {
	struct follow *f;
	const char *worktree; /* where its commands run */
	const char *file;     /* absolute */
	unsigned *includes;
	bool is_inside; /* the file lies in the tree, or is that of a repository around it */
	struct leads_user *user; /* what is found is kept here instead; f is NULL then */
	struct strv *more;       /* files that it includes, absolute */
};

/* What value stands for when git reads it as a path: "~" is replaced. The caller frees. */
static char *as_path(const char *value)
{
	return *value == '~' ? leads_expand_home(value) : strdup(value);
}

static char *directory_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	auto_free char *dir = slash == file ? strdup("/") : strndup(file, (size_t)(slash - file));

	return dir ? realpath(dir, NULL) : NULL;
}

static int see_include(struct config *c, const char *value)
{
	auto_free char *path = as_path(value), *dir = directory_of(c->file),
		       *full = path && dir ? path_join(dir, path) : NULL;

	if (!full)
		return 0; /* no such directory: git finds nothing there either */
	if (++*c->includes <= INCLUDES_MAX) {
		auto_free char *real = realpath(full, NULL);

		if (real && !strv_has(c->more, real))
			strv_add(c->more, real);
	}
	if (c->more->failed)
		return -ENOMEM;
	return c->f ? follow_path(c->f, dir, path, FOLLOW_PROTECT, c->file) : 0;
}

static void note_opaque(struct config *c, const struct gitconfig_entry *entry)
{
	struct strv *notes = &c->f->g->notes;
	auto_buf note = { 0 };

	buf_printf(&note,
		   "%s: %s.%s%s%s = %.*s: ward cannot determine everything that this command runs; "
		   "workspace files that it names are protected, others that it runs are not",
		   c->file, entry->section, entry->subsection, *entry->subsection ? "." : "",
		   entry->key, NOTE_MAX, entry->value);
	if (!strv_has(notes, buf_text(&note)))
		strv_add(notes, buf_text(&note));
	notes->failed |= note.failed;
}

static int see_command(struct config *c, const struct gitconfig_entry *entry)
{
	const char *value = entry->value + (entry->value[0] == '!');
	struct leads_command command = { .text = value,
					 .len = strlen(value),
					 .bases = &c->worktree,
					 .base_count = 1,
					 .origin = c->file };
	bool opaque = false;
	int status;

	c->f->found = false;
	status = leads_command(c->f, &command, &opaque);
	if (status >= 0 && opaque && (c->is_inside || c->f->found))
		note_opaque(c, entry);
	return c->f->g->notes.failed ? -ENOMEM : status;
}

static int keep_line(struct config *c, const struct gitconfig_entry *entry)
{
	auto_buf line = { 0 };

	buf_printf(&line, "%s.%s\n", entry->section, entry->key);
	guard_escape(&line, c->file);
	buf_puts(&line, "\n");
	guard_escape(&line, entry->value);
	if (!line.failed)
		strv_add(&c->user->lines, line.data);
	return line.failed || c->user->lines.failed ? -ENOMEM : 0;
}

/* A directory of hooks outside the tree: its links, and what its scripts call in base. */
static int follow_hooks(struct follow *f, const char *path, const char *base)
{
	auto_dir list = opendir(path);
	int status = 0;

	for (struct dirent *entry = list ? readdir(list) : NULL; entry && status >= 0;
	     entry = readdir(list)) {
		auto_free char *file = path_join(path, entry->d_name);

		if (!file)
			return -ENOMEM;
		if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
			status = follow_path(f, path, entry->d_name, FOLLOW_PROTECT, path);
		if (status >= 0 && entry->d_type != DT_DIR)
			status = calls_follow_outside(f, file, base);
	}
	return status;
}

/* A directory of hooks that a setting names. */
static int see_directory(struct config *c, const char *from, const char *value)
{
	auto_free char *path = as_path(value), *full = path ? path_join(from, path) : NULL;
	auto_free char *real = full ? realpath(full, NULL) : NULL;
	int status = path ? follow_path(c->f, from, path, FOLLOW_PROTECT, c->file) : 0;

	if (status < 0 || !real || path_is_beneath(real, c->f->g->path))
		return status;
	return follow_hooks(c->f, real, c->worktree);
}

static int see_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct config *c = ctx;
	enum lead_kind kind = kind_of(entry);

	if (kind == LEAD_NONE)
		return 0;
	if (c->user) {
		int status = keep_line(c, entry);

		return status < 0 || kind != LEAD_CONFIG ? status : see_include(c, entry->value);
	}
	if (kind == LEAD_CONFIG)
		return see_include(c, entry->value);
	if (kind == LEAD_COMMAND)
		return see_command(c, entry);
	return see_directory(c, c->worktree, entry->value);
}

static int read_one(struct config *c, const char *file)
{
	auto_buf text = { 0 };
	int status;

	if (!read_regular(file, CONFIG_MAX, &text))
		return 0;
	c->file = file;
	status = gitconfig_read(buf_text(&text), text.len, see_setting, c);
	if (status == -EINVAL && c->f && c->is_inside) {
		strv_addf(&c->f->g->notes,
			  "cannot parse %s as git configuration: files that it refers to are not "
			  "protected",
			  file);
		status = 0;
	}
	return status == -EINVAL ? 0 : status;
}

/* Reads a configuration and all that it includes. */
static int read_config(struct config c, const char *file)
{
	auto_strv more = { 0 };
	unsigned includes = 0;
	int status = 0;

	c.more = &more;
	c.includes = &includes;
	strv_add(&more, file);
	for (size_t i = 0; i < more.len && status >= 0; i++) {
		auto_free char *one = strdup(more.items[i]); /* the list may move */

		status = one ? read_one(&c, one) : -ENOMEM;
	}
	return more.failed ? -ENOMEM : status;
}

static int fail_memory(struct ward_err *e, int status)
{
	return status == -ENOMEM && !e->code ? ward_fail(e, ENOMEM, "out of memory") : status;
}

/* core.worktree of the git directory of a submodule; NULL: it has none. */
static int see_worktree(void *ctx, const struct gitconfig_entry *entry)
{
	char **value = ctx;

	if (strcmp(entry->section, "core") != 0 || strcmp(entry->key, "worktree") != 0 ||
	    *entry->subsection || !entry->value)
		return 0;
	free(*value);
	*value = strdup(entry->value);
	return *value ? 0 : -ENOMEM;
}

static char *worktree_of(const char *git_dir, const char *config)
{
	auto_buf text = { 0 };
	auto_free char *value = NULL, *full = NULL;

	if (!read_regular(config, CONFIG_MAX, &text) ||
	    gitconfig_read(buf_text(&text), text.len, see_worktree, &value) < 0 || !value)
		return NULL;
	full = path_join(git_dir, value);
	return full ? realpath(full, NULL) : NULL;
}

int leads_repository(struct follow *f, const char *git_dir, const char *worktree)
{
	static const char *const names[] = { "config", "config.worktree" };
	int status = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && status >= 0; i++) {
		auto_free char *file = path_join(git_dir, names[i]),
			       *other = file && i == 0 ? worktree_of(git_dir, file) : NULL;
		struct config c = { .f = f,
				    .worktree = other ? other : worktree,
				    .is_inside = true };

		status = file ? read_config(c, file) : -ENOMEM;
	}
	return fail_memory(f->e, status);
}

/* The text of a small file of git's, its line end cut off; NULL: none. */
static char *read_word(const char *dir, const char *name)
{
	auto_free char *path = path_join(dir, name);
	auto_buf text = { 0 };

	if (!path || !read_regular(path, 8192, &text) || !text.len ||
	    memchr(text.data, '\0', text.len))
		return NULL;
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	return buf_take(&text);
}

/* A worktree whose git directory is known: the configuration is that of the common one. */
static int follow_worktree(struct follow *f, const char *git_dir, const char *worktree)
{
	auto_free char *word = read_word(git_dir, "commondir"),
		       *joined = word ? path_join(git_dir, word) : NULL;
	auto_free char *common = joined ? realpath(joined, NULL) : NULL;
	auto_free char *hooks = NULL;
	const char *dir = common ? common : git_dir;
	int status = leads_repository(f, dir, worktree);

	if (status >= 0 && common)
		status = leads_repository(f, git_dir, worktree);
	if (status < 0 || path_is_beneath(dir, f->g->path))
		return status;
	hooks = path_join(dir, "hooks");
	return hooks ? follow_hooks(f, hooks, worktree) : -ENOMEM;
}

/* The worktree at the absolute path `worktree` has a .git; *ret_found. */
static int follow_dot_git(struct follow *f, const char *worktree, bool *ret_found)
{
	auto_free char *path = path_join(worktree, ".git"), *text = NULL, *value = NULL,
		       *real = NULL;
	struct stat st;

	*ret_found = path && lstat(path, &st) == 0;
	if (!*ret_found)
		return 0;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		real = realpath(path, NULL);
		return real ? follow_worktree(f, real, worktree) : 0;
	}
	text = read_word(worktree, ".git");
	value = text ? gitconfig_gitdir(text, strlen(text)) : NULL;
	if (!value)
		return 0;
	if (follow_path(f, worktree, value, FOLLOW_PIN, path) < 0)
		return -f->e->code;
	free(path);
	path = path_join(worktree, value);
	real = path ? realpath(path, NULL) : NULL;
	return real ? follow_worktree(f, real, worktree) : 0;
}

int leads_git_file(struct follow *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = strndup(path, slash ? (size_t)(slash - path) : 0),
		       *full = dir ? path_join(f->g->path, dir) : NULL;
	bool found;

	return full ? fail_memory(f->e, follow_dot_git(f, full, &found))
		    : ward_fail(f->e, ENOMEM, "out of memory");
}

/* What hook managers and direnv read in a directory above the tree. */
static int follow_callers(struct follow *f, const char *dir)
{
	static const char *const names[] = { ".envrc",       ".pre-commit-config.yaml",
					     "lefthook.yml", ".lefthook.yml",
					     ".mcp.json",    "mise.toml" };
	int status = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && status >= 0; i++) {
		auto_free char *file = path_join(dir, names[i]);

		status = file ? calls_follow_outside(f, file, dir) : -ENOMEM;
	}
	return status;
}

int leads_above(struct follow *f)
{
	auto_free char *dir = strdup(f->g->path);
	bool found = false;
	struct stat st;
	int status = 0;

	if (!dir)
		return ward_fail(f->e, ENOMEM, "out of memory");
	if (fstatat(f->root_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0; /* git looks no further */
	while (status >= 0 && !found && dir[1]) {
		char *slash = strrchr(dir, '/');

		slash[slash == dir] = '\0';
		status = follow_dot_git(f, dir, &found);
		if (status >= 0)
			status = follow_callers(f, dir);
	}
	if (found)
		f->above = take_ptr(dir);
	return fail_memory(f->e, status);
}

/* What stands behind the last ".." of a path: what is in front may be links. */
static const char *behind_back(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
		if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
			path = at + 2 + strspn(at + 2, "/");
	return path;
}

/* Adds a rule for a relative path at any depth. */
static int add_rule(struct guard_root *g, const char *path, struct ward_err *e)
{
	auto_buf rule = { 0 };

	if (*path == '/')
		return 0;
	path = behind_back(path);
	while (strncmp(path, "./", 2) == 0)
		path += 2 + strspn(path + 2, "/");
	if (!*path || strcmp(path, ".") == 0)
		return 0;
	buf_puts(&rule, strchr(path, '/') ? "**/" : "");
	for (; *path; path++) {
		if (strchr("*?[\\! #", *path))
			buf_puts(&rule, "\\");
		if (*path != '/' || path[1])
			buf_add(&rule, path, 1);
	}
	if (!rule.failed)
		strv_add(&g->rules, rule.data);
	if (rule.failed || g->rules.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return guard_add_rules(g, rule.data, rule.len, e) < 0 ? -e->code
							      : guard_add_rooted(g, rule.data, e);
}

struct rules {
	struct guard_root *g;
	struct ward_err *e;
};

static int rule_of_word(void *ctx, const struct command_word *word)
{
	struct rules *r = ctx;
	const char *text = word->text, *slash = strchr(text, '/');

	if (word->is_expanded)
		text = slash ? slash + strspn(slash, "/") : "";
	if (*text == '/' || *text == '~' || *text == '-' || *text == '%' || strlen(text) > 1000 ||
	    !(strchr(text, '/') || (word->is_script && command_is_script(text))))
		return 0;
	/* one name alone behind "..": it may be any directory */
	if (behind_back(text) != text && !strchr(behind_back(text), '/') &&
	    !command_is_script(behind_back(text)))
		return 0;
	return add_rule(r->g, text, r->e);
}

/* A line of the user's configuration in its three parts, which the caller's copy holds. */
static bool split_line(char *line, char **ret_name, char **ret_file, char **ret_value)
{
	*ret_name = strsep(&line, "\n");
	*ret_file = strsep(&line, "\n");
	*ret_value = line;
	if (!*ret_file || !*ret_value)
		return false;
	guard_unescape(*ret_file);
	guard_unescape(*ret_value);
	return true;
}

static enum lead_kind line_kind(const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		size_t n = strlen(named[i].section);

		if (strncmp(line, named[i].section, n) == 0 && line[n] == '.' &&
		    strncmp(line + n + 1, named[i].key, strlen(named[i].key)) == 0 &&
		    line[n + 1 + strlen(named[i].key)] == '\n')
			return named[i].kind;
	}
	return LEAD_COMMAND;
}

static int add_rules(struct leads_user *u, struct guard_root *g, struct ward_err *e)
{
	struct rules r = { g, e };
	int status = 0;

	for (size_t i = 0; i < u->lines.len && status >= 0; i++) {
		auto_free char *line = strdup(u->lines.items[i]);
		char *name, *file, *value;
		enum lead_kind kind = line_kind(u->lines.items[i]);
		bool opaque;

		if (!line)
			return ward_fail(e, ENOMEM, "out of memory");
		if (!split_line(line, &name, &file, &value))
			continue;
		if (kind == LEAD_DIRECTORY && *value != '~')
			status = add_rule(g, value, e);
		else if (kind == LEAD_COMMAND)
			status = command_words(value + (*value == '!'),
					       strlen(value) - (*value == '!'), rule_of_word, &r,
					       &opaque);
	}
	return fail_memory(e, status);
}

static int read_file(struct leads_user *u, const char *base, const char *rest)
{
	auto_free char *path = base && *base == '/' ? path_join(base, rest) : NULL;
	struct config c = { .user = u };

	return path ? read_config(c, path) : 0;
}

int leads_read_user(struct leads_user *u, struct guard_root *g, struct ward_err *e)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME"),
		   *global = getenv("GIT_CONFIG_GLOBAL");
	const char *system = getenv("GIT_CONFIG_SYSTEM");
	int status = read_file(u, system && *system ? system : "/etc/gitconfig", ".");

	if (status >= 0 && global && *global)
		status = read_file(u, global, ".");
	if (status >= 0 && xdg && *xdg)
		status = read_file(u, xdg, "git/config");
	else if (status >= 0)
		status = read_file(u, home, ".config/git/config");
	if (status >= 0)
		status = read_file(u, home, ".gitconfig");
	return status < 0 ? fail_memory(e, status) : add_rules(u, g, e);
}

static int follow_line(struct follow *f, const char *text, const char *worktree)
{
	auto_free char *line = strdup(text), *path = NULL, *dir = NULL;
	char *name, *file, *value;
	struct config c = { .f = f, .worktree = worktree };
	struct gitconfig_entry entry = { .subsection = "" };

	if (!line)
		return -ENOMEM;
	if (!split_line(line, &name, &file, &value))
		return 0;
	c.file = file;
	entry.section = strsep(&name, ".");
	entry.key = name;
	entry.value = value;
	switch (line_kind(text)) {
	case LEAD_COMMAND:
		return see_command(&c, &entry);
	case LEAD_DIRECTORY: /* a relative one is a rule for every worktree already */
		return *value == '/' || *value == '~' ? see_directory(&c, "/", value) : 0;
	case LEAD_CONFIG:
		path = as_path(value);
		dir = directory_of(file);
		return path && dir ? follow_path(f, dir, path, FOLLOW_PROTECT, file) : 0;
	case LEAD_NONE:
		return 0;
	}
	return 0;
}

int leads_follow_user(const struct leads_user *u, struct follow *f)
{
	int status = 0;

	for (size_t i = 0; i < u->lines.len && status >= 0; i++)
		status = follow_line(f, u->lines.items[i], f->g->path);
	for (size_t i = 0; i < u->lines.len && status >= 0 && f->above; i++)
		status = follow_line(f, u->lines.items[i], f->above);
	return fail_memory(f->e, status);
}

void leads_user_free(struct leads_user *u)
{
	strv_free(&u->lines);
}

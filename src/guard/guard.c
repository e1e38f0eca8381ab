/*
 * The guard's lists. In: the policy's hide and protect, the built-in rows of tables/protect.def,
 * the tree's .aiignore. Out: compiled patterns, the verdict over one path, and the list of steps
 * that the engine mounts. Runs in the supervisor before the sandbox starts, and again when a dead
 * run is swept.
 *
 * A link is a way around every list: where ".claude" is a link, the protected
 * ".claude/settings.json" is never found by that name. So a link counts as the directory it may
 * stand for, and the parents of every protected name have a list of their own, asked for links
 * only.
 *
 * A project's .aiignore comes from the project's author. It is asked beside the policy's list,
 * never behind it: "!.env" there takes nothing away from what the policy hides. The policy's own
 * "!NAME" does overrule it.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "guard/guard_dirs.h"

#define STEPS_MAX 8192 /* a mount each; the kernel's own bound is 100,000 a namespace */
#define AIIGNORE_MAX (1u << 20)

static const struct {
	const char *pattern, *why;
} reasons[] = {
#define PROTECT(pattern, why, source, checked) { pattern, why },
#include "protect.def"
};

int guard_add_rules(struct guard_root *g, const char *text, size_t n, struct ward_err *e)
{
	int status = ignore_add(&g->protect, text, n);

	if (status == 0)
		status = ignore_add_parents(&g->protect_links, text, n);
	return status < 0 ? ward_fail(e, -status, "out of memory") : 0;
}

/* "**" "/.config/fish/" in a tree that is itself a .config is "/fish/": the names above the tree
 * count, too. */
int guard_add_rooted(struct guard_root *g, const char *pattern, struct ward_err *e)
{
	size_t root_len = strlen(g->path);
	int status = 0;

	if (strncmp(pattern, "**/", 3) != 0)
		return 0;
	pattern += 2;
	for (const char *slash = strchr(pattern + 1, '/'); slash && slash[1] && status >= 0;
	     slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - pattern);

		if (n <= root_len && strncmp(g->path + root_len - n, pattern, n) == 0)
			status = guard_add_rules(g, slash, strlen(slash), e);
	}
	return status;
}

int guard_restore_rules(struct guard_root *g, struct ward_err *e)
{
	int status = 0;

	g->protect = guard_builtin_protect();
	g->protect_links = guard_builtin_links();
	for (size_t i = 0; status >= 0 && i < ARRAY_LEN(reasons); i++)
		status = guard_add_rooted(g, reasons[i].pattern, e);
	for (size_t i = 0; status >= 0 && i < g->rules.len; i++)
		status = guard_add_rules(g, g->rules.items[i], strlen(g->rules.items[i]), e) < 0
				 ? -e->code
				 : guard_add_rooted(g, g->rules.items[i], e);
	return status;
}

int guard_add_path_rule(struct guard_root *g, const char *path, bool is_dir, struct ward_err *e)
{
	auto_buf rule = { 0 };

	buf_puts(&rule, "/");
	for (const char *c = path; *c; c++) {
		if (strchr("*?[\\! #", *c))
			buf_puts(&rule, "\\");
		buf_add(&rule, c, 1);
	}
	if (is_dir)
		buf_puts(&rule, "/");
	if (!rule.failed)
		strv_add(&g->rules, rule.data);
	if (rule.failed || g->rules.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return guard_add_rules(g, rule.data, rule.len, e);
}

int guard_read_aiignore(int dir_fd, const char *where, struct ignore **ig, struct ward_err *e)
{
	auto_fd fd = openat(dir_fd, ".aiignore",
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	auto_buf text = { 0 };
	struct stat st;
	int status;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	status = 0;
	if (fd < 0 && errno == ELOOP) /* a link is fine as long as it stays in the tree */
		status = fd =
			path_open_beneath(dir_fd, ".aiignore", O_RDONLY | O_NONBLOCK | O_NOCTTY, e);
	else if (fd < 0)
		status = ward_fail_errno(e, "cannot open %s/.aiignore", where);
	if (status >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		status = ward_fail(e, EINVAL, "%s/.aiignore is not a regular file", where);
	if (status < 0)
		return ward_remedy(
			e, "make %s/.aiignore a readable file inside the tree, or remove it",
			where);
	status = io_read_all(fd, AIIGNORE_MAX, &text);
	if (status < 0)
		return ward_fail(e, -status, "cannot read %s/.aiignore: %s", where,
				 strerror(-status));
	if (text.len && ignore_add(ig, text.data, text.len) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}

int guard_compile(struct guard_root *g, const struct strv *hide, const struct strv *protect,
		  struct ward_err *e)
{
	auto_fd root = open(g->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int status;

	if (root < 0)
		return ward_fail_errno(e, "cannot open %s", g->path);
	for (size_t i = 0; hide && i < hide->len; i++)
		if (ignore_add(&g->hide, hide->items[i], strlen(hide->items[i])) < 0)
			return ward_fail(e, ENOMEM, "out of memory");
	status = guard_read_aiignore(root, g->path, &g->aiignore, e);
	if (status < 0)
		return status;
	for (size_t i = 0; protect && i < protect->len; i++)
		strv_add(&g->rules, protect->items[i]);
	return g->rules.failed ? ward_fail(e, ENOMEM, "out of memory") : guard_restore_rules(g, e);
}

void guard_clear(struct guard_root *g)
{
	guard_hold_end(g);
	for (size_t i = 0; i < g->step_count; i++)
		free(g->steps[i].path);
	if (g->held_fd > 0)
		close(g->held_fd);
	free(g->steps);
	free(g->path);
	free(g->target);
	ignore_free(g->hide);
	ignore_free(g->aiignore);
	ignore_free(g->protect);
	ignore_free(g->protect_links);
	strv_free(&g->rules);
	strv_free(&g->baseline);
	strv_free(&g->repositories);
	strv_free(&g->views);
	strv_free(&g->refused);
	strv_free(&g->links);
	strv_free(&g->tasks);
	strv_free(&g->steers);
	strv_free(&g->notes);
	strv_free(&g->beyond);
	strv_free(&g->lost);
	strv_free(&g->tainted);
	guard_dirs_free(g->dirs);
	*g = (struct guard_root){ 0 };
}

/* .jj/repo is a directory; a file or link in its place makes Jujutsu take its configuration from
 * elsewhere, as a .git file does. */
static bool is_jj_link(const struct walk_entry *entry)
{
	static const char end[] = ".jj/repo";
	size_t n = sizeof(end) - 1;

	return entry->type != DT_DIR && entry->path_len >= n &&
	       memcmp(entry->path + entry->path_len - n, end, n) == 0 &&
	       (entry->path_len == n || entry->path[entry->path_len - n - 1] == '/');
}

bool guard_is_protected(const struct guard_root *g, const struct walk_entry *entry)
{
	bool link = entry->type == DT_LNK, as_dir = link || entry->type == DT_DIR;
	enum ignore_verdict v =
		ignore_decide_at(g->protect, entry->path, entry->path_len, entry->name_at, as_dir);

	/* an exception is about a directory or a file, not about a way elsewhere */
	if (v == IGNORE_INCLUDED && link)
		return !guard_is_released(g, entry->path, true);
	if (v == IGNORE_NONE && is_jj_link(entry))
		return true;
	if (v != IGNORE_NONE || !link)
		return v == IGNORE_EXCLUDED;
	return ignore_decide_at(g->protect_links, entry->path, entry->path_len, entry->name_at,
				true) == IGNORE_EXCLUDED;
}

/* The built-in exceptions are about one name: git's files behind it are looked at all the same. */
bool guard_is_released(const struct guard_root *g, const char *path, bool is_dir)
{
	return ignore_decide(g->protect, path, is_dir) == IGNORE_INCLUDED &&
	       ignore_decide(guard_builtin_protect(), path, is_dir) != IGNORE_INCLUDED;
}

bool guard_is_gitlink(const struct guard_root *g, const struct walk_entry *entry)
{
	return (entry->type == DT_REG || entry->type == DT_LNK) &&
	       strcmp(entry->name, ".git") == 0 && !guard_is_released(g, entry->path, false);
}

const char *guard_reason(const struct guard_root *g, const struct walk_entry *entry)
{
	bool as_dir = entry->type == DT_LNK || entry->type == DT_DIR;

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		struct ignore *one = NULL;
		bool match =
			ignore_add(&one, reasons[i].pattern, strlen(reasons[i].pattern)) == 0 &&
			ignore_match(one, entry->path, as_dir);

		ignore_free(one);
		if (match)
			return reasons[i].why;
	}
	return ignore_match(g->protect, entry->path, as_dir)
		       ? "protected by the policy"
		       : "a link in place of a directory with protected names";
}

int guard_add_step(struct guard_root *g, enum guard_action action, const char *path, bool is_dir,
		   struct ward_err *e)
{
	int status;

	if (g->step_count == g->step_cap) {
		size_t cap = g->step_cap ? g->step_cap * 2 : 16;
		struct guard_step *grown = reallocarray(g->steps, cap, sizeof(*grown));

		if (!grown)
			return ward_fail(e, ENOMEM, "out of memory");
		g->steps = grown;
		g->step_cap = cap;
	}
	if (g->step_count >= STEPS_MAX) {
		status = ward_fail(e, E2BIG, "%s holds more than %d hidden or protected names",
				   g->path, STEPS_MAX);
		return status < 0
			       ? ward_remedy(
					 e, "hide or protect directories instead of many files, or "
					    "exclude names with filesystem.protect: [\"!NAME\"]")
			       : 0;
	}
	g->steps[g->step_count] = (struct guard_step){ action, is_dir, strdup(path) };
	if (!g->steps[g->step_count].path)
		return ward_fail(e, ENOMEM, "out of memory");
	g->step_count++;
	return 0;
}

/* By path, the stronger action first. */
static int compare_steps(const void *a, const void *b)
{
	const struct guard_step *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)y->action - (int)x->action;
}

static void sort_steps(struct guard_root *g)
{
	size_t kept = 0;

	if (g->step_count)
		qsort(g->steps, g->step_count, sizeof(*g->steps), compare_steps);
	for (size_t i = 0; i < g->step_count; i++)
		if (kept && strcmp(g->steps[kept - 1].path, g->steps[i].path) == 0)
			free(g->steps[i].path);
		else
			g->steps[kept++] = g->steps[i];
	g->step_count = kept;
}

const struct guard_step *guard_find_step(const struct guard_root *g, size_t n, const char *path,
					 size_t len)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *other = g->steps[middle].path;
		int order = strncmp(other, path, len);

		if (order == 0 && other[len] == '\0')
			return &g->steps[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Pins the ancestors of step i (among the first n, sorted), or finds that one of them covers it:
 * *ret_covered. */
static int pin_ancestors(struct guard_root *g, size_t n, size_t i, bool *ret_covered,
			 struct ward_err *e)
{
	auto_free char *path = strdup(g->steps[i].path);

	if (!path)
		return ward_fail(e, ENOMEM, "out of memory");
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct guard_step *above =
			guard_find_step(g, n, path, (size_t)(slash - path));
		int status = 0;

		if (above && above->action != GUARD_PIN) {
			*ret_covered =
				above->action == GUARD_HIDE || g->steps[i].action != GUARD_HIDE;
			return 0;
		}
		*slash = '\0';
		if (!above && g->writable)
			status = guard_add_step(g, GUARD_PIN, path, true, e);
		*slash = '/';
		if (status < 0)
			return status;
	}
	return 0;
}

int guard_finish_steps(struct guard_root *g, struct ward_err *e)
{
	auto_free bool *covered = NULL;
	size_t n, kept = 0;

	sort_steps(g);
	n = g->step_count;
	covered = calloc(n + 1, sizeof(*covered));
	if (!covered)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		int status = pin_ancestors(g, n, i, &covered[i], e);

		if (status < 0)
			return status;
	}
	for (size_t i = 0; i < g->step_count; i++)
		if (i < n && covered[i])
			free(g->steps[i].path);
		else
			g->steps[kept++] = g->steps[i];
	g->step_count = kept;
	sort_steps(g);
	return 0;
}

bool guard_list_has(const struct strv *sorted, const char *text, size_t n, char suffix)
{
	size_t low = 0, high = sorted->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *other = sorted->items[middle];
		int order = strncmp(other, text, n);

		if (order == 0)
			order = suffix ? (unsigned char)other[n] - (unsigned char)suffix
				       : (unsigned char)other[n];
		if (order == 0 && suffix)
			order = (unsigned char)other[n + 1];
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

void guard_escape(struct buf *out, const char *s)
{
	for (; *s; s++)
		if (*s == '\\')
			buf_puts(out, "\\\\");
		else if (*s == '\n' || *s == '\t')
			buf_puts(out, *s == '\n' ? "\\n" : "\\t");
		else
			buf_add(out, s, 1);
}

void guard_unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (*s == '\\' && s[1]) {
			s++;
			*out++ = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s;
			s++;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

int guard_link_text(int dir_fd, const struct walk_entry *entry, struct buf *out, struct ward_err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, entry->name, target, sizeof(target) - 1);

	if (n < 0)
		return ward_fail_errno(e, "cannot read the link %s", entry->path);
	target[n] = '\0';
	guard_escape(out, entry->path);
	buf_puts(out, "\n");
	guard_escape(out, target);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

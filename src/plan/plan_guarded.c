/*
 * Programs of which words decide, or a person: entries of process.commands with `ask`, or with
 * words behind the program's name ("git push *"). In: the policy's lists, the plan's mounts. Out:
 * each such program with its paths inside, its file and its rules. Runs in the supervisor with the
 * user's rights, only where a policy has such an entry.
 *
 * ward's stand-in (guest/stand_in.c) lies over every path of the program, so nothing inside can
 * execute, read or copy the file itself; ward-init starts it, with the words that were decided
 * about. A script is refused: a process that may start its interpreter needs no script. So is a
 * file that the sandbox could change. Without an allow list the sandbox may bring a program of its
 * own that does the same: that is said as a note.
 *
 * Under an allow list every file that it makes executable is looked at: another name of the
 * program, or a copy of it (/usr/lib/git-core/git), is covered as well. A program with other bytes
 * that does the same must be left out by the author of the list.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/path.h"
#include "base/walk.h"
#include "plan/path_view.h"
#include "plan/plan_commands.h"
#include "rules/command_rule.h"

#define GUARDED_MAX 32
#define FILES_LOOKED_AT 200000

void plan_guarded_clear(struct plan_guarded *g)
{
	strv_free(&g->names);
	strv_free(&g->rules);
	free(g->host);
}

bool plan_is_guarded(const struct plan_commands *c, const char *inside)
{
	for (size_t i = 0; i < c->guarded_count; i++)
		if (strv_has(&c->guarded[i].names, inside))
			return true;
	return false;
}

/* "ask git push *": the name, which the caller frees, and where its words begin ("": none). */
static char *take_apart(const char *entry, const char **ret_words)
{
	const char *text = entry + strcspn(entry, " ") + 1;
	size_t n = strcspn(text, " ");

	*ret_words = text[n] ? text + n + 1 : "";
	return strndup(text, n);
}

/* A program has other names: hard links, and links whose target is another one. */
static void add_names(const struct plan *p, const struct found *f, struct plan_guarded *g)
{
	const char *path = commands_path(p);

	strv_add(&g->names, f->inside);
	for (char *dir; (dir = commands_next_dir(&path));) {
		auto_free char *owned = dir;
		auto_found d = { 0 }, got = { 0 };
		DIR *list = commands_locate(p, owned, &d) ? opendir(owned) : NULL;

		for (struct dirent *x; list && (x = readdir(list));) {
			auto_free char *file = path_join(owned, x->d_name);
			struct stat st;

			if (file && stat(file, &st) == 0 && commands_same(&st, &f->st) &&
			    commands_locate(p, file, &got) && !strv_has(&g->names, got.inside))
				strv_add(&g->names, got.inside);
		}
		if (list)
			closedir(list);
	}
}

static int check_program(const struct plan *p, const char *name, const struct found *f,
			 struct ward_err *e)
{
	struct path_view view = path_view_of(p);

	if (f->program.form == PROGRAM_SCRIPT) {
		ward_fail(e, ENOTSUP,
			  FIELD ": %s is a script for %s, which can run it under any name: its "
				"words cannot be decided about",
			  name, f->program.helper);
		return ward_remedy(e,
				   "name %s, or ask about what it does: network."
				   "egress_allowlist, credentials.grants and filesystem.ask "
				   "have ask, too",
				   f->program.helper);
	}
	if (f->program.form == PROGRAM_OTHER)
		return ward_fail(e, ENOTSUP, FIELD ": %s (%s) is no 64-bit program", name,
				 f->inside);
	if (f->noexec || path_view_find(&view, f->inside, NULL) != PATH_VIEW_READ) {
		ward_fail(e, EINVAL,
			  FIELD ": %s lies at %s, where the sandbox can write: it could be another "
				"program by then",
			  name, f->inside);
		return ward_remedy(e, "install it outside of the workspace, or mount it "
				      "read-only");
	}
	return 0;
}

static struct plan_guarded *find_guarded(const struct plan_commands *c, const char *inside)
{
	for (size_t i = 0; i < c->guarded_count; i++)
		if (strv_has(&c->guarded[i].names, inside))
			return &c->guarded[i];
	return NULL;
}

static int guard(struct plan *p, const char *name, struct ward_err *e)
{
	struct plan_commands *c = p->commands;
	struct plan_guarded *g;
	auto_found f = { 0 };
	int r;

	if (!*name || name[strlen(name) - 1] == '/' || (strchr(name, '/') && *name != '/')) {
		ward_fail(e, EINVAL, FIELD ": \"%s\" names no program", name);
		return ward_remedy(e, "give a name that PATH has, or the absolute path of a file");
	}
	if (!commands_find(p, name, &f) || !S_ISREG(f.st.st_mode)) {
		ward_fail(e, ENOENT, FIELD ": there is no program %s in the sandbox", name);
		return ward_remedy(e, "correct the name, show it with filesystem.programs, or "
				      "remove it from the list");
	}
	if (find_guarded(c, f.inside))
		return 0;
	r = check_program(p, name, &f, e);
	if (r < 0)
		return r;
	if (c->guarded_count == GUARDED_MAX)
		return ward_fail(e, E2BIG, FIELD ": more than %d programs with ask or words",
				 GUARDED_MAX);
	g = reallocarray(c->guarded, c->guarded_count + 1, sizeof(*g));
	if (!g)
		return ward_fail(e, ENOMEM, "out of memory");
	c->guarded = g;
	g += c->guarded_count++;
	*g = (struct plan_guarded){ .host = take_ptr(f.host) };
	add_names(p, &f, g);
	if (c->listed && f.program.form == PROGRAM_DYNAMIC)
		r = commands_add_loader(p, name, f.program.helper, e);
	return r < 0 ? r : g->names.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* What the lists say of it, each entry as a rule of its own. */
static int add_rule(struct plan *p, const char *entry, struct ward_err *e)
{
	const char *words;
	auto_free char *name = take_apart(entry, &words);
	struct plan_guarded *g;
	auto_found f = { 0 };

	if (!name)
		return ward_fail(e, ENOMEM, "out of memory");
	g = *name && commands_find(p, name, &f) ? find_guarded(p->commands, f.inside) : NULL;
	if (!g)
		return 0;
	if (!command_is_pattern(words)) {
		ward_fail(e, EINVAL, FIELD ": \"%s\": not a pattern of words", entry);
		return ward_remedy(e, "words with one blank between them; * stands for any "
				      "characters of a word, at the end for any more words");
	}
	strv_addf(&g->rules, "%.*s %s", (int)strcspn(entry, " "), entry, words);
	return g->rules.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* run/commands.c makes the socket when the run starts. */
static int add_socket(struct plan *p, struct ward_err *e)
{
	struct plan_mount *m =
		plan_add_bind(p, "(the socket of process.commands)", PLAN_GUARD_SOCKET);

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->is_file = true;
	return 0;
}

/* -- copies that the allow list makes executable */

struct copies {
	struct plan *p;
	const char *inside; /* the tree's top, as the sandbox has it */
	size_t files;
	struct ward_err *e;
};

static bool has_same_bytes(int a, int b)
{
	char one[65536], other[65536];
	ssize_t n;

	for (off_t at = 0; (n = pread(a, one, sizeof(one), at)) > 0; at += n)
		if (pread(b, other, (size_t)n, at) != n || memcmp(one, other, (size_t)n) != 0)
			return false;
	return n == 0;
}

/* The guarded program that a file is; NULL: none. */
static struct plan_guarded *find_copied(const struct plan_commands *c, int dir_fd, const char *name,
					const struct stat *st)
{
	for (size_t i = 0; i < c->guarded_count; i++) {
		auto_fd of = -1, file = -1;
		struct stat own;

		if (stat(c->guarded[i].host, &own) < 0 || own.st_size != st->st_size)
			continue;
		if (commands_same(&own, st))
			return &c->guarded[i];
		of = open(c->guarded[i].host, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
		file = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
		if (of < 0 || file < 0 || has_same_bytes(of, file)) /* unread is unknown */
			return &c->guarded[i];
	}
	return NULL;
}

static int look_at_file(struct copies *look, int dir_fd, const char *name, const char *inside)
{
	struct plan_commands *c = look->p->commands;
	struct plan_guarded *g;
	struct stat st;

	if (++look->files > FILES_LOOKED_AT) {
		ward_fail(look->e, E2BIG,
			  FIELD ".allow: more than %d files in its directories, any of which could "
				"be a copy of a program that asks",
			  FILES_LOOKED_AT);
		return ward_remedy(look->e, "name smaller directories, or single programs");
	}
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & 0111) || plan_is_guarded(c, inside))
		return 0;
	g = find_copied(c, dir_fd, name, &st);
	if (g)
		strv_add(&g->names, inside);
	return g && g->names.failed ? ward_fail(look->e, ENOMEM, "out of memory") : 0;
}

static int look_at_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct copies *look = ctx;
	auto_free char *inside = path_join(look->inside, entry->path);

	if (!inside)
		return ward_fail(look->e, ENOMEM, "out of memory");
	return entry->type == DT_DIR   ? 1
	       : entry->type == DT_REG ? look_at_file(look, d->fd, entry->name, inside)
				       : 0;
}

static int look_at_tree(struct plan *p, const char *host, const char *inside, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = look_at_entry };
	struct copies look = { .p = p, .inside = inside, .e = e };
	auto_fd fd = open(host, O_PATH | O_CLOEXEC | O_NOFOLLOW), dir = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return look_at_file(&look, AT_FDCWD, host, inside);
	dir = open(host, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return dir < 0 ? 0 : walk_tree(dir, &ops, &look, 0, e);
}

/* A file or directory of the list, and what else is mounted in a directory. */
static int look_at_allowed(struct plan *p, const char *allowed, struct ward_err *e)
{
	size_t n = strlen(allowed);
	auto_free char *path = strndup(allowed, n > 1 && allowed[n - 1] == '/' ? n - 1 : n);
	auto_found f = { 0 };
	int r;

	if (!path)
		return ward_fail(e, ENOMEM, "out of memory");
	r = commands_locate(p, path, &f) ? look_at_tree(p, f.host, f.inside, e) : 0;
	for (size_t i = 0; i < p->mount_count && r == 0; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND && !m->noexec && strcmp(m->target, path) != 0 &&
		    path_is_beneath(m->target, path))
			r = look_at_tree(p, m->source, m->target, e);
	}
	return r;
}

int plan_guard_copies(struct plan *p, struct ward_err *e)
{
	const struct plan_commands *c = p->commands;
	int r = 0;

	for (size_t i = 0; c->guarded_count && i < c->files.len && r == 0; i++)
		r = look_at_allowed(p, c->files.items[i], e);
	return r;
}

/* -- all of it */

int plan_add_guarded(struct plan *p, struct ward_err *e)
{
	const struct strv *list = &p->spec->policy.proc_commands;
	int r = 0;

	for (size_t i = 0; i < list->len && r == 0; i++) {
		const char *words;
		auto_free char *name = take_apart(list->items[i], &words);

		if (!name)
			return ward_fail(e, ENOMEM, "out of memory");
		if (*words || strncmp(list->items[i], "ask ", 4) == 0)
			r = guard(p, name, e);
	}
	for (size_t i = 0; i < list->len && r == 0; i++)
		r = add_rule(p, list->items[i], e);
	if (r == 0 && p->commands->guarded_count)
		r = add_socket(p, e);
	if (r == 0 && p->commands->guarded_count && !p->commands->listed)
		strv_add(&p->notes,
			 FIELD ": without an allow list the sandbox can run a program of its own "
			       "in place of one that asks: ask is no wall then");
	if (r == 0 && p->commands->guarded_count && p->spec->policy.appr_mode != APPROVALS_ASK)
		strv_add(&p->notes, FIELD ".ask: approvals.mode is deny: what asks is refused");
	return r;
}

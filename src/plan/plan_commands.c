/*
 * Which programs may run: process.commands. In: the policy's lists, the plan's mounts and PATH.
 * Out: the files that may be executed, the files that are covered, what the programs are, and
 * noexec on every place that the sandbox can write. Runs in the supervisor with the user's rights,
 * only where a policy has such a list.
 *
 * The programs of a list are a wall. With an allow list the engine gives Landlock's right to
 * execute to the listed files alone, whatever leads to them; a listed directory ("/usr/lib/git-
 * core/") gives it to all that is in it. The loader of these programs is replaced by ward's own
 * (guest/loader.c), which cannot be called as a program. Memory files are refused by the filter:
 * Landlock does not see them. A denied program is covered by an empty file of no rights, under
 * each of its names in PATH.
 *
 * The kernel asks for the right to execute an interpreter, too: a script in the list whose
 * interpreter is not is refused here, because it could only fail. What an interpreter does cannot
 * be held by a list of programs: the plan says which ones are in it.
 *
 * A program of which words decide ("git push *"), or a person, is guarded: plan_guarded.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "model/inner.h"
#include "plan/path_view.h"
#include "plan/plan_commands.h"

#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define FILES_MAX 128

void plan_commands_free(struct plan_commands *c)
{
	if (!c)
		return;
	strv_free(&c->files);
	strv_free(&c->denied);
	strv_free(&c->roles);
	free(c->loader);
	for (size_t i = 0; i < c->guarded_count; i++)
		plan_guarded_clear(&c->guarded[i]);
	free(c->guarded);
	free(c);
}

/* Where a file of the host's is inside; NULL: nowhere. The caller frees. */
static char *inside_of(const struct plan *p, const char *real, bool *ret_noexec)
{
	struct path_view view = path_view_of(p);

	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i], *got;
		auto_free char *path = NULL, *at = NULL;

		if (m->kind != MOUNT_BIND || !path_is_beneath(real, m->source))
			continue;
		path = strcmp(real, m->source) == 0
			       ? strdup(m->target)
			       : path_join(m->target,
					   real + strlen(m->source) + (m->source[1] ? 1 : 0));
		got = path ? path_view_mount(&view, path, &at) : NULL;
		if (got == m && strcmp(at, path) == 0) {
			*ret_noexec = m->noexec;
			return take_ptr(path);
		}
	}
	return NULL;
}

static void read_program(const char *real, struct program *ret)
{
	auto_fd fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t head[PROGRAM_HEAD];
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);

	program_read(head, n > 0 ? (size_t)n : 0, ret);
}

/* Looks at a path as the sandbox has it. False: nothing is there. */
bool commands_locate(const struct plan *p, const char *path, struct found *ret)
{
	struct path_view view = path_view_of(p);
	auto_free char *at = NULL, *host = NULL, *real = NULL;
	const struct plan_mount *m = path_view_mount(&view, path, &at);

	found_clear(ret);
	if (!m || m->kind != MOUNT_BIND)
		return false;
	host = strcmp(at, m->target) == 0
		       ? strdup(m->source)
		       : path_join(m->source, at + strlen(m->target) + (m->target[1] ? 1 : 0));
	real = host ? realpath(host, NULL) : NULL;
	if (!real || stat(real, &ret->st) < 0)
		return false;
	ret->inside = inside_of(p, real, &ret->noexec);
	ret->host = ret->inside ? take_ptr(real) : NULL;
	if (ret->inside && S_ISREG(ret->st.st_mode))
		read_program(ret->host, &ret->program);
	return ret->inside;
}

const char *commands_path(const struct plan *p)
{
	for (size_t i = 0; i < p->env.len; i++)
		if (strncmp(p->env.items[i], "PATH=", 5) == 0)
			return p->env.items[i] + 5;
	return "";
}

/* The next directory of PATH; the caller frees. NULL: there are no more. */
char *commands_next_dir(const char **path)
{
	while (**path) {
		size_t n = strcspn(*path, ":");
		char *dir = **path == '/' ? strndup(*path, n) : NULL;

		*path += n + ((*path)[n] == ':');
		if (dir)
			return dir;
	}
	return NULL;
}

/* A program as a command of the sandbox would find it. */
bool commands_find(const struct plan *p, const char *name, struct found *ret)
{
	const char *path = commands_path(p);

	if (*name == '/')
		return commands_locate(p, name, ret);
	for (char *dir; (dir = commands_next_dir(&path));) {
		auto_free char *owned = dir, *file = path_join(owned, name);

		if (file && commands_locate(p, file, ret) && S_ISREG(ret->st.st_mode) &&
		    ret->st.st_mode & 0111)
			return true;
	}
	found_clear(ret);
	return false;
}

bool commands_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_denied(const struct plan *p, const struct found *f)
{
	for (size_t i = 0; i < p->commands->denied.len; i++) {
		auto_found denied = { 0 };

		if (commands_locate(p, p->commands->denied.items[i], &denied) &&
		    commands_same(&denied.st, &f->st))
			return true;
	}
	return false;
}

static bool allows(const struct plan_commands *c, const char *inside)
{
	for (size_t i = 0; i < c->denied.len; i++)
		if (strcmp(c->denied.items[i], inside) == 0)
			return false;
	if (plan_is_guarded(c, inside))
		return true;
	for (size_t i = 0; c->listed && i < c->files.len; i++) {
		const char *file = c->files.items[i];
		size_t n = strlen(file);

		if (file[n - 1] == '/' ? strncmp(inside, file, n) == 0 : strcmp(inside, file) == 0)
			return true;
	}
	return !c->listed;
}

int commands_add_loader(struct plan *p, const char *name, const char *path, struct ward_err *e)
{
	struct plan_commands *c = p->commands;
	auto_found f = { 0 };

	if (!commands_locate(p, path, &f)) {
		ward_fail(e, ENOENT,
			  FIELD ".allow: %s needs the loader %s, which does not exist "
				"inside",
			  name, path);
		return ward_remedy(e, "remove it from the list");
	}
	if (c->loader && strcmp(c->loader, f.inside) != 0) {
		ward_fail(e, ENOTSUP,
			  FIELD ".allow: %s needs the loader %s, and other programs of "
				"the list need %s",
			  name, f.inside, c->loader);
		return ward_remedy(e, "allow only programs of one C library");
	}
	if (!c->loader)
		c->loader = take_ptr(f.inside);
	return c->loader ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int commands_refuse_place(const char *name, const struct found *f, struct ward_err *e)
{
	ward_fail(e, EINVAL,
		  FIELD ".allow: %s lies at %s, where the sandbox can write: nothing "
			"there is executable under an allow list",
		  name, f->inside);
	return ward_remedy(e, "install it outside of the workspace, or mount it read-only");
}

static int allow_file(struct plan *p, const char *name, struct found *f, struct ward_err *e)
{
	struct plan_commands *c = p->commands;
	const char *what = program_interprets(strrchr(f->inside, '/') + 1);

	if (f->noexec)
		return commands_refuse_place(name, f, e);
	if (is_denied(p, f)) {
		strv_addf(&p->notes, FIELD ": %s is allowed and denied: it is denied", name);
		return 0;
	}
	if (f->program.form == PROGRAM_OTHER && f->st.st_mode & 0111 && f->st.st_size) {
		ward_fail(e, ENOTSUP,
			  FIELD ".allow: %s (%s) is no 64-bit program and no script "
				"with an interpreter",
			  name, f->inside);
		return ward_remedy(e, "remove it from the list");
	}
	if (what && !strv_has(&c->files, f->inside))
		strv_addf(&c->roles, "%s (%s) is %s", name, f->inside, what);
	if (!strv_has(&c->files, f->inside))
		strv_add(&c->files, f->inside);
	return f->program.form == PROGRAM_DYNAMIC
		       ? commands_add_loader(p, name, f->program.helper, e)
		       : 0;
}

static int allow_dir(struct plan *p, const char *path, struct ward_err *e)
{
	auto_found f = { 0 };

	if (!commands_locate(p, path, &f) || !S_ISDIR(f.st.st_mode)) {
		ward_fail(e, ENOENT, FIELD ".allow: %s is no directory of the sandbox", path);
		return ward_remedy(e, "remove it, or name a program without a \"/\" at its end");
	}
	if (f.noexec)
		return commands_refuse_place(path, &f, e);
	strv_addf(&p->commands->files, "%s/", f.inside);
	return 0;
}

static int allow(struct plan *p, const char *name, struct ward_err *e)
{
	auto_found f = { 0 };

	if (name[strlen(name) - 1] == '/' && name[0] == '/')
		return allow_dir(p, name, e);
	if (strchr(name, '/') && name[0] != '/') {
		ward_fail(e, EINVAL, FIELD ".allow: %s is a relative path", name);
		return ward_remedy(e, "give a name that PATH has, or an absolute path");
	}
	if (!commands_find(p, name, &f) || !S_ISREG(f.st.st_mode)) {
		ward_fail(e, ENOENT, FIELD ".allow: there is no program %s in the sandbox", name);
		return ward_remedy(e,
				   "correct the name, show it with filesystem.programs, or remove "
				   "it from the list");
	}
	return allow_file(p, name, &f, e);
}

/* Other names of a denied file: hard links of it, and links to it, in the directories of PATH. */
static void deny_names(struct plan *p, const char *name, const struct found *f)
{
	struct plan_commands *c = p->commands;
	const char *path = commands_path(p);
	auto_buf others = { 0 };
	nlink_t names = 0;

	for (char *dir; (dir = commands_next_dir(&path));) {
		auto_free char *owned = dir;
		auto_found d = { 0 }, got = { 0 };
		DIR *list = commands_locate(p, owned, &d) ? opendir(owned) : NULL;

		for (struct dirent *x; list && (x = readdir(list));) {
			auto_free char *file = path_join(owned, x->d_name);
			struct stat st;

			if (!file || stat(file, &st) < 0 || !commands_same(&st, &f->st) ||
			    !commands_locate(p, file, &got))
				continue;
			if (!strv_has(&c->denied, got.inside)) {
				strv_add(&c->denied, got.inside);
				names++;
			}
			if (strcmp(x->d_name, name) != 0 && others.len < 200 &&
			    !strstr(buf_text(&others), x->d_name))
				buf_printf(&others, "%s%s", others.len ? ", " : "", x->d_name);
		}
		if (list)
			closedir(list);
	}
	if (others.len)
		strv_addf(&p->notes, FIELD ".deny: %s is one file with %s: all are denied", name,
			  buf_text(&others));
	if (f->st.st_nlink > 1 && names < f->st.st_nlink)
		strv_addf(&p->notes,
			  FIELD ".deny: %s has %lu names on the host, of which PATH has "
				"fewer: the others are not denied",
			  name, (unsigned long)f->st.st_nlink);
}

static int deny(struct plan *p, const char *name, struct ward_err *e)
{
	auto_found f = { 0 };

	if (name[strlen(name) - 1] == '/' || (strchr(name, '/') && name[0] != '/')) {
		ward_fail(e, EINVAL, FIELD ".deny: %s names no program", name);
		return ward_remedy(e, "give a name that PATH has, or the absolute path of a file");
	}
	if (!commands_find(p, name, &f) || !S_ISREG(f.st.st_mode)) {
		strv_addf(&p->notes, FIELD ".deny: there is no program %s in the sandbox", name);
		return 0;
	}
	if (!strv_has(&p->commands->denied, f.inside))
		strv_add(&p->commands->denied, f.inside);
	deny_names(p, name, &f);
	return 0;
}

static int need(const struct plan *p, const char *script, const char *helper, struct ward_err *e)
{
	auto_found f = { 0 };

	if (commands_find(p, helper, &f) && allows(p->commands, f.inside))
		return 0;
	ward_fail(e, EINVAL, FIELD ".allow: %s is a script for %s, which is not in the list",
		  script, helper);
	return ward_remedy(e, "add %s to " FIELD ".allow; it can then run any other script, too",
			   helper);
}

/* Scripts in the list can be started only if their interpreters can. */
static int check_scripts(const struct plan *p, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < p->commands->files.len && r == 0; i++) {
		const char *file = p->commands->files.items[i], *word;
		auto_found f = { 0 };

		if (file[strlen(file) - 1] == '/' || !commands_locate(p, file, &f) ||
		    f.program.form != PROGRAM_SCRIPT)
			continue;
		r = need(p, file, f.program.helper, e);
		word = strrchr(f.program.helper, '/');
		if (r == 0 && word && strcmp(word, "/env") == 0 && f.program.argument[0] &&
		    f.program.argument[0] != '-' && !strchr(f.program.argument, '='))
			r = need(p, file, f.program.argument, e);
	}
	return r;
}

/* The command itself: it would only fail later, with less to say. */
static int check_command(const struct plan *p, struct ward_err *e)
{
	const char *name = p->argv ? p->argv[0] : NULL;
	auto_free char *path = name && strchr(name, '/') ? path_join(p->cwd, name) : NULL;
	auto_found f = { 0 };

	if (!name || !commands_find(p, path ? path : name, &f) ||
	    (allows(p->commands, f.inside) && !(p->commands->listed && f.noexec)))
		return 0;
	ward_fail(e, EACCES, FIELD " does not allow the command %s (%s)", name, f.inside);
	return strv_has(&p->commands->denied, f.inside)
		       ? ward_remedy(e, "remove it from " FIELD ".deny")
		       : ward_remedy(e, "add %s to " FIELD ".allow", name);
}

static int refuse_here(const char *why, const char *remedy, struct ward_err *e)
{
	ward_fail(e, ENOTSUP, FIELD ": %s", why);
	return ward_remedy(e, "%s", remedy);
}

/* What cannot hold the wall refuses it. */
static int check_host(const struct plan *p, struct ward_err *e)
{
	const struct spec *s = p->spec;

	if (p->level == LEVEL_LANDLOCK)
		return refuse_here("isolation level landlock has no mounts of its own: it cannot "
				   "make places noexec or cover files",
				   "enable user namespaces (`ward doctor` shows how), or remove it "
				   "from the policy",
				   e);
	if (s->inner || (s->engine && strcmp(s->engine, "native") != 0))
		return refuse_here("only isolation native enforces it; behind another engine "
				   "ward's rules for executing files are not in force",
				   "use isolation: native, or remove it from the policy", e);
	if (p->image.root)
		return refuse_here("it is not enforced in an image",
				   "build an image that holds only the programs that may run", e);
	if (p->commands->listed && s->policy.proc_nesting)
		return refuse_here("an allow list and process.nesting exclude each other: under "
				   "Landlock's file rules nothing can be mounted",
				   "remove one of them", e);
	if (p->commands->listed && p->facts.landlock_abi < LANDLOCK_ABI_MIN)
		return refuse_here("an allow list needs Landlock, which this kernel does not have "
				   "or which is not in its lsm= list",
				   "use Linux 5.19 or later with landlock in the lsm= list, or use "
				   "only deny",
				   e);
	return 0;
}

static bool is_guarded(const struct plan *p, const char *name)
{
	auto_found f = { 0 };

	return p->commands->guarded_count && commands_find(p, name, &f) &&
	       plan_is_guarded(p->commands, f.inside);
}

/* Calls a function with each program of one list that is not guarded. */
static int each(struct plan *p, const char *kind,
		int (*use)(struct plan *, const char *, struct ward_err *), struct ward_err *e)
{
	const struct strv *list = &p->spec->policy.proc_commands;
	size_t n = strlen(kind);
	int r = 0;

	for (size_t i = 0; i < list->len && r == 0; i++) {
		const char *text = list->items[i] + n + 1;
		auto_free char *name = NULL;

		if (strncmp(list->items[i], kind, n) != 0 || list->items[i][n] != ' ')
			continue;
		text += strspn(text, " ");
		name = strndup(text, strcspn(text, " "));
		if (!name || !*name)
			return ward_fail(e, EINVAL, FIELD ".%s: an entry is empty", kind);
		if (text[strlen(name)] || is_guarded(p, name))
			continue;
		r = use(p, name, e);
	}
	return r;
}

static void close_places(struct plan *p)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].writable || strcmp(p->mounts[i].target, p->workspace) == 0)
			p->mounts[i].noexec = true;
}

int plan_add_commands(struct plan *p, struct ward_err *e)
{
	const struct strv *list = &p->spec->policy.proc_commands;
	auto_found loader = { 0 };
	size_t count;
	int r;

	if (!list->len)
		return 0;
	p->commands = calloc(1, sizeof(*p->commands));
	if (!p->commands)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < list->len; i++)
		p->commands->listed |= strncmp(list->items[i], "allow ", 6) == 0;
	r = check_host(p, e);
	if (r == 0 && p->commands->listed)
		close_places(p);
	if (r == 0)
		r = plan_add_guarded(p, e);
	if (r == 0)
		r = each(p, "deny", deny, e);
	if (r == 0)
		r = each(p, "allow", allow, e);
	if (r == 0)
		r = plan_guard_copies(p, e);
	if (r == 0 && p->commands->listed && !p->commands->loader &&
	    commands_locate(p, LOADER, &loader))
		r = commands_add_loader(p, "a directory of the list", LOADER, e);
	if (r == 0 && p->commands->loader && strv_has(&p->commands->files, p->commands->loader))
		return refuse_here("allow: the dynamic loader runs any file that can be read",
				   "remove it from the list; programs find it without", e);
	count = p->commands->files.len + p->commands->denied.len;
	for (size_t i = 0; i < p->commands->guarded_count; i++)
		count += p->commands->guarded[i].names.len;
	if (r == 0 && count > FILES_MAX)
		return ward_fail(e, E2BIG, FIELD ": more than %d programs", FILES_MAX);
	if (r == 0 && p->commands->listed)
		r = check_scripts(p, e);
	return r < 0 ? r : check_command(p, e);
}

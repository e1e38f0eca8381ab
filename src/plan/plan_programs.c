/*
 * Programs of the user's own: filesystem.programs. In: names, the caller's PATH. Out: read-only
 * binds of what each program is made of, and a link /.ward/bin/NAME to it, which PATH has in front.
 * Runs in the supervisor with the user's rights, only where a policy names programs. Agents are
 * installed below the home directory as often as below /usr: the rest of that home, and the other
 * programs beside them, stay outside.
 *
 *	a package of npm	.../node_modules/[@SCOPE/]PACKAGE as a whole: its own modules lie in
 *				there
 *	a virtual environment	the directory with pyvenv.cfg (venv, pipx, uv), and the Python that
 *				it was made of
 *	an installer's version	.../NAME/versions/VERSION with NAME in it, as a whole: the program
 *				and what it brings
 *	anything else		the file itself: native installers, node
 *
 * What is below /usr is there already. A name that PATH does not have is no error: the command says
 * so when it is not found. A package directory that holds the whole home, or everything, is
 * refused. An agent may have written what lies in the workspace: a program that is found there, or
 * by a link that leads through there, is as it is in the workspace, and shows nothing more.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "model/inner.h"
#include "plan/plan.h"
#include "plan/toolchains.h"

char *plan_find_program(const char *name)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *dir = strndup(path, n);
		auto_free char *file = dir && *dir == '/' ? path_join(dir, name) : NULL;
		struct stat st;

		if (file && stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
			return take_ptr(file);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* .../node_modules/[@SCOPE/]PACKAGE of a file in one; NULL: it is in none. */
static char *node_package(const char *real)
{
	static const char modules[] = "/node_modules/";
	const char *at = strstr(real, modules), *end;

	if (!at)
		return NULL;
	at += strlen(modules);
	end = strchr(at, '/');
	if (end && *at == '@')
		end = strchr(end + 1, '/');
	return end ? strndup(real, (size_t)(end - real)) : NULL;
}

static char *parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
}

/* The Python that an environment was made of: "home = DIR/bin" in its pyvenv.cfg; NULL: it names
 * none. */
static char *base_python(const struct buf *config)
{
	for (const char *line = buf_text(config); *line;) {
		size_t n = strcspn(line, "\n");
		bool home = n > 7 && strncmp(line, "home", 4) == 0;
		const char *value = home ? line + 4 + strspn(line + 4, " ") : line;

		if (home && *value == '=') {
			auto_free char *text = NULL, *real = NULL;

			value += 1 + strspn(value + 1, " ");
			text = value < line + n ? strndup(value, (size_t)(line + n - value)) : NULL;
			real = text ? realpath(text, NULL) : NULL;
			return real ? parent(real) : NULL;
		}
		line += n + (line[n] == '\n');
	}
	return NULL;
}

/* The virtual environment that a file is in (ENV/bin/FILE), with its Python. */
static void add_environment(const char *file, struct strv *trees)
{
	auto_free char *bin = parent(file), *top = bin ? parent(bin) : NULL,
		       *config = top ? path_join(top, "pyvenv.cfg") : NULL, *python = NULL;
	auto_buf text = { 0 };

	if (!config || io_read_file(AT_FDCWD, config, 65536, &text) < 0)
		return;
	strv_add(trees, top);
	python = base_python(&text);
	if (python && !path_is_beneath(python, "/usr"))
		strv_add(trees, python);
}

/* .../NAME/versions/VERSION of .../NAME/versions/VERSION/NAME; NULL: it is none. */
static char *version_tree(const char *real, const char *name)
{
	auto_free char *version = parent(real), *versions = version ? parent(version) : NULL,
		       *top = versions ? parent(versions) : NULL;
	const char *file = strrchr(real, '/') + 1, *slash = top ? strrchr(top, '/') : NULL;

	if (!slash || strcmp(file, name) != 0 || strcmp(slash + 1, name) != 0 ||
	    strcmp(strrchr(versions, '/') + 1, "versions") != 0)
		return NULL;
	return take_ptr(version);
}

/* What has to be in view for the program to run. */
static void list_trees(const char *real, const char *name, struct strv *trees)
{
	auto_free char *package = node_package(real);

	if (!package)
		package = version_tree(real, name);
	if (package)
		strv_add(trees, package);
	else
		add_environment(real, trees);
	if (!trees->len)
		strv_add(trees, real);
}

bool plan_is_in_view(const struct plan *p, const char *path)
{
	if (path_is_beneath(path, "/usr"))
		return true;
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND &&
		    strcmp(p->mounts[i].source, p->mounts[i].target) == 0 &&
		    path_is_beneath(path, p->mounts[i].target))
			return true;
	return false;
}

static int add_tree(struct plan *p, const char *name, const char *tree, struct ward_err *e)
{
	const char *home = getenv("HOME");

	if (plan_is_in_view(p, tree))
		return 0;
	if (home && *home == '/' && path_is_beneath(home, tree)) {
		ward_fail(e, EINVAL,
			  "filesystem.programs: %s would expose %s, which contains the home "
			  "directory",
			  name, tree);
		return ward_remedy(e, "install it elsewhere, or remove it from the list");
	}
	return plan_add_policy_bind(p, tree, tree, false, e);
}

static bool is_writable_tree(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].from_policy && p->mounts[i].writable &&
		    path_is_beneath(path, p->mounts[i].source))
			return true;
	return false;
}

/* Whether some directory on the way to the file, wherever links lead, is one that the sandbox may
 * write. */
static bool leads_through_writable(const struct plan *p, const char *file)
{
	for (const char *slash = strchr(file + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *prefix = strndup(file, (size_t)(slash - file));
		auto_free char *real = prefix ? realpath(prefix, NULL) : NULL;

		if (!real || is_writable_tree(p, real))
			return true;
	}
	return false;
}

static bool is_the_agents(const struct plan *p, const char *file)
{
	auto_free char *at = strdup(file);

	for (int links = 0; at && links < 40; links++) {
		char target[4096];
		ssize_t n = readlink(at, target, sizeof(target) - 1);
		auto_free char *dir = parent(at);

		if (leads_through_writable(p, at))
			return true;
		if (n < 0)
			return false;
		target[n] = '\0';
		free(at);
		at = path_join(dir ? dir : "/", target);
	}
	return true;
}

static int add_program(struct plan *p, const char *name, struct ward_err *e)
{
	auto_free char *file = plan_find_program(name), *real = file ? realpath(file, NULL) : NULL;
	auto_strv trees = { 0 };
	char link[96];
	int r = 0;

	if (!real || (path_is_beneath(file, "/usr") && path_is_beneath(real, "/usr")) ||
	    is_the_agents(p, file))
		return 0;
	list_trees(real, name, &trees);
	if (trees.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < trees.len && r == 0; i++)
		r = add_tree(p, name, trees.items[i], e);
	snprintf(link, sizeof(link), PLAN_PROGRAMS "/%s", name);
	if (r == 0 && plan_add_link(p, real, link) < 0)
		r = ward_fail(e, ENOMEM, "out of memory");
	return r;
}

static bool is_system_dir(const char *dir, size_t n)
{
	return (n >= 4 && strncmp(dir, "/usr", 4) == 0 && (n == 4 || dir[4] == '/')) ||
	       (n >= 4 && strncmp(dir, "/bin", 4) == 0) ||
	       (n >= 5 && strncmp(dir, "/sbin", 5) == 0);
}

static bool is_program(const char *file)
{
	struct stat st;

	return access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether a directory of the system comes before that point of PATH and has the program. */
static bool system_has(const char *path, const char *end, const char *name)
{
	while (path < end) {
		size_t n = strcspn(path, ":");
		auto_free char *dir = is_system_dir(path, n) ? strndup(path, n) : NULL,
			       *file = dir ? path_join(dir, name) : NULL;

		if (file && is_program(file))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* The command as the caller means it, if that lies outside of the system's directories. Of PATH
 * only those are asked for it: a plain run with a plain PATH asks nothing. The caller frees. */
static char *own_program(const char *name)
{
	const char *start = getenv("PATH"), *path = start;

	if (*name == '/' && !is_system_dir(name, strlen(name)))
		return is_program(name) ? path_clean(name) : NULL;
	if (strchr(name, '/'))
		return NULL;
	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *dir = *path == '/' && !is_system_dir(path, n) ? strndup(path, n)
									      : NULL,
			       *file = dir ? path_join(dir, name) : NULL;

		if (file && is_program(file))
			return system_has(start, path, name) ? NULL : take_ptr(file);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* Decides whether there is anything to do: most runs are over here, after one look into the
 * project's directory. */
int plan_add_toolchains(struct plan *p, struct ward_err *e)
{
	const struct strv *wanted = &p->spec->policy.toolchains;
	const char *cwd = p->spec->cwd;

	/* what lies in the workspace is seen inside as it is */
	if (!p->image.root && p->spec->argv && p->spec->argv[0] &&
	    !path_is_beneath(p->spec->argv[0], p->workspace))
		p->own_program = own_program(p->spec->argv[0]);
	if (p->image.root || p->level == LEVEL_LANDLOCK ||
	    (p->spec->inner && !p->spec->inner->own_view)) {
		if (wanted->len && p->spec->policy.origin[POLICY_F_toolchains].source)
			strv_add(&p->notes, "toolchains are not shown here: only beside the host's "
					    "own /usr, with isolation native, oci or gvisor");
		return 0;
	}
	if (!wanted->len)
		return 0;
	if (!p->own_program && wanted->len == 1 && strcmp(wanted->items[0], "auto") == 0 &&
	    !toolchain_has_marker(p->workspace, NULL) &&
	    (!cwd || strcmp(cwd, p->workspace) == 0 || !toolchain_has_marker(cwd, NULL)))
		return 0;
	return plan_show_toolchains(p, e);
}

int plan_add_programs(struct plan *p, struct ward_err *e)
{
	const struct strv *programs = &p->spec->policy.fs_programs;
	int r = 0;

	for (size_t i = 0; i < programs->len && r == 0; i++)
		r = add_program(p, programs->items[i], e);
	return r;
}

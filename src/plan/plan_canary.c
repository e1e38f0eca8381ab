/*
 * Canaries (canary.files, canary.variables, canary.git_remotes). In: paths inside, names of
 * variables, remotes. Out: read-only mounts of files, variables of the environment and settings of
 * git with made-up secrets, each with a text that no other run has. A remote is a setting in the
 * environment (GIT_CONFIG_COUNT), so that no file of the workspace changes. The files lie in a
 * directory of the run's own in the runtime directory, which no other user can look into, and go
 * with the run; run/box_canary.c watches them. They are files of the host, not of a private file
 * system, because the supervisor has to see their inodes: an inotify watch is on the inode,
 * whatever name and mount it is opened by, and an ordinary user has no fanotify for that. Runs in
 * the supervisor, before the start.
 */
#include "plan/plan_canary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "plan/plan_root.h"
#include "state/runtime.h"

#define PLACEHOLDER "(a canary)"

static void target_of(const char *entry, char ret[WATCH_CANARY_PATH + 16])
{
	bool home = entry[0] == '~';

	snprintf(ret, WATCH_CANARY_PATH + 16, "%s%s", home ? PLAN_HOME : "", entry + home);
}

static int refuse(const char *entry, const char *why, const char *remedy, struct ward_err *e)
{
	ward_fail(e, ENOTSUP, "canary.files: %.200s: %s", entry, why);
	return ward_remedy(e, "%s", remedy);
}

/* Where a file can be put that is not there: what ward makes itself, not what it shows of the
 * host. */
static int check_place(const struct plan *p, const char *entry, const char *target,
		       struct ward_err *e)
{
	static const char *const own[] = { PLAN_HOME, "/tmp", "/run", "/root", "/srv", "/opt" };
	bool fine = false;

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		fine |= path_is_beneath(target, own[i]) && strcmp(target, own[i]) != 0;
	if (!fine)
		return refuse(entry, "this directory shows the host's own files",
			      "choose a path below ~/, /root, /srv or /opt", e);
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind == MOUNT_BIND &&
		    (path_is_beneath(target, m->target) || path_is_beneath(m->target, target)))
			return refuse(entry, "a mount of the policy, or another canary, is there",
				      "choose another path, or filesystem.home: private", e);
	}
	return 0;
}

int plan_add_canaries(struct plan *p, struct ward_err *e)
{
	const struct strv *files = &p->spec->policy.canary_files;

	if (files->len > WATCH_CANARIES_MAX ||
	    p->spec->policy.canary_hosts.len > WATCH_CANARIES_MAX ||
	    p->spec->policy.canary_variables.len > WATCH_CANARIES_MAX ||
	    p->spec->policy.canary_git_remotes.len > WATCH_CANARIES_MAX)
		return ward_fail(e, E2BIG, "canary: at most %d of each kind", WATCH_CANARIES_MAX);
	if (files->len &&
	    (strcmp(p->engine, "native") != 0 || p->level != LEVEL_NAMESPACES || p->image.root))
		return refuse(files->items[0],
			      "canary files need isolation: native with namespaces and image: host",
			      "--isolation native, or canary.hosts, which every engine has", e);
	for (size_t i = 0; i < files->len; i++) {
		char target[WATCH_CANARY_PATH + 16];
		struct plan_mount *m;

		target_of(files->items[i], target);
		if (check_place(p, files->items[i], target, e) < 0)
			return -e->code;
		m = plan_add_bind(p, PLACEHOLDER, target);
		if (!m)
			return ward_fail(e, ENOMEM, "out of memory");
		m->is_file = true;
	}
	return 0;
}

/* -- the files */

static int make_dir(struct canaries *c, struct ward_err *e)
{
	uint64_t random;

	c->parent_fd = runtime_open(e);
	if (c->parent_fd < 0)
		return c->parent_fd;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random numbers");
	snprintf(c->dir, sizeof(c->dir), "canary-%016llx", (unsigned long long)random);
	if (mkdirat(c->parent_fd, c->dir, 0700) < 0) {
		c->dir[0] = '\0';
		return ward_fail_errno(e, "cannot make a directory for canary files");
	}
	c->dir_fd = openat(c->parent_fd, c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return c->dir_fd < 0 ? ward_fail_errno(e, "cannot open the directory of canary files") : 0;
}

/* A new value; token: CANARY_TOKEN characters and a NUL. */
static int make_value(struct canaries *c, const char *field, const char *name,
		      char token[CANARY_TOKEN + 1], struct ward_err *e)
{
	struct canary_value *v = &c->values[c->value_count];
	uint8_t random[CANARY_TOKEN];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random numbers");
	canary_token(random, token);
	memcpy(c->tokens + c->value_count * CANARY_TOKEN, token, CANARY_TOKEN);
	v->field = field;
	snprintf(v->name, sizeof(v->name), "%s", name);
	c->value_count++;
	return 0;
}

static int write_file(struct canaries *c, const char *entry, struct ward_err *e)
{
	struct canary_file *f = &c->files[c->count];
	char token[CANARY_TOKEN + 1];
	auto_buf text = { 0 };
	auto_fd fd = -1;
	int r;

	target_of(entry, f->target);
	snprintf(f->name, sizeof(f->name), "%zu", c->count);
	if (make_value(c, "canary.files", f->target, token, e) < 0)
		return -e->code;
	canary_content(f->target, token, &text);
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = openat(c->dir_fd, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return ward_fail_errno(e, "cannot make a canary file");
	c->count++;
	r = fchmod(fd, 0644) < 0 ? -errno : io_write_all(fd, buf_text(&text), text.len);
	return r < 0 ? ward_fail(e, -r, "cannot write a canary file: %s", strerror(-r)) : 0;
}

/* As with the ssh-agent's socket: as root the child that builds the sandbox has no right to the
 * path. */
static int put_mount(struct plan *p, const struct canaries *c, const struct canary_file *f,
		     struct ward_err *e)
{
	struct plan_mount *m = NULL;
	char link[64], path[PATH_MAX];
	ssize_t n;

	for (size_t i = 0; i < p->mount_count; i++)
		if (strcmp(p->mounts[i].target, f->target) == 0)
			m = &p->mounts[i];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", c->dir_fd);
	n = readlink(link, path, sizeof(path) - 16);
	if (!m || n <= 0 || n >= (ssize_t)sizeof(path) - 16)
		return ward_fail(e, ENAMETOOLONG, "the path of the runtime directory is too long");
	snprintf(path + n, sizeof(path) - (size_t)n, "/%s", f->name);
	strv_add(&p->strings, path);
	if (p->strings.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->source = p->strings.items[p->strings.len - 1];
	if (p->ids.mode == IDS_OWN)
		return 0;
	m->tree_fd = (int)syscall(SYS_open_tree, c->dir_fd, f->name,
				  AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return m->tree_fd < 0 ? ward_fail_errno(e, "cannot mount a canary file") : 0;
}

/* -- the environment */

static bool has_variable(const struct plan *p, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->env.len; i++)
		if (strncmp(p->env.items[i], name, n) == 0 && p->env.items[i][n] == '=')
			return true;
	return false;
}

static int refuse_set(const char *field, const char *name, struct ward_err *e)
{
	ward_fail(e, EEXIST, "%s: the variable %s is set already", field, name);
	return ward_remedy(e, "remove it from process.env or --env, or choose another canary");
}

static int add_variables(struct plan *p, struct canaries *c, struct ward_err *e)
{
	static const char field[] = "canary.variables";
	const struct strv *names = &p->spec->policy.canary_variables;

	for (size_t i = 0; i < names->len; i++) {
		char token[CANARY_TOKEN + 1];
		auto_buf text = { 0 };

		if (has_variable(p, names->items[i]))
			return refuse_set(field, names->items[i], e);
		if (make_value(c, field, names->items[i], token, e) < 0)
			return -e->code;
		canary_variable(names->items[i], token, &text);
		strv_addf(&p->env, "%s=%s", names->items[i], buf_text(&text));
		if (text.failed || p->env.failed)
			return ward_fail(e, ENOMEM, "out of memory");
	}
	return 0;
}

/* Each remote is NAME=https://HOST/PATH. */
static int add_remotes(struct plan *p, struct canaries *c, struct ward_err *e)
{
	static const char field[] = "canary.git_remotes", count[] = "GIT_CONFIG_COUNT";
	const struct strv *remotes = &p->spec->policy.canary_git_remotes;

	if (remotes->len && has_variable(p, count))
		return refuse_set(field, count, e);
	for (size_t i = 0; i < remotes->len; i++) {
		const char *entry = remotes->items[i], *equals = strchr(entry, '='),
			   *host = equals + strlen("=https://");
		auto_free char *name = strndup(entry, (size_t)(equals - entry));
		char token[CANARY_TOKEN + 1];

		if (!name || make_value(c, field, name, token, e) < 0)
			return name ? -e->code : ward_fail(e, ENOMEM, "out of memory");
		snprintf(c->hosts[c->host_count++], sizeof(c->hosts[0]), "%.*s",
			 (int)strcspn(host, "/"), host);
		strv_addf(&p->env, "GIT_CONFIG_KEY_%zu=remote.%s.url", i, name);
		strv_addf(&p->env, "GIT_CONFIG_VALUE_%zu=https://deploy:%s@%s", i, token, host);
	}
	if (remotes->len)
		strv_addf(&p->env, "%s=%zu", count, remotes->len);
	return p->env.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int canary_start(struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;
	const struct strv *files = &policy->canary_files;
	struct canaries *c;
	int r;

	if (!p->spec->starts ||
	    !(files->len + policy->canary_variables.len + policy->canary_git_remotes.len))
		return 0;
	c = p->live->canaries = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->parent_fd = c->dir_fd = -1;
	r = files->len ? make_dir(c, e) : 0;
	for (size_t i = 0; i < files->len && r == 0; i++) {
		r = write_file(c, files->items[i], e);
		if (r == 0)
			r = put_mount(p, c, &c->files[c->count - 1], e);
	}
	if (r == 0)
		r = add_variables(p, c, e);
	return r == 0 ? add_remotes(p, c, e) : r;
}

void canary_end(struct plan *p)
{
	struct canaries *c = p->live->canaries;

	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		(void)unlinkat(c->dir_fd, c->files[i].name, 0);
	if (c->dir[0])
		(void)unlinkat(c->parent_fd, c->dir, AT_REMOVEDIR);
	own_close_fd(&c->dir_fd);
	own_close_fd(&c->parent_fd);
	free(c);
	p->live->canaries = NULL;
}

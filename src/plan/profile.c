/*
 * Profiles. In: a name. Out: a policy between the defaults and the policy file. The built-in ones
 * are those of profiles/, carried by ward itself; NAME.yaml in $XDG_CONFIG_HOME/ward/profiles
 * (~/.config/ward/profiles) goes before them. The directory above, which has the user's defaults
 * too (user_config.c), is the user's own and never seen inside, so what lies there is the user's
 * word; where a writable tree holds it, it is protected there; a profile that turns out to lie in
 * the workspace is refused. Runs in `ward` with the user's
 * rights, only where a profile was asked for.
 */
#include "plan/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "guard/guard_internal.h"
#include "plan/spec.h"

#define PROFILE_BYTES_MAX (1024 * 1024)
#define SUFFIX ".yaml"

static const struct {
	const char *name, *text;
} built_in[] = {
#include "profiles-made.h"
};

char *profile_own_root(void)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (xdg && *xdg == '/')
		return path_join(xdg, "ward");
	return home && *home == '/' ? path_join(home, ".config/ward") : NULL;
}

static char *own_directory(void)
{
	auto_free char *root = profile_own_root();

	return root ? path_join(root, "profiles") : NULL;
}

static bool is_name(const char *name)
{
	return *name && *name != '.' && *name != '-' && strlen(name) <= 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
		       strlen(name);
}

static int fail_unknown(const char *name, struct ward_err *e)
{
	unsigned distance = UINT32_MAX;
	const char *best = NULL;
	auto_buf shown = { 0 };
	auto_strv names = { 0 };
	int r = profile_names(&names, e);

	if (r < 0)
		return r;
	text_escape(&shown, name);
	ward_fail(e, ENOENT, "there is no profile %.100s", buf_text(&shown));
	for (size_t i = 0; i < names.len; i++)
		text_nearest(name, names.items[i], &best, &distance);
	if (best)
		return ward_remedy(e, "did you mean %s? ward profile ls lists them", best);
	return ward_remedy(e, "ward profile ls lists them; NAME" SUFFIX
			      " in ~/.config/ward/profiles adds one");
}

/* 1: there is none. */
static int read_own(const char *name, struct buf *text, char **ret_where, struct ward_err *e)
{
	auto_free char *dir = own_directory(), *path = NULL;
	auto_fd fd = -1;
	struct stat st;
	int r;

	if (!dir)
		return 1;
	if (asprintf(&path, "%s/%s" SUFFIX, dir, name) < 0) {
		path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 1
			       : ward_fail_errno(e, "cannot open the profile %.300s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "the profile %.300s is not a regular file", path);
	r = io_read_all(fd, PROFILE_BYTES_MAX, text);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the profile %.300s: %s", path, strerror(-r));
	*ret_where = take_ptr(path);
	return 0;
}

int profile_read(const char *name, struct buf *ret_text, char **ret_where, struct ward_err *e)
{
	int r;

	*ret_where = NULL;
	if (!is_name(name))
		return fail_unknown(name, e);
	r = read_own(name, ret_text, ret_where, e);
	if (r <= 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
		if (strcmp(built_in[i].name, name) == 0) {
			buf_puts(ret_text, built_in[i].text);
			return ret_text->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
		}
	return fail_unknown(name, e);
}

static void add_name(struct strv *names, const char *name, size_t n)
{
	auto_free char *copy = strndup(name, n);

	if (copy && is_name(copy) && !strv_has(names, copy))
		strv_add(names, copy);
	names->failed |= !copy;
}

int profile_names(struct strv *names, struct ward_err *e)
{
	auto_free char *path = own_directory();
	auto_dir dir = path ? opendir(path) : NULL;
	struct dirent *entry;

	for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
		add_name(names, built_in[i].name, strlen(built_in[i].name));
	while (dir && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name), suffix = strlen(SUFFIX);

		if (n > suffix && strcmp(entry->d_name + n - suffix, SUFFIX) == 0)
			add_name(names, entry->d_name, n - suffix);
	}
	strv_sort(names);
	return names->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

void profile_about(const struct buf *text, struct buf *ret_about)
{
	const char *at = buf_text(text);

	if (*at != '#')
		return;
	at += 1 + strspn(at + 1, " ");
	buf_add(ret_about, at, strcspn(at, "\n"));
}

/* "~/" and relative paths: a profile's are below its own directory. */
static int resolve_paths(struct policy *p, const char *where, struct ward_err *e)
{
	const char *slash = where ? strrchr(where, '/') : NULL;
	auto_free char *dir = slash ? strndup(where, (size_t)(slash - where)) : strdup("/");

	return dir ? spec_resolve_mounts(p, dir, e) : ward_fail(e, ENOMEM, "out of memory");
}

int profile_check_place(const struct spec *s, struct ward_err *e)
{
	if (!s->profile_file || !path_is_beneath(s->profile_file, s->workspace))
		return 0;
	ward_fail(e, EACCES,
		  "the profile %.300s is in the workspace, where an agent may have written it",
		  s->profile_file);
	return ward_remedy(e, "review it, then use it as the policy: -p %.300s", s->profile_file);
}

/* It builds on nothing else. */
static int check_alone(const struct policy *p, const char *name, struct ward_err *e)
{
	if (p->origin[POLICY_F_profile].source != POLICY_PROFILE &&
	    p->origin[POLICY_F_extends].source != POLICY_PROFILE)
		return 0;
	ward_fail(e, EINVAL, "the profile %s: a profile cannot have profile or extends", name);
	return ward_remedy(e, "name both in the policy file: extends: [ONE, OTHER]");
}

int profile_apply(const char *name, struct spec *s, struct policy_errors *errors,
		  struct ward_err *e)
{
	auto_buf text = { 0 }, label = { 0 };
	auto_free char *where = NULL;
	int r = profile_read(name, &text, &where, e);

	if (r < 0)
		return r;
	buf_printf(&label, "%s", where ? where : "profile ");
	if (!where)
		buf_puts(&label, name);
	strv_add(&s->files, buf_text(&label));
	s->policy.file = (unsigned)s->files.len;
	r = policy_read(&s->policy, buf_text(&label), (const uint8_t *)buf_text(&text), text.len,
			POLICY_PROFILE, errors);
	if (r == -EINVAL)
		return ward_fail(e, EINVAL, "the profile %s has %zu errors", name,
				 errors->lines.len);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the profile %s: %s", name, strerror(-r));
	r = check_alone(&s->policy, name, e);
	if (r == 0)
		r = resolve_paths(&s->policy, where, e);
	if (r < 0)
		return r;
	s->profile = strdup(name);
	s->profile_file = where ? realpath(where, NULL) : NULL;
	return s->profile && (!where || s->profile_file) && !s->files.failed
		       ? 0
		       : ward_fail(e, ENOMEM, "out of memory");
}

int profile_protect(struct guard_root *g, struct ward_err *e)
{
	auto_free char *dir = profile_own_root(), *real = NULL;
	int r = dir ? guard_protect_way(g, dir, &real, e) : 0;

	if (!dir || r < 0)
		return r;
	if (!path_is_beneath(g->path, real))
		return guard_protect_place(g, real, true, e);
	ward_fail(e, EACCES,
		  "%.300s is in the directory of your own settings of ward, which the sandbox "
		  "could then write to",
		  g->path);
	return ward_remedy(e, "work on a copy elsewhere");
}

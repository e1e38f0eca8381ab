/*
 * The user's own defaults. In: config.yaml in $XDG_CONFIG_HOME/ward (~/.config/ward), a policy like
 * any other. Out: its values over the built-in ones, below profile, policy file and options. It
 * needs no trust: it lies where no sandbox can write (profile_protect() sees to that), must belong
 * to the caller or to root, must not be writable by anybody else, and counts for no workspace that
 * contains it. Runs in `ward` with the user's rights; a run without the file pays for one open()
 * that fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/profile.h"
#include "plan/spec_source.h"

#define CONFIG_BYTES_MAX (1024 * 1024)

/* Nobody but the caller and root may have written what the path names. */
static int check_owner(const char *path, const struct stat *st, struct ward_err *e)
{
	auto_buf shown = { 0 };

	text_escape(&shown, path);
	if (st->st_uid != geteuid() && st->st_uid != 0) {
		ward_fail(e, EPERM, "%.300s belongs to another user (uid %u)", buf_text(&shown),
			  (unsigned)st->st_uid);
		return ward_remedy(e, "own it, or set XDG_CONFIG_HOME to a directory of your own");
	}
	if (!(st->st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	ward_fail(e, EPERM, "%.300s can be written by others", buf_text(&shown));
	return ward_remedy(e, "chmod go-w %.300s", buf_text(&shown));
}

static int check_file(int fd, const char *path, const char *dir, struct ward_err *e)
{
	struct stat st, above;

	if (fstat(fd, &st) < 0 || stat(dir, &above) < 0)
		return ward_fail_errno(e, "cannot look at %.300s", path);
	if (!S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "%.300s is not a regular file", path);
	if (check_owner(path, &st, e) < 0)
		return -e->code;
	return check_owner(dir, &above, e);
}

static int check_extends(const struct policy *p, const char *path, struct ward_err *e)
{
	if (!p->extends.len)
		return 0;
	ward_fail(e, EINVAL, "%.300s:%u: extends: the user's defaults extend nothing", path,
		  p->origin[POLICY_F_extends].line);
	return ward_remedy(e, "write the values here, or make a profile of them and name it: "
			      "profile: NAME");
}

static int read_config(int fd, const char *path, const char *dir, struct spec *s,
		       struct policy_errors *errors, struct ward_err *e)
{
	auto_free char *real = realpath(path, NULL);
	auto_buf bytes = { 0 };
	int r = check_file(fd, path, dir, e);

	if (r < 0)
		return r;
	r = io_read_all(fd, CONFIG_BYTES_MAX, &bytes);
	if (r < 0)
		return ward_fail(e, -r, "cannot read %.300s: %s", path, strerror(-r));
	strv_add(&s->files, path);
	strv_add(&s->own_files, real ? real : path);
	if (s->files.failed || s->own_files.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	s->policy.file = (unsigned)s->files.len;
	r = spec_parse(&s->policy, path, &bytes, POLICY_USER, errors, e);
	if (r == 0)
		r = check_extends(&s->policy, path, e);
	return r < 0 ? r : spec_resolve_paths(&s->policy, POLICY_USER, dir, e);
}

int user_config_apply(struct spec *s, struct policy_errors *errors, struct ward_err *e)
{
	auto_free char *dir = profile_own_root(),
		       *path = dir ? path_join(dir, "config.yaml") : NULL;
	auto_fd fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;

	if (!dir)
		return 0; /* there is no home */
	if (!path)
		return ward_fail(e, ENOMEM, "out of memory");
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : ward_fail_errno(e, "cannot open %.300s", path);
	return read_config(fd, path, dir, s, errors, e);
}

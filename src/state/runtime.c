/*
 * The runtime directory. In: the environment. Out: an open directory that no process but the
 * caller's user can look into: a user who can reach a control socket in it could control a sandbox,
 * so the directory is the first of two barriers (the socket asks for the peer's uid, too). The last
 * fallback lies in /tmp, where others make names as well: the directory is opened through no link
 * and its owner and mode are checked on the descriptor.
 */
#include "state/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"

static void runtime_path(struct buf *path)
{
	const char *own = secure_getenv("WARD_RUNTIME_DIR"),
		   *xdg = secure_getenv("XDG_RUNTIME_DIR");

	if (own && *own)
		buf_puts(path, own);
	else if (geteuid() == 0)
		buf_puts(path, "/run/ward");
	else if (xdg && *xdg == '/')
		buf_printf(path, "%s/ward", xdg);
	else
		buf_printf(path, "/tmp/ward-%u", geteuid());
}

static int check_private(int fd, const char *path, struct ward_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot access the runtime directory %s", path);
	if (st.st_uid != geteuid())
		ward_fail(e, EPERM, "the runtime directory %s belongs to uid %u, not to uid %u",
			  path, st.st_uid, geteuid());
	else if (st.st_mode & 077)
		ward_fail(e, EPERM,
			  "the runtime directory %s is accessible to other users (mode %04o)", path,
			  st.st_mode & 07777);
	else
		return 0;
	return ward_remedy(e, "set WARD_RUNTIME_DIR to a directory of your own with mode 0700");
}

int runtime_open(struct ward_err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_buf path = { 0 };
	auto_fd fd = -1;
	int r;

	runtime_path(&path);
	if (path.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (buf_text(&path)[0] != '/') {
		ward_fail(e, EINVAL, "WARD_RUNTIME_DIR is not an absolute path: %s",
			  buf_text(&path));
		return ward_remedy(e, "set it to the absolute path of a directory of your own");
	}
	fd = open(buf_text(&path), flags);
	if (fd < 0 && errno == ENOENT && (mkdir(buf_text(&path), 0700) == 0 || errno == EEXIST))
		fd = open(buf_text(&path), flags);
	if (fd < 0) {
		ward_fail_errno(e, "cannot open the runtime directory %s", buf_text(&path));
		return ward_remedy(e, "make it a directory of your own with mode 0700, or set "
				      "WARD_RUNTIME_DIR to another");
	}
	r = check_private(fd, buf_text(&path), e);
	return r < 0 ? r : take_fd(&fd);
}

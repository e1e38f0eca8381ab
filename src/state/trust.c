/*
 * Trust in policy files. In: the SHA-256 of a content. Out: whether the user accepted it. One
 * empty-or-noted file a hash in `trusted` in the state directory, which only its owner can write
 * (store_open() refuses any other); the content is what is trusted, wherever it lies, so that
 * clones and worktrees of a project need one word only. Runs with the user's rights, never inside a
 * sandbox.
 */
#include "state/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"
#include "state/store.h"

#define TRUSTED_DIR "trusted"

int trust_has(const char hex[SHA256_HEX], struct ward_err *e)
{
	auto_fd state_fd = store_open(e);
	char name[sizeof(TRUSTED_DIR) + SHA256_HEX];
	struct stat st;

	if (state_fd < 0)
		return state_fd;
	snprintf(name, sizeof(name), TRUSTED_DIR "/%s", hex);
	if (fstatat(state_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			       ? 0
			       : ward_fail_errno(e, "cannot read the list of trusted policies");
	return S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

int trust_add(const char hex[SHA256_HEX], const char *path, struct ward_err *e)
{
	auto_fd state_fd = store_open(e);
	auto_buf note = { 0 };
	int r;

	if (state_fd < 0)
		return state_fd;
	if (mkdirat(state_fd, TRUSTED_DIR, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make the directory of trusted policies");

	auto_fd dir =
		openat(state_fd, TRUSTED_DIR, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	if (dir < 0)
		return ward_fail_errno(e, "cannot open the directory of trusted policies");

	auto_fd fd = openat(dir, hex, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return ward_fail_errno(e, "cannot record the trusted policy");
	text_escape(&note, path);
	buf_puts(&note, "\n");
	r = note.failed ? -ENOMEM : io_write_all(fd, note.data, note.len);
	return r < 0 ? ward_fail(e, -r, "cannot record the trusted policy: %s", strerror(-r)) : 0;
}

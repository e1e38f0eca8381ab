/*
 * Where the words of ward audit write to: standard output, or a file (-o) that is there complete or
 * not at all. In: bytes. Out: the same, elsewhere. Run by ward-audit. A file is made beside its
 * place, readable for its owner alone, and renamed; a device or pipe is written to, a link is
 * refused.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

int audit_out_open(struct audit_out *o, const char *path, bool directly, struct ward_err *e)
{
	struct stat st;

	*o = (struct audit_out){ .fd = STDOUT_FILENO, .path = path };
	if (!path || strcmp(path, "-") == 0) {
		o->path = NULL;
		return 0;
	}
	/* never rename over a device */
	if (directly || (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))) {
		o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	} else if (asprintf(&o->temporary, "%s.XXXXXX", path) < 0) {
		o->temporary = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	} else {
		o->fd = mkostemp(o->temporary, O_CLOEXEC);
	}
	if (o->fd >= 0)
		return 0;
	ward_fail_errno(e, "-o %.300s", path);
	free(o->temporary);
	o->temporary = NULL;
	return ward_remedy(e, "name a file in a directory that you can write to");
}

bool audit_out_write(struct audit_out *o, struct buf *bytes)
{
	if (bytes->failed)
		o->error = ENOMEM;
	if (bytes->len && !o->error) {
		int r = io_write_all(o->fd, bytes->data, bytes->len);

		o->error = r < 0 ? -r : 0;
	}
	bytes->len = 0;
	return !o->error;
}

int audit_out_close(struct audit_out *o, struct ward_err *e)
{
	const bool to_stdout = !o->path;

	if (o->path && !o->error && o->shared)
		(void)!fchmod(o->fd, 0644);
	if (o->path && !o->error && o->temporary && rename(o->temporary, o->path) < 0)
		o->error = errno;
	if (o->temporary && o->error)
		unlink(o->temporary);
	if (!to_stdout && close(o->fd) < 0 && !o->error)
		o->error = errno;
	free(o->temporary);
	o->temporary = NULL;
	if (!o->error || (to_stdout && o->error == EPIPE)) /* the reader has enough */
		return 0;
	errno = o->error;
	return ward_fail_errno(e, "cannot write %.300s", to_stdout ? "standard output" : o->path);
}

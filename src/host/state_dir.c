/*
 * Where ward keeps its own files. In: the environment. Out: paths; nothing is opened or made
 * (state/store.c does that).
 */
#include "host/state_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int write_path(struct buf *path, struct ward_err *e)
{
	const char *own = secure_getenv("WARD_STATE_DIR"), *xdg = secure_getenv("XDG_STATE_HOME"),
		   *home = secure_getenv("HOME");

	if (own && *own)
		buf_puts(path, own);
	else if (geteuid() == 0)
		buf_puts(path, "/var/lib/ward");
	else if (xdg && *xdg == '/')
		buf_printf(path, "%s/ward", xdg);
	else if (home && *home == '/')
		buf_printf(path, "%s/.local/state/ward", home);
	if (path->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (path->data && path->data[0] == '/')
		return 0;
	ward_fail(e, EINVAL,
		  path->len ? "WARD_STATE_DIR is not an absolute path: %s"
			    : "no directory for ward's state: HOME is not set, or not an absolute "
			      "path%s",
		  buf_text(path));
	return ward_remedy(e, "set WARD_STATE_DIR to an absolute path of a directory of your own");
}

int state_dir_path(char **ret_path, struct ward_err *e)
{
	auto_buf path = { 0 };
	int r = write_path(&path, e);

	if (r < 0)
		return r;
	*ret_path = buf_take(&path);
	return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

void state_dir_memory(char ret_path[STATE_DIR_MEMORY_BYTES])
{
	snprintf(ret_path, STATE_DIR_MEMORY_BYTES, STATE_DIR_MEMORY "%u", geteuid());
}

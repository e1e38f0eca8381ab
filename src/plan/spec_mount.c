/*
 * A mount that an option or a program asks for. In: its paths. Out: the text of one entry of
 * filesystem.host_mounts, as policy_set() appends it. Needs no rights; asks for the current
 * directory where the path is relative.
 */
#include "plan/spec_mount.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"

int spec_mount_entry(const char *path, const char *at, bool writable, char **ret_entry,
		     struct ward_err *e)
{
	auto_free char *here = *path == '/' ? strdup("/") : realpath(".", NULL);
	auto_free char *absolute = here ? path_join(here, path) : NULL;
	auto_buf entry = { 0 };
	struct json j = { .out = &entry };

	if (!absolute)
		return ward_fail_errno(e, "%.200s: cannot determine the current directory", path);
	json_begin_object(&j, NULL);
	json_string(&j, "path", absolute);
	json_string(&j, "mode", writable ? "read_write" : "read_only");
	if (at)
		json_string(&j, "at", at);
	json_end_object(&j);
	*ret_entry = buf_take(&entry);
	return *ret_entry ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

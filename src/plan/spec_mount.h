/* A mount as an entry of the policy's list. */
#ifndef WARD_PLAN_SPEC_MOUNT_H
#define WARD_PLAN_SPEC_MOUNT_H

#include "base/buf.h"

#define SPEC_MOUNT_FIELD "filesystem.host_mounts"

/* One entry for path on the host, at `at` inside (NULL: at the same path). A relative path is the
 * caller's, so it is made absolute here: a policy file's would be relative to the file. The caller
 * frees *ret_entry. */
must_check int spec_mount_entry(const char *path, const char *at, bool writable, char **ret_entry,
				struct ward_err *e);

#endif

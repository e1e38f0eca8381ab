/* Id-mapped copies of trees: files keep their owner on disk while the sandbox has a uid of its own.
 * Root only. */
#ifndef WARD_HOST_IDMAP_H
#define WARD_HOST_IDMAP_H

#include <sys/types.h>

#include "base/err.h"

/* A detached, recursive copy of the mount tree at path (checked against dev and ino), owned by the
 * caller. */
must_check int idmap_clone_tree(const char *path, dev_t dev, ino_t ino, struct ward_err *e);
/* Maps owner <-> host ids on the detached tree. -EINVAL where a file system in it does not do
 * that. */
must_check int idmap_apply(int tree_fd, uid_t owner_uid, gid_t owner_gid, uid_t host_uid,
			   gid_t host_gid);
/* Collects the processes whose user namespaces the maps came from; they have ended long ago. */
void idmap_collect(void);

#endif

/* Whom a request is for, and which path it means. */
#ifndef WARD_ENVD_PERSON_H
#define WARD_ENVD_PERSON_H

#include <limits.h>
#include <sys/types.h>

#include "base/buf.h"

struct person {
	char name[64];
	char home[PATH_MAX];
};

/* The user that ward-envd is: a sandbox has one. name: as the client wants it, NULL or "": that
 * one; "root": the same id with /root as its home, where that is writable. -ENOENT: there is no
 * such user, or it is another one. */
must_check int person_find(const char *name, struct person *ret);
/* The absolute path that a client means by one: "~" and relative paths are in the home. -EINVAL: it
 * is empty; -ENAMETOOLONG. */
must_check int person_path(const struct person *p, const char *path, char ret[PATH_MAX]);
/* The name of a user or group id as /etc has it, or its number. */
void person_owner(uid_t uid, char *ret, size_t n);
void person_group(gid_t gid, char *ret, size_t n);

#endif

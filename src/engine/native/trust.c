/*
 * Whom programs inside trust, where rules are inspected. In: the entries of plan->live->certs. Out:
 * a directory of certificates in the sandbox's own memory, read-only, over /etc/ssl/certs and over
 * other places of the bundle that exist. Runs in the child before the root becomes read-only; raw
 * system calls only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "plan/certs.h"

static long make_entry(int dir_fd, const struct certs_entry *entry)
{
	long fd, r = 0;

	if (entry->link) {
		r = raw_call(SYS_symlinkat, entry->link, dir_fd, entry->name);
		return r == -EEXIST ? 0 : r;
	}
	fd = raw_call(SYS_openat, dir_fd, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		      0444);
	for (size_t at = 0; fd >= 0 && r >= 0 && at < entry->n; at += (size_t)r) {
		r = raw_call(SYS_write, fd, entry->bytes + at, entry->n - at);
		if (r == 0)
			r = -ENOSPC;
	}
	if (fd >= 0)
		raw_call(SYS_close, fd);
	return fd < 0 ? fd : r < 0 ? r : 0;
}

/* Shows a part of the directory in another place, too. */
static long show(struct native_child *c, const char *source, const char *target, bool must)
{
	long tree = raw_call(SYS_open_tree, c->base_fd, source,
			     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
	     point, r;

	if (tree < 0)
		return tree;
	point = native_open_nolink(c->base_fd, target);
	r = point < 0 ? point
		      : raw_call(SYS_move_mount, tree, "", point, "",
				 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	if (point >= 0)
		raw_call(SYS_close, point);
	raw_call(SYS_close, tree);
	return !must && (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) ? 0 : r;
}

long native_trust(struct native_child *c)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC };
	const struct certs *t = c->plan->live->certs;
	long r, dir;

	if (!t)
		return 0;
	c->failed_path = CERTS_DIR;
	r = native_make_point(c->base_fd, &CERTS_DIR[1], false);
	if (r == 0)
		r = raw_call(SYS_mount, "ward", &CERTS_DIR[1], "tmpfs", MS_NOSUID | MS_NODEV,
			     "size=64m,mode=0755");
	dir = r < 0 ? r
		    : raw_call(SYS_openat, c->base_fd, &CERTS_DIR[1],
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return dir;
	for (size_t i = 0; r == 0 && i < t->count; i++)
		r = make_entry((int)dir, &t->entries[i]);
	if (r == 0)
		r = raw_call(SYS_mount_setattr, dir, "", AT_EMPTY_PATH, &closed, sizeof(closed));
	raw_call(SYS_close, dir);
	if (r < 0)
		return r;
	c->failed_path = CERTS_SYSTEM;
	r = native_make_point(c->base_fd, &CERTS_SYSTEM[1], false);
	if (r == 0)
		r = show(c, &CERTS_DIR[1], &CERTS_SYSTEM[1], true);
	for (const struct certs_place *place = certs_places; r == 0 && place->source; place++)
		r = show(c, place->source, place->target, false);
	return r;
}

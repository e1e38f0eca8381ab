/*
 * process.commands in the view. In: the plan's list. Out: each denied program is covered by an
 * empty file of no rights, each guarded one by ward's stand-in for it (guest/stand_in.c); with an
 * allow list, ward's stand-in lies over the dynamic loader, and the real one is at /.ward/loader,
 * where it can be mapped but, by Landlock, not executed (guest/loader.c says why). Runs in the
 * child or its helper, after all other mounts and before the root becomes read-only; raw system
 * calls only. A file that is not there any more fails the start: the plan has seen it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "guest/image.h"

/* A read-only mount of one file, beneath a directory. */
static long clone_file(int dir_fd, const char *path, unsigned flags)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV };
	long tree = raw_call(SYS_open_tree, dir_fd, path,
			     flags | AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	long r = tree < 0 ? tree
			  : raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr,
				     sizeof(attr));

	if (r < 0 && tree >= 0)
		raw_call(SYS_close, tree);
	return r < 0 ? r : tree;
}

/* Puts a file of the root over another. */
static long cover(struct native_child *c, const char *file, int at)
{
	long tree = clone_file(c->base_fd, file, 0), r;

	if (tree < 0)
		return tree;
	r = raw_call(SYS_move_mount, tree, "", at, "",
		     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	raw_call(SYS_close, tree);
	return r;
}

static long replace_loader(struct native_child *c, const char *path)
{
	size_t n = (size_t)(guest_loader_end - guest_loader_begin);
	long at = native_open_nolink(c->base_fd, path + 1), tree, r;

	if (at < 0)
		return at;
	tree = clone_file((int)at, "", AT_EMPTY_PATH);
	r = tree < 0 ? tree : native_make_point(c->base_fd, NATIVE_LOADER, true);
	if (r == 0)
		r = native_attach((int)tree, c->base_fd, NATIVE_LOADER);
	if (r == 0)
		r = native_create_file(c->base_fd, NATIVE_STAND_IN, guest_loader_begin, n, 0555);
	if (r == 0)
		r = cover(c, NATIVE_STAND_IN, (int)at);
	if (tree >= 0)
		raw_call(SYS_close, tree);
	raw_call(SYS_close, at);
	return r;
}

static long cover_path(struct native_child *c, const char *file, const char *path)
{
	long at = native_open_nolink(c->base_fd, path + 1), r;

	c->failed_path = path;
	r = at < 0 ? at : cover(c, file, (int)at);
	if (at >= 0)
		raw_call(SYS_close, at);
	return r;
}

static long guard(struct native_child *c, const struct plan_commands *list)
{
	size_t n = (size_t)(guest_stand_in_end - guest_stand_in_begin);
	long r = 0;

	if (list->guarded_count)
		r = native_create_file(c->base_fd, NATIVE_GUARD, guest_stand_in_begin, n, 0555);
	for (size_t i = 0; i < list->guarded_count && r == 0; i++)
		for (size_t k = 0; k < list->guarded[i].names.len && r == 0; k++)
			r = cover_path(c, NATIVE_GUARD, list->guarded[i].names.items[k]);
	return r;
}

long native_commands(struct native_child *c)
{
	const struct plan_commands *list = c->plan->commands;
	long r = 0;

	c->failed_path = list->loader;
	if (list->listed && list->loader)
		r = replace_loader(c, list->loader);
	for (size_t i = 0; i < list->denied.len && r == 0; i++)
		r = cover_path(c, NATIVE_EMPTY_FILE, list->denied.items[i]);
	return r == 0 ? guard(c, list) : r;
}

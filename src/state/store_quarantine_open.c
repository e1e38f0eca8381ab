/*
 * Looking into the quarantine. In: an item, and a path beneath it where the item is a directory.
 * Out: a descriptor of the thing (O_PATH) and what it is. Nothing is changed and nothing is opened
 * for reading here. An agent chose every name and every type in there, so each step of the way goes
 * by descriptor, no link is followed and no ".." is taken.
 */
#include "state/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* One step at a time: the whole path may be longer than PATH_MAX. */
static int open_steps(int base_fd, const char *path, struct ward_err *e)
{
	auto_fd at = openat(base_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	while (at >= 0) {
		size_t n = strcspn(path, "/");
		int next;

		if (n == 0 || n > NAME_MAX || (n <= 2 && strncmp(path, "..", n) == 0))
			return ward_fail(e, EINVAL, "%.200s is not a plain path", path);
		memcpy(name, path, n);
		name[n] = '\0';
		next = openat(at, name,
			      O_PATH | O_NOFOLLOW | O_CLOEXEC | (path[n] ? O_DIRECTORY : 0));
		if (next < 0)
			break;
		if (!path[n])
			return next;
		close(at);
		at = next;
		path += n + 1;
	}
	return ward_fail_errno(e, "cannot open it in the quarantine");
}

int store_open_item(const struct store_item *item, const char *below, struct stat *ret_st,
		    struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_fd all = -1, run = -1, thing = -1, inner = -1;

	if (state < 0)
		return state;
	all = openat(state, STORE_QUARANTINE, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	run = all < 0 ? -1 : openat(all, item->run, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run < 0)
		return ward_fail_errno(e, "cannot open the quarantine of %s", item->run);
	thing = open_steps(run, item->stored, e);
	if (thing >= 0 && *below) {
		inner = open_steps(thing, below, e);
		close(thing);
		thing = take_fd(&inner);
	}
	if (thing < 0)
		return thing;
	if (fstat(thing, ret_st) < 0)
		return ward_fail_errno(e, "cannot access it in the quarantine");
	return take_fd(&thing);
}

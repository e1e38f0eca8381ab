/*
 * Where ward itself keeps what sandboxes made. In: an absolute path without links. Out: whether it
 * lies there. Volumes, kept homes, images, reviews and the quarantine hold whatever an agent wrote,
 * and nothing judges it as long as it stays there; so no link in a workspace may lead there, or a
 * person who enters the link's name stands in it. The same goes for the root of another process.
 * Runs in the supervisor and in the verbs with the user's rights.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "guard/guard_internal.h"
#include "host/state_dir.h"

static bool is_in_state(const char *path)
{
	struct ward_err ignored = { 0 };
	auto_free char *state = NULL, *real = NULL;

	if (state_dir_path(&state, &ignored) < 0)
		return false; /* nothing is kept then */
	real = realpath(state, NULL);
	return path_is_beneath(path, state) || (real && path_is_beneath(path, real));
}

static bool is_in_memory(const char *path)
{
	char place[STATE_DIR_MEMORY_BYTES];
	auto_free char *real = NULL;

	state_dir_memory(place);
	real = realpath(place, NULL);
	return path_is_beneath(path, place) || (real && path_is_beneath(path, real));
}

static bool is_kept(const char *path)
{
	return is_in_state(path) || is_in_memory(path);
}

bool guard_is_own(const char *tree, const char *path)
{
	if (strncmp(path, "/proc/", 6) == 0 && path[6] >= '0' && path[6] <= '9')
		return true;
	return is_kept(path) && !is_kept(tree); /* an image that is being built lies there itself */
}

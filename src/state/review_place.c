/*
 * Where reviews lie. In: the state directory. Out: open directories, and whether a run has a
 * review. Runs in the supervisor and in the verbs with the user's rights. What a review is made of
 * is the business of src/review.
 */
#include "state/review_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/store.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool review_is_id(const char *word)
{
	size_t digits = strspn(word, "0123456789-");

	return digits >= 16 && strlen(word) == 22 && word[8] == '-' && word[15] == '-' &&
	       strspn(word, "0123456789-abcdefghjkmnpqrstvwxyz") == 22;
}

/* A directory of the user's own in memory. */
static int open_memory(bool make, struct ward_err *e)
{
	char path[STATE_DIR_MEMORY_BYTES];
	auto_fd fd = -1;
	struct stat st;

	state_dir_memory(path);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s", path);
	fd = open(path, DIR_FLAGS);
	if (fd < 0)
		return ward_fail_errno(e, "cannot open %s", path);
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 077)
		return ward_fail(e, EPERM,
				 "%s is not a directory that you own, or other users may enter it",
				 path);
	return take_fd(&fd);
}

static char *path_of(int fd)
{
	char link[32], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return NULL;
	path[n] = '\0';
	return strdup(path);
}

int review_open_place(enum review_place place, bool make, char **ret_path, struct ward_err *e)
{
	auto_fd base = place == REVIEW_IN_STATE ? store_open(e) : open_memory(make, e);
	auto_fd fd = -1;

	if (base < 0)
		return base;
	if (make) {
		fd = store_open_dir(base, REVIEW_DIR, e);
	} else {
		fd = openat(base, REVIEW_DIR, DIR_FLAGS);
		if (fd < 0)
			return ward_fail_errno(e, "cannot open the directory of reviews");
	}
	if (fd < 0)
		return fd;
	if (ret_path) {
		*ret_path = path_of(fd);
		if (!*ret_path)
			return ward_fail_errno(e, "cannot determine the directory of reviews");
	}
	return take_fd(&fd);
}

bool review_exists(const char *id)
{
	bool found = false;

	for (int place = 0; place < REVIEW_PLACES && review_is_id(id) && !found; place++) {
		struct ward_err none;
		auto_fd fd = review_open_place((enum review_place)place, false, NULL, &none);
		struct stat st;

		found = fd >= 0 &&
			(fstatat(fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT);
	}
	return found;
}

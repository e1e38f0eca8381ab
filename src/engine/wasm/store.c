/*
 * The store of compiled modules: STATE/wasm, of the user alone. An entry is KEY.so, named by code.c; an empty one says that the module cannot be compiled. In: keys. Out: files, complete or not there: a new one gets its name last. Bounded in bytes and files: the one that was used longest ago goes first. A sandbox
 * that has one mounted keeps it, whatever becomes of the name.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "engine/wasm/wasm.h"
#include "lib/store.h"

#define NEW_PREFIX "new-"
#define NEW_SECONDS_MAX 3600	/* what a killed ward left behind */
#define USED_EACH_SECONDS 86400	/* how exact "used longest ago" is */

int wasm_store_open(struct wasm_code *c, struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_free char *path = NULL;
	int r;

	if (state < 0)
		return state;
	r = store_path(&path, e);
	if (r < 0)
		return r;
	c->dir_fd = store_open_dir(state, WASM_STORE, e);
	if (c->dir_fd < 0)
		return c->dir_fd;
	c->dir = path_join(path, WASM_STORE);
	return c->dir ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

void wasm_store_close(struct wasm_code *c)
{
	own_close_fd(&c->dir_fd);
	free(c->dir);
}

int wasm_store_look(const struct wasm_code *c)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	if (fstatat(c->dir_fd, c->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return 0;
	if (st.st_size == 0)
		return -ENOTSUP;
	if (time(NULL) - st.st_atim.tv_sec > USED_EACH_SECONDS)
		utimensat(c->dir_fd, c->name, now, AT_SYMLINK_NOFOLLOW);
	return 1;
}

struct usage {
	uint64_t bytes;
	size_t files;
	char oldest[256];	/* "": none */
	time_t oldest_used;
};

/* Sums up, and takes away what was never finished. */
static int look_through(int dir_fd, struct usage *ret)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	*ret = (struct usage){ 0 };
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (strncmp(entry->d_name, NEW_PREFIX, strlen(NEW_PREFIX)) == 0) {
			if (time(NULL) - st.st_mtim.tv_sec > NEW_SECONDS_MAX)
				unlinkat(dir_fd, entry->d_name, 0);
			continue;
		}
		ret->bytes += (uint64_t)st.st_size;
		ret->files++;
		if (!ret->oldest[0] || st.st_atim.tv_sec < ret->oldest_used) {
			snprintf(ret->oldest, sizeof(ret->oldest), "%s", entry->d_name);
			ret->oldest_used = st.st_atim.tv_sec;
		}
	}
	return 0;
}

static void make_room(int dir_fd)
{
	struct usage u;

	while (look_through(dir_fd, &u) == 0 && u.oldest[0] && (u.bytes > WASM_STORE_BYTES_MAX || u.files >= WASM_STORE_FILES_MAX))
		if (unlinkat(dir_fd, u.oldest, 0) < 0)
			return;
}

/* Without a name where the file system can do that: nothing is left of it then, whoever is killed. */
int wasm_store_begin(const struct wasm_code *c, char ret_name[64], struct ward_err *e)
{
	char id[24];
	int fd = openat(c->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	make_room(c->dir_fd);
	ret_name[0] = '\0';
	if (fd >= 0)
		return fd;
	store_new_id(id, sizeof(id));
	snprintf(ret_name, 64, NEW_PREFIX "%s", id);
	fd = openat(c->dir_fd, ret_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? ward_fail_errno(e, "cannot make a file in %s", c->dir) : fd;
}

static int give_name(const struct wasm_code *c, int fd, const char *name)
{
	char path[32];

	if (name[0])
		return renameat(c->dir_fd, name, c->dir_fd, c->name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* somebody else may have been faster, with the same code */
	return linkat(AT_FDCWD, path, c->dir_fd, c->name, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST ? 0 : -1;
}

int wasm_store_keep(const struct wasm_code *c, int fd, const char *name, bool good, struct ward_err *e)
{
	/* readable by everybody: as root the agent is somebody else; the directory lets nobody through */
	if ((good || ftruncate(fd, 0) == 0) && fchmod(fd, 0444) == 0 && (!good || fdatasync(fd) == 0) && give_name(c, fd, name) == 0)
		return 0;
	ward_fail_errno(e, "cannot keep the compiled module in %s", c->dir);
	if (name[0])
		unlinkat(c->dir_fd, name, 0);
	return -e->code;
}

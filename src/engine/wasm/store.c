/*
 * The store of compiled modules: STATE/wasm, of the user alone. An entry is KEY.so, named by key.c;
 * it ends with a seal (struct wasm_seal), by which one that was cut short is seen at every start
 * and one that was changed by `ward wasm ls`; an empty one says that the module cannot be compiled.
 * In: keys. Out: files, complete or not there: a new one gets its name last. Bounded in bytes and
 * files: the one that was used longest ago goes first. A sandbox that has one mounted keeps it,
 * whatever becomes of the name.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/wasm/wasm.h"
#include "state/store.h"

#define NEW_SECONDS_MAX 3600    /* what a killed ward left behind */
#define USED_EACH_SECONDS 86400 /* how exact "used longest ago" is */

static const char magic[8] = { 'w', 'a', 'r', 'd', 'w', 'a', 's', 'm' };

int wasm_store_open(struct wasm_code *c, struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_free char *path = NULL;
	int r;

	if (state < 0)
		return state;
	r = state_dir_path(&path, e);
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

bool wasm_store_unseal(int fd, struct wasm_seal *ret)
{
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size < (off_t)sizeof(*ret))
		return false;
	at = st.st_size - (off_t)sizeof(*ret);
	return pread(fd, ret, sizeof(*ret), at) == (ssize_t)sizeof(*ret) &&
	       memcmp(ret->magic, magic, sizeof(magic)) == 0 && ret->bytes == (uint64_t)at &&
	       memchr(ret->origin, '\0', sizeof(ret->origin));
}

static int digest_file(int fd, uint64_t bytes, uint8_t ret[SHA256_BYTES])
{
	uint8_t part[65536];
	struct sha256 sum;

	sha256_begin(&sum);
	for (uint64_t at = 0; at < bytes;) {
		size_t want = bytes - at < sizeof(part) ? (size_t)(bytes - at) : sizeof(part);
		ssize_t n = pread(fd, part, want, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		sha256_add(&sum, part, (size_t)n);
		at += (uint64_t)n;
	}
	sha256_end(&sum, ret);
	return 0;
}

bool wasm_store_is_intact(int fd, const struct wasm_seal *seal)
{
	uint8_t digest[SHA256_BYTES];

	return digest_file(fd, seal->bytes, digest) == 0 &&
	       memcmp(digest, seal->digest, sizeof(digest)) == 0;
}

int wasm_store_look(const struct wasm_code *c)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	auto_fd fd = openat(c->dir_fd, c->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct wasm_seal seal;
	struct stat st;

	if (fd < 0 || !wasm_store_unseal(fd, &seal) || fstat(fd, &st) < 0)
		return 0;
	if (time(NULL) - st.st_atim.tv_sec > USED_EACH_SECONDS)
		utimensat(c->dir_fd, c->name, now, AT_SYMLINK_NOFOLLOW);
	return seal.bytes ? 1 : -ENOTSUP;
}

struct wasm_usage {
	uint64_t bytes;
	size_t files;
	char oldest[256]; /* "": none */
	time_t oldest_used;
};

/* Sums up, and takes away what was never finished. */
static int look_through(int dir_fd, struct wasm_usage *ret)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	*ret = (struct wasm_usage){ 0 };
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (strncmp(entry->d_name, WASM_NEW_PREFIX, strlen(WASM_NEW_PREFIX)) == 0) {
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
	struct wasm_usage u;

	while (look_through(dir_fd, &u) == 0 && u.oldest[0] &&
	       (u.bytes > WASM_STORE_BYTES_MAX || u.files >= WASM_STORE_FILES_MAX))
		if (unlinkat(dir_fd, u.oldest, 0) < 0)
			return;
}

/* Without a name where the file system can do that: nothing is left of it then, the process that is
 * killed. */
int wasm_store_begin(const struct wasm_code *c, char ret_name[64], struct ward_err *e)
{
	char id[24];
	int fd = openat(c->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	make_room(c->dir_fd);
	ret_name[0] = '\0';
	if (fd >= 0)
		return fd;
	store_new_id(id, sizeof(id));
	snprintf(ret_name, 64, WASM_NEW_PREFIX "%s", id);
	fd = openat(c->dir_fd, ret_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? ward_fail_errno(e, "cannot make a file in %s", c->dir) : fd;
}

static int give_name(const struct wasm_code *c, int fd, const char *name)
{
	char path[32];

	if (name[0])
		return renameat(c->dir_fd, name, c->dir_fd, c->name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (int tries = 0; tries < 2; tries++) {
		if (linkat(AT_FDCWD, path, c->dir_fd, c->name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
		if (wasm_store_look(c) != 0)
			/* another process was faster, with the same code */
			return 0;
		unlinkat(c->dir_fd, c->name, 0); /* it is not whole */
	}
	return -1;
}

static int seal_file(int fd, const char *origin, bool good)
{
	struct wasm_seal seal = { 0 };
	struct stat st;
	int r;

	if ((!good && ftruncate(fd, 0) < 0) || fstat(fd, &st) < 0)
		return -errno;
	memcpy(seal.magic, magic, sizeof(magic));
	seal.bytes = (uint64_t)st.st_size;
	snprintf(seal.origin, sizeof(seal.origin), "%s", origin ? origin : "");
	r = digest_file(fd, seal.bytes, seal.digest);
	if (r < 0)
		return r;
	return lseek(fd, 0, SEEK_END) < 0 ? -errno : io_write_all(fd, &seal, sizeof(seal));
}

int wasm_store_keep(const struct wasm_code *c, int fd, const char *name, const char *origin,
		    bool good, struct ward_err *e)
{
	int r = seal_file(fd, origin, good);

	/* readable by everybody: as root the agent is another user; the directory lets no process
	 * through */
	if (r == 0 && (fchmod(fd, 0444) < 0 || fdatasync(fd) < 0 || give_name(c, fd, name) < 0))
		r = -errno;
	if (r == 0)
		return 0;
	ward_fail(e, -r, "cannot keep the compiled module in %s: %s", c->dir, strerror(-r));
	if (name[0])
		unlinkat(c->dir_fd, name, 0);
	return r;
}

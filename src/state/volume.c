/*
 * Volumes that outlive a run. In: a workspace and a cache's name, or a home's name. Out: a
 * directory in the state directory, made and locked. Runs in the supervisor with the user's rights,
 * and only where a policy names a volume.
 *
 *	STATE/caches/PROJECT/workspace		whose caches these are
 *	STATE/caches/PROJECT/NAME[/PART]	the cache; PROJECT is the workspace's last name and
 *						a digest of its path
 *	STATE/homes/NAME/home			the home
 *
 * What an agent writes there stays there: only the last directory of each path is ever seen inside,
 * mounted nosuid and nodev, nothing of the host's reads or runs it, and the state directory lets no
 * other user through. So volumes are not swept. Where root's agent has the uid of the workspace's
 * owner, that uid's volumes are apart ("PROJECT@UID"): owners never mix.
 *
 * Sandboxes that use a volume hold a shared lock on the directory above it, which an agent cannot
 * reach; `ward volume rm` takes the exclusive one. The kernel drops the lock of a killed ward.
 */
#include "state/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "state/store_internal.h"
#include "state/volume_internal.h"

#define SLUG_MAX 32
#define DIGEST_SHOWN 12
#define TRIES 16 /* each is lost only to a `ward volume rm` at that very moment */

const char *const volume_dirs[] = { [VOLUME_CACHE] = "caches", [VOLUME_HOME] = "homes" };

static void put_project(struct buf *out, const char *workspace)
{
	const char *base = strrchr(workspace, '/');
	char hex[SHA256_HEX];
	size_t n = 0;

	for (base = base ? base + 1 : workspace; *base && n < SLUG_MAX; base++, n++) {
		bool plain = (*base >= 'a' && *base <= 'z') || (*base >= 'A' && *base <= 'Z') ||
			     (*base >= '0' && *base <= '9') || (n && strchr("._", *base));

		buf_add(out, plain ? base : "-", 1);
	}
	sha256_hex(workspace, strlen(workspace), hex);
	buf_printf(out, "-%.*s", DIGEST_SHOWN, hex);
}

/* The directory that is locked, beneath that of its kind. */
static char *lock_name(const struct volume_key *key)
{
	auto_buf out = { 0 };

	if (key->kind == VOLUME_CACHE)
		put_project(&out, key->workspace);
	else
		buf_puts(&out, key->name);
	if (key->owner != geteuid())
		buf_printf(&out, "@%u", key->owner);
	return buf_take(&out);
}

/* The volume beneath the locked directory. */
static char *data_name(const struct volume_key *key)
{
	auto_buf out = { 0 };

	buf_puts(&out, key->kind == VOLUME_HOME ? VOLUME_HOME_DIR : key->name);
	if (key->kind == VOLUME_CACHE && *key->part)
		buf_printf(&out, "/%s", key->part);
	return buf_take(&out);
}

/* Makes one directory of a volume; what was made belongs to whom the volume belongs. */
static int make_dir(int dir_fd, const char *name, mode_t mode, const struct volume_key *key)
{
	if (mkdirat(dir_fd, name, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (key->owner != geteuid() &&
	    fchownat(dir_fd, name, key->owner, key->group, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int enter(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Makes NAME and NAME/PART beneath the locked directory. -ENOENT: that one was removed
 * meanwhile. */
static int make_data(int lock_fd, const struct volume_key *key, const char *data)
{
	const char *slash = strchr(data, '/');

	if (slash) {
		auto_free char *outer = strndup(data, (size_t)(slash - data));

		if (!outer)
			return -ENOMEM;
		if (mkdirat(lock_fd, outer, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return make_dir(lock_fd, data, 0700, key);
}

static int note_workspace(int lock_fd, const struct volume_key *key)
{
	auto_fd fd = -1;

	if (key->kind != VOLUME_CACHE)
		return 0;
	fd = openat(lock_fd, VOLUME_OWNER_FILE,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	return io_write_all(fd, key->workspace, strlen(key->workspace));
}

/* Opens and locks the directory `name` of the kind's, with the volume in it. */
static int open_locked(int kind_fd, const char *name, const char *data,
		       const struct volume_key *key)
{
	for (int i = 0; i < TRIES; i++) {
		auto_fd fd = -1;
		int r;

		if (mkdirat(kind_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = enter(kind_fd, name);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		do
			r = flock(fd, LOCK_SH) < 0 ? -errno : 0;
		while (r == -EINTR);
		if (r == 0)
			r = make_data(fd, key, data);
		if (r == 0)
			r = note_workspace(fd, key);
		if (r == -ENOENT)
			continue;
		return r < 0 ? r : take_fd(&fd);
	}
	return -EAGAIN;
}

static int check_owner(int lock_fd, const char *data, const char *path,
		       const struct volume_key *key, struct ward_err *e)
{
	struct stat st;

	if (fstatat(lock_fd, data, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail_errno(e, "cannot access the volume %s", path);
	if (S_ISDIR(st.st_mode) && st.st_uid == key->owner) {
		/* the agent owns it and may have closed it to itself; the name is not one that it
		 * could turn elsewhere */
		if ((st.st_mode & 0700) != 0700 && fchmodat(lock_fd, data, 0700, 0) < 0)
			return ward_fail_errno(e, "cannot open the volume %s again", path);
		return 0;
	}
	ward_fail(e, EPERM, "the volume %s is not a directory of uid %u", path, key->owner);
	return ward_remedy(e, "remove it, or set WARD_STATE_DIR to another directory");
}

int volume_open(const struct volume_key *key, bool make, char **ret_path, int *ret_fd,
		struct ward_err *e)
{
	auto_free char *name = lock_name(key), *data = data_name(key), *state = NULL;
	auto_buf path = { 0 };
	auto_fd state_fd = -1, kind_fd = -1, fd = -1;
	int r;

	*ret_fd = -1;
	r = state_dir_path(&state, e);
	if (r < 0)
		return r;
	buf_printf(&path, "%s/%s/%s/%s", state, volume_dirs[key->kind], name ? name : "",
		   data ? data : "");
	if (!name || !data || path.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (make) {
		state_fd = store_open(e);
		kind_fd = state_fd < 0 ? state_fd
				       : store_open_dir(state_fd, volume_dirs[key->kind], e);
		if (kind_fd < 0)
			return kind_fd;
		fd = open_locked(kind_fd, name, data, key);
		if (fd < 0) {
			ward_fail(e, -fd, "cannot make the volume %s: %s", buf_text(&path),
				  strerror(-fd));
			return ward_remedy(e, "free some space, make the state directory writable, "
					      "or set WARD_STATE_DIR to another one");
		}
		r = check_owner(fd, data, buf_text(&path), key, e);
		if (r < 0)
			return r;
	}
	*ret_path = buf_take(&path);
	if (!*ret_path)
		return ward_fail(e, ENOMEM, "out of memory");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Enters the next directory of a volume, which an agent may have filled with anything. Takes
 * *fd. */
static int step_into(int *fd, const char *name, const struct volume_key *key, struct ward_err *e)
{
	int r = make_dir(*fd, name, 0755, key), next;

	if (r < 0)
		return ward_fail(e, -r, "cannot make %s in the home: %s", name, strerror(-r));
	next = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return ward_fail_errno(e, "%s in the home is not a directory", name);
	close(*fd);
	*fd = next;
	return 0;
}

int volume_make_point(int dir_fd, const char *path, bool is_file, const struct volume_key *key,
		      struct ward_err *e)
{
	auto_free char *copy = strdup(path);
	auto_fd at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), made = -1;
	char *name = copy, *slash;
	struct stat st;
	int r;

	if (!copy || at < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	for (; (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		r = *name ? step_into(&at, name, key, e) : 0;
		if (r < 0)
			return r;
	}
	if (!is_file)
		return step_into(&at, name, key, e);
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISREG(st.st_mode)
			       ? 0
			       : ward_fail(e, EINVAL, "%s in the home is not a regular file", name);
	made = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return made < 0 ? ward_fail_errno(e, "cannot make %s in the home", name) : 0;
}

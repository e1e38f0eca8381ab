/*
 * Volumes for a person. In: the state directory. Out: the list of volumes with their sizes, or one
 * of them gone. Runs in `ward volume` with the user's rights. What lies in a volume was chosen by
 * an agent: it is entered by descriptor, through no link, and only counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/remove.h"
#include "base/walk.h"
#include "state/store.h"
#include "state/volume_internal.h"

static const char *const kind_names[] = { [VOLUME_CACHE] = "cache", [VOLUME_HOME] = "home" };

static int count_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct volume_item *item = ctx;
	struct stat st;

	item->files++;
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		item->bytes += (uint64_t)st.st_blocks * 512 /
			       (st.st_nlink && S_ISREG(st.st_mode) ? st.st_nlink : 1);
	return 1;
}

/* Whether a sandbox holds the lock of this directory. */
static bool is_in_use(int lock_fd)
{
	if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(lock_fd, LOCK_UN);
	return false;
}

static int add_item(struct volume_items *v, int lock_fd, const char *data, char *name,
		    char *workspace, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = count_entry };
	struct volume_item *grown = reallocarray(v->items, v->len + 1, sizeof(*grown));
	auto_fd fd = openat(lock_fd, data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (grown)
		v->items = grown;
	if (!grown || !name || !workspace) {
		free(name);
		free(workspace);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	v->items[v->len] = (struct volume_item){ .name = name,
						 .workspace = workspace,
						 .in_use = is_in_use(lock_fd) };
	v->len++;
	return fd < 0 ? 0 : walk_tree(fd, &ops, &v->items[v->len - 1], 0, e);
}

static char *format_name(const char *kind, const char *first, const char *second)
{
	auto_buf out = { 0 };

	buf_printf(&out, "%s/%s%s%s", kind, first, second ? "/" : "", second ? second : "");
	return buf_take(&out);
}

static int list_project(struct volume_items *v, int lock_fd, const char *project,
			struct ward_err *e)
{
	auto_buf workspace = { 0 };
	int copy = openat(lock_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return ward_fail_errno(e, "cannot read the caches of %s", project);
	if (io_read_file(lock_fd, VOLUME_OWNER_FILE, 65536, &workspace) < 0)
		workspace.len = 0;
	while (r == 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, VOLUME_OWNER_FILE) != 0)
			r = add_item(v, lock_fd, entry->d_name,
				     format_name(kind_names[VOLUME_CACHE], project, entry->d_name),
				     strdup(buf_text(&workspace)), e);
	return r;
}

static int list_kind(struct volume_items *v, int state_fd, enum volume_kind kind,
		     struct ward_err *e)
{
	int fd = openat(state_fd, volume_dirs[kind],
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return fd < 0 && errno == ENOENT ? 0
						 : ward_fail_errno(e, "cannot read the volumes");
	while (r == 0 && (entry = readdir(dir))) {
		auto_fd lock_fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		lock_fd =
			openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (lock_fd < 0)
			continue; /* gone meanwhile */
		r = kind == VOLUME_CACHE
			    ? list_project(v, lock_fd, entry->d_name, e)
			    : add_item(v, lock_fd, VOLUME_HOME_DIR,
				       format_name(kind_names[kind], entry->d_name, NULL),
				       strdup(""), e);
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct volume_item *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int volume_list(struct volume_items *ret_items, struct ward_err *e)
{
	struct volume_items v = { 0 };
	auto_fd state_fd = store_open(e);
	int r = state_fd < 0 ? state_fd : list_kind(&v, state_fd, VOLUME_CACHE, e);

	if (r == 0)
		r = list_kind(&v, state_fd, VOLUME_HOME, e);
	if (r < 0) {
		volume_items_clear(&v);
		return r;
	}
	if (v.len)
		qsort(v.items, v.len, sizeof(*v.items), by_name);
	*ret_items = v;
	return 0;
}

void volume_items_clear(struct volume_items *v)
{
	for (size_t i = 0; i < v->len; i++) {
		free(v->items[i].name);
		free(v->items[i].workspace);
	}
	free(v->items);
	*v = (struct volume_items){ 0 };
}

/* "home/NAME" -> kind, the locked directory "NAME" and what is in it. */
static bool split_name(char *name, enum volume_kind *ret_kind, char **ret_lock, char **ret_data)
{
	char *slash = strchr(name, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;

	if (!slash || strstr(name, "..") || strstr(name, "//"))
		return false;
	*slash = '\0';
	*ret_kind = strcmp(name, kind_names[VOLUME_HOME]) == 0 ? VOLUME_HOME : VOLUME_CACHE;
	*ret_lock = slash + 1;
	*ret_data = second ? second + 1 : NULL;
	if (second)
		*second = '\0';
	if (strcmp(name, kind_names[*ret_kind]) != 0 || !**ret_lock || **ret_lock == '.')
		return false;
	return *ret_kind == VOLUME_HOME
		       ? !second
		       : second && **ret_data && **ret_data != '.' && !strchr(*ret_data, '/') &&
				 strcmp(*ret_data, VOLUME_OWNER_FILE) != 0;
}

static bool is_empty(int lock_fd)
{
	int copy = openat(lock_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, VOLUME_OWNER_FILE) != 0)
			return false;
	return dir;
}

int volume_remove(const char *name, struct ward_err *e)
{
	auto_free char *copy = NULL, *state = NULL;
	auto_buf lock_path = { 0 }, path = { 0 };
	auto_fd state_fd = store_open(e), lock_fd = -1;
	enum volume_kind kind;
	char *lock, *data;
	int r;

	if (state_fd < 0)
		return state_fd;
	r = state_dir_path(&state, e);
	if (r < 0)
		return r;
	copy = strdup(name);
	if (!copy || !split_name(copy, &kind, &lock, &data))
		return ward_fail(e, ENOENT, "%.200s is not the name of a volume", name);
	buf_printf(&lock_path, "%s/%s/%s", state, volume_dirs[kind], lock);
	buf_printf(&path, "%s/%s", buf_text(&lock_path),
		   kind == VOLUME_HOME ? VOLUME_HOME_DIR : data);
	if (lock_path.failed || path.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	lock_fd = open(buf_text(&lock_path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lock_fd < 0 || access(buf_text(&path), F_OK) < 0)
		return ward_fail(e, ENOENT, "there is no volume %.200s", name);
	if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail(e, EBUSY, "a sandbox that uses %.200s is running", name);
	r = remove_tree(buf_text(&path));
	if (r < 0)
		return ward_fail(e, -r, "cannot remove %.200s: %s", name, strerror(-r));
	/* the directory itself goes with its last volume, while the lock is held: see
	 * open_locked() */
	if (is_empty(lock_fd)) {
		unlinkat(lock_fd, VOLUME_OWNER_FILE, 0);
		(void)rmdir(buf_text(&lock_path));
	}
	return 0;
}

/*
 * The store of images. In: a directory that was filled, names, digests. Out: the store changed, in
 * steps each of which leaves it whole: an image is there under its digest with everything, or not
 * at all, because its directory gets that name last; a removal takes the name first. Runs in
 * ward-image with the user's rights, in the user's own state directory. One lock over names and
 * removals; work in progress has a lock of its own, which a killed process loses.
 */
#include "image/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/io.h"
#include "image/tree.h"
#include "state/store_internal.h"

#define LOCK_FILE "lock"
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_images(struct ward_err *e)
{
	auto_fd state = store_open(e);

	return state < 0 ? state : store_open_dir(state, IMAGES_DIR, e);
}

/* Waits for the store's lock; the descriptor holds it. */
static int lock_images(int images_fd, struct ward_err *e)
{
	auto_fd fd = openat(images_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return ward_fail_errno(e, "cannot open the lock of the images");
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return ward_fail_errno(e, "cannot lock the images");
	return take_fd(&fd);
}

/* Writes a small file under a name of its own, then gives it the right one. */
static int write_file(int dir_fd, const char *name, const char *bytes, size_t n, struct ward_err *e)
{
	char unique[32], temporary[48];
	auto_fd fd = -1;
	int r;

	store_new_id(unique, sizeof(unique));
	snprintf(temporary, sizeof(temporary), ".%s", unique);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : io_write_all(fd, bytes, n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(dir_fd, temporary, 0);
	return r < 0 ? ward_fail(e, -r, "cannot write %s: %s", name, strerror(-r)) : 0;
}

/* -- work in progress */

void work_outside(const char *name, char ret_path[WORK_OUTSIDE_MAX])
{
	snprintf(ret_path, WORK_OUTSIDE_MAX, "/tmp/ward-%s", name);
}

static int remove_work(int images_fd, const char *name)
{
	char outside[WORK_OUTSIDE_MAX];

	work_outside(name, outside);
	(void)!rmdir(outside); /* most have none */
	return tree_remove(images_fd, name);
}

/* Removes a directory that no process works in. */
static int remove_idle(int images_fd, const char *name)
{
	auto_fd fd = openat(images_fd, name, DIR_FLAGS);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EBUSY;
	return remove_work(images_fd, name);
}

static void remove_leftovers(int images_fd)
{
	int copy = openat(images_fd, ".", DIR_FLAGS);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, IMAGES_WORK, strlen(IMAGES_WORK)) == 0)
			/* of a running process, or for the next time */
			(void)!remove_idle(images_fd, entry->d_name);
}

int work_begin(struct work *w, struct ward_err *e)
{
	auto_fd images = open_images(e), lock = -1, fd = -1;
	char unique[32];

	*w = (struct work){ .images_fd = -1, .fd = -1 };
	lock = images < 0 ? -1 : lock_images(images, e);
	if (lock < 0)
		return -e->code;
	remove_leftovers(images);
	store_new_id(unique, sizeof(unique));
	snprintf(w->name, sizeof(w->name), IMAGES_WORK "%s", unique);
	if (mkdirat(images, w->name, 0700) < 0)
		return ward_fail_errno(e, "cannot make a directory for the image");
	fd = openat(images, w->name, DIR_FLAGS);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail_errno(e, "cannot hold the directory of the image");
	w->images_fd = take_fd(&images);
	w->fd = take_fd(&fd);
	return 0;
}

int work_describe(const struct work *w, const char *source, uint64_t bytes, uint64_t files,
		  struct ward_err *e)
{
	auto_buf out = { 0 };

	buf_printf(&out, "bytes %llu%cfiles %llu%ccreated %llu%csource %s%c",
		   (unsigned long long)bytes, 0, (unsigned long long)files, 0,
		   (unsigned long long)time(NULL), 0, source, 0);
	return out.failed ? ward_fail(e, ENOMEM, "out of memory")
			  : write_file(w->fd, IMAGES_INFO, out.data, out.len, e);
}

int work_commit(struct work *w, const char *digest, struct ward_err *e)
{
	auto_fd lock = -1;

	/* what is complete under its digest is complete after a power cut, too */
	if (syncfs(w->fd) < 0)
		return ward_fail_errno(e, "cannot write the image to disk");
	lock = lock_images(w->images_fd, e);
	if (lock < 0)
		return lock;
	if (renameat(w->images_fd, w->name, w->images_fd, digest) == 0) {
		w->name[0] = '\0';
		return 0;
	}
	if (errno == ENOTEMPTY || errno == EEXIST)
		return 0; /* it was there already */
	return ward_fail_errno(e, "cannot put the image into the store");
}

void work_end(struct work *w)
{
	if (w->name[0] && w->images_fd >= 0)
		/* the next one removes what is left */
		(void)!remove_work(w->images_fd, w->name);
	own_close_fd(&w->fd);
	own_close_fd(&w->images_fd);
	w->fd = w->images_fd = -1;
}

/* -- names */

static int read_name(int names_fd, const char *file, char ret_hex[SHA256_HEX])
{
	auto_buf text = { 0 };
	int r = io_read_file(names_fd, file, 256, &text);

	if (r < 0 || text.len < SHA256_HEX - 1)
		return r < 0 ? r : -EINVAL;
	memcpy(ret_hex, text.data, SHA256_HEX - 1);
	ret_hex[SHA256_HEX - 1] = '\0';
	return 0;
}

static int put_digest(const char *dir, const char *file, const char *digest, bool free_only,
		      struct ward_err *e)
{
	auto_fd images = open_images(e), lock = -1, names = -1;
	char line[SHA256_HEX + 1], now[SHA256_HEX];

	lock = images < 0 ? -1 : lock_images(images, e);
	names = lock < 0 ? -1 : store_open_dir(images, dir, e);
	if (names < 0)
		return -e->code;
	if (free_only && read_name(names, file, now) == 0 && strcmp(now, digest) != 0)
		return -EEXIST;
	snprintf(line, sizeof(line), "%s\n", digest);
	return write_file(names, file, line, strlen(line), e);
}

int images_set_name(const char *name, const char *digest, bool free_only, struct ward_err *e)
{
	char file[IMAGES_NAME_MAX + 1];

	if (!image_name_is_valid(name)) {
		ward_fail(e, EINVAL, "%.200s cannot be the name of an image", name);
		return ward_remedy(e,
				   "letters, digits and . _ : / @ -, at most %d of them, as in "
				   "python:3.12 or team/agent:1",
				   IMAGES_NAME_MAX);
	}
	image_name_encode(name, file);
	return put_digest(IMAGES_NAMES, file, digest, free_only, e);
}

int images_set_source(const char *key, const char *digest, struct ward_err *e)
{
	return put_digest(IMAGES_SOURCES, key, digest, false, e);
}

/* Calls f for each name; what it returns but 0 ends it. */
static int each_name(int images_fd, const char *dir_name,
		     int (*f)(int names_fd, const char *file, const char *hex, void *ctx),
		     void *ctx)
{
	int fd = openat(images_fd, dir_name, DIR_FLAGS), r = 0;
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	char hex[SHA256_HEX];
	struct dirent *entry;

	while (r == 0 && dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && read_name(fd, entry->d_name, hex) == 0)
			r = f(fd, entry->d_name, hex, ctx);
	return r;
}

/* -- the list */

static int add_name(unused_arg int names_fd, const char *file, const char *hex, void *ctx)
{
	struct store_image *i = ctx;
	char name[IMAGES_NAME_MAX + 1];
	size_t n = 0;

	if (strcmp(hex, i->digest) != 0)
		return 0;
	for (; n < IMAGES_NAME_MAX && file[n]; n++)
		name[n] = file[n] == '%' ? '/' : file[n];
	name[n] = '\0';
	strv_add(&i->names, name);
	return 0;
}

static bool is_in_use(int images_fd, const char *hex)
{
	auto_fd fd = openat(images_fd, hex, DIR_FLAGS);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static void read_info(int images_fd, struct store_image *i)
{
	auto_fd fd = openat(images_fd, i->digest, DIR_FLAGS);
	auto_buf text = { 0 };
	const char *at, *end, *key, *value;
	size_t n;

	if (fd < 0 || io_read_file(fd, IMAGES_INFO, 65536, &text) < 0)
		return;
	at = buf_text(&text);
	end = at + text.len;
	while ((value = image_record_next(&at, end, &key, &n))) {
		if (n == 5 && memcmp(key, "bytes", n) == 0)
			i->bytes = strtoull(value, NULL, 10);
		else if (n == 5 && memcmp(key, "files", n) == 0)
			i->files = strtoull(value, NULL, 10);
		else if (n == 7 && memcmp(key, "created", n) == 0)
			i->created = strtoull(value, NULL, 10);
		else if (n == 6 && memcmp(key, "source", n) == 0 && !i->source)
			i->source = strdup(value);
	}
}

static int by_age(const void *a, const void *b)
{
	const struct store_image *x = a, *y = b;

	return x->created != y->created ? (x->created < y->created ? 1 : -1)
					: strcmp(x->digest, y->digest);
}

static bool is_digest(const char *name)
{
	return strlen(name) == SHA256_HEX - 1 && strspn(name, "0123456789abcdef") == SHA256_HEX - 1;
}

static int list_images(int images_fd, struct store_images *v)
{
	int copy = openat(images_fd, ".", DIR_FLAGS);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		struct store_image *grown, *i;

		if (!is_digest(entry->d_name))
			continue;
		grown = reallocarray(v->items, v->len + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		v->items = grown;
		i = &v->items[v->len++];
		*i = (struct store_image){ 0 };
		memcpy(i->digest, entry->d_name, SHA256_HEX);
		read_info(images_fd, i);
		each_name(images_fd, IMAGES_NAMES, add_name, i);
		strv_sort(&i->names);
		i->in_use = is_in_use(images_fd, i->digest);
	}
	if (v->len)
		qsort(v->items, v->len, sizeof(*v->items), by_age);
	return 0;
}

int images_list(struct store_images *ret, struct ward_err *e)
{
	auto_fd images = open_images(e);
	int r = images < 0 ? images : list_images(images, ret);

	if (r < 0 && images >= 0)
		ward_fail(e, -r, "cannot list the images: %s", strerror(-r));
	return r;
}

void images_list_clear(struct store_images *v)
{
	for (size_t i = 0; i < v->len; i++) {
		strv_free(&v->items[i].names);
		free(v->items[i].source);
	}
	free(v->items);
	*v = (struct store_images){ 0 };
}

/* -- removal */

/* Takes the digest's name away, then the files. The store is locked. */
static int remove_image(int images_fd, const char *hex)
{
	auto_fd fd = openat(images_fd, hex, DIR_FLAGS);
	char unique[32], gone[48];

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EBUSY;
	store_new_id(unique, sizeof(unique));
	snprintf(gone, sizeof(gone), IMAGES_WORK "%s", unique);
	if (renameat(images_fd, hex, images_fd, gone) < 0)
		return -errno;
	return tree_remove(images_fd, gone);
}

static int drop_if_same(int names_fd, const char *file, const char *hex, void *ctx)
{
	if (strcmp(hex, ctx) == 0)
		unlinkat(names_fd, file, 0);
	return 0;
}

static int count_same(unused_arg int names_fd, unused_arg const char *file, const char *hex,
		      void *ctx)
{
	return strcmp(hex, ctx) == 0;
}

/* 1: the value is a name, which is gone now. */
static int drop_name(int images_fd, const char *value, const char *hex)
{
	auto_fd names = openat(images_fd, IMAGES_NAMES, DIR_FLAGS);
	char plain[IMAGES_NAME_MAX + 1], file[IMAGES_NAME_MAX + 8], now[SHA256_HEX];

	if (names < 0 || !image_name_is_valid(value))
		return 0;
	image_name_encode(value, plain);
	snprintf(file, sizeof(file), "%s%s", plain,
		 faccessat(names, plain, F_OK, 0) < 0 ? ":latest" : "");
	if (read_name(names, file, now) < 0 || strcmp(now, hex) != 0)
		return 0;
	return unlinkat(names, file, 0) < 0 ? -errno : 1;
}

int images_remove(const char *value, bool *ret_removed, struct ward_err *e)
{
	auto_fd images = -1, lock = -1;
	struct image found;
	char hex[SHA256_HEX];
	int r = images_open(value, &found, e);

	if (r < 0)
		return r;
	memcpy(hex, found.digest, sizeof(hex));
	image_clear(&found);
	images = open_images(e);
	lock = images < 0 ? -1 : lock_images(images, e);
	if (lock < 0)
		return -e->code;
	if (is_in_use(images, hex))
		return ward_fail(e, EBUSY, "the image %s is in use by a sandbox", value);
	r = drop_name(images, value, hex);
	if (r == 0)
		each_name(images, IMAGES_NAMES, drop_if_same, hex);
	*ret_removed = r >= 0 && each_name(images, IMAGES_NAMES, count_same, hex) == 0;
	if (*ret_removed) {
		each_name(images, IMAGES_SOURCES, drop_if_same, hex);
		r = remove_image(images, hex);
	}
	return r < 0 ? ward_fail(e, -r, "cannot remove the image %s: %s", value, strerror(-r)) : 0;
}

int images_collect(uint64_t *ret_images, uint64_t *ret_bytes, struct ward_err *e)
{
	auto_fd images = open_images(e), lock = -1;
	struct store_images v = { 0 };
	int r;

	lock = images < 0 ? -1 : lock_images(images, e);
	if (lock < 0)
		return -e->code;
	remove_leftovers(images);
	r = list_images(images, &v);
	for (size_t i = 0; i < v.len && r == 0; i++) {
		if (v.items[i].names.len || v.items[i].in_use)
			continue;
		each_name(images, IMAGES_SOURCES, drop_if_same, v.items[i].digest);
		r = remove_image(images, v.items[i].digest);
		if (r == 0) {
			++*ret_images;
			*ret_bytes += v.items[i].bytes;
		}
		r = r == -EBUSY ? 0 : r;
	}
	images_list_clear(&v);
	return r < 0 ? ward_fail(e, -r, "cannot remove an image: %s", strerror(-r)) : 0;
}

/*
 * Finding an image. In: what `image` says. Out: the directory that is the root, and what the image
 * wishes. Runs in the supervisor with the user's rights, only where a policy names an image; it
 * reads a handful of small files that ward-image has written. The directory of an image is held by
 * a shared lock for as long as a sandbox uses it: ward image rm and gc take the exclusive one.
 */
#include "state/images.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "state/store_internal.h"

#define HEX "0123456789abcdef"
#define DIGITS_MIN 12
#define CONFIG_BYTES_MAX (4 * 1024 * 1024)
#define TRIES 16

bool image_is_path(const char *value)
{
	return *value == '/' || strncmp(value, "./", 2) == 0 || strncmp(value, "../", 3) == 0 ||
	       strncmp(value, "~/", 2) == 0 || strcmp(value, ".") == 0;
}

bool image_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > IMAGES_NAME_MAX || strchr("./-:@", name[0]) || strchr("/:@", name[n - 1]) ||
	    strcmp(name, "host") == 0)
		return false;
	if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-") !=
	    n)
		return false;
	return !strstr(name, "//") && !strstr(name, "..");
}

void image_name_encode(const char *name, char *out)
{
	size_t i = 0;

	for (; i < IMAGES_NAME_MAX && name[i]; i++)
		out[i] = name[i] == '/' ? '%' : name[i];
	out[i] = '\0';
}

const char *image_record_next(const char **at, const char *end, const char **ret_start,
			      size_t *ret_key)
{
	const char *start = *at,
		   *stop = start < end ? memchr(start, '\0', (size_t)(end - start)) : NULL;
	const char *space = stop ? memchr(start, ' ', (size_t)(stop - start)) : NULL;

	if (!space)
		return NULL;
	*at = stop + 1;
	*ret_start = start;
	*ret_key = (size_t)(space - start);
	return space + 1;
}

void image_source_key(const char *real_path, const struct stat *st, char ret_hex[SHA256_HEX])
{
	auto_buf key = { 0 };

	buf_printf(&key, "%llu %llu %lld %lld.%09ld %lld.%09ld %s", (unsigned long long)st->st_dev,
		   (unsigned long long)st->st_ino, (long long)st->st_size,
		   (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		   (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec, real_path);
	sha256_hex(buf_text(&key), key.len, ret_hex);
}

/* Reads a file that holds a digest. */
static int read_digest(int dir_fd, const char *name, char ret_hex[SHA256_HEX])
{
	auto_buf text = { 0 };
	int r = io_read_file(dir_fd, name, 256, &text);

	if (r < 0)
		return r;
	if (text.len < SHA256_HEX - 1 || strspn(text.data, HEX) != SHA256_HEX - 1)
		return -EINVAL;
	memcpy(ret_hex, text.data, SHA256_HEX - 1);
	ret_hex[SHA256_HEX - 1] = '\0';
	return 0;
}

/* The one image whose digest begins with these digits. */
static int find_digits(int images_fd, const char *digits, char ret_hex[SHA256_HEX])
{
	int copy = openat(images_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (strlen(entry->d_name) == SHA256_HEX - 1 &&
		    strncmp(entry->d_name, digits, strlen(digits)) == 0) {
			memcpy(ret_hex, entry->d_name, SHA256_HEX);
			found++;
		}
	return found == 1 ? 0 : found ? -E2BIG : -ENOENT;
}

static int find_name(int images_fd, const char *name, char ret_hex[SHA256_HEX])
{
	auto_fd names =
		openat(images_fd, IMAGES_NAMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char file[IMAGES_NAME_MAX + 1], tagged[IMAGES_NAME_MAX + 8];
	const char *last = strrchr(name, '/');
	int r;

	if (names < 0)
		return -errno;
	image_name_encode(name, file);
	r = read_digest(names, file, ret_hex);
	if (r != -ENOENT || strchr(last ? last : name, ':'))
		return r;
	snprintf(tagged, sizeof(tagged), "%s:latest", file);
	return read_digest(names, tagged, ret_hex);
}

static int find(int images_fd, const char *value, char ret_hex[SHA256_HEX])
{
	const char *digits = strncmp(value, "sha256:", 7) == 0 ? value + 7 : value;
	size_t n = strlen(digits);
	int r = digits == value && image_name_is_valid(value) ? find_name(images_fd, value, ret_hex)
							      : -ENOENT;

	if (r == -ENOENT && n >= DIGITS_MIN && n < SHA256_HEX && strspn(digits, HEX) == n)
		r = find_digits(images_fd, digits, ret_hex);
	return r;
}

static int take_record(struct image *i, struct strv *cmd, const char *key, size_t n,
		       const char *value)
{
	const struct {
		const char *key;
		struct strv *list;
		char **text;
	} rows[] = { { "env", &i->env, NULL },
		     { "entrypoint", &i->command, NULL },
		     { "cmd", cmd, NULL },
		     { "user", NULL, &i->user },
		     { "workdir", NULL, &i->workdir } };

	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		if (strlen(rows[k].key) != n || memcmp(rows[k].key, key, n) != 0)
			continue;
		if (rows[k].list)
			strv_add(rows[k].list, value);
		else if (!*rows[k].text)
			*rows[k].text = strdup(value);
	}
	return 0;
}

static int read_config(int dir_fd, struct image *i, struct ward_err *e)
{
	auto_buf text = { 0 };
	auto_strv cmd = { 0 };
	const char *at, *end, *key, *value;
	size_t n;
	int r = io_read_file(dir_fd, IMAGES_CONFIG, CONFIG_BYTES_MAX, &text);

	if (r < 0)
		return ward_fail(e, -r, "cannot read the configuration of the image: %s",
				 strerror(-r));
	at = buf_text(&text);
	end = at + text.len;
	while ((value = image_record_next(&at, end, &key, &n)))
		take_record(i, &cmd, key, n, value);
	for (size_t k = 0; k < cmd.len; k++)
		strv_add(&i->command, cmd.items[k]);
	return i->env.failed || i->command.failed || cmd.failed
		       ? ward_fail(e, ENOMEM, "out of memory")
		       : 0;
}

/* Opens and holds the directory; -ENOENT: it went meanwhile. */
static int hold(int images_fd, const char *hex)
{
	for (int tries = 0; tries < TRIES; tries++) {
		auto_fd fd =
			openat(images_fd, hex, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat held, there;

		if (fd < 0)
			return -errno;
		while (flock(fd, LOCK_SH) < 0)
			if (errno != EINTR)
				return -errno;
		if (fstat(fd, &held) == 0 &&
		    fstatat(images_fd, hex, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    held.st_ino == there.st_ino)
			return take_fd(&fd);
	}
	return -ENOENT;
}

static int open_stored(int images_fd, const char *hex, struct image *i, struct ward_err *e)
{
	auto_free char *state = NULL;
	auto_buf root = { 0 };
	int r = state_dir_path(&state, e);

	if (r < 0)
		return r;
	i->lock_fd = hold(images_fd, hex);
	if (i->lock_fd < 0)
		return ward_fail(e, -i->lock_fd, "cannot open the image %.12s: %s", hex,
				 strerror(-i->lock_fd));
	memcpy(i->digest, hex, SHA256_HEX);
	buf_printf(&root, "%s/%s/%s/%s", state, IMAGES_DIR, hex, IMAGES_ROOT);
	i->root = realpath(buf_text(&root), NULL);
	return i->root ? read_config(i->lock_fd, i, e)
		       : ward_fail_errno(e, "cannot open the image %.12s", hex);
}

static int fail_missing(const char *value, int error, struct ward_err *e)
{
	if (error == E2BIG)
		return ward_fail(e, EINVAL,
				 "image: %.80s is ambiguous, several images begin with it", value);
	if (error != ENOENT)
		return ward_fail(e, error, "image: cannot look for %.200s: %s", value,
				 strerror(error));
	ward_fail(e, ENOENT, "image: there is no image %.200s", value);
	if (image_is_path(value))
		return ward_remedy(e, "ward image import %.200s", value);
	return ward_remedy(e,
			   "ward image pull %.200s, or ward image import FILE --name %.200s; ward "
			   "image ls lists the images",
			   value, value);
}

/* A path: a directory is used where it is, anything else must have been imported as it is now. */
static int open_path(int images_fd, const char *path, struct image *i, struct ward_err *e)
{
	auto_free char *real = realpath(path, NULL);
	char key[SHA256_HEX], hex[SHA256_HEX];
	auto_fd sources = -1;
	struct stat st;
	int r;

	if (!real || stat(real, &st) < 0)
		return ward_fail_errno(e, "image: cannot open %.300s", path);
	if (S_ISDIR(st.st_mode)) {
		auto_buf layout = { 0 };

		buf_printf(&layout, "%s/oci-layout", real);
		if (access(buf_text(&layout), F_OK) < 0) {
			i->root = take_ptr(real);
			return 0;
		}
	}
	image_source_key(real, &st, key);
	sources =
		openat(images_fd, IMAGES_SOURCES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = sources < 0 ? -errno : read_digest(sources, key, hex);
	return r < 0 ? fail_missing(path, -r, e) : open_stored(images_fd, hex, i, e);
}

int images_open(const char *value, struct image *ret, struct ward_err *e)
{
	auto_fd state = store_open(e), images = -1;
	struct image i = { .lock_fd = -1 };
	char hex[SHA256_HEX];
	int r;

	if (state < 0)
		return state;
	images = store_open_dir(state, IMAGES_DIR, e);
	if (images < 0)
		return images;
	if (image_is_path(value)) {
		r = open_path(images, value, &i, e);
	} else {
		r = find(images, value, hex);
		r = r < 0 ? fail_missing(value, -r, e) : open_stored(images, hex, &i, e);
	}
	if (r < 0)
		image_clear(&i);
	else
		*ret = i;
	return r;
}

void image_clear(struct image *i)
{
	free(i->root);
	own_close_fd(&i->lock_fd);
	strv_free(&i->env);
	strv_free(&i->command);
	free(i->user);
	free(i->workdir);
	*i = (struct image){ .lock_fd = -1 };
}

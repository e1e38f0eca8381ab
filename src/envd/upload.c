/*
 * Uploads (upload.h). In: a path and bytes. Out: a file that is either the old one or the whole new
 * one: it is written beside its place under another name, and renamed. An upload that is
 * interrupted leaves nothing.
 */
#include "envd/upload.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "envd/entry.h"
#include "envd/fs.h"

#define METADATA_KEY_MAX 246
#define METADATA_MAX 4096

/* Where a name leads, if it is a link: the file that it names is replaced, not the link. */
static int resolve(const char *path, char ret[PATH_MAX], mode_t *ret_mode)
{
	struct stat st;

	*ret_mode = 0;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (!S_ISREG(st.st_mode))
			return -EINVAL;
		*ret_mode = (st.st_mode & 0777) | S_IFREG;
		return realpath(path, ret) ? 0 : -errno;
	}
	if (errno != ENOENT)
		return -errno;
	snprintf(ret, PATH_MAX, "%s", path);
	return fs_make_parents(ret);
}

int upload_begin(struct upload *u, const char *path)
{
	mode_t mode, mask = umask(0);
	const char *name;
	size_t n = strlen(path);
	int r;

	umask(mask);
	*u = (struct upload){ .fd = -1 };
	if (!n || path[n - 1] == '/')
		return -EISDIR;
	r = resolve(path, u->path, &mode);
	if (r < 0)
		return r;
	name = strrchr(u->path, '/');
	if (!name)
		return -EINVAL;
	snprintf(u->temporary, sizeof(u->temporary), "%.*s/%sXXXXXX", (int)(name - u->path),
		 u->path, mode ? UPLOAD_OVER : UPLOAD_NEW);
	u->fd = mkostemp(u->temporary, O_CLOEXEC);
	if (u->fd < 0) {
		r = -errno;
		*u->temporary = '\0';
		return r;
	}
	return fchmod(u->fd, mode ? mode & 0777 : 0666 & ~mask) < 0 ? -errno : 0;
}

int upload_write(struct upload *u, const void *bytes, size_t n)
{
	return io_write_all(u->fd, bytes, n);
}

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
			return false;
	return true;
}

int upload_metadata(struct upload *u, const struct strv *fields)
{
	static const char prefix[] = "x-metadata-";
	size_t total = 0;

	for (size_t i = 0; i < fields->len; i++) {
		char name[300];
		const char *line = fields->items[i], *value;
		size_t n;

		if (strncmp(line, prefix, sizeof(prefix) - 1) != 0)
			continue;
		line += sizeof(prefix) - 1;
		n = strcspn(line, "=");
		value = line + n + 1;
		total += n + strlen(value);
		if (!n || n > METADATA_KEY_MAX || total > METADATA_MAX || !is_printable(line))
			return -EINVAL;
		snprintf(name, sizeof(name), ENTRY_XATTR "%.*s", (int)n, line);
		for (char *c = name; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		if (fsetxattr(u->fd, name, value, strlen(value), 0) < 0)
			return -errno;
	}
	return 0;
}

int upload_finish(struct upload *u)
{
	int fd = take_fd(&u->fd);

	if (close(fd) < 0 || rename(u->temporary, u->path) < 0)
		return -errno;
	*u->temporary = '\0';
	return 0;
}

void upload_drop(struct upload *u)
{
	own_close_fd(&u->fd);
	u->fd = -1;
	if (*u->temporary)
		unlink(u->temporary);
	*u->temporary = '\0';
}

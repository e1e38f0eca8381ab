/*
 * Packed files and the guest's first archive, by libarchive. In: bytes of a kernel package; paths.
 * Out: the bytes unpacked; an archive of the format newc that the kernel unpacks by itself. Its
 * files belong to root, whichever user makes it.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "vmtool/tool.h"

int tool_unpack(const void *bytes, size_t n, size_t max, struct buf *out, struct ward_err *e)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	char chunk[65536];
	la_ssize_t got = 0;
	int r = 0;

	if (!a)
		return ward_fail(e, ENOMEM, "out of memory");
	archive_read_support_filter_all(a);
	archive_read_support_format_raw(a);
	if (archive_read_open_memory(a, bytes, n) != ARCHIVE_OK ||
	    archive_read_next_header(a, &entry) != ARCHIVE_OK)
		r = ward_fail(e, EINVAL, "it uses an unknown compression: %.200s",
			      archive_error_string(a));
	while (r == 0 && (got = archive_read_data(a, chunk, sizeof(chunk))) > 0) {
		buf_add(out, chunk, (size_t)got);
		if (out->failed || out->len > max)
			r = ward_fail(e, EFBIG, "it is larger than it should be");
	}
	if (r == 0 && got < 0)
		r = ward_fail(e, EINVAL, "it is damaged: %.200s", archive_error_string(a));
	archive_read_free(a);
	return r;
}

static int put(struct archive *a, const char *path, unsigned type, unsigned mode, const void *bytes,
	       size_t n)
{
	struct archive_entry *entry = archive_entry_new();
	int r = -ENOMEM;

	if (!entry)
		return r;
	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, (mode_t)mode);
	archive_entry_set_size(entry, (la_int64_t)n);
	archive_entry_set_mtime(entry, 0, 0);
	if (archive_write_header(a, entry) == ARCHIVE_OK &&
	    (!n || archive_write_data(a, bytes, n) == (la_ssize_t)n))
		r = 0;
	else
		r = -EIO;
	archive_entry_free(entry);
	return r;
}

static int fill(struct archive *a, const struct buf *init, const struct tool_modules *m)
{
	static const char *const dirs[] = { "dev", "proc", "sys", "modules" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(dirs) && r == 0; i++)
		r = put(a, dirs[i], AE_IFDIR, 0755, NULL, 0);
	for (size_t i = 0; i < m->len && r == 0; i++) {
		char path[128];

		snprintf(path, sizeof(path), "modules/%02zu-%s.ko", i + 10, m->items[i].name);
		r = put(a, path, AE_IFREG, 0644, m->items[i].bytes.data, m->items[i].bytes.len);
	}
	return r == 0 ? put(a, "init", AE_IFREG, 0755, init->data, init->len) : r;
}

int tool_initrd_write(const char *path, const char *init, const struct tool_modules *m,
		      struct ward_err *e)
{
	struct archive *a = archive_write_new();
	auto_buf program = { 0 };
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : io_read_file(AT_FDCWD, init, 64u << 20, &program);

	if (r == 0 && (!a || archive_write_set_format_cpio_newc(a) != ARCHIVE_OK ||
		       archive_write_add_filter_none(a) != ARCHIVE_OK ||
		       archive_write_open_fd(a, fd) != ARCHIVE_OK))
		r = -ENOMEM;
	if (r == 0)
		r = fill(a, &program, m);
	if (r == 0 && archive_write_close(a) != ARCHIVE_OK)
		r = -EIO;
	if (a)
		archive_write_free(a);
	return r < 0 ? ward_fail(e, -r, "cannot write %s: %s", path, strerror(-r)) : 0;
}

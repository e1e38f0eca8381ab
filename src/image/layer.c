/*
 * One layer. In: a descriptor with a tar archive, plain or compressed by gzip, xz or zstd. Out: its
 * entries in a tree. Runs in the confined worker, where libarchive reads bytes of strangers with no
 * right that would be worth taking over.
 *
 *	descriptor -> digest of the blob -> decompression (libarchive, once: an archive in an
 *	archive is refused) -> digest -> tar (libarchive)
 *
 * Both digests go to the very end of the stream, also behind the end of the archive. Sizes are
 * checked before a byte is written: what an entry claims to have, holes included, counts. An
 * archive without a digest must end as tar archives end, or it was cut off.
 */
#include "image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"
#include "image/hash.h"

#define CHUNK (256 * 1024)
#define END_BYTES 512 /* of zeros, at least, at the end of a tar archive */

struct stream {
	const struct layer_source *source;
	struct archive *raw; /* decompresses */
	struct hash blob, content;
	uint64_t blob_bytes;
	uint64_t *content_bytes, max_bytes; /* of all layers together */
	uint64_t zeros;                     /* bytes of zero that came last */
	int error;                          /* errno of a read, or of a bound */
	char in[CHUNK], out[CHUNK];
};

/* Bytes of the blob, for libarchive. */
static la_ssize_t read_blob(unused_arg struct archive *a, void *ctx, const void **ret_bytes)
{
	struct stream *s = ctx;
	ssize_t n;

	do
		n = read(s->source->fd, s->in, sizeof(s->in));
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		s->error = errno;
		archive_set_error(a, errno, "cannot read it");
		return ARCHIVE_FATAL;
	}
	s->blob_bytes += (uint64_t)n;
	if (s->source->blob && s->blob_bytes > s->source->blob->bytes) {
		s->error = EFBIG;
		archive_set_error(a, EFBIG, "the blob is longer than its manifest says");
		return ARCHIVE_FATAL;
	}
	hash_add(&s->blob, s->in, (size_t)n);
	*ret_bytes = s->in;
	return n;
}

static void count_zeros(struct stream *s, size_t n)
{
	size_t last = n;

	while (last && !s->out[last - 1])
		last--;
	s->zeros = last ? n - last : s->zeros + n;
}

/* Bytes of the tar archive, for libarchive. */
static la_ssize_t read_content(struct archive *a, void *ctx, const void **ret_bytes)
{
	struct stream *s = ctx;
	la_ssize_t n = archive_read_data(s->raw, s->out, sizeof(s->out));

	if (n < 0) {
		archive_set_error(a, EINVAL, "it cannot be decompressed: %s",
				  archive_error_string(s->raw) ? archive_error_string(s->raw)
							       : "?");
		return ARCHIVE_FATAL;
	}
	*s->content_bytes += (uint64_t)n;
	if (*s->content_bytes > s->max_bytes) {
		s->error = EFBIG;
		archive_set_error(a, EFBIG,
				  "decompressed, it exceeds the maximum size of the image");
		return ARCHIVE_FATAL;
	}
	hash_add(&s->content, s->out, (size_t)n);
	count_zeros(s, (size_t)n);
	*ret_bytes = s->out;
	return n;
}

static int fail_archive(struct archive *a, struct ward_err *e)
{
	const char *why = archive_error_string(a);
	auto_buf shown = { 0 };

	text_escape(&shown, why ? why : "it is damaged");
	return ward_fail(e, EINVAL, "not a complete tar archive: %.300s", buf_text(&shown));
}

static int open_raw(struct stream *s, struct ward_err *e)
{
	struct archive_entry *entry;
	int r;

	s->raw = archive_read_new();
	if (!s->raw)
		return ward_fail(e, ENOMEM, "out of memory");
	archive_read_support_format_raw(s->raw);
	archive_read_support_format_empty(s->raw);
	archive_read_support_filter_gzip(s->raw);
	archive_read_support_filter_xz(s->raw);
	archive_read_support_filter_zstd(s->raw);
	r = archive_read_open(s->raw, s, NULL, read_blob, NULL);
	if (r == ARCHIVE_OK)
		r = archive_read_next_header(s->raw, &entry);
	if (r == ARCHIVE_EOF)
		return ward_fail(e, EINVAL, "not a complete tar archive: it is empty");
	if (r != ARCHIVE_OK)
		return fail_archive(s->raw, e);
	if (archive_filter_count(s->raw) > 2)
		return ward_fail(e, EINVAL,
				 "it is compressed more than once, which no registry makes");
	return 0;
}

static struct tree_meta meta_of(struct archive_entry *entry)
{
	la_int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);

	return (struct tree_meta){ .mode = archive_entry_perm(entry),
				   .uid = uid > 0 ? (uint64_t)uid : 0,
				   .gid = gid > 0 ? (uint64_t)gid : 0,
				   .mtime = { .tv_sec = archive_entry_mtime(entry),
					      .tv_nsec = archive_entry_mtime_nsec(entry) %
							 1000000000 } };
}

/* Writes the entry's bytes to fd; holes stay holes. */
static int write_data(struct archive *a, int fd, uint64_t bytes, struct ward_err *e)
{
	const void *block;
	la_int64_t offset;
	size_t n;
	int r;

	while ((r = archive_read_data_block(a, &block, &n, &offset)) == ARCHIVE_OK) {
		int written;

		if (offset < 0 || (uint64_t)offset > bytes || n > bytes - (uint64_t)offset)
			return ward_fail(e, EINVAL, "it is longer than its header says");
		written = io_write_at(fd, block, n, (uint64_t)offset);
		if (written < 0)
			return ward_fail(e, -written, "cannot write it: %s", strerror(-written));
	}
	if (r != ARCHIVE_EOF)
		return fail_archive(a, e);
	return ftruncate(fd, (off_t)bytes) < 0 ? ward_fail_errno(e, "cannot write it") : 0;
}

static int add_file(struct tree *t, struct archive *a, struct archive_entry *entry,
		    const char *path, struct ward_err *e)
{
	struct tree_meta m = meta_of(entry);
	la_int64_t size = archive_entry_size(entry);
	auto_fd fd = -1;
	int r;

	if (size < 0)
		return ward_fail(e, EINVAL, "its size is negative");
	r = tree_add_file(t, path, (uint64_t)size, &m, &fd, e);
	if (r == 0)
		r = write_data(a, fd, (uint64_t)size, e);
	return r < 0 ? r : tree_finish_file(fd, &m, e);
}

static int add_plain(struct tree *t, struct archive *a, struct archive_entry *entry,
		     const char *path, struct ward_err *e)
{
	const char *link = archive_entry_hardlink(entry), *target = archive_entry_symlink(entry),
		   *wrong;
	struct tree_meta m = meta_of(entry);
	char to[ENTRY_PATH_MAX];

	if (link) {
		wrong = entry_read_link(link, strlen(link), to);
		return wrong ? ward_fail(e, EINVAL, "the target of the hard link %s: %s", path,
					 wrong)
			     : tree_add_hardlink(t, path, to, e);
	}
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return add_file(t, a, entry, path, e);
	case AE_IFDIR:
		return tree_add_dir(t, path, &m, e);
	case AE_IFLNK:
		return tree_add_symlink(t, path, target ? target : "", &m, e);
	case AE_IFCHR:
	case AE_IFBLK:
	case AE_IFIFO:
	case AE_IFSOCK:
		return tree_skip(t, e);
	default:
		return ward_fail(e, EINVAL, "images cannot contain this type of file");
	}
}

static int apply_entry(struct tree *t, const struct layer_source *s, struct archive *a,
		       struct archive_entry *entry, const char *name, struct ward_err *e)
{
	char path[ENTRY_PATH_MAX];
	enum entry_kind kind = ENTRY_PLAIN;
	const char *wrong = entry_read(name, strlen(name), path, &kind);

	if (wrong)
		return ward_fail(e, EINVAL, "%s", wrong);
	if (s->plain && kind != ENTRY_PLAIN)
		return 0;
	switch (kind) {
	case ENTRY_ROOT:
		return archive_entry_filetype(entry) == AE_IFDIR
			       ? 0
			       : ward_fail(e, EINVAL, "the root is not a directory");
	case ENTRY_IGNORED:
		return 0;
	case ENTRY_WHITEOUT:
		return tree_whiteout(t, path, e);
	case ENTRY_OPAQUE:
		return tree_opaque(t, path, e);
	case ENTRY_PLAIN:
		break;
	}
	return add_plain(t, a, entry, path, e);
}

static int apply_all(struct tree *t, struct stream *s, struct archive *a, struct ward_err *e)
{
	struct archive_entry *entry;
	int status;

	while ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
	       status == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(entry);
		int r = name ? apply_entry(t, s->source, a, entry, name, e)
			     : ward_fail(e, EINVAL, "its name is in an unknown character encoding");

		if (r < 0) {
			auto_buf shown = { 0 };

			text_escape(&shown, name ? name : "?");
			return ward_wrap(e, "entry %.200s", buf_text(&shown));
		}
	}
	return status == ARCHIVE_EOF ? 0 : fail_archive(a, e);
}

/* What lies behind the end of the archive belongs to the digests. */
static int drain(struct stream *s, struct archive *a, struct ward_err *e)
{
	const void *bytes;
	la_ssize_t n;

	while ((n = read_content(a, s, &bytes)) > 0)
		;
	if (n < 0)
		return fail_archive(a, e);
	while ((n = read_blob(a, s, &bytes)) > 0)
		;
	return n < 0 ? fail_archive(a, e) : 0;
}

static int check(struct stream *s, char ret_diff_id[DIGEST_HEX], struct ward_err *e)
{
	const struct descriptor *blob = s->source->blob;
	char digest[DIGEST_HEX];

	hash_end(&s->blob, digest);
	hash_end(&s->content, ret_diff_id);
	if (!*digest || !*ret_diff_id)
		return ward_fail(e, ENOMEM, "cannot compute its digest");
	if (blob && s->blob_bytes != blob->bytes)
		return ward_fail(e, EINVAL, "the blob has %llu bytes, but its manifest says %llu",
				 (unsigned long long)s->blob_bytes,
				 (unsigned long long)blob->bytes);
	if (blob && strcmp(digest, blob->digest) != 0)
		return ward_fail(e, EBADMSG,
				 "its digest is sha256:%s, but its manifest says sha256:%s", digest,
				 blob->digest);
	if (s->source->diff_id && strcmp(ret_diff_id, s->source->diff_id) != 0)
		return ward_fail(e, EBADMSG,
				 "its content has the digest sha256:%s, but the configuration says "
				 "sha256:%s",
				 ret_diff_id, s->source->diff_id);
	if (!blob && !s->source->diff_id && s->zeros < END_BYTES)
		return ward_fail(e, EINVAL, "not a complete tar archive: it was cut off");
	return 0;
}

static int open_tar(struct stream *s, struct archive *a, struct ward_err *e)
{
	int r = open_raw(s, e);

	if (r < 0)
		return r;
	archive_read_support_format_tar(a);
	archive_read_support_format_empty(a);
	return archive_read_open(a, s, NULL, read_content, NULL) == ARCHIVE_OK ? 0
									       : fail_archive(a, e);
}

int layer_apply(struct tree *t, const struct layer_source *source, char ret_diff_id[DIGEST_HEX],
		struct ward_err *e)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct archive *a = archive_read_new();
	int r;

	if (!s || !a) {
		free(s);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	s->source = source;
	s->content_bytes = &t->read_bytes;
	s->max_bytes = t->max_bytes + t->max_entries * 4096; /* headers */
	hash_begin(&s->blob);
	hash_begin(&s->content);
	r = open_tar(s, a, e);
	if (r == 0)
		r = apply_all(t, s, a, e);
	if (r == 0)
		r = drain(s, a, e);
	if (r == 0) {
		r = check(s, ret_diff_id, e);
	} else {
		hash_end(&s->blob, ret_diff_id);
		hash_end(&s->content, ret_diff_id);
	}
	archive_read_free(a);
	archive_read_free(s->raw);
	free(s);
	return r;
}

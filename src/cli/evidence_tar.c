/*
 * The archive of ward evidence: POSIX tar (ustar) with a manifest. In: names of ours and contents
 * of anybody. Out: bytes in a file, a digest of all of them. A name that is too long for the format
 * becomes another, made of its digest and its end, so that no cut makes it absolute, lead upwards
 * or equal to another; the manifest has both. Special files are never waited for.
 */
#include "cli/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#define BLOCK 512
#define NAME_MAX_TAR 100
#define LONG_DIGITS 16
#define LONG_END 70

static int put(struct archive *a, const void *bytes, size_t n, struct ward_err *e)
{
	int r = io_write_all(a->fd, bytes, n);

	if (r < 0) {
		ward_fail(e, -r, "cannot write the archive: %s", strerror(-r));
		return ward_remedy(e, "name a file on a disk with room");
	}
	sha256_add(&a->digest, bytes, n);
	a->bytes += n;
	return 0;
}

/* The name of the member; the last characters of a long name tell more than the first. */
static void make_name(const char *name, char ret[NAME_MAX_TAR])
{
	size_t len = strlen(name), at;
	char hex[SHA256_HEX];

	if (len < NAME_MAX_TAR) {
		memcpy(ret, name, len + 1);
		return;
	}
	sha256_hex(name, len, hex);
	at = (size_t)snprintf(ret, NAME_MAX_TAR, "long/%.*s-", LONG_DIGITS, hex);
	for (const char *c = name + len - LONG_END; *c; c++)
		ret[at++] = (char)(*c == '/' || *c < ' ' || *c > '~' ? '_' : *c);
	ret[at] = '\0';
}

/* A header for a file of n bytes; name: make_name()'s. */
static void make_header(const struct archive *a, const char *name, size_t n, char block[BLOCK])
{
	unsigned sum = 0;

	memset(block, 0, BLOCK);
	memcpy(block, name, strlen(name));
	snprintf(block + 100, 8, "%07o", 0600);
	snprintf(block + 108, 8, "%07o", 0);
	snprintf(block + 116, 8, "%07o", 0);
	snprintf(block + 124, 12, "%011" PRIo64, (uint64_t)n);
	snprintf(block + 136, 12, "%011" PRIo64, a->time_s);
	memset(block + 148, ' ', 8);
	block[156] = '0';
	memcpy(block + 257, "ustar", 6);
	memcpy(block + 263, "00", 2);
	for (unsigned i = 0; i < BLOCK; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
}

int archive_put(struct archive *a, const char *name, const void *bytes, size_t n,
		struct ward_err *e)
{
	static const char zeros[BLOCK];
	char block[BLOCK], hex[SHA256_HEX], member[NAME_MAX_TAR];
	int r;

	make_name(name, member);
	make_header(a, member, n, block);
	sha256_hex(bytes, n, hex);
	buf_printf(&a->manifest, "%s  %10zu  %s", hex, n, member);
	if (strcmp(name, member) != 0)
		buf_printf(&a->manifest, "  for %s", name);
	buf_puts(&a->manifest, "\n");
	r = put(a, block, BLOCK, e);
	if (r == 0 && n)
		r = put(a, bytes, n, e);
	if (r == 0 && n % BLOCK)
		r = put(a, zeros, BLOCK - n % BLOCK, e);
	return r;
}

int archive_add(struct archive *a, const char *name, const void *bytes, size_t n,
		struct ward_err *e)
{
	if (a->manifest.len > EVIDENCE_LIST_MAX) {
		a->full = true;
		a->unlisted++;
		return 0;
	}
	if (a->bytes + n <= EVIDENCE_TOTAL_MAX)
		return archive_put(a, name, bytes, n, e);
	a->full = true;
	buf_printf(&a->manifest, "%-64s  %10zu  %s\n", "(left out)", n, name);
	return 0;
}

int archive_add_file(struct archive *a, const char *name, int dir_fd, const char *path,
		     struct ward_err *e)
{
	auto_fd fd =
		openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf content = { 0 };
	struct stat st;
	char bytes[65536];
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		buf_printf(&content, "cannot be read: %s\n",
			   fd < 0 ? strerror(errno) : "not a regular file");
		return archive_add(a, name, buf_text(&content), content.len, e);
	}
	while (content.len < EVIDENCE_FILE_MAX && (n = read(fd, bytes, sizeof(bytes))) > 0)
		buf_add(&content, bytes, (size_t)n);
	if (n < 0 && !content.len)
		buf_printf(&content, "cannot be read: %s\n", strerror(errno));
	if (content.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return archive_add(a, name, content.len ? buf_text(&content) : "", content.len, e);
}

int archive_end(struct archive *a, char ret_hex[SHA256_HEX], struct ward_err *e)
{
	static const char zeros[2 * BLOCK];
	auto_buf manifest = a->manifest;
	int r;

	a->manifest = (struct buf){ 0 };
	if (a->unlisted)
		buf_printf(&manifest, "%-64s  %10" PRIu64 "  more files\n", "(left out)",
			   a->unlisted);
	if (manifest.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = archive_put(a, "MANIFEST", buf_text(&manifest), manifest.len, e);
	buf_free(&a->manifest); /* it does not list itself */
	if (r == 0)
		r = put(a, zeros, sizeof(zeros), e);
	if (r == 0 && fsync(a->fd) < 0 && errno != EINVAL && errno != EROFS)
		r = ward_fail_errno(e, "cannot write the archive");
	if (r == 0)
		sha256_end_hex(&a->digest, ret_hex);
	return r;
}

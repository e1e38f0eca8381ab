/*
 * A pack that is made of loose objects. In: files that the sandbox calls objects. Out: a pack in a
 * file without a name. Runs in ward-git with the rights of the repository's owner.
 *
 * The bytes are hostile: a stream may be cut off, or grow to anything. They pass through in small
 * parts, so an object costs no memory, and the sum of all is bounded. A name does not matter: git
 * computes it anew.
 */
#include "git/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/io.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "rules/git_object.h"

#define PART 65536

int pack_begin(struct pack *p, int dir_fd)
{
	p->fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (p->fd < 0)
		p->fd = memfd_create("pack", MFD_CLOEXEC);
	return p->fd < 0 ? -errno : io_write_all(p->fd, "PACK\0\0\0\2\0\0\0\0", 12);
}

/* Type and size in git's own way. */
static int put_head(struct pack *p, enum git_object_type type, uint64_t n)
{
	static const unsigned char numbers[] = {
		[GIT_COMMIT] = 1, [GIT_TREE] = 2, [GIT_BLOB] = 3, [GIT_TAG] = 4
	};
	unsigned char head[16];
	uint64_t rest = n >> 4;
	size_t len = 0;

	head[len] = (unsigned char)(numbers[type] << 4 | (n & 15));
	while (rest) {
		head[len++] |= 0x80;
		head[len] = rest & 0x7f;
		rest >>= 7;
	}
	return io_write_all(p->fd, head, len + 1);
}

/* One object on its way. */
struct passing {
	struct pack *pack;
	z_stream in, out;
	bool begun;          /* the header was read */
	uint64_t size, seen; /* of the body */
};

/* A part of the body, compressed anew. */
static int put_body(struct passing *o, unsigned char *bytes, size_t n, bool last)
{
	unsigned char packed[PART];
	int r;

	o->seen += n;
	if (o->seen > o->size || (last && o->seen != o->size))
		return 1;
	o->out.next_in = bytes;
	o->out.avail_in = (uInt)n;
	do {
		o->out.next_out = packed;
		o->out.avail_out = sizeof(packed);
		r = deflate(&o->out, last ? Z_FINISH : Z_NO_FLUSH);
		if (r == Z_STREAM_ERROR)
			return -ENOMEM;
		if (io_write_all(o->pack->fd, packed, sizeof(packed) - o->out.avail_out) < 0)
			return -ENOSPC;
	} while (o->out.avail_out == 0 || (last && r != Z_STREAM_END));
	return 0;
}

/* The first part: "TYPE SIZE\0" and the beginning of the body. 1: it is no object, or too large. */
static int put_first(struct passing *o, unsigned char *bytes, size_t n, bool last)
{
	enum git_object_type type;
	size_t head;
	int status;

	type = git_loose_header(bytes, n, &o->size, &head);
	if (type == GIT_OBJECT_BAD)
		return 1;
	if (o->size > PACK_OBJECT_MAX || o->size > o->pack->room) {
		o->pack->too_large++;
		return 1;
	}
	o->begun = true;
	status = put_head(o->pack, type, o->size);
	return status < 0 ? status : put_body(o, bytes + head, n - head, last);
}

static int pass(struct passing *o, int fd)
{
	unsigned char bytes[PART], plain[PART];
	int status = 0, r = Z_OK;

	while (status == 0 && r != Z_STREAM_END) {
		size_t n;

		if (o->in.avail_in == 0) {
			ssize_t got = read(fd, bytes, sizeof(bytes));

			if (got <= 0)
				return 1; /* cut off */
			o->in.next_in = bytes;
			o->in.avail_in = (uInt)got;
		}
		o->in.next_out = plain;
		o->in.avail_out = sizeof(plain);
		r = inflate(&o->in, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return 1;
		n = sizeof(plain) - o->in.avail_out;
		if (n || r == Z_STREAM_END)
			status = o->begun ? put_body(o, plain, n, r == Z_STREAM_END)
					  : put_first(o, plain, n, r == Z_STREAM_END);
	}
	return status;
}

int pack_add_loose(struct pack *p, int fd)
{
	struct passing o = { .pack = p };
	off_t start = lseek(p->fd, 0, SEEK_CUR);
	int status;

	if (inflateInit(&o.in) != Z_OK)
		return -ENOMEM;
	status = deflateInit(&o.out, 1) == Z_OK ? pass(&o, fd) : -ENOMEM;
	inflateEnd(&o.in);
	deflateEnd(&o.out);
	if (status == 0) {
		p->count++;
		p->room -= o.size;
		return 0;
	}
	if (ftruncate(p->fd, start) < 0 || lseek(p->fd, start, SEEK_SET) < 0)
		return -errno;
	return status;
}

int pack_finish(struct pack *p, unsigned hash)
{
	unsigned char count[4] = { (unsigned char)(p->count >> 24), (unsigned char)(p->count >> 16),
				   (unsigned char)(p->count >> 8), (unsigned char)p->count };
	unsigned char bytes[PART], sum[32];
	struct sha1 one;
	struct sha256 two;
	ssize_t n;
	int status = io_write_at(p->fd, count, sizeof(count), 8);

	if (status < 0 || lseek(p->fd, 0, SEEK_SET) < 0)
		return status < 0 ? status : -errno;
	sha1_begin(&one);
	sha256_begin(&two);
	while ((n = read(p->fd, bytes, sizeof(bytes))) > 0) {
		sha1_add(&one, bytes, (size_t)n);
		if (hash == GIT_SHA256)
			sha256_add(&two, bytes, (size_t)n);
	}
	if (hash == GIT_SHA256)
		sha256_end(&two, sum);
	else
		sha1_end(&one, sum);
	status = io_write_all(p->fd, sum, hash);
	return status < 0 ? status : lseek(p->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

/*
 * Objects. In: the loose objects and packs that the sandbox made. Out: the same content in the host's store, under the names that
 * the content itself has. Runs in ward-git with the rights of the repository's owner.
 *
 * No name is believed: git on the host's side unpacks or indexes the bytes and computes every id anew. Loose objects go there as
 * one pack, which is made here; packs are read by index-pack alone. An index, a commit graph or an alternates file of the
 * sandbox's is never opened.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "lib/guard_internal.h"
#include "rules/git_object.h"

#define PACKED_FROM 500		/* as many loose objects or more come as a pack */
#define OBJECT_MAX ((size_t)1 << 30)

/* Faults that old and harmless histories have; all others make git refuse the objects. */
#define STRICT                                                                                                                         \
	"--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,missingEmail=ignore,badEmail=ignore,"     \
	"missingNameBeforeEmail=ignore,badName=ignore,missingSpaceBeforeEmail=ignore,zeroPaddedDate=ignore,badDate=ignore,"            \
	"badDateOverflow=ignore,nulInCommit=ignore,multipleAuthors=ignore,missingTaggerEntry=ignore,badTagName=ignore"

static int fail(struct take *t, const char *what, int status)
{
	t->failed = true;
	return ward_fail(t->e, status < 0 ? -status : EIO, "git could not %s", what);
}

/* The id that a loose object's path says: the last two components. */
static void add_id(struct buf *ids, const char *path)
{
	const char *slash = strrchr(path, '/');

	buf_printf(ids, "%.2s%s\n", slash - 2, slash + 1);
}

/* Which of the ids the host's store lacks. */
static int find_missing(const char *git_dir, const struct buf *ids, struct buf *missing)
{
	static const char *const words[] = { "cat-file", "--batch-check=%(objectname)", NULL };
	struct git_call call = { .git_dir = git_dir, .words = words, .input = ids->data, .input_n = ids->len };
	auto_buf answer = { 0 };
	int status = git_call(&call, &answer);
	char *rest = answer.data, *line;

	while (status == 0 && rest && (line = strsep(&rest, "\n"))) {
		char *end = strstr(line, " missing");

		if (end)
			buf_printf(missing, "%.*s\n", (int)(end - line), line);
	}
	return status ? status : missing->failed ? -ENOMEM : 0;
}

/* Undoes zlib. The bytes are hostile: they may be cut off, or grow to anything. 1: they are no stream, or too large. */
static int inflate_all(const struct buf *bytes, struct buf *ret)
{
	z_stream z = { .next_in = (Bytef *)bytes->data, .avail_in = (uInt)bytes->len };
	unsigned char out[65536];
	int r = inflateInit(&z);

	if (r != Z_OK)
		return -ENOMEM;
	do {
		z.next_out = out;
		z.avail_out = sizeof(out);
		r = inflate(&z, Z_NO_FLUSH);
		buf_add(ret, out, sizeof(out) - z.avail_out);
	} while (r == Z_OK && !ret->failed && ret->len <= OBJECT_MAX);
	inflateEnd(&z);
	return ret->failed ? -ENOMEM : r == Z_STREAM_END && ret->len <= OBJECT_MAX ? 0 : 1;
}

/* A pack in the making: a file without a name. */
struct pack {
	int fd;
	uint32_t count;
	int status;
};

static void pack_add(struct pack *p, const void *bytes, size_t n)
{
	if (p->status == 0)
		p->status = io_write_all(p->fd, bytes, n);
}

/* One object: type and size in git's own way, then the body as a zlib stream. */
static void pack_object(struct pack *p, enum git_object_type type, const unsigned char *body, size_t n)
{
	static const unsigned char numbers[] = { [GIT_COMMIT] = 1, [GIT_TREE] = 2, [GIT_BLOB] = 3, [GIT_TAG] = 4 };
	unsigned char head[16];
	uLongf room = compressBound((uLong)n);
	auto_free unsigned char *packed = malloc(room);
	size_t len = 0, rest = n >> 4;

	head[len] = (unsigned char)(numbers[type] << 4 | (n & 15));
	while (rest) {
		head[len++] |= 0x80;
		head[len] = rest & 0x7f;
		rest >>= 7;
	}
	if (!packed || compress2(packed, &room, body, (uLong)n, 1) != Z_OK) {
		p->status = p->status ? p->status : -ENOMEM;
		return;
	}
	pack_add(p, head, len + 1);
	pack_add(p, packed, room);
	p->count++;
}

/* Adds the loose object at path, if it is one. Its name does not matter. */
static void pack_loose(struct take *t, struct pack *p, const char *path)
{
	auto_buf bytes = { 0 }, whole = { 0 };
	enum git_object_type type;
	uint64_t size;
	size_t head;
	int status = file_read(t->view_fd, path, OBJECT_MAX, &bytes);

	if (status == 0)
		status = inflate_all(&bytes, &whole);
	if (status < 0 && status != -ENOENT && status != -EFBIG)
		p->status = status;
	if (status)
		return;
	type = git_loose_header((const uint8_t *)whole.data, whole.len, &size, &head);
	if (type != GIT_OBJECT_BAD && size == whole.len - head)
		pack_object(p, type, (const unsigned char *)whole.data + head, (size_t)size);
}

/* The number of objects in front, the hash of all behind. */
static int pack_finish(struct take *t, struct pack *p)
{
	unsigned char count[4] = { (unsigned char)(p->count >> 24), (unsigned char)(p->count >> 16), (unsigned char)(p->count >> 8),
				   (unsigned char)p->count };
	unsigned char bytes[65536], sum[32];
	struct sha1 one;
	struct sha256 two;
	ssize_t n;

	if (p->status == 0)
		p->status = io_write_at(p->fd, count, sizeof(count), 8);
	if (p->status < 0 || lseek(p->fd, 0, SEEK_SET) < 0)
		return p->status < 0 ? p->status : -errno;
	sha1_begin(&one);
	sha256_begin(&two);
	while ((n = read(p->fd, bytes, sizeof(bytes))) > 0) {
		sha1_add(&one, bytes, (size_t)n);
		if (t->hash == GIT_SHA256)
			sha256_add(&two, bytes, (size_t)n);
	}
	if (t->hash == GIT_SHA256)
		sha256_end(&two, sum);
	else
		sha1_end(&one, sum);
	pack_add(p, sum, t->hash);
	return p->status < 0 || lseek(p->fd, 0, SEEK_SET) < 0 ? -EIO : 0;
}

/* Whether an item of t->objects is a loose object of the repository at prefix; its path. */
static const char *loose_of(const char *item, const char *prefix)
{
	size_t n = strlen(prefix);
	const char *path = strchr(item, '\n') + 1;

	return strncmp(item, prefix, n) == 0 && item[n] == '\n' && !strstr(path, ".pack") ? path : NULL;
}

/* Hands the objects to the host's git, which computes their names. */
static int hand_over(struct take *t, const char *git_dir, const struct strv *wanted, const char *prefix)
{
	static const char *const unpack[] = { "unpack-objects", "-q", STRICT, NULL };
	static const char *const index[] = { "index-pack", "--stdin", STRICT, NULL };
	auto_fd fd = memfd_create("pack", MFD_CLOEXEC);
	struct pack p = { .fd = fd };
	struct git_call to = { .git_dir = git_dir, .words = wanted->len < PACKED_FROM ? unpack : index, .input_fd = fd };
	int status;

	if (fd < 0)
		return fail(t, "hold the sandbox's objects", -errno);
	pack_add(&p, "PACK\0\0\0\2\0\0\0\0", 12);
	for (size_t i = 0; i < t->objects.len; i++) {
		const char *path = loose_of(t->objects.items[i], prefix);
		auto_buf id = { 0 };

		if (!path)
			continue;
		add_id(&id, path);
		if (!id.failed && guard_list_has(wanted, id.data, id.len - 1, '\0'))
			pack_loose(t, &p, path);
	}
	status = pack_finish(t, &p);
	if (status == 0 && p.count)
		status = git_call(&to, NULL);
	if (status < 0)
		return fail(t, "take over the sandbox's objects", status);
	if (status > 0)
		say_note(t, "git refuses objects that the sandbox made: what needs them is not taken over");
	return 0;
}

static int take_loose(struct take *t, const char *git_dir, const char *prefix)
{
	auto_buf ids = { 0 }, missing = { 0 };
	auto_strv wanted = { 0 };
	int status;

	for (size_t i = 0; i < t->objects.len; i++) {
		const char *path = loose_of(t->objects.items[i], prefix);

		if (path)
			add_id(&ids, path);
	}
	if (ids.len == 0 || ids.failed)
		return ids.failed ? ward_fail(t->e, ENOMEM, "out of memory") : 0;
	status = find_missing(git_dir, &ids, &missing);
	if (status)
		return fail(t, "look for the sandbox's objects", status);
	for (const char *id = buf_text(&missing); *id; id = strchr(id, '\n') + 1)
		strv_addf(&wanted, "%.*s", (int)strcspn(id, "\n"), id);
	strv_sort(&wanted);
	if (wanted.failed)
		return ward_fail(t->e, ENOMEM, "out of memory");
	return wanted.len ? hand_over(t, git_dir, &wanted, prefix) : 0;
}

static int take_pack(struct take *t, const char *git_dir, const char *path)
{
	static const char *const words[] = { "index-pack", "--stdin", "--fix-thin", STRICT, NULL };
	struct ward_err e = { 0 };
	const char *name = strrchr(path, '/');
	auto_buf there = { 0 };
	auto_fd fd = path_open_nolink(t->view_fd, path, O_RDONLY | O_NONBLOCK, &e);
	struct git_call call = { .git_dir = git_dir, .words = words, .input_fd = fd };
	struct stat st, own;
	int status;

	buf_printf(&there, "%s/objects/pack/%s", git_dir, name ? name + 1 : path);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || there.failed)
		return 0;	/* gone this moment: it was repacked */
	if (lstat(there.data, &own) == 0 && own.st_size == st.st_size)
		return 0;	/* the same pack: its name is its content's hash, and the host computed it */
	status = git_call(&call, NULL);
	if (status && t->live)
		return 0;	/* it is being written; the end sees it whole */
	if (status)
		say(t, "refused", path, "is a pack that git refuses");
	return 0;
}

int take_objects(struct take *t)
{
	int status = 0;

	for (size_t k = 0; k < t->repositories.len && status == 0; k++) {
		const char *prefix = t->repositories.items[k];
		size_t n = strlen(prefix);
		auto_free char *git_dir = NULL;

		if (asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0)
			return ward_fail(t->e, ENOMEM, "out of memory");
		for (size_t i = 0; i < t->objects.len && status == 0; i++) {
			const char *path = strchr(t->objects.items[i], '\n') + 1;

			if (strncmp(t->objects.items[i], prefix, n) == 0 && t->objects.items[i][n] == '\n' && strstr(path, ".pack"))
				status = take_pack(t, git_dir, path);
		}
		if (status == 0)
			status = take_loose(t, git_dir, prefix);
	}
	return status;
}

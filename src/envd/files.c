/*
 * GET and POST /files. In: a path, and the bytes of an upload: raw, or parts of a form. Out: the
 * bytes of a file, or a file that is whole (upload.h). wardd ends the body only when the client's
 * request was complete; otherwise the stream is reset, and nothing is left of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "envd/body.h"
#include "envd/entry.h"
#include "envd/multipart.h"
#include "envd/upload.h"

#define CHUNK 65536

static unsigned status_of(int error)
{
	switch (error) {
	case ENOENT:
		return 404;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return 507;
	case EACCES:
	case EPERM:
	case EROFS:
		return 403;
	case EISDIR:
	case ENOTDIR:
	case EINVAL:
	case ENAMETOOLONG:
	case ELOOP:
		return 400;
	default:
		return 500;
	}
}

static void refuse_path(struct call *c, int error, const char *path)
{
	if (error == ENOENT)
		call_refuse(c, 404, "path '%s' does not exist", path);
	else if (error == EISDIR)
		call_refuse(c, 400, "path '%s' is a directory", path);
	else
		call_refuse(c, status_of(error), "'%s': %s", path, strerror(error));
}

static void send_file(struct call *c, int fd, uint64_t size)
{
	char *bytes = malloc(CHUNK);
	uint64_t left = size;

	stream_head(c->stream, 200, ENVD_BYTES, size);
	while (bytes && left) {
		ssize_t n = read(fd, bytes, left < CHUNK ? (size_t)left : CHUNK);

		if (n <= 0 || stream_write(c->stream, bytes, (size_t)n) < 0)
			break;
		left -= (uint64_t)n;
	}
	free(bytes);
	if (left)
		stream_reset(
			c->stream); /* it became shorter: the client must not think it has it */
	else
		stream_end(c->stream);
}

void files_get(struct call *c)
{
	auto_buf given = { 0 };
	auto_fd fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int r;

	(void)call_query(c, "path", &given);
	r = person_path(&c->person, buf_text(&given), path);
	if (r < 0) {
		call_refuse(c, 400, "path: %s", r == -EINVAL ? "it is missing" : strerror(-r));
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		refuse_path(c, errno, path);
	else if (S_ISDIR(st.st_mode))
		refuse_path(c, EISDIR, path);
	else if (!S_ISREG(st.st_mode))
		call_refuse(c, 400, "path '%s' is no regular file", path);
	else
		send_file(c, fd, (uint64_t)st.st_size);
}

/* -- uploads */

struct reply {
	struct buf text;
	bool some;
};

/* The file is whole: puts it in its place. */
static int keep(struct call *c, struct upload *u, struct reply *reply)
{
	struct json j = { .out = &reply->text };
	int r = upload_metadata(u, c->fields);

	if (r < 0)
		return r;
	r = upload_finish(u);
	if (r < 0)
		return r;
	buf_puts(&reply->text, reply->some ? "," : "");
	reply->some = true;
	json_begin_object(&j, NULL);
	json_string(&j, "path", u->path);
	json_string(&j, "name", strrchr(u->path, '/') + 1);
	json_string(&j, "type", "file");
	for (size_t i = 0; i < c->fields->len; i++)
		if (strncmp(c->fields->items[i], "x-metadata-", 11) == 0) {
			buf_puts(&reply->text, ",\"metadata\":");
			entry_metadata(u->path, &reply->text);
			break;
		}
	json_end_object(&j);
	return 0;
}

/* Where a part goes: the path of the query, or the name that the part has. */
static int begin(struct call *c, struct upload *u, const char *name)
{
	auto_buf given = { 0 };
	char path[PATH_MAX];
	int r;

	if (!call_query(c, "path", &given) || !given.len)
		buf_puts(&given, name ? name : "");
	r = person_path(&c->person, buf_text(&given), path);
	if (r < 0)
		return r;
	return given.data[given.len - 1] == '/' ? -EISDIR : upload_begin(u, path);
}

static int read_raw(struct call *c, struct body *body, struct upload *u, struct reply *reply)
{
	char *bytes = malloc(CHUNK);
	int r = bytes ? begin(c, u, NULL) : -ENOMEM;
	ssize_t n = 1;

	while (r == 0 && (n = body_read(body, bytes, CHUNK)) > 0)
		r = upload_write(u, bytes, (size_t)n);
	free(bytes);
	if (r == 0 && n < 0)
		r = (int)n;
	return r < 0 ? r : keep(c, u, reply);
}

/* What the reader of parts says next; 1: it needs more bytes, 2: all is read. */
static int take_part(struct call *c, struct multipart *m, struct upload *u, struct reply *reply)
{
	const char *bytes = NULL;
	size_t n = 0;

	switch (multipart_next(m, &bytes, &n)) {
	case MULTIPART_MORE:
		return 1;
	case MULTIPART_PART:
		return m->name && strcmp(m->name, "file") == 0 ? begin(c, u, m->filename) : 0;
	case MULTIPART_DATA:
		return u->fd >= 0 ? upload_write(u, bytes, n) : 0;
	case MULTIPART_PART_END:
		return u->fd >= 0 ? keep(c, u, reply) : 0;
	case MULTIPART_DONE:
		return 2;
	case MULTIPART_WRONG:
	default:
		return -EBADMSG;
	}
}

static int read_parts(struct call *c, struct body *body, struct upload *u, struct reply *reply)
{
	char *bytes = malloc(CHUNK);
	struct multipart m;
	ssize_t n;
	int r = 1;

	if (!bytes || !multipart_init(&m, c->content_type)) {
		free(bytes);
		return -EBADMSG;
	}
	while (r < 2) {
		r = take_part(c, &m, u, reply);
		if (r < 0)
			break;
		if (r != 1)
			continue;
		n = body_read(body, bytes, CHUNK);
		if (n <= 0) {
			r = n < 0 ? (int)n : -EBADMSG; /* without its last boundary */
			break;
		}
		multipart_feed(&m, bytes, (size_t)n);
	}
	multipart_free(&m);
	free(bytes);
	return r < 0 ? r : 0;
}

void files_post(struct call *c)
{
	struct upload u = { .fd = -1 };
	struct reply reply = { 0 };
	struct body body;
	int r;

	if (!body_begin(&body, c)) {
		call_refuse(c, 415, "of content-encodings there are gzip and identity");
		return;
	}
	buf_puts(&reply.text, "[");
	if (strncasecmp(c->content_type, "multipart/", 10) == 0)
		r = read_parts(c, &body, &u, &reply);
	else
		r = read_raw(c, &body, &u, &reply);
	buf_puts(&reply.text, "]");
	body_end(&body);
	upload_drop(&u);
	if (r == -EPIPE)
		; /* the client has gone */
	else if (r == -EBADMSG)
		call_refuse(c, 400,
			    "the body is no complete multipart/form-data, or no complete "
			    "gzip");
	else if (r == -EINVAL && !*u.path)
		call_refuse(c, 400, "path: it is missing, or names no regular file");
	else if (r < 0)
		refuse_path(c, -r, *u.path ? u.path : "the file");
	else
		call_answer(c, 200, &reply.text);
	buf_free(&reply.text);
}

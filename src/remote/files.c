/*
 * One file into or out of a sandbox of the server: cp. In: SRC BOX:DST or BOX:SRC DST. Out: the
 * copy, whole or not at all. The name of what is written here is one that the user wrote, never one
 * that the server said; it is opened in a directory that was opened before the first byte came, and
 * is no program: its mode is that of a new file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "remote/http.h"

struct transfer {
	const char *host;   /* path here */
	const char *inside; /* path there */
	char *box;          /* owned */
	bool out;
	int fd;     /* the file here */
	int dir_fd; /* out: where it is made */
	char name[256], temporary[32];
	bool failed; /* writing it */
	struct http_request *request;
};

/* BOX:PATH; false for a path of the host. */
static bool split(const char *word, char **ret_box, const char **ret_path)
{
	const char *colon = strchr(word, ':');

	if (!colon || colon == word || memchr(word, '/', (size_t)(colon - word)))
		return false;
	*ret_box = strndup(word, (size_t)(colon - word));
	*ret_path = colon[1] ? colon + 1 : ".";
	return *ret_box != NULL;
}

static int read_words(const struct remote *r, struct transfer *t, struct ward_err *e)
{
	auto_free char *other = NULL;
	const char *path;

	t->out = split(r->words[0], &t->box, &t->inside);
	t->host = r->words[1];
	if (t->out && !split(r->words[1], &other, &path))
		return 0;
	t->host = r->words[0];
	if (!t->out && split(r->words[1], &t->box, &t->inside))
		return 0;
	ward_fail(e, EINVAL, "exactly one of the two paths must be in a sandbox");
	return ward_remedy(e, "for instance cp notes.txt BOX:/tmp/, or cp BOX:/tmp/out.txt .");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int fail_directory(const char *path, struct ward_err *e)
{
	ward_fail(e, EISDIR, "%.300s is a directory", path);
	return ward_remedy(e, "pack it: tar -c DIR | ward --host URL exec -i BOX -- tar -x, or the "
			      "other way round");
}

static int open_source(struct transfer *t, struct ward_err *e)
{
	struct stat st;

	t->fd = open(t->host, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (t->fd < 0 || fstat(t->fd, &st) < 0)
		return ward_fail_errno(e, "cannot read %.300s", t->host);
	if (S_ISDIR(st.st_mode))
		return fail_directory(t->host, e);
	return S_ISREG(st.st_mode) ? 0 : ward_fail(e, EINVAL, "%.300s is not a file", t->host);
}

/* The directory that the copy is made in, and its name there. */
static int open_place(struct transfer *t, struct ward_err *e)
{
	const char *name = base_name(t->host);
	auto_free char *above = NULL;

	t->dir_fd = open(t->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir_fd >= 0) {
		name = base_name(t->inside);
	} else {
		above = name == t->host ? strdup(".") : strndup(t->host, (size_t)(name - t->host));
		t->dir_fd = above ? open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	}
	if (t->dir_fd < 0)
		return ward_fail_errno(e, "cannot open the directory of %.300s", t->host);
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    strlen(name) >= sizeof(t->name))
		return ward_fail(e, EINVAL, "%.300s: not the name of a file", t->inside);
	strcpy(t->name, name);
	return 0;
}

static int make_temporary(struct transfer *t, struct ward_err *e)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return ward_fail(e, EIO, "no random bytes");
	snprintf(t->temporary, sizeof(t->temporary), ".ward-%016llx", (unsigned long long)number);
	t->fd = openat(t->dir_fd, t->temporary,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	return t->fd < 0 ? ward_fail_errno(e, "cannot make a file beside %.300s", t->host) : 0;
}

static size_t give(char *to, size_t size, size_t count, void *context)
{
	const struct transfer *t = context;
	ssize_t n = read(t->fd, to, size * count);

	return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

static size_t take(char *bytes, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	long status = 0;

	curl_easy_getinfo(t->request->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) { /* an error's message */
		buf_add(&t->request->reply.body, bytes, size * count);
		return t->request->reply.body.len > 65536 ? 0 : size * count;
	}
	t->failed = io_write_all(t->fd, bytes, size * count) < 0;
	return t->failed ? 0 : size * count;
}

/* A directory there: the file goes into it. */
static int find_inside(struct remote *r, const struct http_box *box, const struct transfer *t,
		       struct buf *path, struct ward_err *e)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	struct ward_err absent = { 0 };
	struct values v = { 0 };
	size_t n = strlen(t->inside);
	int result;

	buf_puts(path, t->inside);
	json_begin_object(&j, NULL);
	json_string(&j, "path", t->inside);
	json_end_object(&j);
	result = http_values(r->http, "POST", "/filesystem.Filesystem/Stat", box, buf_text(&body),
			     &v, &absent);
	if (result == -ENOENT && t->inside[n - 1] != '/')
		return 0;
	if (result < 0 && result != -ENOENT) {
		*e = absent;
		return result;
	}
	if (result == -ENOENT || strcmp(value_text(&v, value_get(&v, v.items, "entry"), "type"),
					"FILE_TYPE_DIRECTORY") == 0)
		buf_printf(path, "%s%s", t->inside[n - 1] == '/' ? "" : "/", base_name(t->host));
	values_free(&v);
	return 0;
}

static int exchange(struct remote *r, const struct http_box *box, struct transfer *t,
		    const char *path, struct ward_err *e)
{
	auto_buf target = { 0 };
	struct http_request q;
	struct stat st = { 0 };
	int result;

	buf_puts(&target, "/files?path=");
	http_quote(&target, path);
	result = http_begin(r->http, t->out ? "GET" : "POST", buf_text(&target), box,
			    t->out ? NULL : "application/octet-stream", NULL, 0, &q, e);
	if (result < 0)
		return result;
	if (t->out) {
		t->request = &q;
		curl_easy_setopt(q.curl, CURLOPT_WRITEFUNCTION, take);
		curl_easy_setopt(q.curl, CURLOPT_WRITEDATA, t);
	} else {
		(void)fstat(t->fd, &st);
		curl_easy_setopt(q.curl, CURLOPT_POSTFIELDS, NULL);
		curl_easy_setopt(q.curl, CURLOPT_POST, 1L);
		curl_easy_setopt(q.curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)st.st_size);
		curl_easy_setopt(q.curl, CURLOPT_READFUNCTION, give);
		curl_easy_setopt(q.curl, CURLOPT_READDATA, t);
	}
	result = http_end_with(&q, curl_easy_perform(q.curl), e);
	if (t->failed)
		result = ward_fail(e, EIO, "cannot write %.300s", t->host);
	return result;
}

static int copy_out(struct remote *r, const struct http_box *box, struct transfer *t,
		    struct ward_err *e)
{
	int result = make_temporary(t, e);

	if (result == 0)
		result = exchange(r, box, t, t->inside, e);
	if (result == 0 && renameat(t->dir_fd, t->temporary, t->dir_fd, t->name) < 0)
		result = ward_fail_errno(e, "cannot write %.300s", t->host);
	if (result < 0 && *t->temporary)
		(void)unlinkat(t->dir_fd, t->temporary, 0);
	return result;
}

static int copy_in(struct remote *r, const struct http_box *box, struct transfer *t,
		   struct ward_err *e)
{
	auto_buf path = { 0 };
	int result = find_inside(r, box, t, &path, e);

	return result == 0 ? exchange(r, box, t, buf_text(&path), e) : result;
}

int remote_cp(struct remote *r)
{
	struct transfer t = { .fd = -1, .dir_fd = -1 };
	struct ward_err e = { 0 };
	char id[REMOTE_ID + 1];
	struct http_box box;
	int result = read_words(r, &t, &e);

	if (result < 0)
		return say_error(&e, r->json, EXIT_USAGE);
	result = t.out ? open_place(&t, &e) : open_source(&t, &e);
	if (result == 0)
		result = remote_confine(r, t.dir_fd, &e);
	if (result == 0)
		result = remote_find(r, t.box, id, &e);
	if (result == 0)
		result = http_open_box(r->http, id, &box, &e);
	if (result == 0)
		result = t.out ? copy_out(r, &box, &t, &e) : copy_in(r, &box, &t, &e);
	free(t.box);
	own_close_fd(&t.fd);
	own_close_fd(&t.dir_fd);
	return result < 0 ? remote_fail(r, &e) : EXIT_FINE;
}

/*
 * ward quarantine show RUN PATH: one quarantined thing. In: a run's id and a path as ls prints it.
 * Out: a file's bytes, a directory's names, or where a link points. Runs with the user's rights and
 * changes nothing.
 *
 * An agent wrote what is shown, to be read by a person. On a terminal every character that acts
 * instead of showing becomes an escape (base/text.h); into a pipe or file go the bytes as they are.
 * No link is followed, and a FIFO or device is never opened.
 */
#include "cli/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"

#define SHOWN_MAX (16u << 20) /* of a file that is held in memory: on a terminal, or for JSON */

/* One thing that was found. */
struct found {
	const struct store_item *item;
	const char *below; /* the rest of the path, beneath a directory; "": the item itself */
	int fd;            /* O_PATH */
	struct stat st;
};

static const struct type {
	mode_t mode;
	const char *name;
} types[] = {
	{ S_IFREG, "file" },         { S_IFDIR, "directory" }, { S_IFLNK, "link" },
	{ S_IFIFO, "fifo" },         { S_IFSOCK, "socket" },   { S_IFCHR, "character device" },
	{ S_IFBLK, "block device" },
};

static const char *type_name(mode_t mode)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((mode & S_IFMT) == types[i].mode)
			return types[i].name;
	return "thing";
}

/* What stands in word behind path: "" where they are equal, NULL where word is not path or beneath
 * it. */
static const char *rest_behind(const char *word, const char *path)
{
	size_t n = strlen(path);

	if (strncmp(word, path, n) != 0)
		return NULL;
	if (!word[n])
		return word + n;
	return word[n] == '/' ? word + n + 1 : NULL;
}

/* A path is written relative to its tree, with its tree in front, or as ls prints it, with
 * escapes. */
static const char *match(const struct store_item *i, const char *word)
{
	auto_buf whole = { 0 }, escaped = { 0 };
	const char *rest = rest_behind(word, i->path);

	buf_printf(&whole, "%s/%s", i->root, i->path);
	text_escape(&escaped, word[0] == '/' ? buf_text(&whole) : i->path);
	if (!rest && !whole.failed)
		rest = rest_behind(word, buf_text(&whole));
	return rest || escaped.failed ? rest : rest_behind(word, buf_text(&escaped));
}

static int find(const struct options *o, const struct store_items *v, struct found *ret,
		struct ward_err *e)
{
	const char *run = o->words[1], *word = o->words[2];

	while (strncmp(word, "./", 2) == 0)
		word += 2;
	*ret = (struct found){ .fd = -1 };
	for (size_t i = 0; i < v->len; i++) {
		const char *rest =
			strcmp(v->items[i].run, run) == 0 ? match(&v->items[i], word) : NULL;

		if (!rest)
			continue;
		if (ret->item && strcmp(ret->item->root, v->items[i].root) != 0) {
			ward_fail(e, EINVAL, "%.200s is ambiguous: it came from two trees", word);
			return ward_remedy(e, "name one of them: %s/%s or %s/%s", ret->item->root,
					   word, v->items[i].root, word);
		}
		ret->item = &v->items[i];
		ret->below = rest;
	}
	if (!ret->item) {
		ward_fail(e, ENOENT, "there is no %.200s in the quarantine of %.100s", word, run);
		return ward_remedy(e, "see ward quarantine ls %.100s", run);
	}
	ret->fd = store_open_item(ret->item, ret->below, &ret->st, e);
	return ret->fd < 0 ? ward_wrap(e, "%s", word) : 0;
}

/* The descriptor says what it is already: a file that is none any more cannot come in between. */
static int reopen(const struct found *f, int flags, struct ward_err *e)
{
	char link[32];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->fd);
	fd = open(link, flags | O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	ward_fail_errno(e, "cannot read %s in the quarantine", f->item->path);
	return e->code == EACCES
		       ? ward_remedy(e, "its mode forbids reading: restore it into an empty "
					"directory with ward quarantine restore --to, then chmod")
		       : -e->code;
}

static int read_names(const struct found *f, struct strv *names, struct ward_err *e)
{
	int fd = reopen(f, O_DIRECTORY, e);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return fd < 0 ? fd : ward_fail(e, ENOMEM, "out of memory");
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			strv_add(names, entry->d_name);
	strv_sort(names);
	return names->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int read_target(const struct found *f, struct buf *target, struct ward_err *e)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(f->fd, "", text, sizeof(text));

	if (n < 0)
		return ward_fail_errno(e, "cannot read the link");
	buf_add(target, text, (size_t)n);
	return 0;
}

static int read_bytes(const struct found *f, struct buf *bytes, struct ward_err *e)
{
	auto_fd fd = reopen(f, 0, e);
	int r = fd < 0 ? fd : io_read_all(fd, SHOWN_MAX, bytes);

	if (fd < 0)
		return fd;
	if (r < 0)
		ward_fail(e, -r, "cannot show %s: %s", f->item->path, strerror(-r));
	return r == -EFBIG
		       ? ward_remedy(e, "it is too large for a terminal: redirect it with > FILE")
		       : r;
}

/* Bytes as they are, for a pipe or a file. */
static int copy_bytes(const struct found *f, struct ward_err *e)
{
	auto_fd fd = reopen(f, 0, e);
	char bytes[65536];
	ssize_t n = 0;
	int r = 0;

	if (fd < 0)
		return fd;
	while (r == 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		r = io_write_all(STDOUT_FILENO, bytes, (size_t)n);
	if (n < 0)
		return ward_fail_errno(e, "cannot read %s", f->item->path);
	return r < 0 ? ward_fail(e, -r, "cannot write to standard output: %s", strerror(-r)) : 0;
}

static void base64(struct buf *out, const struct buf *in)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < in->len; i += 3) {
		unsigned group = 0;
		char four[4] = { '=', '=', '=', '=' };

		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (i + k < in->len ? (unsigned char)in->data[i + k] : 0);
		for (size_t k = 0; k < 4 && i + k <= in->len; k++)
			four[k] = digits[group >> (18 - 6 * k) & 63];
		buf_add(out, four, 4);
	}
}

/* Bytes that JSON cannot say go as base64. */
static void json_bytes(struct json *j, const struct buf *bytes)
{
	auto_buf coded = { 0 };
	const char *text = buf_text(bytes);

	if (strlen(text) == bytes->len && text_is_utf8(text)) {
		json_string(j, "text", text);
		return;
	}
	base64(&coded, bytes);
	json_string(j, "base64", buf_text(&coded));
}

static int show_json(const struct found *f, struct buf *out, struct ward_err *e)
{
	struct json j = { .out = out };
	auto_buf bytes = { 0 };
	auto_strv names = { 0 };
	int r = 0;

	json_begin_object(&j, NULL);
	json_string(&j, "run", f->item->run);
	json_string(&j, "workspace", f->item->workspace);
	json_string(&j, "root", f->item->root);
	json_string(&j, "path", f->item->path);
	if (*f->below)
		json_string(&j, "below", f->below);
	json_string(&j, "why", f->item->why);
	json_string(&j, "type", type_name(f->st.st_mode));
	if (S_ISREG(f->st.st_mode)) {
		r = read_bytes(f, &bytes, e);
		json_uint(&j, "size", (uint64_t)f->st.st_size);
		json_bytes(&j, &bytes);
	} else if (S_ISLNK(f->st.st_mode)) {
		r = read_target(f, &bytes, e);
		json_string(&j, "target", buf_text(&bytes));
	} else if (S_ISDIR(f->st.st_mode)) {
		r = read_names(f, &names, e);
		json_begin_array(&j, "names");
		for (size_t i = 0; i < names.len; i++)
			json_string(&j, NULL, names.items[i]);
		json_end_array(&j);
	}
	json_end_object(&j);
	buf_puts(out, "\n");
	return r;
}

static int show_text(const struct found *f, struct buf *out, struct ward_err *e)
{
	auto_buf bytes = { 0 };
	auto_strv names = { 0 };
	int r = 0;

	if (S_ISREG(f->st.st_mode) && !isatty(STDOUT_FILENO))
		return copy_bytes(f, e);
	if (S_ISREG(f->st.st_mode)) {
		r = read_bytes(f, &bytes, e);
		text_escape_lines(out, buf_text(&bytes), bytes.len);
		if (bytes.len && bytes.data[bytes.len - 1] != '\n')
			buf_puts(out, "\n");
		return r;
	}
	if (S_ISDIR(f->st.st_mode)) {
		r = read_names(f, &names, e);
		for (size_t i = 0; i < names.len; i++) {
			text_escape(out, names.items[i]);
			buf_puts(out, "\n");
		}
		return r;
	}
	buf_printf(out, "a %s", type_name(f->st.st_mode));
	if (S_ISLNK(f->st.st_mode)) {
		r = read_target(f, &bytes, e);
		buf_puts(out, " to ");
		text_escape(out, buf_text(&bytes));
	}
	buf_puts(out, "\n");
	return r;
}

int quarantine_show(const struct options *o, const struct store_items *v, struct ward_err *e)
{
	auto_buf out = { 0 };
	struct found f;
	int r = find(o, v, &f, e);

	if (r == 0) {
		r = o->json ? show_json(&f, &out, e) : show_text(&f, &out, e);
		close(f.fd);
	}
	return r < 0 ? say_error(e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

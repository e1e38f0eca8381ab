/*
 * The look at what a run has changed. In: a directory with the changes, the one that they go over
 * (or none), and a list of paths; or a time, then every file beneath the directory whose inode
 * changed since counts. Out: records for the program that has started this one, ward, which shows
 * them: SEVERITY, KIND, RULE, LINE, PATH and TITLE, each ended by NUL, then "end". Never a secret.
 *
 * Only what is new is pointed out: of a file that was there before, a secret and a line that it had
 * are left out. The lines of the old file are kept as hashes that nobody can aim at (SHA-256).
 * Runs in ward-scan, locked up before it reads a byte; what it reads was written by an agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/walk.h"
#include "confine/confine.h"
#include "scan/look_text.h"
#include "scan/scan.h"

#define LIST_BYTES_MAX (256u << 20)
#define OLD_LINES_MAX 4000000
#define CHUNK 65536
#define RECORDS_MAX 2000 /* what no person reads to its end */
#define BINARY_LEAST 65536
#define FILE_MOST (512ull << 20) /* bytes of one file, without its holes */

struct look {
	struct detector *detector;
	bool secrets_only;
	uint64_t since_ns; /* 0: a list says which files */
	struct buf out;
	size_t records;
	/* of the file that is being read */
	const char *path;
	uint64_t line;
	bool is_old; /* its former state: nothing is reported of it */
	uint64_t *old;
	size_t old_count, old_cap;
	uint8_t text[CHUNK + LOOK_LINE_MAX];
};

/* kind: secret, personal or construct. */
static void put(struct look *l, enum severity severity, const char *kind, const char *rule,
		uint64_t line, const char *title)
{
	auto_buf path = { 0 };

	if (l->records++ >= RECORDS_MAX)
		return;
	text_escape(&path, l->path);
	buf_printf(&l->out, "%s%c%s%c%s%c%llu%c%s%c%s%c", detect_severity(severity), 0, kind, 0,
		   rule, 0, (unsigned long long)line, 0, buf_text(&path), 0, title, 0);
}

static void put_rule(struct look *l, size_t rule, uint64_t line)
{
	const struct look_rule *r = look_rule(rule);

	if (!l->secrets_only)
		put(l, r->severity, "construct", r->id, line, r->title);
}

static void at_path(void *ctx, size_t rule)
{
	put_rule(ctx, rule, 0);
}

static void at_line(void *ctx, size_t rule)
{
	struct look *l = ctx;

	put_rule(l, rule, l->line);
}

/* -- what was there before */

static uint64_t hash_of(char kind, const uint8_t *bytes, size_t n)
{
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	uint64_t ret;

	sha256_begin(&s);
	sha256_add(&s, &kind, 1);
	sha256_add(&s, bytes, n);
	sha256_end(&s, sum);
	memcpy(&ret, sum, sizeof(ret));
	return ret;
}

static void remember(struct look *l, uint64_t hash)
{
	if (l->old_count == l->old_cap) {
		size_t cap = l->old_cap ? 2 * l->old_cap : 1024;
		uint64_t *more =
			cap > OLD_LINES_MAX ? NULL : reallocarray(l->old, cap, sizeof(*l->old));

		if (!more)
			return; /* it is pointed out once more */
		l->old = more;
		l->old_cap = cap;
	}
	l->old[l->old_count++] = hash;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool was_there(const struct look *l, uint64_t hash)
{
	return l->old_count && bsearch(&hash, l->old, l->old_count, sizeof(hash), by_value);
}

/* -- one file */

static void at_secret(void *ctx, const struct detect_hit *hit)
{
	struct look *l = ctx;
	const struct detect_rule *r = detect_rule(hit->rule);
	uint64_t hash = hash_of('s', hit->secret, hit->secret_bytes);

	if (l->is_old)
		remember(l, hash);
	else if (!was_there(l, hash))
		put(l, r->severity, r->kind == DETECT_PII ? "personal" : "secret", r->id, hit->line,
		    r->title);
}

static void take_line(struct look *l, const uint8_t *line, size_t n, bool whole)
{
	uint64_t hash;

	l->line++;
	hash = hash_of('l', line, n);
	if (l->is_old) {
		remember(l, hash);
		return;
	}
	if (was_there(l, hash))
		return;
	if (!whole)
		put_rule(l, look_find("long-line"), l->line);
	look_line(l->path, line, n, l->line == 1, at_line, l);
}

/* Whole lines of the text; what is left of the last one goes to the front. A line that is too long
 * is taken in pieces, counted as one. */
static size_t take_lines(struct look *l, size_t n, bool final)
{
	size_t at = 0;

	while (at < n) {
		const uint8_t *end = memchr(l->text + at, '\n', n - at);
		size_t len = end ? (size_t)(end - l->text) - at : n - at;

		if (!end && !final && len < LOOK_LINE_MAX)
			break;
		if (len > LOOK_LINE_MAX || (!end && !final)) {
			take_line(l, l->text + at, LOOK_LINE_MAX, false);
			l->line--;
			at += LOOK_LINE_MAX;
			continue;
		}
		take_line(l, l->text + at, len, true);
		at += len + (end != NULL);
	}
	memmove(l->text, l->text + at, n - at);
	return n - at;
}

static int feed(struct look *l, const uint8_t *bytes, size_t n, struct ward_err *e)
{
	while (n) {
		size_t room;
		uint8_t *to = detector_room(l->detector, &room);
		size_t some = n < room ? n : room;

		memcpy(to, bytes, some);
		if (detector_fill(l->detector, some, e) < 0)
			return -e->code;
		bytes += some;
		n -= some;
	}
	return 0;
}

/* Whether a file is binary, and what kind: by its first bytes. */
static bool begin_file(struct look *l, size_t n, uint64_t size)
{
	bool binary = memchr(l->text, 0, n) != NULL;

	if (l->is_old || l->secrets_only)
		return binary;
	look_begin(l->text, n, at_path, l);
	if (binary && size >= BINARY_LEAST)
		put_rule(l, look_find("binary"), 0);
	return binary;
}

/* The next bytes of data: a hole has none, however large it is. */
static ssize_t read_data(int fd, uint8_t *to, size_t n)
{
	off_t at = lseek(fd, 0, SEEK_CUR), data = at < 0 ? at : lseek(fd, at, SEEK_DATA), hole;
	ssize_t got;

	if (data < 0)
		return at < 0 || errno != ENXIO ? -errno : 0;
	hole = lseek(fd, data, SEEK_HOLE);
	if (lseek(fd, data, SEEK_SET) < 0)
		return -errno;
	if (hole > data && (uint64_t)(hole - data) < n)
		n = (size_t)(hole - data);
	do
		got = read(fd, to, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int read_file(struct look *l, int fd, uint64_t size, struct ward_err *e)
{
	size_t have = 0;
	bool begun = false, binary = false;
	uint64_t total = 0;
	ssize_t n;

	l->line = 0;
	detector_begin(l->detector);
	do {
		n = read_data(fd, l->text + have, CHUNK);
		if ((n < 0 || total >= FILE_MOST) && !l->is_old && n) {
			size_t rule = look_find(n < 0 ? "unread" : "too-large");

			put(l, SEVERITY_MEDIUM, "construct", look_rule(rule)->id, 0,
			    look_rule(rule)->title);
		}
		if (n < 0 || total >= FILE_MOST)
			n = 0;
		total += (uint64_t)n;
		if (feed(l, l->text + have, (size_t)n, e) < 0)
			return -e->code;
		have += (size_t)n;
		if (!begun && n > 0)
			binary = begin_file(l, have, size);
		begun = true;
		have = binary || l->secrets_only ? 0 : take_lines(l, have, n == 0);
	} while (n != 0);
	return detector_fill(l->detector, 0, e);
}

static int open_beneath(int dir_fd, const char *path)
{
	const struct open_how how = { .flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
					       O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

static int read_old(struct look *l, const char *path, struct ward_err *e)
{
	auto_fd fd = open_beneath(LOOK_FD_OLD, path);
	struct stat st;
	int r = 0;

	l->old_count = 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	l->is_old = true;
	r = read_file(l, fd, (uint64_t)st.st_size, e);
	l->is_old = false;
	if (l->old_count)
		qsort(l->old, l->old_count, sizeof(*l->old), by_value);
	return r;
}

static int look_at_file(struct look *l, int fd, const char *path, bool has_old, struct ward_err *e)
{
	struct stat st;
	int r;

	l->path = path;
	l->old_count = 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno != ENOENT)
			put(l, SEVERITY_MEDIUM, "construct", "unread", 0,
			    look_rule(look_find("unread"))->title);
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_mode & (S_ISUID | S_ISGID))
		put_rule(l, look_find("set-id"), 0);
	if (!l->secrets_only)
		look_path(path, at_path, l);
	r = has_old ? read_old(l, path, e) : 0;
	return r < 0 ? r : read_file(l, fd, (uint64_t)st.st_size, e);
}

/* -- which files */

static int look_at_list(struct look *l, struct ward_err *e)
{
	auto_buf list = { 0 };
	int r = io_read_all(LOOK_FD_LIST, LIST_BYTES_MAX, &list);

	if (r < 0)
		return ward_fail(e, -r, "cannot read the list of changes");
	for (size_t at = 0; at < list.len && r == 0;) {
		const char *path = list.data + at;
		size_t n = strnlen(path, list.len - at);
		auto_fd fd = -1;

		if (at + n == list.len)
			return ward_fail(e, EINVAL, "the list of changes is cut off");
		fd = open_beneath(LOOK_FD_NEW, path);
		r = look_at_file(l, fd, path, true, e);
		at += n + 1;
	}
	return r;
}

static int at_entry(void *ctx, struct walk_dir *dir, const struct walk_entry *entry)
{
	struct look *l = ctx;
	struct ward_err e = { 0 };
	auto_fd fd = -1;
	struct stat st;

	if (entry->type == DT_DIR)
		return strcmp(entry->name, "objects") != 0 ||
		       strstr(entry->path, ".git/objects") == NULL;
	if (entry->type != DT_REG || fstatat(dir->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec < l->since_ns)
		return 0;
	fd = openat(dir->fd, entry->name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	(void)!look_at_file(l, fd, entry->path, false, &e);
	return 0;
}

static int at_unreadable(void *ctx, const struct walk_dir *dir, const struct walk_entry *entry)
{
	struct look *l = ctx;

	(void)dir;
	l->path = entry->path;
	put(l, SEVERITY_MEDIUM, "construct", "unread", 0, look_rule(look_find("unread"))->title);
	return 0;
}

static int look_everywhere(struct look *l, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = at_entry, .unreadable = at_unreadable };

	return walk_tree(LOOK_FD_NEW, &ops, l, 0, e);
}

static int lock_up(struct ward_err *e)
{
	const struct confine_tree trees[] = { { .fd = LOOK_FD_NEW, .rights = CONFINE_READ },
					      { .fd = LOOK_FD_OLD, .rights = CONFINE_READ } };
	struct stat st;
	bool old = fstat(LOOK_FD_OLD, &st) == 0 && S_ISDIR(st.st_mode);

	return confine_enter(PROC_SCAN_LOOK,
			     &(struct confine_own){ .trees = trees, .tree_count = old ? 2 : 1 }, e);
}

int look_run(const struct scan_options *o, struct ward_err *e)
{
	struct detect_rules *rules = NULL;
	struct look *l = calloc(1, sizeof(*l));
	int r = detect_rules_new(DETECT_SECRET | (o->pii ? DETECT_PII : 0u), &rules, e);

	if (r == 0 && !l)
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = detector_new(rules, at_secret, l, &l->detector, e);
	if (r == 0)
		r = lock_up(e);
	if (r == 0) {
		l->since_ns = o->since ? strtoull(o->since, NULL, 10) : 0;
		l->secrets_only = o->since != NULL;
		r = o->since ? look_everywhere(l, e) : look_at_list(l, e);
	}
	if (r == 0) {
		buf_add(&l->out, "end", 4);
		r = l->out.failed ? -ENOMEM : io_write_all(LOOK_FD_SAY, l->out.data, l->out.len);
		if (r < 0)
			ward_fail(e, -r, "cannot report what was found");
	}
	if (l) {
		detector_free(l->detector);
		buf_free(&l->out);
		free(l->old);
		free(l);
	}
	detect_rules_free(rules);
	return r;
}

/*
 * Trust in policy files. In: the SHA-256 of a content. Out: whether the user accepted it. One
 * empty-or-noted file a hash in `trusted` in the state directory, which only its owner can write
 * (store_open() refuses any other); the content is what is trusted, wherever it lies, so that
 * clones and worktrees of a project need one word only. In `written`: which content ward itself has
 * written to which path; that is no trust, and spares the file from the sweep of a run under way.
 * Runs with the user's rights, never inside a sandbox.
 */
#include "state/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"
#include "state/store.h"

#define TRUSTED_DIR "trusted"

int trust_has(const char hex[SHA256_HEX], struct ward_err *e)
{
	auto_fd state_fd = store_open(e);
	char name[sizeof(TRUSTED_DIR) + SHA256_HEX];
	struct stat st;

	if (state_fd < 0)
		return state_fd;
	snprintf(name, sizeof(name), TRUSTED_DIR "/%s", hex);
	if (fstatat(state_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			       ? 0
			       : ward_fail_errno(e, "cannot read the list of trusted policies");
	return S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

int trust_add(const char hex[SHA256_HEX], const char *path, struct ward_err *e)
{
	return trust_keep(hex, path, NULL, e);
}

int trust_keep(const char hex[SHA256_HEX], const char *path, const struct buf *text,
	       struct ward_err *e)
{
	auto_fd state_fd = store_open(e);
	auto_buf note = { 0 };
	int r;

	if (state_fd < 0)
		return state_fd;
	if (mkdirat(state_fd, TRUSTED_DIR, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make the directory of trusted policies");

	auto_fd dir =
		openat(state_fd, TRUSTED_DIR, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	if (dir < 0)
		return ward_fail_errno(e, "cannot open the directory of trusted policies");

	auto_fd fd = openat(dir, hex, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return ward_fail_errno(e, "cannot record the trusted policy");
	text_escape(&note, path);
	buf_puts(&note, "\n");
	if (text)
		buf_add(&note, buf_text(text), text->len);
	r = note.failed ? -ENOMEM : io_write_all(fd, note.data, note.len);
	return r < 0 ? ward_fail(e, -r, "cannot record the trusted policy: %s", strerror(-r)) : 0;
}

#define RECORD_MAX (64 * 1024 * 1024) /* as many files as one policy can have, each of a mebibyte */

/* Whether a record is of this file and has its content; *ret_at is where that begins. */
static bool is_of(const struct buf *record, const struct buf *path, size_t *ret_at)
{
	*ret_at = path->len + 1;
	return record->len > *ret_at && memcmp(record->data, buf_text(path), path->len) == 0 &&
	       record->data[path->len] == '\n';
}

static bool is_later(const struct stat *a, const struct timespec *b)
{
	return a->st_mtim.tv_sec > b->tv_sec ||
	       (a->st_mtim.tv_sec == b->tv_sec && a->st_mtim.tv_nsec >= b->tv_nsec);
}

int trust_last(const char *path, struct buf *ret_text, struct ward_err *e)
{
	auto_fd state_fd = store_open(e);
	auto_fd fd = state_fd < 0
			     ? -1
			     : openat(state_fd, TRUSTED_DIR, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	struct timespec newest = { 0 };
	auto_buf shown = { 0 };
	struct dirent *entry;
	bool any = false;

	if (state_fd < 0)
		return state_fd;
	if (dir)
		(void)take_fd(&fd);
	text_escape(&shown, path);
	while (dir && (entry = readdir(dir))) {
		auto_fd record_fd = openat(dirfd(dir), entry->d_name,
					   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		auto_buf record = { 0 };
		struct stat st;
		size_t at;

		if (record_fd < 0 || fstat(record_fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_uid != geteuid() || (any && !is_later(&st, &newest)) ||
		    io_read_all(record_fd, RECORD_MAX, &record) < 0 || !is_of(&record, &shown, &at))
			continue;
		any = true;
		newest = st.st_mtim;
		ret_text->len = 0;
		buf_add(ret_text, record.data + at, record.len - at);
	}
	return shown.failed || ret_text->failed ? ward_fail(e, ENOMEM, "out of memory") : any;
}

/* -- what ward has written */

#define WRITTEN_DIR "written"
#define WRITTEN_MAX (1024 * 1024) /* as ward policy add has it */

/* One record a path. */
static void written_name(const char *path, char ret[sizeof(WRITTEN_DIR) + SHA256_HEX])
{
	char hex[SHA256_HEX];

	sha256_hex(path, strlen(path), hex);
	snprintf(ret, sizeof(WRITTEN_DIR) + SHA256_HEX, WRITTEN_DIR "/%s", hex);
}

int trust_note_written(const char *path, const struct buf *text, struct ward_err *e)
{
	auto_fd state_fd = store_open(e), fd = -1;
	char name[sizeof(WRITTEN_DIR) + SHA256_HEX], hex[SHA256_HEX];
	int r;

	if (state_fd < 0)
		return state_fd;
	if (mkdirat(state_fd, WRITTEN_DIR, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make the directory of written policies");
	written_name(path, name);
	sha256_hex(buf_text(text), text->len, hex);
	fd = openat(state_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : io_write_all(fd, hex, sizeof(hex) - 1);
	return r < 0 ? ward_fail(e, -r, "cannot note the written policy: %s", strerror(-r)) : 0;
}

static uint64_t stamp_of(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

bool trust_is_written(const char *path, int dir_fd, const char *name, uint64_t since_ns)
{
	struct ward_err e;
	auto_fd state_fd = store_open(&e), note_fd = -1;
	auto_fd fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char note[sizeof(WRITTEN_DIR) + SHA256_HEX], hex[SHA256_HEX];
	auto_buf wanted = { 0 }, text = { 0 };
	struct stat st;

	if (state_fd < 0 || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_nlink != 1 || st.st_mode & 07133)
		return false;
	written_name(path, note);
	note_fd = openat(state_fd, note, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (note_fd < 0 || fstat(note_fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || stamp_of(&st) < since_ns ||
	    io_read_all(note_fd, SHA256_HEX, &wanted) < 0 ||
	    io_read_all(fd, WRITTEN_MAX, &text) < 0)
		return false;
	sha256_hex(buf_text(&text), text.len, hex);
	return strcmp(hex, buf_text(&wanted)) == 0;
}

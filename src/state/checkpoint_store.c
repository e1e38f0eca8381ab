/*
 * Where checkpoints are: STATE/checkpoints, of the user alone. NAME.record is one, and names its
 * image, ID.image, which holds what the sandbox wrote: memory with whatever secrets were in it, and
 * untrusted bytes. Nothing here looks into them. In: a stream of them. Out: an image and, last of
 * all and in one step, its record: without that there is no checkpoint. An image has no name until
 * it is whole (where the file system can do that), is locked while it is being made, and goes with
 * the next verb if no process is left to finish it. Runs with the user's rights, in the verb.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "state/boxes.h"
#include "state/checkpoint.h"
#include "state/store.h"

#define STORE "checkpoints"
#define RECORD ".record"
#define IMAGE ".image"
#define UNFINISHED ".new" /* a record that has no name yet, where the file system wants one */
#define LIST_MAX 10000

static int open_store(struct ward_err *e)
{
	auto_fd state = store_open(e);

	return state < 0 ? state : store_open_dir(state, STORE, e);
}

static bool has_ending(const char *name, const char *ending)
{
	size_t n = strlen(name), k = strlen(ending);

	return n > k && strcmp(name + n - k, ending) == 0;
}

static bool record_name(const char *name, char ret[CHECKPOINT_NAME_MAX + 16])
{
	return checkpoint_is_name(name) &&
	       snprintf(ret, CHECKPOINT_NAME_MAX + 16, "%s" RECORD, name) > 0;
}

static int read_record(int dir_fd, const char *file, struct checkpoint *ret)
{
	auto_fd fd =
		openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf text = { 0 };
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	r = io_read_all(fd, CHECKPOINT_RECORD_MAX, &text);
	if (r == 0)
		r = checkpoint_parse(buf_text(&text), text.len, ret);
	if (r == 0)
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(strlen(file) - strlen(RECORD)),
			 file);
	return r;
}

/* ---- looking through the store ---- */

static int list_files(int dir_fd, const char *ending, struct strv *names, struct ward_err *e)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		return ward_fail_errno(e, "the store of checkpoints");
	for (errno = 0; names->len < LIST_MAX && (entry = readdir(dir)); errno = 0)
		if (has_ending(entry->d_name, ending))
			strv_add(names, entry->d_name);
	if (errno)
		return ward_fail_errno(e, "the store of checkpoints");
	strv_sort(names);
	return names->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* No other process gives or takes a name while the descriptor is open. */
static int lock_names(int dir_fd, struct ward_err *e)
{
	auto_fd fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return ward_fail_errno(e, "cannot lock the store of checkpoints");
	return take_fd(&fd);
}

/* The images that records name. *ret_all: every record could be read, so that there are no
 * others. */
static int list_used(int dir_fd, struct strv *used, bool *ret_all, struct ward_err *e)
{
	auto_strv records = { 0 };
	int r = list_files(dir_fd, RECORD, &records, e);

	*ret_all = r == 0 && records.len < LIST_MAX;
	for (size_t i = 0; i < records.len && r == 0; i++) {
		struct checkpoint c = { 0 };
		int got = read_record(dir_fd, records.items[i], &c);

		if (got == 0)
			strv_add(used, c.image);
		else if (got != -ENOENT)
			*ret_all = false;
		checkpoint_clear(&c);
	}
	return r == 0 && used->failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

/* Files that no record names, and that no process is making; none where a record cannot be read,
 * which may name any. The caller holds lock_names(). */
static int sweep(int dir_fd, struct ward_err *e)
{
	auto_strv images = { 0 }, used = { 0 };
	bool all = false;
	int r = list_used(dir_fd, &used, &all, e);

	if (r < 0 || !all)
		return r;
	r = list_files(dir_fd, IMAGE, &images, e);
	if (r == 0)
		r = list_files(dir_fd, UNFINISHED, &images, e);
	for (size_t i = 0; i < images.len && r == 0; i++) {
		auto_fd fd = strv_has(&used, images.items[i])
				     ? -1
				     : openat(dir_fd, images.items[i],
					      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dir_fd, images.items[i], 0);
	}
	return r;
}

int checkpoint_list(struct checkpoints *ret, struct ward_err *e)
{
	auto_fd dir = open_store(e);
	auto_fd lock = dir < 0 ? dir : lock_names(dir, e);
	auto_strv names = { 0 };
	int r = lock < 0 ? lock : sweep(dir, e);

	*ret = (struct checkpoints){ 0 };
	if (r == 0)
		r = list_files(dir, RECORD, &names, e);
	if (r < 0 || !names.len)
		return r;
	ret->items = calloc(names.len, sizeof(*ret->items));
	if (!ret->items)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < names.len; i++) {
		struct checkpoint *c = &ret->items[ret->len];

		r = read_record(dir, names.items[i], c);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			*c = (struct checkpoint){ 0 };
		snprintf(c->name, sizeof(c->name), "%.*s",
			 (int)(strlen(names.items[i]) - strlen(RECORD)), names.items[i]);
		ret->len++;
	}
	return 0;
}

void checkpoints_clear(struct checkpoints *v)
{
	for (size_t i = 0; i < v->len; i++)
		checkpoint_clear(&v->items[i]);
	free(v->items);
	*v = (struct checkpoints){ 0 };
}

/* ---- making one ---- */

static int refuse_name(const char *name, struct ward_err *e)
{
	ward_fail(e, EINVAL, "%.100s is not a valid name for a checkpoint", name);
	return ward_remedy(
		e, "letters, digits, and after the first _ . -, at most %d, and neither ls nor rm",
		CHECKPOINT_NAME_MAX);
}

static int fail_taken(const char *name, struct ward_err *e)
{
	ward_fail(e, EEXIST, "there is already a checkpoint %s", name);
	return ward_remedy(e, "choose another name, or ward checkpoint rm %s", name);
}

int checkpoint_begin(const char *name, uint64_t bytes_max, struct checkpoint_file *ret,
		     struct ward_err *e)
{
	/* a file with a name is locked before any process can sweep it */
	auto_fd dir = -1, lock = -1, fd = -1;
	char record[CHECKPOINT_NAME_MAX + 16];
	int r;

	*ret = (struct checkpoint_file){ .dir_fd = -1, .fd = -1, .bytes_max = bytes_max };
	if (!record_name(name, record))
		return refuse_name(name, e);
	dir = open_store(e);
	if (dir < 0)
		return dir;
	if (faccessat(dir, record, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fail_taken(name, e);
	lock = lock_names(dir, e);
	r = lock < 0 ? lock : sweep(dir, e);
	if (r < 0)
		return r;
	fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0) {
		char id[24];

		store_new_id(id, sizeof(id));
		snprintf(ret->temporary, sizeof(ret->temporary), "%s" IMAGE, id);
		fd = openat(dir, ret->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	}
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail_errno(e, "cannot make a file in the store of checkpoints");
	sha256_begin(&ret->sum);
	ret->dir_fd = take_fd(&dir);
	ret->fd = take_fd(&fd);
	return 0;
}

/* The last bytes are held back: they are the end of a whole one, and no part of it. */
int checkpoint_add(struct checkpoint_file *f, const void *bytes, size_t n, struct ward_err *e)
{
	const size_t held = sizeof(f->last);
	char all[sizeof(f->last) + 65536];
	size_t before = f->bytes < held ? (size_t)f->bytes : held, out;
	int r;

	if (n > sizeof(all) - held)
		return ward_fail(e, EINVAL, "too many bytes at once");
	f->bytes += n;
	if (f->bytes > f->bytes_max) {
		ward_fail(e, EFBIG, "the sandbox sent more than its memory can hold");
		return ward_remedy(
			e,
			"a large file with many hard links in /tmp or the home is saved once per "
			"link: remove some; if there is none, the sandbox misbehaves: ward kill");
	}
	memcpy(all, f->last, before);
	memcpy(all + before, bytes, n);
	out = before + n > held ? before + n - held : 0;
	memmove(f->last, all + out, before + n - out);
	sha256_add(&f->sum, all, out);
	r = io_write_all(f->fd, all, out);
	if (r == 0)
		return 0;
	ward_fail(e, -r, "cannot write the checkpoint: %s", strerror(-r));
	return r == -ENOSPC || r == -EDQUOT
		       ? ward_remedy(e, "free space in ward's state directory (WARD_STATE_DIR)")
		       : r;
}

static int give_name(const struct checkpoint_file *f, int fd, const char *temporary,
		     const char *name)
{
	char path[32];

	if (temporary[0])
		return strcmp(temporary, name) == 0
			       ? 0
			       : renameat2(f->dir_fd, temporary, f->dir_fd, name, RENAME_NOREPLACE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, f->dir_fd, name, AT_SYMLINK_FOLLOW);
}

/* One step: a process that is killed before it leaves an image that the next verb removes. */
static int keep_record(const struct checkpoint_file *f, const struct checkpoint *c,
		       struct ward_err *e)
{
	char name[CHECKPOINT_NAME_MAX + 16], temporary[64] = "";
	auto_fd fd = openat(f->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	auto_buf text = { 0 };
	int r;

	if (!record_name(c->name, name))
		return refuse_name(c->name, e);
	if (fd < 0) {
		snprintf(temporary, sizeof(temporary), "%s" UNFINISHED, c->image);
		fd = openat(f->dir_fd, temporary,
			    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail_errno(e, "cannot make a file in the store of checkpoints");
	checkpoint_write(c, &text);
	r = text.failed ? -ENOMEM : io_write_all(fd, text.data, text.len);
	if (r == 0 && (fdatasync(fd) < 0 || give_name(f, fd, temporary, name) < 0))
		r = -errno;
	if (r < 0 && temporary[0])
		unlinkat(f->dir_fd, temporary, 0);
	if (r == -EEXIST)
		return fail_taken(c->name, e);
	return r < 0 ? ward_fail(e, -r, "cannot save the checkpoint: %s", strerror(-r)) : 0;
}

int checkpoint_keep(struct checkpoint_file *f, struct checkpoint *c, struct ward_err *e)
{
	struct timespec now;
	auto_fd lock = -1;
	struct stat st;
	char id[24];
	int r;

	if (f->bytes <= sizeof(f->last) || memcmp(f->last, CHECKPOINT_DONE, sizeof(f->last)) != 0)
		return ward_fail(e, EPROTO, "the sandbox sent an incomplete checkpoint");
	sha256_end_hex(&f->sum, c->sha256);
	clock_gettime(CLOCK_REALTIME, &now);
	c->created_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	c->bytes = f->bytes - sizeof(f->last);
	if (fdatasync(f->fd) < 0)
		return ward_fail_errno(e, "cannot write the checkpoint");
	store_new_id(id, sizeof(id));
	if (f->temporary[0])
		snprintf(c->image, sizeof(c->image), "%.31s", f->temporary);
	else
		snprintf(c->image, sizeof(c->image), "%s" IMAGE, id);
	lock = lock_names(f->dir_fd, e);
	if (lock < 0)
		return lock;
	/* as root the agent is another user, who must be able to read it in a sandbox; the
	 * directory is closed to all other users */
	if ((geteuid() == 0 && fchmod(f->fd, 0444) < 0) ||
	    give_name(f, f->fd, f->temporary, c->image) < 0)
		return ward_fail_errno(e, "cannot save the checkpoint");
	if (fstat(f->fd, &st) < 0 || !st.st_nlink)
		return ward_fail(e, ENOENT, "cannot save the checkpoint: its image was removed");
	snprintf(f->temporary, sizeof(f->temporary), "%s", c->image);
	r = keep_record(f, c, e);
	if (r == 0)
		f->temporary[0] = '\0';
	return r;
}

void checkpoint_end(struct checkpoint_file *f)
{
	if (f->temporary[0])
		unlinkat(f->dir_fd, f->temporary, 0);
	own_close_fd(&f->fd);
	own_close_fd(&f->dir_fd);
}

/* ---- using one ---- */

static int fail_unknown(const char *name, struct ward_err *e)
{
	ward_fail(e, ENOENT, "there is no checkpoint %s", name);
	return ward_remedy(e, "ward checkpoint ls lists them");
}

int checkpoint_open(const char *name, struct checkpoint *ret, struct ward_err *e)
{
	char record[CHECKPOINT_NAME_MAX + 16];
	auto_free char *state = NULL;
	auto_fd dir = -1;
	auto_buf path = { 0 };
	int r;

	if (!record_name(name, record))
		return refuse_name(name, e);
	dir = open_store(e);
	if (dir < 0)
		return dir;
	r = read_record(dir, record, ret);
	if (r == -ENOENT)
		return fail_unknown(name, e);
	if (r < 0) {
		ward_fail(e, -r, "the record of the checkpoint %s cannot be read: %s", name,
			  r == -EINVAL ? "it is damaged, or from another version of ward"
				       : strerror(-r));
		return ward_remedy(e, "ward checkpoint rm %s", name);
	}
	r = state_dir_path(&state, e);
	if (r == 0) {
		buf_printf(&path, "%s/" STORE "/%s", state, ret->image);
		ret->path = buf_take(&path);
		r = ret->path ? 0 : ward_fail(e, ENOMEM, "out of memory");
	}
	if (r < 0)
		checkpoint_clear(ret);
	return r;
}

static int digest_of(int fd, char ret[SHA256_HEX])
{
	uint8_t part[65536];
	struct sha256 sum;
	ssize_t n;

	sha256_begin(&sum);
	while ((n = read(fd, part, sizeof(part))) > 0)
		sha256_add(&sum, part, (size_t)n);
	sha256_end_hex(&sum, ret);
	return n < 0 ? -errno : 0;
}

int checkpoint_verify(const struct checkpoint *c, bool whole, struct ward_err *e)
{
	auto_fd dir = open_store(e);
	auto_fd fd = -1;
	char digest[SHA256_HEX] = "";
	struct stat st;
	bool good;

	if (dir < 0)
		return dir;
	fd = openat(dir, c->image, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       (uint64_t)st.st_size == c->bytes;
	if (good && whole)
		good = digest_of(fd, digest) == 0 && strcmp(digest, c->sha256) == 0;
	if (good)
		return 0;
	ward_fail(e, EIO, "the checkpoint %s is damaged: its image %s", c->name,
		  fd < 0 ? "is gone" : "was changed");
	return ward_remedy(e, "ward checkpoint rm %s, and make it again", c->name);
}

/* Also one that a process has locked: a sandbox that has it mounted can do that, and keeps it until
 * its end. */
static int remove_image(int dir_fd, const char *image, struct ward_err *e)
{
	auto_strv used = { 0 };
	bool all;
	int r = list_used(dir_fd, &used, &all, e);

	if (r < 0 || !has_ending(image, IMAGE) || strv_has(&used, image) ||
	    unlinkat(dir_fd, image, 0) == 0 || errno == ENOENT)
		return r;
	return ward_fail_errno(e, "cannot remove the image %s of the checkpoint", image);
}

int checkpoint_remove(const char *name, struct ward_err *e)
{
	char record[CHECKPOINT_NAME_MAX + 16];
	struct ward_err ignored = { 0 };
	struct checkpoint c = { 0 };
	auto_fd dir = -1, lock = -1;
	int r;

	if (!record_name(name, record))
		return refuse_name(name, e);
	dir = open_store(e);
	lock = dir < 0 ? dir : lock_names(dir, e);
	if (lock < 0)
		return lock;
	/* one that is damaged names no image, and can be removed all the same */
	(void)!read_record(dir, record, &c);
	if (unlinkat(dir, record, 0) < 0)
		r = errno == ENOENT ? fail_unknown(name, e)
				    : ward_fail_errno(e, "cannot remove the checkpoint %s", name);
	else
		r = remove_image(dir, c.image, e);
	(void)!sweep(dir, &ignored);
	checkpoint_clear(&c);
	return r;
}

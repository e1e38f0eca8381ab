/*
 * Where journals lie. In: the state directory, ids of runs. Out: open directories, names, locks,
 * the end of a file. Run with the user's rights by the supervisor and by the verbs; a sandbox never
 * has the state directory in view.
 *
 *	STATE/audit/index.jsonl		the user's own chain: which journals there are, their heads,
 *					signatures, what was done outside runs
 *	STATE/audit/live/ID.jsonl	the journal of a run that goes on; locked while its writer
 *					lives
 *	STATE/audit/runs/ID.jsonl	the journal of a run that has ended; ID.N.jsonl are its
 *					earlier files
 *	STATE/audit/key, key.pub	Ed25519, 0600 (sign.c)
 *	STATE/audit/sealed		when the index was last signed: its time; there is one as
 *					soon as there is a signature
 *	STATE/trusted-head		how far the index had come (mark.c)
 */
#include "audit/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/mark.h"
#include "base/io.h"
#include "state/store.h"

int place_open(bool make, struct ward_err *e)
{
	auto_fd state = -1;
	int fd;

	if (!make) {
		auto_free char *path = NULL;
		struct stat st;
		int r = state_dir_path(&path, e);

		if (r < 0)
			return r;
		if (stat(path, &st) < 0) {
			if (errno == ENOENT)
				return ward_fail(e, ENOENT, "there is no journal yet");
			ward_fail_errno(e, "cannot access the state directory %.300s", path);
			return ward_remedy(e, "make it a directory that you own, or set "
					      "WARD_STATE_DIR to another");
		}
	}
	state = store_open(e);
	if (state < 0)
		return state;
	if (make)
		return store_open_dir(state, "audit", e);
	fd = openat(state, "audit", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return ward_fail_errno(e, "cannot open the journals");
	if (faccessat(state, MARK_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail(e, ENOENT, "there is no journal yet");
	ward_fail(e, ESTALE,
		  "the journals are gone: there was an index (" MARK_NAME
		  " records it), but the directory audit is missing");
	return ward_remedy(e, "restore the directory; otherwise the next run starts a new index, "
			      "which records the loss");
}

void place_name(char ret[PLACE_NAME], const char *dir, const char *run, int segment)
{
	if (segment < 0)
		snprintf(ret, PLACE_NAME, "%s/%.40s.jsonl", dir, run);
	else
		snprintf(ret, PLACE_NAME, "%s/%.40s.%d.jsonl", dir, run, segment);
}

int place_move(int audit_fd, const char *from, const char *to)
{
	if (renameat(audit_fd, from, audit_fd, to) == 0)
		return 0;
	if (errno != ENOENT || (mkdirat(audit_fd, PLACE_RUNS, 0700) < 0 && errno != EEXIST))
		return -errno;
	return renameat(audit_fd, from, audit_fd, to) < 0 ? -errno : 0;
}

bool place_is_id(const char *run)
{
	size_t n = strspn(run, "0123456789abcdefghijklmnopqrstuvwxyz-");

	return n > 0 && n <= 40 && run[n] == '\0';
}

static int lock(int fd, int operation)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	uint64_t until = 0;

	while (flock(fd, operation | LOCK_NB) < 0) {
		uint64_t now = io_now_ms();

		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (!until)
			until = now + PLACE_WAIT_MS;
		if (now >= until)
			/* a process was stopped while it held the lock: do not wait for it */
			return -ETIMEDOUT;
		nanosleep(&moment, NULL);
	}
	return 0;
}

int place_lock(int fd)
{
	return lock(fd, LOCK_EX);
}

int place_share(int fd)
{
	return lock(fd, LOCK_SH);
}

/* The last whole line within bytes; false: there is none. */
static bool last_line(const char *bytes, size_t n, size_t *ret_at, size_t *ret_len)
{
	const char *end = n ? memrchr(bytes, '\n', n) : NULL, *before;

	if (!end)
		return false;
	before = end > bytes ? memrchr(bytes, '\n', (size_t)(end - bytes)) : NULL;
	*ret_at = before ? (size_t)(before - bytes) + 1 : 0;
	*ret_len = (size_t)(end - bytes) + 1 - *ret_at;
	return true;
}

int place_read_end(int fd, struct place_end *ret)
{
	char few[2048];
	auto_free char *many = NULL;
	char *bytes = few;
	size_t want = sizeof(few), at, len;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	ret->bytes = 0;
	ret->torn = 0;
	while (st.st_size > 0) {
		off_t from = st.st_size > (off_t)want ? st.st_size - (off_t)want : 0;
		ssize_t n = pread(fd, bytes, want, from);

		if (n < 0 || n != st.st_size - from)
			return n < 0 ? -errno : -EIO;
		if (last_line(bytes, (size_t)n, &at, &len) && (at > 0 || from == 0)) {
			if (!chain_trust(&ret->chain, bytes + at, len))
				return -EBADMSG;
			ret->bytes = (uint64_t)from + at + len;
			break;
		}
		if (many || from == 0) /* no line is that long */
			return many ? -EBADMSG : (ret->torn = (uint64_t)st.st_size, 0);
		want = 3 * EVENT_LINE_MAX;
		bytes = many = malloc(want);
		if (!many)
			return -ENOMEM;
	}
	ret->torn = (uint64_t)st.st_size - ret->bytes;
	return 0;
}

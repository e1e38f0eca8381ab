/*
 * Ending the journals of killed runs, and when to sign. In: STATE/audit/live, where no process
 * holds the lock of a journal whose writer is dead. Out: the same journals with a last line that
 * says so, among those of ended runs, their heads in the index. Run with the user's rights by `ward
 * recover` (which a run's guardian becomes), by the next run, and by `ward audit`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/index.h"
#include "audit/journal.h"
#include "base/io.h"
#include "event/event.h"

#define SEAL_BYTES (16 << 10)
#define SEAL_SECONDS 600

static void recover_event(const char *run, const struct place_end *end, struct ward_event *ret)
{
	*ret = event_make(EVENT_JOURNAL_RECOVER, ACTION_LOG, run);
	ret->run = run;
	ret->time_us = event_now_us();
	event_text(ret, FIELD_WHY, "its writer was killed");
	if (end->torn)
		event_number(ret, FIELD_BYTES, end->torn);
}

static int end_index(int audit_fd, const char *run, const struct place_end *end, struct ward_err *e)
{
	struct ward_event v = event_make(EVENT_JOURNAL_END, ACTION_LOG, run);
	char head[2 * CHAIN_BYTES + 1];

	v.run = run;
	chain_hex(end->chain.head, head);
	event_text(&v, FIELD_WHY, "its writer was killed");
	event_number(&v, FIELD_BYTES, end->bytes);
	event_number(&v, FIELD_EVENTS, end->chain.seq);
	event_text(&v, FIELD_HEAD, head);
	return index_append(audit_fd, &v, 1, e);
}

/* The number that a file of this run would get if it were not the last: how many there are before
 * it. */
static int recover_file(int audit_fd, int fd, const char *run, struct ward_err *e)
{
	char from[PLACE_NAME], to[PLACE_NAME];
	auto_free char *line = malloc(EVENT_LINE_MAX);
	struct place_end end = { 0 };
	struct ward_event v;
	size_t n;
	int r = line ? place_read_end(fd, &end) : -ENOMEM;

	if (r == 0 && end.torn && ftruncate(fd, (off_t)end.bytes) < 0)
		r = -errno;
	if (r == 0) {
		recover_event(run, &end, &v);
		n = chain_add(&end.chain, &v, line);
		r = io_write_all(fd, line, n);
		end.bytes += n;
	}
	if (r < 0) {
		errno = -r;
		return ward_fail_errno(e, "cannot finish the journal of the killed run %s", run);
	}
	r = end_index(audit_fd, run, &end, e);
	if (r < 0)
		return r;
	place_name(from, PLACE_LIVE, run, -1);
	place_name(to, PLACE_RUNS, run, -1);
	r = place_move(audit_fd, from, to);
	return r < 0 ? ward_fail(e, -r, "cannot move the journal of the killed run %s: %s", run,
				 strerror(-r))
		     : 1;
}

/* The writer's lock. Readers hold a shared one for a moment to see whether the writer lives: they
 * are waited for. */
static bool take_over(int fd)
{
	for (int i = 0; i < 50; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (errno != EWOULDBLOCK || flock(fd, LOCK_SH | LOCK_NB) < 0)
			return false;
		usleep(2000);
	}
	return false;
}

static int recover_one(int audit_fd, int live_fd, const char *name, struct ward_err *e)
{
	auto_fd fd = openat(live_fd, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	size_t n = strlen(name);
	char run[48];
	struct stat st;

	if (fd < 0 || n <= 6 || n - 6 >= sizeof(run) || strcmp(name + n - 6, ".jsonl") != 0)
		return 0;
	memcpy(run, name, n - 6);
	run[n - 6] = '\0';
	if (!place_is_id(run) || !take_over(fd))
		return 0; /* its writer lives */
	if (fstatat(live_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* it has ended just now */
	return recover_file(audit_fd, fd, run, e);
}

int journal_recover(size_t most, struct ward_err *e)
{
	struct ward_err own = { 0 };
	auto_fd audit = place_open(false, &own);
	auto_dir list = NULL;
	size_t looked = 0;
	int live, finished = 0, failure = 0;

	if (audit < 0) {
		if (audit != -ENOENT)
			*e = own;
		return audit == -ENOENT ? 0 : audit;
	}
	live = openat(audit, PLACE_LIVE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	list = live < 0 ? NULL : fdopendir(live);
	if (!list) {
		own_close_fd(&live);
		return 0;
	}
	for (struct dirent *entry = readdir(list); entry && looked < most; entry = readdir(list)) {
		int r;

		if (entry->d_name[0] == '.')
			continue;
		/* against writers that have made their file and not locked it yet */
		if (looked++ == 0 && place_lock(audit) < 0)
			return 0;
		r = recover_one(audit, live, entry->d_name, e);
		finished += r > 0;
		failure = r < 0 ? r : failure;
	}
	return failure ? failure : finished;
}

bool journal_seal_due(int audit_fd)
{
	struct stat sealed = { 0 }, index;
	struct timespec now;

	if (fstatat(audit_fd, PLACE_INDEX, &index, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (fstatat(audit_fd, PLACE_SEALED, &sealed, AT_SYMLINK_NOFOLLOW) < 0)
		return index.st_size > SEAL_BYTES;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - sealed.st_mtim.tv_sec > SEAL_SECONDS;
}

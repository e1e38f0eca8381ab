/*
 * Records of sinks. In: a run and its sinks. Out: STATE/audit/sinks/RUN.N, for each sink that has
 * something to deliver: in 20 digits the number of the last event that is delivered, then the sink
 * as the policy had it. Who delivers holds the file's lock; when all is delivered the file goes. So
 * what was left by a collector that was away, or by a kill, is found by the next run and by `ward
 * audit send`. Run by ward-audit.
 */
#include "audit/sink_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit/lines.h"
#include "base/io.h"
#include "state/store.h"

static void path_of(char ret[PLACE_NAME], const char *name)
{
	snprintf(ret, PLACE_NAME, SINK_DIR "/%.60s", name);
}

/* 20 digits, a newline, the sink. */
static bool read_record(int fd, uint64_t *ret_seq, char **ret_line)
{
	auto_buf text = { 0 };
	uint64_t seq = 0;
	char *end;

	if (lseek(fd, 0, SEEK_SET) < 0 || io_read_all(fd, SINK_LINE_MAX, &text) < 0 ||
	    text.len < 22 || text.data[20] != '\n')
		return false;
	for (int i = 0; i < 20; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' ||
		    __builtin_mul_overflow(seq, 10U, &seq) ||
		    __builtin_add_overflow(seq, (unsigned)(text.data[i] - '0'), &seq))
			return false;
	}
	end = strchr(text.data + 21, '\n');
	if (!end)
		return false;
	*ret_line = strndup(text.data + 21, (size_t)(end - text.data) - 21);
	*ret_seq = seq;
	return *ret_line != NULL;
}

static int write_record(int fd, const char *line, uint64_t seq)
{
	auto_buf text = { 0 };

	buf_printf(&text, "%020" PRIu64 "\n%s\n", seq, line);
	if (text.failed || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -ENOMEM;
	return io_write_all(fd, text.data, text.len);
}

int sink_state_open(int audit_fd, const char *name, const char *line, uint64_t from, int *ret_fd,
		    uint64_t *ret_seq, char **ret_line, struct ward_err *e)
{
	auto_fd dir = line ? store_open_dir(audit_fd, SINK_DIR, e) : -1, fd = -1;
	auto_free char *kept = NULL;
	char path[PLACE_NAME];
	struct stat st;
	int r = 0;

	if (line && dir < 0)
		return dir;
	path_of(path, name);
	fd = openat(audit_fd, path,
		    O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (line ? O_CREAT : 0), 0600);
	if (fd < 0)
		return ward_fail_errno(e, "cannot save the state of a sink");
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return ward_fail(e, EWOULDBLOCK, "another process is delivering %s", name);
	*ret_seq = from;
	if (!read_record(fd, ret_seq, &kept) || (line && strcmp(kept, line) != 0)) {
		if (!line)
			return ward_fail(e, EBADMSG, "cannot read the state " SINK_DIR "/%s", name);
		*ret_seq = from;
		r = write_record(fd, line, from);
	}
	if (r < 0)
		return ward_fail(e, -r, "cannot save the state of a sink: %s", strerror(-r));
	if (ret_line)
		*ret_line = take_ptr(kept);
	*ret_fd = take_fd(&fd);
	return 0;
}

void sink_state_remove(int audit_fd, const char *name)
{
	char path[PLACE_NAME];

	path_of(path, name);
	unlinkat(audit_fd, path, 0);
}

bool sink_state_run(const char *name, char ret[48])
{
	size_t n = strcspn(name, "."), digits = name[n] ? strspn(name + n + 1, "0123456789") : 0;

	if (!n || n >= 48 || !digits || name[n + 1 + digits])
		return false;
	memcpy(ret, name, n);
	ret[n] = '\0';
	return place_is_id(ret);
}

void sink_state_list(int audit_fd, struct strv *ret)
{
	int fd = openat(audit_fd, SINK_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);
	char run[48];

	if (!list) {
		own_close_fd(&fd);
		return;
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
		if (sink_state_run(entry->d_name, run))
			strv_add(ret, entry->d_name);
	strv_sort(ret);
}

enum sink_record sink_state_journal(int audit_fd, const char *run)
{
	char complete[PLACE_NAME], live[PLACE_NAME];
	struct stat st;

	place_name(complete, PLACE_RUNS, run, -1);
	place_name(live, PLACE_LIVE, run, -1);
	/* it is renamed when it is complete: perhaps just now */
	for (int tries = 0; tries < 3; tries++) {
		if (fstatat(audit_fd, complete, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return RECORD_COMPLETE;
		if (fstatat(audit_fd, live, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return RECORD_LIVE;
	}
	return RECORD_GONE;
}

uint64_t sink_state_left(int audit_fd, const char *run, uint64_t seq)
{
	auto_strv files = { 0 };
	struct place_end end = { 0 };
	bool live;

	lines_files(audit_fd, run, &files, &live);
	if (files.len) {
		auto_fd fd = openat(audit_fd, files.items[files.len - 1],
				    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0 || place_read_end(fd, &end) < 0)
			return 0;
	}
	return end.chain.seq > seq ? end.chain.seq - seq : 0;
}

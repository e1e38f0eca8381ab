/*
 * Which files have really changed, and telling it. In: what provenance.c has learned. Out:
 * file.change, one for each file and process: path, what was done, pid, program and words as
 * observed, when, and the hosts that it may have read from. A call that was seen may have failed: a
 * file is reported when its change time is not older than the look, or when it is gone. Runs in the
 * supervisor, once a second and at the end.
 */
#include "observe/provenance_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "alarm/entropy.h"
#include "base/io.h"
#include "base/path.h"
#include "event/event.h"

#define TELL_MS 1000
#define TELL_FILES 1024 /* looked at in one go */
#define SLACK_US 50000  /* the clock of files is coarser than ours */
#define ALL_OTHERS "(and others)"

/* What became of the file: 1 it is there and was changed, 0 it is as it was, -1 it is gone. */
static int look(const struct provenance *v, const struct file *f, uint64_t seen_us)
{
	const char *workspace = v->plan->workspace;
	bool under_review = v->upper_fd >= 0 && path_is_beneath(f->path, workspace);
	struct stat st;
	int r;

	if (under_review)
		r = f->path[strlen(workspace)]
			    ? fstatat(v->upper_fd, f->path + strlen(workspace) + 1, &st,
				      AT_SYMLINK_NOFOLLOW)
			    : -1;
	else
		r = fstatat(AT_FDCWD, f->path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
	if (r < 0)
		return under_review && fstatat(AT_FDCWD, f->path, &st, AT_SYMLINK_NOFOLLOW) == 0
			       ? 0
			       : -1;
	if (under_review && S_ISCHR(st.st_mode) && st.st_rdev == 0)
		return -1; /* a whiteout */
	return (uint64_t)st.st_ctim.tv_sec * 1000000 + (uint64_t)st.st_ctim.tv_nsec / 1000 +
		       SLACK_US >=
	       seen_us;
}

bool provenance_is_missing(const struct provenance *v, const char *path)
{
	const char *workspace = v->plan->workspace;
	struct stat st;

	if (v->upper_fd >= 0 && path_is_beneath(path, workspace) && path[strlen(workspace)]) {
		if (fstatat(v->upper_fd, path + strlen(workspace) + 1, &st, AT_SYMLINK_NOFOLLOW) ==
		    0)
			return S_ISCHR(st.st_mode) && st.st_rdev == 0; /* a whiteout */
		if (errno == ENOTDIR)
			return true;
	}
	return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 &&
	       (errno == ENOENT || errno == ENOTDIR);
}

static const char *change_name(const struct writer *w, bool gone)
{
	if (gone)
		return "delete";
	switch ((enum observe_act)w->change) {
	case ACT_CREATE:
	case ACT_LINK:
		return "create";
	case ACT_RENAME:
		return "rename";
	case ACT_MODE:
		return "mode";
	case ACT_EXEC:
	case ACT_OPEN:
	case ACT_WRITE:
	case ACT_DELETE:
	case ACT_CONNECT:
	case ACT_LISTEN:
	case ACT_LOOK:
		break;
	}
	return "update";
}

static void put_hosts(const struct provenance *v, uint64_t hosts, struct buf *out)
{
	for (unsigned i = 0; v->follows_hosts && i < v->host_count; i++)
		if (hosts >> i & 1)
			buf_add(out, v->hosts[i], strlen(v->hosts[i]) + 1);
	if (v->follows_hosts && hosts & OTHER_HOSTS)
		buf_add(out, ALL_OTHERS, sizeof(ALL_OTHERS));
}

/* Opens what the sandbox wrote, to read it: a regular file beneath a writable tree of the host's or
 * the layer of a review, through no link. -1: it is none, or is elsewhere. */
static int open_written(const struct provenance *v, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	const char *top = NULL;
	auto_fd dir = -1, fd = -1;
	struct stat st;

	for (size_t i = 0; i < v->plan->live->root_count && !top; i++)
		if (path_is_beneath(path, v->plan->live->roots[i].path))
			top = v->plan->live->roots[i].path;
	if (!top || !path[strlen(top)])
		return -1;
	dir = v->upper_fd >= 0 && strcmp(top, v->plan->workspace) == 0
		      ? fcntl(v->upper_fd, F_DUPFD_CLOEXEC, 0)
		      : open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path + strlen(top) + 1, &how, sizeof(how));
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? take_fd(&fd) : -1;
}

/* How random the file looks at its beginning; 0: that is not wanted, or not known. */
static unsigned look_random(const struct provenance *v, const char *path)
{
	uint8_t bytes[ENTROPY_MOST];
	auto_fd fd = -1;
	ssize_t n;

	if (!v->wants_entropy)
		return 0;
	fd = open_written(v, path);
	n = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), 0);
	return n > 0 ? entropy_of(bytes, (size_t)n) : 0;
}

static void tell(const struct provenance *v, const struct file *f, const struct writer *w,
		 bool gone, struct result *r)
{
	unsigned entropy = gone || w->change == ACT_MODE ? 0 : look_random(v, f->path);
	const struct process *p = &v->processes[w->process];
	struct ward_event e = event_make(EVENT_FILE_CHANGE, ACTION_LOG, f->path);
	char seen[EVENT_TIME_TEXT];
	auto_buf hosts = { 0 };

	event_time_text(w->seen_us, seen);
	put_hosts(v, p->hosts, &hosts);
	if (p->inner > 0)
		event_number(&e, FIELD_PID, (uint64_t)p->inner);
	if (p->parent_inner > 0)
		event_number(&e, FIELD_PPID, (uint64_t)p->parent_inner);
	event_text(&e, FIELD_EXE, p->exe);
	event_flag(&e, FIELD_OBSERVED);
	if (p->words_len)
		event_list(&e, FIELD_ARGV, p->words, p->words_len);
	event_text(&e, FIELD_CHANGE, change_name(w, gone));
	if (hosts.len)
		event_list(&e, FIELD_HOSTS, hosts.data, hosts.len);
	event_text(&e, FIELD_SEEN, seen);
	if (entropy)
		event_number(&e, FIELD_ENTROPY, entropy);
	event_emit(r->events, &e);
}

static void tell_file(struct provenance *v, struct file *f, bool end, struct result *r)
{
	bool deleted = f->writers[f->writer_count - 1].change == ACT_DELETE;
	int state = look(v, f, f->writers[f->writer_count - 1].seen_us);

	f->pending = false;
	if (state < 0 && !deleted) {
		f->pending = true; /* a name for a moment, or one that is yet to come */
		return;
	}
	if (state == 0 || (state > 0 && deleted)) {
		f->pending = true; /* it failed, or has not happened yet */
		return;
	}
	for (uint8_t i = 0; i < f->writer_count; i++) {
		struct writer *w = &f->writers[i];

		if (state < 0 && w->change != ACT_DELETE)
			continue;
		if (w->reported && (w->reported_hosts == v->processes[w->process].hosts || !end))
			continue;
		tell(v, f, w, state < 0, r);
		w->reported = true;
		w->reported_hosts = v->processes[w->process].hosts;
	}
	f->pending = !end; /* what it has read by the end may be more */
}

/* Tells about the files from the one where it stopped; false: there are more. */
static bool tell_files(struct provenance *v, struct result *r, bool end)
{
	unsigned looked = 0;

	for (; v->tell_at < v->file_count; v->tell_at++) {
		struct file *f = &v->files[v->tell_at];
		bool fresh = false;

		for (uint8_t k = 0; k < f->writer_count; k++)
			fresh |= !f->writers[k].reported;
		if (!f->pending || (!fresh && !end))
			continue;
		if (!end && looked++ == TELL_FILES)
			return false;
		tell_file(v, f, end, r);
	}
	return true;
}

/* Changes that are known by their number only. */
static void tell_uncounted(struct provenance *v, struct result *r)
{
	for (unsigned deleted = 0; deleted < 2; deleted++) {
		struct ward_event e = event_make(EVENT_FILE_CHANGE, ACTION_LOG,
						 "more of them, too many to follow");

		if (!v->uncounted[deleted])
			continue;
		event_flag(&e, FIELD_OBSERVED);
		event_text(&e, FIELD_CHANGE, deleted ? "delete" : "update");
		event_number(&e, FIELD_COUNT, v->uncounted[deleted]);
		event_emit(r->events, &e);
		v->uncounted[deleted] = 0;
	}
}

void provenance_tell(struct provenance *v, struct result *r, bool end)
{
	uint64_t now = io_now_ms();

	if (!v || (!end && now - v->reported_ms < TELL_MS))
		return;
	if (end || !v->tell_at)
		provenance_spread(v);
	if (end)
		v->tell_at = 0;
	provenance_tell_reads(v, r, true);
	if (!tell_files(v, r, end))
		return;
	tell_uncounted(v, r);
	v->tell_at = 0;
	v->reported_ms = now;
	if (end && v->lost) {
		struct ward_event e = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "files");

		event_text(&e, FIELD_WHY, "more files or processes than ward tracks");
		event_number(&e, FIELD_LOST, v->lost);
		event_emit(r->events, &e);
	}
}

/*
 * Files outside of the view that a person is asked about. In: opens that wait at the seccomp
 * listener, seen by observe.c, which copied the path once from the caller's memory; answers. Out:
 * questions; a descriptor for the caller, or an error. Everything is decided on the copy: what the
 * caller writes into its memory meanwhile is never read again, and the kernel does not go on with
 * the call. Runs in the supervisor with the user's rights.
 *
 *   - the path is resolved by the supervisor beneath the directory of the policy (openat2: no
 *     links), to a regular file and nothing else: O_PATH, so that no device, pipe or lease makes
 *     anything wait. This descriptor is held until the answer: what was shown is what is given,
 *     whatever is renamed there meanwhile;
 *   - the caller gets a copy in a sealed memory file. The host's own file would have a way back:
 *     its owner may change its mode, or open it for writing through /proc/self/fd, and a directory
 *     would lead out of the sandbox. Copies of one file are shared; there is a limit for one and
 *     for all;
 *   - opens for writing, of directories and with O_PATH are not asked about.
 */
#include "observe/file_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "event/result.h"
#include "plan/path_view.h"
#include "rules/never.h"

#define WAITING_MAX 64
#define COPIES_MAX 256
#define COPIES_BYTES_MAX (256u * 1024 * 1024) /* of all files of a run */
#define LOOK_MS 250

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

struct waiting {
	uint64_t id; /* of the notification */
	int flags;   /* of the open */
	int path_fd;
	struct file_asked asked;
};

struct copy {
	uint8_t exact[32];
	int fd;
};

struct file_ask {
	const struct plan *plan;
	int listener_fd;
	file_ask_fn *fn;
	void *context;
	uint64_t serial, look_ms;
	struct waiting *waiting[WAITING_MAX]; /* owned */
	size_t count;
	struct copy copies[COPIES_MAX];
	size_t copy_count;
	uint64_t copied;
};

struct file_ask *file_ask_create(const struct plan *p, int listener_fd, bool *ret_failed)
{
	bool asks = p->asks.len && p->spec->policy.appr_mode == APPROVALS_ASK;
	struct file_ask *f = asks ? calloc(1, sizeof(*f)) : NULL;

	*ret_failed = asks && !f;
	if (!f)
		return NULL;
	f->plan = p;
	f->listener_fd = listener_fd;
	return f;
}

void file_ask_on(struct file_ask *f, file_ask_fn *asked, void *context)
{
	if (!f)
		return;
	f->fn = asked;
	f->context = context;
}

static void drop(struct file_ask *f, size_t at)
{
	struct waiting *w = f->waiting[at];

	memmove(&f->waiting[at], &f->waiting[at + 1], (f->count - at - 1) * sizeof(f->waiting[0]));
	f->count--;
	close(w->path_fd);
	free(w);
}

void file_ask_destroy(struct file_ask *f)
{
	if (!f)
		return;
	while (f->count) {
		if (f->fn)
			(void)!f->fn(f->context, false, &f->waiting[0]->asked);
		drop(f, 0);
	}
	for (size_t i = 0; i < f->copy_count; i++)
		close(f->copies[i].fd);
	free(f);
}

/* -- which file */

/* What of path lies beneath an entry of the policy; "": the entry itself. NULL: it does not. */
static const char *within(const char *path, const char *entry)
{
	size_t n = strlen(entry);

	if (strncmp(path, entry, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path + n + (path[n] == '/');
}

static int open_beneath(const char *entry, const char *rest)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	auto_fd top = (int)syscall(SYS_openat2, AT_FDCWD, entry, &how, sizeof(how));
	int fd;

	if (top < 0 || !*rest)
		return top < 0 ? -errno : take_fd(&top);
	how.resolve |= RESOLVE_BENEATH;
	fd = (int)syscall(SYS_openat2, top, rest, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* The host's file that the sandbox means, if the policy asks about it. -ENOENT: it does not. */
static int find(const struct file_ask *f, const char *path)
{
	const struct path_view view = path_view_of(f->plan);

	for (size_t i = 0; i < f->plan->asks.len; i++) {
		const char *real = f->plan->asks_real.items[i],
			   *rest = within(path, f->plan->asks.items[i]);

		rest = rest ? rest : within(path, real);
		if (rest)
			return path_view_is_elsewhere(&view, path) ? open_beneath(real, rest)
								   : -ENOENT;
	}
	return -ENOENT;
}

static void digest(const char *path, const struct stat *st, struct file_asked *ret)
{
	struct sha256 sum;

	sha256_begin(&sum);
	sha256_add(&sum, path, strlen(path));
	sha256_end(&sum, ret->like);
	sha256_begin(&sum);
	sha256_add(&sum, ret->like, sizeof(ret->like));
	sha256_add(&sum, &st->st_dev, sizeof(st->st_dev));
	sha256_add(&sum, &st->st_ino, sizeof(st->st_ino));
	sha256_add(&sum, &st->st_size, sizeof(st->st_size));
	sha256_add(&sum, &st->st_mtim, sizeof(st->st_mtim));
	sha256_add(&sum, &st->st_ctim, sizeof(st->st_ctim));
	sha256_end(&sum, ret->exact);
}

/* Where the descriptor leads, and what is there. 0 or the caller's error. */
static int describe(int path_fd, pid_t pid, struct file_asked *ret)
{
	char link[48];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	n = readlink(link, ret->path, sizeof(ret->path) - 1);
	if (n <= 0 || fstat(path_fd, &st) < 0)
		return EACCES;
	ret->path[n] = '\0';
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, ret->exe, sizeof(ret->exe) - 1);
	ret->exe[n > 0 ? n : 0] = '\0';
	ret->bytes = (uint64_t)st.st_size;
	digest(ret->path, &st, ret);
	return S_ISREG(st.st_mode) ? 0 : EACCES;
}

static void deny(const char *path, const char *why, const char *remedy, struct result *r)
{
	auto_buf what = { 0 };

	buf_printf(&what, "read %s", path);
	if (!what.failed)
		result_deny(r, buf_text(&what), why, remedy);
}

/* Asked before there is a question, and again before a file is given. */
static bool is_never(const struct file_ask *f, const struct file_asked *asked)
{
	return never_path(&f->plan->spec->policy.appr_never, asked->path);
}

/* Asks. 0: it waits. */
static int ask(struct file_ask *f, struct waiting *w, struct result *r)
{
	int said;

	if (is_never(f, &w->asked)) {
		deny(w->asked.path, "approvals.never names it: no answer can allow it", "", r);
		return EACCES;
	}
	if (w->asked.bytes > FILE_ASK_BYTES_MAX) {
		deny(w->asked.path, "the file is larger than what filesystem.ask can give (64 MiB)",
		     "filesystem.host_mounts with this path", r);
		return EFBIG;
	}
	w->asked.serial = ++f->serial;
	f->waiting[f->count++] = w; /* an earlier answer may cover it at once */
	said = f->fn(f->context, true, &w->asked);
	if (said == 0) {
		f->look_ms = f->look_ms ? f->look_ms : io_now_ms() + LOOK_MS;
		return 0;
	}
	f->count--;
	deny(w->asked.path, "too many questions wait for an answer already", "", r);
	return EACCES;
}

bool file_ask_take(struct file_ask *f, const struct seccomp_notif *q, const struct observation *o,
		   struct result *r, int *ret_error)
{
	int flags = (int)q->data.args[q->data.nr == SYS_open ? 1 : 2];
	struct waiting *w;
	int fd;

	if (!f->fn || o->act != ACT_OPEN || o->writes || flags & (O_PATH | O_DIRECTORY))
		return false;
	fd = find(f, o->path);
	if (fd < 0)
		return false;
	w = f->count < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		close(fd);
		*ret_error = EAGAIN;
		return true;
	}
	*w = (struct waiting){ .id = q->id, .flags = flags, .path_fd = fd };
	*ret_error = describe(fd, o->pid, &w->asked);
	if (*ret_error == 0)
		*ret_error = ask(f, w, r);
	if (*ret_error) {
		close(w->path_fd);
		free(w);
	}
	return true;
}

/* -- answers */

/* All of the file, in memory that nobody can change. The caller's. */
static int copy_file(int path_fd, uint64_t bytes)
{
	char link[48];
	auto_fd from = -1, to = -1;
	uint64_t done = 0;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	from = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	to = memfd_create("ward-asked", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (to < 0) /* before Linux 6.3 */
		to = memfd_create("ward-asked", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (from < 0 || to < 0)
		return -errno;
	while (done < bytes) {
		ssize_t n = sendfile(to, from, NULL, bytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* it has become shorter */
		done += (uint64_t)n;
	}
	if (fchmod(to, 0444) < 0 ||
	    fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(&to);
}

/* Borrowed: the copy of that file, made once. */
static int copy_of(struct file_ask *f, const struct waiting *w)
{
	int fd;

	for (size_t i = 0; i < f->copy_count; i++)
		if (memcmp(f->copies[i].exact, w->asked.exact, sizeof(w->asked.exact)) == 0)
			return f->copies[i].fd;
	if (f->copy_count == COPIES_MAX || f->copied + w->asked.bytes > COPIES_BYTES_MAX)
		return -ENOSPC;
	fd = copy_file(w->path_fd, w->asked.bytes);
	if (fd < 0)
		return fd;
	memcpy(f->copies[f->copy_count].exact, w->asked.exact, sizeof(w->asked.exact));
	f->copies[f->copy_count++].fd = fd;
	f->copied += w->asked.bytes;
	return fd;
}

/* The caller goes on with a descriptor of its own. */
static void give(const struct file_ask *f, const struct waiting *w, int copy_fd)
{
	struct seccomp_notif_addfd add = { .id = w->id, .flags = SECCOMP_ADDFD_FLAG_SEND };
	struct seccomp_notif_resp no = { .id = w->id, .error = -EIO };
	char link[48];
	auto_fd own = -1;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", copy_fd);
	own = open(link, O_RDONLY | O_CLOEXEC); /* with a position of its own */
	add.srcfd = (uint32_t)own;
	add.newfd_flags = w->flags & O_CLOEXEC;
	/* ENOENT: the caller is gone */
	if (own < 0 ||
	    (ioctl(f->listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 && errno != ENOENT))
		(void)ioctl(f->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &no);
}

static void refuse(const struct file_ask *f, const struct waiting *w)
{
	struct seccomp_notif_resp no = { .id = w->id, .error = -EACCES };

	(void)ioctl(f->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &no);
}

static bool is_meant(const struct waiting *w, const uint8_t exact[32], uint64_t serial)
{
	return w->asked.serial <= serial && memcmp(w->asked.exact, exact, 32) == 0;
}

int file_ask_answer(struct file_ask *f, const uint8_t exact[32], uint64_t serial, bool yes,
		    struct ward_err *e)
{
	int copy = -1;

	for (size_t i = 0; f && yes && copy < 0 && i < f->count; i++) {
		if (!is_meant(f->waiting[i], exact, serial))
			continue;
		if (is_never(f, &f->waiting[i]->asked))
			return ward_fail(e, EPERM, "approvals.never names %s",
					 f->waiting[i]->asked.path);
		copy = copy_of(f, f->waiting[i]);
		if (copy == -ENOSPC) {
			ward_fail(e, ENOSPC, "the files that were given are larger than %u MiB",
				  COPIES_BYTES_MAX >> 20);
			return ward_remedy(e, "answer with --deny, and mount the path with "
					      "filesystem.host_mounts");
		}
		if (copy < 0)
			return ward_fail(e, -copy, "%s: %s", f->waiting[i]->asked.path,
					 strerror(-copy));
	}
	for (size_t i = 0; f && i < f->count;) {
		if (!is_meant(f->waiting[i], exact, serial)) {
			i++;
			continue;
		}
		if (yes && copy >= 0)
			give(f, f->waiting[i], copy);
		else
			refuse(f, f->waiting[i]);
		drop(f, i);
	}
	return 0;
}

uint64_t file_ask_due_ms(const struct file_ask *f)
{
	return f && f->count ? f->look_ms : 0;
}

void file_ask_on_time(struct file_ask *f, uint64_t now_ms)
{
	if (!f || !f->count || now_ms < f->look_ms)
		return;
	f->look_ms = now_ms + LOOK_MS;
	for (size_t i = 0; i < f->count;) {
		struct file_asked gone = f->waiting[i]->asked;

		if (ioctl(f->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &f->waiting[i]->id) == 0) {
			i++;
			continue;
		}
		drop(f, i);
		(void)!f->fn(f->context, false, &gone);
	}
	if (!f->count)
		f->look_ms = 0;
}

/*
 * Runs in the foreground with a control socket. In: the runtime directory. Out:
 * RUNTIME/runs/ID with a socket and what ward ps shows, for as long as the run lives; nothing of
 * it is in the state directory, and nothing stays. A run that answers is alive: a socket without a
 * listener was left by a killed ward, and is removed by the next process that looks. The directory
 * belongs to the user alone (runtime.c), and the socket checks its peer (serve.c).
 */
#include "state/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/io.h"
#include "state/boxes_internal.h"
#include "state/runtime.h"
#include "state/store_internal.h"

#define RUNS_DIR "runs"
#define INFO_MAX 65536
#define MAKING_S 2 /* a run makes its socket in less */

int runs_open(struct ward_err *e)
{
	auto_fd runtime = runtime_open(e);

	return runtime < 0 ? runtime : store_open_dir(runtime, RUNS_DIR, e);
}

/* What ward ps shows of it; without it only the id is known. */
static void write_info(const struct plan *p, int dir_fd)
{
	auto_fd fd =
		openat(dir_fd, "info", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	auto_buf text = { 0 };

	boxes_write_info(p, NULL, &text);
	if (fd >= 0 && (text.failed || io_write_all(fd, text.data, text.len) < 0))
		unlinkat(dir_fd, "info", 0);
}

static void read_info(int runs_fd, const char *id, struct box_info *i)
{
	struct box_info read = { 0 };
	auto_buf text = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "%.23s/info", id);
	if (io_read_file(runs_fd, path, INFO_MAX, &text) == 0 &&
	    boxes_parse(buf_text(&text), text.len, &read) == 0)
		*i = read;
	i->state = BOX_RUNNING;
	i->alive = i->foreground = true;
	snprintf(i->id, sizeof(i->id), "%.23s", id);
}

int runs_enter(const struct plan *p, struct box_entry *ret_entry, struct ward_err *e)
{
	struct box_entry entry = NO_BOX_ENTRY;
	auto_fd runs = runs_open(e);
	int r = runs < 0 ? runs : boxes_check_unseen(runs, p, e);

	if (r < 0)
		return r;
	snprintf(entry.id, sizeof(entry.id), "%s", p->spec->run_id);
	entry.run_fd = store_open_dir(runs, entry.id, e);
	if (entry.run_fd < 0)
		return entry.run_fd;
	write_info(p, entry.run_fd);
	*ret_entry = entry;
	return 0;
}

int runs_enter_asker(const char *id, struct box_entry *ret_entry, struct ward_err *e)
{
	struct box_entry entry = NO_BOX_ENTRY;
	auto_fd runs = runs_open(e);

	if (runs < 0)
		return runs;
	snprintf(entry.id, sizeof(entry.id), "%s", id);
	entry.run_fd = store_open_dir(runs, entry.id, e);
	if (entry.run_fd < 0)
		return entry.run_fd;
	*ret_entry = entry;
	return 0;
}

static void drop(int runs_fd, const char *id)
{
	char path[64];

	snprintf(path, sizeof(path), "%.23s/control", id);
	unlinkat(runs_fd, path, 0);
	snprintf(path, sizeof(path), "%.23s/info", id);
	unlinkat(runs_fd, path, 0);
	snprintf(path, sizeof(path), "%.23s/control.new", id);
	unlinkat(runs_fd, path, 0);
	unlinkat(runs_fd, id, AT_REMOVEDIR);
}

void runs_forget(const char *id)
{
	struct ward_err ignored = { 0 };
	auto_fd runs = runs_open(&ignored);

	if (runs >= 0)
		drop(runs, id);
}

void runs_leave(struct box_entry *entry)
{
	struct ward_err ignored = { 0 };
	auto_fd runs = entry->run_fd >= 0 ? runs_open(&ignored) : -1;

	if (runs >= 0)
		drop(runs, entry->id);
	box_entry_close(entry);
}

/* 1: a process listens; 0: none any more; -1: that is unknown now. */
static int is_alive(int runs_fd, const char *id)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.23s/control",
		 runs_fd, id);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN)
		return 1;
	if (errno == ENOENT) /* killed before it had one, or just about to */
		return fstatat(runs_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
				       st.st_ctim.tv_sec + MAKING_S > time(NULL)
			       ? -1
			       : 0;
	return errno == ECONNREFUSED ? 0 : -1;
}

int runs_list(struct boxes *ret_runs, struct ward_err *e)
{
	auto_fd runtime = runtime_open(e);
	int fd = runtime < 0 ? runtime
			     : openat(runtime, RUNS_DIR,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
	    r = 0;
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);
	struct boxes v = { 0 };
	size_t cap = 0;

	if (runtime < 0)
		return runtime;
	if (fd < 0 && errno == ENOENT) { /* a reader creates nothing */
		*ret_runs = v;
		return 0;
	}
	if (fd < 0)
		return ward_fail_errno(e, "cannot list the runs");
	if (!list) {
		close(fd);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry && r == 0; entry = readdir(list)) {
		struct box_info i = { 0 };
		int alive;

		if (!boxes_is_id(entry->d_name))
			continue;
		alive = is_alive(dirfd(list), entry->d_name);
		if (alive == 0)
			drop(dirfd(list), entry->d_name);
		if (alive != 1)
			continue;
		read_info(dirfd(list), entry->d_name, &i);
		r = boxes_add(&v, &cap, &i);
		if (r < 0)
			box_info_clear(&i);
	}
	if (r < 0) {
		boxes_clear(&v);
		return ward_fail(e, -r, "cannot list the runs: %s", strerror(-r));
	}
	*ret_runs = v;
	return 0;
}

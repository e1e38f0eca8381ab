/*
 * The register of detached sandboxes. In: the state and the runtime directory. Out: entries.
 *
 *	STATE/boxes/ID/info		what there is to know, as text; locked as long as ward-box
 *					lives
 *	STATE/boxes/ID/log.0 log.1	what the command wrote (log.h)
 *	STATE/boxes/ID/result.json	the report, once it has ended
 *	RUNTIME/boxes/ID/control	the socket (serve.c)
 *
 * ward-box makes the entry under another name, locks it and only then gives it its own: the process
 * that finds an entry without a lock finds one whose ward-box is dead. The state is one byte at a
 * fixed place, so it can change without a new file. A listing opens, tries the lock and reads one
 * small file a sandbox, and asks no daemon. All of it belongs to the user alone.
 */
#include "state/boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "guard/guard_internal.h"
#include "model/plan.h"
#include "state/boxes_internal.h"
#include "state/runtime.h"
#include "state/store_internal.h"

#define COMMAND_KEPT 2048   /* bytes of the command line */
#define WRITABLE_KEPT 16384 /* bytes of what tells the directories that can be written */
#define PROTECT_KEPT 32768  /* bytes of the policy's own protected names */

int boxes_open_state(struct ward_err *e)
{
	auto_fd state = store_open(e);

	return state < 0 ? state : store_open_dir(state, BOXES_DIR, e);
}

int boxes_open_runtime(struct ward_err *e)
{
	auto_fd runtime = runtime_open(e);

	return runtime < 0 ? runtime : store_open_dir(runtime, BOXES_DIR, e);
}

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void put_line(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, "%s ", key);
	guard_escape(b, value);
	buf_puts(b, "\n");
}

/* What ward cp must know: links in there may be the sandbox's. */
static void put_writable(const struct plan *p, struct buf *text)
{
	auto_buf lines = { 0 };

	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && p->mounts[i].from_policy &&
		    p->mounts[i].writable && strcmp(p->mounts[i].source, p->workspace) != 0)
			put_line(&lines, "writable", p->mounts[i].source);
	if (lines.failed || lines.len > WRITABLE_KEPT)
		buf_puts(text, "writable /\n"); /* too many to tell: it could be anywhere */
	else
		buf_add(text, lines.len ? lines.data : "", lines.len);
}

/* The gate of ward cp holds the policy's own protected names, too. */
static void put_protect(const struct plan *p, struct buf *text)
{
	const struct strv *rules = &p->spec->policy.fs_protect;
	auto_buf lines = { 0 };

	for (size_t i = 0; i < rules->len; i++)
		put_line(&lines, "protect", rules->items[i]);
	if (lines.failed || lines.len > PROTECT_KEPT)
		buf_puts(text, "protect *\n"); /* too many to tell: it could be anything */
	else
		buf_add(text, lines.len ? lines.data : "", lines.len);
}

void boxes_write_info(const struct plan *p, const char *name, struct buf *text)
{
	size_t room = COMMAND_KEPT;

	buf_printf(text, BOXES_HEADER "%c\n", BOX_RUNNING);
	buf_printf(text, "pid %d %" PRIu64 "\n", getpid(), store_process_start(getpid()));
	buf_printf(text, "started %" PRIu64 "\n", wall_ms());
	if (name)
		put_line(text, "name", name);
	if (p->spec->parent)
		put_line(text, "parent", p->spec->parent);
	put_line(text, "workspace", p->workspace);
	put_writable(p, text);
	put_protect(p, text);
	for (char *const *word = p->argv; word && *word; word++) {
		size_t n = strlen(*word);

		if (n >= room) {
			put_line(text, "word", "...");
			break;
		}
		room -= n;
		put_line(text, "word", *word);
	}
}

/* Who could see the sockets of other sandboxes could try to drive them. */
int boxes_check_unseen(int runtime_fd, const struct plan *p, struct ward_err *e)
{
	char link[32], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", runtime_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return ward_fail_errno(e, "cannot determine the runtime directory");
	path[n] = '\0';
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && p->mounts[i].from_policy &&
		    path_is_beneath(path, p->mounts[i].source)) {
			ward_fail(
				e, EINVAL,
				"ward's runtime directory %s is in %s, which the sandbox would see",
				path, p->mounts[i].source);
			return ward_remedy(e, "use a smaller workspace, or set WARD_RUNTIME_DIR to "
					      "a directory elsewhere");
		}
	return 0;
}

/* Whether a living one has the name already. Under the register's lock. */
static int check_name(const char *name, struct ward_err *e)
{
	struct boxes all;
	int r = boxes_list(&all, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.len && r == 0; i++)
		if (all.items[i].alive && strcmp(all.items[i].name, name) == 0) {
			ward_fail(e, EEXIST, "there is already a sandbox named %s: %s", name,
				  all.items[i].id);
			r = ward_remedy(e, "choose another name, or stop that one: ward stop %s",
					name);
		}
	boxes_clear(&all);
	return r;
}

static int make_info(const struct plan *p, const char *name, struct box_entry *entry,
		     struct ward_err *e)
{
	auto_buf text = { 0 };
	int r;

	entry->info_fd = openat(entry->dir_fd, "info.new",
				O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (entry->info_fd < 0 || flock(entry->info_fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail_errno(e, "cannot make the sandbox's entry");
	boxes_write_info(p, name, &text);
	r = text.failed ? -ENOMEM : io_write_all(entry->info_fd, text.data, text.len);
	if (r == 0 && renameat(entry->dir_fd, "info.new", entry->dir_fd, "info") < 0)
		r = -errno;
	if (r == 0)
		return 0;
	ward_fail(e, -r, "cannot write the sandbox's entry: %s", strerror(-r));
	return ward_remedy(
		e, "free some space in the state directory, or set WARD_STATE_DIR to another one");
}

/* A run that is continued has the id of the one before, whose entry goes. */
static int clear_old(const char *id, struct ward_err *e)
{
	struct ward_err none = { 0 };
	struct box_info old = { 0 };
	int r = 0;

	if (boxes_look(id, &old, &none) < 0)
		return 0;
	if (old.alive) {
		ward_fail(e, EBUSY, "the run %s is still going: it is a detached sandbox", id);
		r = ward_remedy(e, "ward stop %s", id);
	} else {
		r = boxes_remove(id, e);
	}
	box_info_clear(&old);
	return r;
}

static int enter(const struct plan *p, const char *name, int state_fd, struct box_entry *entry,
		 struct ward_err *e)
{
	auto_fd lock = -1;
	int r;

	if (name) {
		lock = openat(state_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (lock < 0 || flock(lock, LOCK_EX) < 0)
			return ward_fail_errno(e, "cannot lock the register of sandboxes");
		r = check_name(name, e);
		if (r < 0)
			return r;
	}
	entry->dir_fd = store_open_dir(state_fd, p->spec->run_id, e);
	return entry->dir_fd < 0 ? entry->dir_fd : make_info(p, name, entry, e);
}

int boxes_enter(const struct plan *p, const char *name, struct box_entry *ret_entry,
		struct ward_err *e)
{
	auto_fd runtime = -1, state = -1;
	struct box_entry entry = NO_BOX_ENTRY;
	int r;

	if (name && !boxes_is_name(name)) {
		ward_fail(e, EINVAL,
			  "--name %.80s: a name consists of letters, digits, _ . and -, at most %d "
			  "of them, and begins with a letter or digit",
			  name, BOX_NAME_MAX);
		return ward_remedy(e, "for instance --name build-1");
	}
	snprintf(entry.id, sizeof(entry.id), "%s", p->spec->run_id);
	runtime = boxes_open_runtime(e);
	if (runtime < 0)
		return runtime;
	r = boxes_check_unseen(runtime, p, e);
	if (r == 0)
		r = clear_old(p->spec->run_id, e);
	if (r < 0)
		return r;
	r = entry.run_fd = store_open_dir(runtime, p->spec->run_id, e);
	if (r >= 0)
		r = state = boxes_open_state(e);
	if (r >= 0)
		r = enter(p, name, state, &entry, e);
	if (r < 0) {
		boxes_discard(&entry);
		return r;
	}
	*ret_entry = entry;
	return 0;
}

void boxes_set_state(const struct box_entry *entry, enum box_state state)
{
	char letter = (char)state;

	if (entry->info_fd >= 0)
		(void)!pwrite(entry->info_fd, &letter, 1, BOXES_STATE_AT);
}

static int write_report(const struct box_entry *entry, const struct buf *report)
{
	auto_fd fd = openat(entry->dir_fd, "result.new",
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, buf_text(report), report->len);

	if (r == 0)
		r = io_write_all(fd, "\n", 1);
	if (r == 0 && renameat(entry->dir_fd, "result.new", entry->dir_fd, "result.json") < 0)
		r = -errno;
	return r;
}

int boxes_ended(const struct box_entry *entry, const struct result *r, const struct buf *report,
		struct ward_err *e)
{
	int status = report->failed ? -ENOMEM : write_report(entry, report);
	char line[96];

	snprintf(line, sizeof(line), "end %d %d %" PRIu64 "\n", r->exit_code, r->exit_signal,
		 wall_ms());
	if (lseek(entry->info_fd, 0, SEEK_END) < 0 ||
	    io_write_all(entry->info_fd, line, strlen(line)) < 0)
		status = status < 0 ? status : -EIO;
	boxes_set_state(entry, BOX_ENDED);
	(void)!unlinkat(entry->run_fd, "control", 0);
	boxes_remove_runtime(entry->id);
	if (status < 0)
		return ward_fail(e, -status, "cannot save the result of the sandbox: %s",
				 strerror(-status));
	return 0;
}

void box_entry_close(struct box_entry *entry)
{
	own_close_fd(&entry->info_fd);
	own_close_fd(&entry->run_fd);
	own_close_fd(&entry->dir_fd);
	*entry = NO_BOX_ENTRY;
}

void boxes_discard(struct box_entry *entry)
{
	struct ward_err ignored = { 0 };
	char id[sizeof(entry->id)];

	memcpy(id, entry->id, sizeof(id));
	box_entry_close(entry);
	if (id[0])
		(void)!boxes_remove(id, &ignored);
}

/*
 * Places where ward vm makes things, and how it speaks. A place is a directory of the state
 * directory that is locked while it is in use: what a killed command left is removed by the next
 * one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/remove.h"
#include "state/store.h"
#include "vmtool/tool.h"

#define TRIES 100

void tool_tell(const struct tool_options *o, const char *format, ...)
{
	auto_buf line = { 0 };
	char text[600];
	va_list more;

	if (o->quiet || o->json)
		return;
	va_start(more, format);
	vsnprintf(text, sizeof(text), format, more);
	va_end(more);
	buf_printf(&line, "%s\n", text);
	say_err(&line);
}

/* Removes the places of processes that are dead. */
static void sweep(const char *dir)
{
	auto_dir d = opendir(dir);

	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
		auto_free char *path = strncmp(entry->d_name, VM_WORK, strlen(VM_WORK)) == 0
					       ? path_join(dir, entry->d_name)
					       : NULL;
		auto_fd fd =
			path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && remove_tree(path) < 0)
			continue; /* the next one tries again */
	}
}

/* A new directory, locked. 0: another process swept it away before that. */
static int make_locked(const char *dir, struct tool_work *w, struct ward_err *e)
{
	struct stat held, there;
	char id[24];

	store_new_id(id, sizeof(id));
	free(w->path);
	if (asprintf(&w->path, "%s" VM_WORK "%s", dir, id) < 0) {
		w->path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	if (mkdir(w->path, 0700) < 0)
		return ward_fail_errno(e, "cannot make %s", w->path);
	own_close_fd(&w->lock_fd);
	w->lock_fd = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->lock_fd < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open %s", w->path);
	if (flock(w->lock_fd, LOCK_EX) < 0 || fstat(w->lock_fd, &held) < 0)
		return ward_fail_errno(e, "cannot lock %s", w->path);
	return stat(w->path, &there) == 0 && there.st_dev == held.st_dev &&
	       there.st_ino == held.st_ino;
}

int tool_work_begin(struct tool_work *w, struct ward_err *e)
{
	static const char *const parts[] = { VM_ROOTS, VM_TEMPLATES };
	auto_fd state = store_open(e), vm = -1;
	auto_free char *dir = NULL;
	int r;

	*w = (struct tool_work){ .lock_fd = -1 };
	if (state < 0)
		return state;
	vm = store_open_dir(state, VM_DIR, e);
	if (vm < 0)
		return vm;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (mkdirat(vm, parts[i], 0700) < 0 && errno != EEXIST)
			return ward_fail_errno(
				e, "cannot make " VM_DIR "/%s in the state directory", parts[i]);
	r = vm_path("", &dir, e);
	if (r < 0)
		return r;
	sweep(dir);
	for (int i = 0; i < TRIES && r == 0; i++)
		r = make_locked(dir, w, e);
	if (r == 0)
		return ward_fail(e, EBUSY, "another process removes each new directory in %s", dir);
	return r < 0 ? r : 0;
}

int tool_seal(const char *path)
{
	auto_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1) {
		errno = EINVAL;
		return -1;
	}
	return fchmod(fd, 0444);
}

void tool_work_end(struct tool_work *w)
{
	if (w->path && remove_tree(w->path) < 0)
		w->lock_fd = take_fd(&w->lock_fd); /* the next one removes it */
	own_close_fd(&w->lock_fd);
	free(w->path);
	*w = (struct tool_work){ .lock_fd = -1 };
}

/*
 * What comes out of a sandbox by ward cp passes the gate (guard_gate.c). In: the records, and the
 * place. Out: what may have its name there has it; the rest is named in the report and is not
 * there. Runs with the user's rights.
 *
 * The copy is received into a directory of its own beside the place (copy_stage.c), so that nothing
 * has its name before it was judged. The sweep runs over it there; then each name is asked for
 * before it moves to its place, also those in a directory that moves as a whole. Where a directory
 * of that name is there already the two are joined, name by name; whatever else is there is
 * replaced, never followed. A process that can write the place meanwhile (the sandbox itself, in
 * its workspace) can write the directory beside it too, and gains nothing.
 */
#include "control/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "control/copy_stage.h"
#include "guard/guard_gate.h"

struct admit {
	const struct sniff *gate;
	struct copy_report *report;
	char path[2 * GUEST_COPY_NAME_MAX]; /* of the present name, relative to the place */
	size_t len;
	size_t top_len;   /* of the name at the place, which reports leave out */
	int refused_fd;   /* what is refused goes there */
	unsigned refused; /* how much has */
};

/* The same way of naming as for what could not be copied: relative to what is copied. */
static const char *shown(const struct admit *a)
{
	return a->len > a->top_len ? a->path + a->top_len + 1 : a->path;
}

static void refuse(struct admit *a, const char *why)
{
	copy_note(a->report, shown(a), "%s; --protected copies it anyway", why);
}

/* Appends a name to the present path; false: it is too long. */
static bool path_add(struct admit *a, const char *name)
{
	int n = snprintf(a->path + a->len, sizeof(a->path) - a->len, "%s%s", a->len ? "/" : "",
			 name);

	if (n < 0 || (size_t)n >= sizeof(a->path) - a->len) {
		a->path[a->len] = '\0';
		return false;
	}
	a->len += (size_t)n;
	return true;
}

static void path_cut(struct admit *a, size_t len)
{
	a->len = len;
	a->path[len] = '\0';
}

/* Lists the directory; the caller closes. NULL: it cannot be read. */
static DIR *list_dir(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);

	if (!list)
		own_close_fd(&copy);
	return list;
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Asks for every name in a directory that moves to its place as a whole, and takes out what is
 * refused. False: not all of it could be looked at. */
static bool sift(struct admit *a, int dir_fd, const char *name)
{
	auto_fd fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir list = fd < 0 ? NULL : list_dir(fd);
	size_t len = a->len;
	bool fine = list != NULL;

	for (struct dirent *d = fine ? readdir(list) : NULL; d && fine; d = readdir(list)) {
		const char *why;
		char away[16];
		struct stat st;

		if (is_dot(d->d_name))
			continue;
		fine = path_add(a, d->d_name) &&
		       fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		why = fine ? gate_refuses(a->gate, a->path, (unsigned char)IFTODT(st.st_mode))
			   : NULL;
		if (why) {
			snprintf(away, sizeof(away), ".%u", ++a->refused);
			fine = renameat2(fd, d->d_name, a->refused_fd, away, RENAME_NOREPLACE) == 0;
			refuse(a, why);
		} else if (fine && S_ISDIR(st.st_mode)) {
			fine = sift(a, fd, d->d_name);
		}
		path_cut(a, len);
	}
	return fine;
}

static int admit_entry(struct admit *a, int from_fd, int to_fd, const char *name);

/* Joins the directory `name` of both. */
static int join(struct admit *a, int from_fd, int to_fd, const char *name)
{
	auto_fd from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd to = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir list = from < 0 ? NULL : list_dir(from);
	const char *why;
	int r = 0;

	if (!list || to < 0) {
		copy_note(a->report, shown(a), "%s", strerror(errno));
		return 0;
	}
	why = gate_refuses_union(a->path, to, from);
	if (why) {
		refuse(a, why);
		return 0;
	}
	for (struct dirent *d = readdir(list); d && r == 0; d = readdir(list))
		if (!is_dot(d->d_name))
			r = admit_entry(a, from, to, d->d_name);
	return r;
}

/* Gives from_fd/name its name in to_fd. */
static int admit_entry(struct admit *a, int from_fd, int to_fd, const char *name)
{
	size_t len = a->len;
	struct stat st, old;
	const char *why;
	bool there;
	int r = 0;

	if (!path_add(a, name))
		return 0;
	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		path_cut(a, len);
		return 0;
	}
	if (!len)
		a->top_len = a->len;
	there = fstatat(to_fd, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	why = gate_refuses(a->gate, a->path, (unsigned char)IFTODT(st.st_mode));
	if (why)
		refuse(a, why);
	else if (S_ISDIR(st.st_mode) && there && S_ISDIR(old.st_mode))
		r = join(a, from_fd, to_fd, name);
	else if (there && S_ISDIR(st.st_mode) != S_ISDIR(old.st_mode))
		copy_note(a->report, shown(a), "%s",
			  strerror(S_ISDIR(old.st_mode) ? EISDIR : ENOTDIR));
	else if (S_ISDIR(st.st_mode) && !sift(a, from_fd, name))
		refuse(a, "part of it could not be checked");
	else if (renameat2(from_fd, name, to_fd, name, there ? 0 : RENAME_NOREPLACE) < 0)
		copy_note(a->report, shown(a), "%s", strerror(errno));
	path_cut(a, len);
	return r;
}

/* What was received lies in new_fd under the place's name. */
static int admit_all(const struct sniff *gate, const struct copy_place *place, int new_fd,
		     int refused_fd, struct copy_report *report, struct ward_err *e)
{
	struct admit a = { .gate = gate, .report = report, .refused_fd = refused_fd };
	auto_strv refused = { 0 };
	size_t top = strlen(place->name);
	const char *why;
	int r = gate_judge_tree(gate, new_fd, refused_fd, &refused, e);

	for (size_t i = 0; i < refused.len; i++) {
		const char *text = refused.items[i];

		text += strncmp(text, place->name, top) == 0 && text[top] == '/' ? top + 1 : 0;
		copy_note(report, text, "--protected copies it anyway");
	}
	if (r < 0)
		return r;
	why = gate_refuses_union("", place->dir_fd, new_fd);
	if (why) {
		copy_note(report, place->name, "%s; --protected copies it anyway", why);
		return 0;
	}
	return admit_entry(&a, new_fd, place->dir_fd, place->name);
}

int copy_receive_judged(int in_fd, const struct copy_place *place, const struct gate_policy *policy,
			struct copy_report *report, struct ward_err *e)
{
	struct copy_stage stage = NO_COPY_STAGE;
	struct sniff gate;
	int cut = 0, r = gate_open(&gate, place->dir_fd, place->name, policy, e);
	struct copy_place inner = { .dir_fd = -1 };
	struct ward_err own = { 0 }, left = { 0 };

	if (r == 0 && gate.closed.len) {
		ward_fail(e, EPERM, "%.200s: %.300s", place->name, gate.closed.data);
		r = ward_remedy(e, "inspect it elsewhere first; --protected copies it anyway");
	}
	if (r == 0)
		r = copy_stage_begin(place->dir_fd, &stage, e);
	if (r == 0) {
		inner.dir_fd = stage.new_fd;
		snprintf(inner.name, sizeof(inner.name), "%s", place->name);
		cut = copy_receive(in_fd, &inner, report, &own);
		r = admit_all(&gate, place, stage.new_fd, stage.refused_fd, report, e);
	}
	if (r == 0 && cut < 0) {
		*e = own;
		r = cut;
	}
	if (copy_stage_end(&stage, &left) < 0 && r == 0) {
		*e = left;
		r = -e->code;
	}
	gate_close(&gate);
	return r;
}

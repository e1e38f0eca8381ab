/*
 * What comes out of a sandbox by ward cp passes the gate (guard_gate.c). In: the records, and the
 * place. Out: what may have its name there has it; the rest is named in the report and is not
 * there. Runs with the user's rights.
 *
 * The copy is received into a directory of its own beside the place, so that nothing has its name
 * before it was judged. The sweep runs over it there; then each name is asked for as it moves to
 * its place. Where a directory of that name is there already the two are joined, name by name;
 * whatever else is there is replaced, never followed. Whoever can write the place meanwhile (the
 * sandbox itself, in its workspace) can write the directory beside it too, and gains nothing.
 */
#include "lib/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/path.h"
#include "lib/guard_gate.h"
#include "lib/remove.h"

struct admit {
	const struct gate *gate;
	struct copy_report *report;
	char path[2 * GUEST_COPY_NAME_MAX]; /* of the present name, relative to the place */
	size_t len;
	size_t top_len; /* of the name at the place, which reports leave out */
};

/* The same way of naming as for what could not be copied: relative to what is copied. */
static const char *shown(const struct admit *a)
{
	return a->len > a->top_len ? a->path + a->top_len + 1 : a->path;
}

static void refuse(struct admit *a, const char *why)
{
	copy_note(a->report, shown(a), "%s; --protected copies it all the same", why);
}

static int admit_entry(struct admit *a, int from_fd, int to_fd, const char *name);

/* Joins the directory `name` of both. */
static int join(struct admit *a, int from_fd, int to_fd, const char *name)
{
	auto_fd from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd to = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int copy = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 3), r = 0;
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);
	const char *why;

	if (!list || to < 0) {
		copy_note(a->report, shown(a), "%s", strerror(errno));
		if (!list)
			own_close_fd(&copy);
		return 0;
	}
	why = gate_refuses_union(a->path, to, from);
	if (why) {
		refuse(a, why);
		return 0;
	}
	for (struct dirent *d = readdir(list); d && r == 0; d = readdir(list))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
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
	int n, r = 0;

	n = snprintf(a->path + len, sizeof(a->path) - len, "%s%s", len ? "/" : "", name);
	if (n < 0 || (size_t)n >= sizeof(a->path) - len || fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		a->path[len] = '\0';
		return 0;
	}
	a->len += (size_t)n;
	if (!len)
		a->top_len = a->len;
	there = fstatat(to_fd, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	why = gate_refuses(a->gate, a->path, (unsigned char)IFTODT(st.st_mode));
	if (why)
		refuse(a, why);
	else if (S_ISDIR(st.st_mode) && there && S_ISDIR(old.st_mode))
		r = join(a, from_fd, to_fd, name);
	else if (there && S_ISDIR(st.st_mode) != S_ISDIR(old.st_mode))
		copy_note(a->report, shown(a), "%s", strerror(S_ISDIR(old.st_mode) ? EISDIR : ENOTDIR));
	else if (renameat2(from_fd, name, to_fd, name, there ? 0 : RENAME_NOREPLACE) < 0)
		copy_note(a->report, shown(a), "%s", strerror(errno));
	a->len = len;
	a->path[len] = '\0';
	return r;
}

/* Makes the directory that the copy is received into, with one for what is refused in it. */
static int make_stage(int dir_fd, char name[32], int *ret_new, int *ret_refused, struct ward_err *e)
{
	unsigned long long number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return ward_fail_errno(e, "cannot get randomness");
	snprintf(name, 32, ".ward-cp-%016llx", number);
	if (mkdirat(dir_fd, name, 0700) < 0) {
		ward_fail_errno(e, "cannot make a directory for the copy");
		name[0] = '\0';
		return -e->code;
	}
	auto_fd stage = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (stage >= 0 && mkdirat(stage, "new", 0700) == 0 && mkdirat(stage, "refused", 0700) == 0) {
		*ret_new = openat(stage, "new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		*ret_refused =
			openat(stage, "refused", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return *ret_new < 0 || *ret_refused < 0 ? ward_fail_errno(e, "cannot open a directory for the copy") : 0;
}

/* What was received lies in new_fd under the place's name. */
static int admit_all(const struct gate *gate, const struct copy_place *place, int new_fd,
		     int refused_fd, struct copy_report *report, struct ward_err *e)
{
	struct admit a = { .gate = gate, .report = report };
	auto_strv refused = { 0 };
	size_t top = strlen(place->name);
	const char *why;
	int r = gate_judge_tree(gate, new_fd, refused_fd, &refused, e);

	for (size_t i = 0; i < refused.len; i++) {
		const char *text = refused.items[i];

		text += strncmp(text, place->name, top) == 0 && text[top] == '/' ? top + 1 : 0;
		copy_note(report, text, "--protected copies it all the same");
	}
	if (r < 0)
		return r;
	why = gate_refuses_union("", place->dir_fd, new_fd);
	if (why) {
		copy_note(report, place->name, "%s; --protected copies it all the same", why);
		return 0;
	}
	return admit_entry(&a, new_fd, place->dir_fd, place->name);
}

int copy_receive_judged(int in_fd, const struct copy_place *place, const struct strv *rules,
			struct copy_report *report, struct ward_err *e)
{
	char stage[32] = "";
	struct gate gate;
	int new_fd = -1, refused_fd = -1, cut = 0;
	int r = gate_open(&gate, place->dir_fd, place->name, rules, e);
	struct copy_place inner = { .dir_fd = -1 };
	struct ward_err own = { 0 };

	if (r == 0 && gate.closed.len) {
		ward_fail(e, EPERM, "%.200s: %.300s", place->name, gate.closed.data);
		r = ward_remedy(e, "look at it elsewhere first; --protected copies it all the same");
	}
	if (r == 0)
		r = make_stage(place->dir_fd, stage, &new_fd, &refused_fd, e);
	if (r == 0) {
		inner.dir_fd = new_fd;
		snprintf(inner.name, sizeof(inner.name), "%s", place->name);
		cut = copy_receive(in_fd, &inner, report, &own);
		r = admit_all(&gate, place, new_fd, refused_fd, report, e);
	}
	if (r == 0 && cut < 0) {
		*e = own;
		r = cut;
	}
	own_close_fd(&new_fd);
	own_close_fd(&refused_fd);
	if (stage[0] && remove_tree_at(place->dir_fd, stage) < 0 && r == 0)
		r = ward_fail(e, EIO, "cannot remove the directory %s of the copy", stage);
	gate_close(&gate);
	return r;
}

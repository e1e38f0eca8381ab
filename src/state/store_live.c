/*
 * The runs that are under way. In: the records of the state directory. Out: their trees with what
 * was there when they began. Runs in the supervisor before a run begins; nothing is locked and
 * nothing is changed.
 *
 * A run's record is written before its command starts, and goes away after its sweep. So whatever
 * a run could have made before our scan looked is accounted for by reading the records before the
 * scan and once more behind it; a run that came and went in between shows by the time stamps of
 * the files, which stay, or by that of their directory.
 */
#include "state/store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "guard/guard_dirs.h"
#include "guard/guard_internal.h"

/* One file of the directory. */
struct slot {
	char name[32];
	uint64_t changed_ns;
	bool used;
};

struct store_live {
	struct dead_run *runs;
	size_t run_count;
	struct slot *slots;
	size_t slot_count;
	uint64_t changed_ns; /* of the directory */
};

/* By doubling: there may be a thousand runs, and what each size leaves free stays the process's. */
static void *grow(void *items, size_t count, size_t size)
{
	if (count & (count - 1)) /* there is room up to the next power of two */
		return items;
	return reallocarray(items, count ? 2 * count : 1, size);
}

static int add_run(struct store_live *l, int fd, struct ward_err *e)
{
	struct dead_run *grown = grow(l->runs, l->run_count, sizeof(*grown)), *d;
	int r;

	if (!grown)
		return ward_fail(e, ENOMEM, "out of memory");
	l->runs = grown;
	d = &l->runs[l->run_count];
	*d = (struct dead_run){ 0 };
	r = store_read_record(fd, d);
	if (r < 0 && r != -EINVAL && r != -EISDIR) { /* not a record */
		dead_run_clear(d);
		return ward_fail(e, -r, "cannot read the record of another run: %s", strerror(-r));
	}
	if (!d->root_count) { /* it can have made nothing: the next one has its memory */
		dead_run_clear(d);
		return 0;
	}
	l->run_count++;
	r = 0;
	for (size_t i = 0; i < d->root_count && r >= 0; i++)
		r = guard_restore_rules(&d->roots[i], e);
	return r < 0 ? r : 0;
}

static int add_slot(struct store_live *l, int live_fd, const char *name, struct ward_err *e)
{
	auto_fd fd = openat(live_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct slot *grown;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : ward_fail_errno(e, "cannot open the record of another run");
	grown = grow(l->slots, l->slot_count, sizeof(*grown));
	if (!grown)
		return ward_fail(e, ENOMEM, "out of memory");
	l->slots = grown;
	grown = &l->slots[l->slot_count++];
	*grown = (struct slot){ .changed_ns = guard_ctime_ns(&st), .used = st.st_size > 0 };
	snprintf(grown->name, sizeof(grown->name), "%.31s", name);
	return st.st_size ? add_run(l, fd, e) : 0;
}

int store_live_read(struct store_live **ret_live, struct ward_err *e)
{
	auto_fd state = store_open(e);
	int fd = state < 0 ? -1
			   : openat(state, STORE_LIVE,
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct store_live *l;
	auto_dir list = NULL;
	struct stat st;
	int r = 0;

	*ret_live = NULL;
	if (state < 0)
		return state;
	if (fd < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open the records of runs");
	list = fdopendir(fd);
	if (!list)
		close(fd);
	l = calloc(1, sizeof(*l));
	if (!list || !l || fstat(fd, &st) < 0) {
		free(l);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	l->changed_ns = guard_ctime_ns(&st);
	for (struct dirent *d = readdir(list); d && r >= 0; d = readdir(list))
		if (d->d_name[0] != '.')
			r = add_slot(l, fd, d->d_name, e);
	if (r < 0) {
		store_live_free(l);
		return r;
	}
	*ret_live = l;
	return 0;
}

void store_live_free(struct store_live *l)
{
	for (size_t i = 0; l && i < l->run_count; i++)
		dead_run_clear(&l->runs[i]);
	if (l) {
		free(l->runs);
		free(l->slots);
	}
	free(l);
}

int store_live_taint(const struct store_live *l, struct guard_root *g, struct ward_err *e)
{
	int r = 0;

	/* one that is incomplete: its command has not started yet */
	for (size_t i = 0; l && i < l->run_count; i++)
		for (size_t k = 0; l->runs[i].complete && k < l->runs[i].root_count && r >= 0; k++)
			r = guard_taint(g, &l->runs[i].roots[k], e);
	return r;
}

bool store_live_missed(const struct store_live *before, const struct store_live *after)
{
	if (!before || !after)
		return after != NULL;
	if (before->changed_ns != after->changed_ns)
		return true;
	for (size_t i = 0; i < after->slot_count; i++)
		for (size_t k = 0; k < before->slot_count; k++)
			if (strcmp(after->slots[i].name, before->slots[k].name) == 0 &&
			    !after->slots[i].used && !before->slots[k].used &&
			    after->slots[i].changed_ns != before->slots[k].changed_ns)
				return true;
	return false;
}

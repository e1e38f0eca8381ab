/*
 * The list of reviews. In: the places that hold them. Out: ids and workspaces, in the order in
 * which runs last began in them: an id holds the time of the first run, the record those of runs
 * that continued it. Runs in the verbs with the user's rights. What a killed command left half made
 * or half removed is taken away on the occasion.
 */
#include "review/review_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/remove.h"
#include "state/store.h"

static int by_time(const void *a, const void *b)
{
	const struct review_item *x = a, *y = b;

	if (x->began_ns != y->began_ns)
		return x->began_ns < y->began_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

static int add_item(struct review_items *v, const char *id, const struct review_record *record,
		    struct ward_err *e)
{
	bool continued = record->start_count > 1;

	if (v->len == v->cap) {
		size_t cap = v->cap ? v->cap * 2 : 16;
		struct review_item *grown = reallocarray(v->items, cap, sizeof(*grown));

		if (!grown)
			return ward_fail(e, ENOMEM, "out of memory");
		v->items = grown;
		v->cap = cap;
	}
	v->items[v->len] = (struct review_item){
		.workspace = strdup(record->workspace),
		.began_ns = continued ? record->starts[record->start_count - 1] : store_id_ns(id)
	};
	if (!v->items[v->len].workspace)
		return ward_fail(e, ENOMEM, "out of memory");
	snprintf(v->items[v->len].id, sizeof(v->items[v->len].id), "%.23s", id);
	v->len++;
	return 0;
}

/* Adds the review name of the place if it is one of the workspace's. */
static int look_at(int place, const char *name, const char *workspace, struct review_items *v,
		   struct ward_err *e)
{
	auto_fd dir = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct review_record record = { 0 };
	struct ward_err ignored;
	int status = 0;

	if (dir < 0 || review_read_record(dir, &record, &ignored) < 0)
		return 0;
	if (!workspace || strcmp(record.workspace, workspace) == 0)
		status = add_item(v, name, &record, e);
	review_record_clear(&record);
	return status;
}

static int list_place(enum review_place place, const char *workspace, struct review_items *v,
		      struct ward_err *e)
{
	struct ward_err none;
	int fd = review_open_place(place, false, NULL, &none), status = 0;
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		return 0;
	if (!list) {
		close(fd);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry && status == 0; entry = readdir(list))
		if (review_is_id(entry->d_name))
			status = look_at(fd, entry->d_name, workspace, v, e);
	return status;
}

int review_list(const char *workspace, struct review_items *ret_items, struct ward_err *e)
{
	int status = 0;

	*ret_items = (struct review_items){ 0 };
	for (int place = 0; place < REVIEW_PLACES && status == 0; place++)
		status = list_place((enum review_place)place, workspace, ret_items, e);
	if (status < 0) {
		review_items_clear(ret_items);
		return status;
	}
	if (ret_items->len)
		qsort(ret_items->items, ret_items->len, sizeof(*ret_items->items), by_time);
	return 0;
}

void review_items_clear(struct review_items *v)
{
	for (size_t i = 0; i < v->len; i++)
		free(v->items[i].workspace);
	free(v->items);
	*v = (struct review_items){ 0 };
}

int review_last(const char *here, char ret_id[REVIEW_ID_MAX], struct ward_err *e)
{
	struct review_items items;
	int status = review_list(NULL, &items, e);

	ret_id[0] = '\0';
	if (status < 0)
		return status;
	for (size_t i = items.len; i-- > 0 && !ret_id[0];)
		if (path_is_beneath(here, items.items[i].workspace))
			memcpy(ret_id, items.items[i].id, REVIEW_ID_MAX);
	review_items_clear(&items);
	return 0;
}

static bool is_filled(int dir_fd)
{
	int fd = openat(dir_fd, REVIEW_LOWER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);
	bool filled = false;

	if (fd >= 0 && !list)
		close(fd);
	for (struct dirent *entry = list ? readdir(list) : NULL; entry && !filled;
	     entry = readdir(list))
		filled = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	return filled;
}

/* The copy of a workspace (review_copy.c) that a killed run left: what it changed stays, the copy
 * goes. */
static void empty_copy(int place_fd, const char *place, const char *name)
{
	auto_fd dir = openat(place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_buf path = { 0 };
	struct stat st;

	if (dir < 0 || !is_filled(dir) || flock(dir, LOCK_EX | LOCK_NB) < 0 ||
	    fstatat(dir, REVIEW_LAYER, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return; /* there is none, or its run goes on */
	buf_printf(&path, "%s/%s/%s", place, name, REVIEW_LOWER);
	if (path.failed || remove_tree(path.data) < 0 || mkdirat(dir, REVIEW_LOWER, 0700) < 0)
		return; /* tried again next time */
	if (geteuid() == 0)
		(void)!fchownat(dir, REVIEW_LOWER, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
}

/* Removes the half-made and half-removed reviews of one place that nobody is at work on. */
static void tidy_place(enum review_place place)
{
	auto_free char *path = NULL;
	struct ward_err ignored;
	int fd = review_open_place(place, false, &path, &ignored);
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !list)
		close(fd);
	if (list && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return; /* somebody makes one this moment; next time */
	for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
		auto_fd dir = -1;

		if (entry->d_name[0] != '.')
			empty_copy(fd, path, entry->d_name);
		if (strncmp(entry->d_name, ".new-", 5) != 0 &&
		    strncmp(entry->d_name, ".gone-", 6) != 0)
			continue;
		dir = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (review_remove_dir(fd, path, entry->d_name, &ignored) < 0)
			continue; /* tried again next time */
	}
}

void review_tidy(void)
{
	for (int place = 0; place < REVIEW_PLACES; place++)
		tidy_place((enum review_place)place);
}

/*
 * Reading the register of detached sandboxes (boxes.c has the layout). In: names and ids as a
 * person types them. Out: entries. The files are the user's own; they are read as if they were not.
 */
#include "state/boxes_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "guard/guard_internal.h"

#define INFO_MAX 65536
#define CANDIDATES 5   /* that an error names */
#define MAKING_S 10    /* an entry is made in less */
#define ENDED_KEPT 100 /* entries of sandboxes that have ended */
#define ENDED_KEPT_MS (14ull * 86400 * 1000)

const char *box_state_name(enum box_state s)
{
	switch (s) {
	case BOX_RUNNING:
		return "running";
	case BOX_PAUSED:
		return "paused";
	case BOX_ENDING:
		return "ending";
	case BOX_ENDED:
		return "ended";
	case BOX_DEAD:
		break;
	}
	return "dead";
}

bool boxes_is_name(const char *name)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char others[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = strlen(name);

	return n > 0 && n <= BOX_NAME_MAX && strchr(first, name[0]) && strspn(name, others) == n;
}

void box_info_clear(struct box_info *i)
{
	free(i->workspace);
	strv_free(&i->writable);
	strv_free(&i->protect);
	strv_free(&i->command);
	*i = (struct box_info){ 0 };
}

void boxes_clear(struct boxes *v)
{
	for (size_t i = 0; i < v->len; i++)
		box_info_clear(&v->items[i]);
	free(v->items);
	*v = (struct boxes){ 0 };
}

static int read_line(struct box_info *i, const char *key, char *value)
{
	if (strcmp(key, "pid") == 0)
		return sscanf(value, "%d %" SCNu64, &i->pid, &i->pid_start) == 2 ? 0 : -EINVAL;
	if (strcmp(key, "started") == 0)
		return sscanf(value, "%" SCNu64, &i->started_ms) == 1 ? 0 : -EINVAL;
	if (strcmp(key, "end") == 0)
		return sscanf(value, "%d %d %" SCNu64, &i->exit_code, &i->exit_signal,
			      &i->ended_ms) == 3
			       ? 0
			       : -EINVAL;
	guard_unescape(value);
	if (strcmp(key, "parent") == 0) {
		if (!boxes_is_id(value))
			return -EINVAL;
		snprintf(i->parent, sizeof(i->parent), "%s", value);
	} else if (strcmp(key, "name") == 0) {
		if (!boxes_is_name(value))
			return -EINVAL;
		snprintf(i->name, sizeof(i->name), "%s", value);
	} else if (strcmp(key, "workspace") == 0) {
		free(i->workspace);
		i->workspace = strdup(value);
		strv_add(&i->writable, value);
		return i->workspace && !i->writable.failed ? 0 : -ENOMEM;
	} else if (strcmp(key, "writable") == 0) {
		strv_add(&i->writable, value);
	} else if (strcmp(key, "protect") == 0) {
		strv_add(&i->protect, value);
	} else if (strcmp(key, "word") == 0) {
		strv_add(&i->command, value);
	}
	return i->command.failed || i->writable.failed || i->protect.failed ? -ENOMEM : 0;
}

int boxes_parse(const char *text, size_t n, struct box_info *ret_info)
{
	auto_free char *copy = n < INFO_MAX ? strndup(text, n) : NULL;
	struct box_info i = { 0 };
	char *rest = copy, *line;
	int r = -EINVAL;

	if (copy && strncmp(copy, BOXES_HEADER, strlen(BOXES_HEADER)) == 0) {
		char state = copy[strlen(BOXES_HEADER)];

		r = state && strchr("RPFED", state) ? 0 : -EINVAL;
		i.state = (enum box_state)state;
		line = strsep(&rest, "\n");
	}
	while (r == 0 && (line = strsep(&rest, "\n"))) {
		char *key = strsep(&line, " ");

		if (line)
			r = read_line(&i, key, line);
	}
	if (r < 0) {
		box_info_clear(&i);
		return r;
	}
	*ret_info = i;
	return 0;
}

bool boxes_is_id(const char *name)
{
	return strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz-") == strlen(name) &&
	       strlen(name) > 6 && strlen(name) < sizeof((struct box_info){ 0 }.id);
}

static int look(int state_fd, const char *id, struct box_info *ret_info)
{
	char path[64], text[INFO_MAX];
	auto_fd fd = -1;
	bool alive;
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "%s/info", id);
	fd = openat(state_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	alive = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	n = read(fd, text, sizeof(text));
	r = n < 0                        ? -errno
	    : n == (ssize_t)sizeof(text) ? -EFBIG
					 : boxes_parse(text, (size_t)n, ret_info);
	if (r < 0)
		return r;
	snprintf(ret_info->id, sizeof(ret_info->id), "%s", id);
	/* one that has ended may still be on its way out */
	ret_info->alive = alive && ret_info->state != BOX_ENDED && ret_info->state != BOX_DEAD;
	ret_info->recovered = ret_info->state == BOX_DEAD;
	if (!alive && ret_info->state != BOX_ENDED)
		ret_info->state = BOX_DEAD;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct box_info *)a)->id, ((const struct box_info *)b)->id);
}

int boxes_add(struct boxes *v, size_t *cap, struct box_info *i)
{
	if (v->len == *cap) {
		size_t grown_cap = *cap ? *cap * 2 : 32;
		struct box_info *grown = reallocarray(v->items, grown_cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		v->items = grown;
		*cap = grown_cap;
	}
	v->items[v->len++] = *i;
	return 0;
}

int boxes_list(struct boxes *ret_boxes, struct ward_err *e)
{
	int state = boxes_open_state(e), r = 0;
	struct boxes v = { 0 };
	auto_dir list = NULL;
	size_t cap = 0;

	if (state < 0)
		return state;
	list = fdopendir(state);
	if (!list) {
		close(state);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry && r == 0; entry = readdir(list)) {
		struct box_info i = { 0 };

		if (!boxes_is_id(entry->d_name) || v.len >= BOX_LIST_MAX ||
		    look(dirfd(list), entry->d_name, &i) < 0)
			continue; /* one that is being made or removed just now */
		r = boxes_add(&v, &cap, &i);
		if (r < 0)
			box_info_clear(&i);
	}
	if (r < 0) {
		boxes_clear(&v);
		return ward_fail(e, -r, "cannot list the sandboxes: %s", strerror(-r));
	}
	if (v.len)
		qsort(v.items, v.len, sizeof(*v.items), compare);
	*ret_boxes = v;
	return 0;
}

/* How well a word names a sandbox; 0: not at all. */
static int match(const struct box_info *i, const char *word)
{
	const char *tail = strrchr(i->id, '-');
	size_t n = strlen(word);

	if (strcmp(i->id, word) == 0)
		return 4;
	if (strcmp(i->name, word) == 0)
		return i->alive ? 3 : 2;
	if (n >= 2 && ((tail && strncmp(tail + 1, word, n) == 0) || strncmp(i->id, word, n) == 0))
		return 1;
	return 0;
}

/* Which ones a beginning of an id could mean, as many as fit. */
static int fail_ambiguous(const struct boxes *all, const char *word, size_t same,
			  struct ward_err *e)
{
	auto_buf names = { 0 };
	size_t shown = 0;

	for (size_t i = 0; i < all->len && shown < CANDIDATES; i++)
		if (match(&all->items[i], word) == 1) {
			buf_printf(&names, "%s%s", shown++ ? ", " : "", all->items[i].id);
			if (all->items[i].name[0])
				buf_printf(&names, " (%s)", all->items[i].name);
		}
	ward_fail(e, EINVAL, "%.80s is ambiguous: it matches %zu sandboxes: %s%s", word, same,
		  buf_text(&names), same > shown ? ", ..." : "");
	return ward_remedy(e, "give more of the id, or the name");
}

int boxes_find_in(struct boxes *all, const char *word, struct box_info *ret_info,
		  struct ward_err *e)
{
	struct box_info *best = NULL;
	size_t same = 0;
	int score = 0, r = 0;

	for (size_t i = 0; *word && i < all->len; i++) {
		int m = match(&all->items[i], word);

		if (m < score || m == 0)
			continue;
		same = m == score ? same + 1 : 1;
		score = m;
		best = &all->items[i]; /* the last of a name */
	}
	if (best && (score > 1 || same == 1)) {
		*ret_info = *best;
		*best = (struct box_info){ 0 };
	} else if (best) {
		r = fail_ambiguous(all, word, same, e);
	} else {
		r = ward_fail(e, ENOENT, "there is no sandbox %.80s", word);
		ward_remedy(e, "ward ps -a lists them");
	}
	return r;
}

int boxes_find(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	struct boxes all;
	int r = boxes_list(&all, e);

	if (r < 0)
		return r;
	r = boxes_find_in(&all, word, ret_info, e);
	boxes_clear(&all);
	return r;
}

int boxes_look(const char *id, struct box_info *ret_info, struct ward_err *e)
{
	auto_fd state = boxes_open_state(e);
	int r = state < 0 ? state : look(state, id, ret_info);

	return r < 0 && state >= 0
		       ? ward_fail(e, -r, "cannot read the entry of %s: %s", id, strerror(-r))
		       : r;
}

int boxes_open_dir(const char *id, struct ward_err *e)
{
	auto_fd state = boxes_open_state(e);
	int fd = state < 0 ? state
			   : openat(state, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 && state >= 0 ? ward_fail_errno(e, "cannot open the directory of %s", id)
				    : fd;
}

void boxes_mark_dead(const char *id)
{
	struct ward_err ignored = { 0 };
	auto_fd dir = boxes_open_dir(id, &ignored);
	auto_fd info =
		dir < 0 ? -1 : openat(dir, "info", O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	/* shared: to others it must not seem alive */
	if (info >= 0 && flock(info, LOCK_SH | LOCK_NB) == 0)
		(void)!pwrite(info, "D", 1, BOXES_STATE_AT);
	boxes_remove_runtime(id);
}

void boxes_remove_runtime(const char *id)
{
	struct ward_err ignored = { 0 };
	auto_fd runtime = boxes_open_runtime(&ignored);
	char path[64];

	if (runtime < 0)
		return;
	snprintf(path, sizeof(path), "%s/control", id);
	unlinkat(runtime, path, 0);
	unlinkat(runtime, id, AT_REMOVEDIR);
}

int boxes_remove(const char *id, struct ward_err *e)
{
	static const char *const files[] = { "info",  "info.new",    "log.0",
					     "log.1", "result.json", "result.new" };
	auto_fd state = -1;

	boxes_remove_runtime(id);
	state = boxes_open_state(e);
	if (state < 0)
		return state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", id, files[i]);
		unlinkat(state, path, 0);
	}
	if (unlinkat(state, id, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return ward_fail_errno(e, "cannot remove the entry of %s", id);
	return 0;
}

/* Whether ward-box was killed before its entry had its name: nothing was started. */
static bool was_never_made(int state_fd, const char *id)
{
	char path[NAME_MAX + 16];
	struct stat st;
	auto_fd fd = -1;

	snprintf(path, sizeof(path), "%s/info", id);
	if (fstatat(state_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return false;
	if (fstatat(state_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_ctim.tv_sec + MAKING_S > time(NULL))
		return false;
	snprintf(path, sizeof(path), "%s/info.new", id);
	fd = openat(state_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* Names in one of the register's directories that no entry answers for. */
static void drop_orphans(int dir_fd, int state_fd)
{
	auto_dir list = fdopendir(dir_fd);
	struct ward_err ignored = { 0 };

	if (!list) {
		close(dir_fd);
		return;
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
		if (boxes_is_id(entry->d_name) && was_never_made(state_fd, entry->d_name))
			(void)!boxes_remove(entry->d_name, &ignored);
}

/* The same for sockets: their entry is in the state, or gone. */
static void drop_runtime_orphans(int dir_fd, int state_fd)
{
	auto_dir list = fdopendir(dir_fd);

	if (!list) {
		close(dir_fd);
		return;
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
		struct stat st;

		if (!boxes_is_id(entry->d_name) ||
		    fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_ctim.tv_sec + MAKING_S > time(NULL))
			continue;
		if (fstatat(state_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno == ENOENT)
			boxes_remove_runtime(entry->d_name);
	}
}

void boxes_drop_orphans(void)
{
	struct ward_err ignored = { 0 };
	auto_fd state = boxes_open_state(&ignored);
	int again = boxes_open_state(&ignored), runtime = boxes_open_runtime(&ignored);

	if (again >= 0)
		drop_orphans(again, state);
	if (runtime >= 0)
		drop_runtime_orphans(runtime, state);
}

void boxes_prune(void)
{
	struct ward_err ignored = { 0 };
	size_t over, gone = 0;
	struct timespec now;
	struct boxes all;

	if (boxes_list(&all, &ignored) < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < all.len; i++)
		gone += !all.items[i].alive;
	over = gone > ENDED_KEPT ? gone - ENDED_KEPT : 0;
	for (size_t i = 0; i < all.len; i++) {
		const struct box_info *b = &all.items[i];

		if (b->alive || (b->state == BOX_DEAD && !b->recovered))
			continue;
		if (over || b->started_ms + ENDED_KEPT_MS < (uint64_t)now.tv_sec * 1000) {
			over -= over > 0;
			(void)!boxes_remove(b->id, &ignored);
		}
	}
	boxes_clear(&all);
}

/*
 * The quarantine. In: what the sweep takes out of a tree. Out: the same thing under
 * STATE/quarantine/RUN/N/PATH with a line in the run's index that says where it came from and why.
 * ls reads the index; restore moves back.
 *
 * A line is written before its thing is moved, so nothing can lie there unlisted; lines whose thing
 * is not there are passed over. Restoring goes by the same steps as moving: no link is followed,
 * nothing is overwritten, the way down is by descriptors.
 */
#include "state/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/walk.h"
#include "guard/guard_gate.h"
#include "guard/guard_move.h"
#include "state/trust.h"

#define INDEX_MAX (256u << 20)

static int sink_write(struct store_sink *s, const struct buf *line, struct ward_err *e)
{
	int status = line->failed ? -ENOMEM : io_write_all(s->index_fd, line->data, line->len);

	return status < 0 ? ward_fail(e, -status, "cannot write the quarantine's index: %s",
				      strerror(-status))
			  : 0;
}

static int sink_open(void *ctx, struct ward_err *e)
{
	struct store_sink *s = ctx;
	auto_buf line = { 0 };
	auto_fd all = -1, run = -1;
	char name[24];

	if (s->dir_fd >= 0)
		return s->dir_fd;
	all = store_open_dir(s->state_fd, STORE_QUARANTINE, e);
	run = all < 0 ? all : store_open_dir(all, s->run_id, e);
	if (run < 0)
		return run;
	s->index_fd =
		openat(run, "index", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->index_fd < 0)
		return ward_fail_errno(e, "cannot open the quarantine's index");
	buf_puts(&line, "workspace\t");
	guard_escape(&line, s->workspace);
	buf_printf(&line, "\nroot\t%zu\t", s->root_index);
	guard_escape(&line, s->root);
	buf_puts(&line, "\n");
	if (sink_write(s, &line, e) < 0)
		return -e->code;
	snprintf(name, sizeof(name), "%zu", s->root_index);
	s->dir_fd = store_open_dir(run, name, e);
	return s->dir_fd;
}

static int sink_note(void *ctx, const char *path, const char *stored, const char *why,
		     struct ward_err *e)
{
	struct store_sink *s = ctx;
	auto_buf line = { 0 };

	buf_printf(&line, "item\t%zu\t", s->root_index);
	guard_escape(&line, path);
	buf_puts(&line, "\t");
	guard_escape(&line, stored);
	buf_puts(&line, "\t");
	guard_escape(&line, why);
	buf_puts(&line, "\n");
	return sink_write(s, &line, e);
}

struct guard_sink store_sink_face(struct store_sink *s)
{
	return (struct guard_sink){ .open = sink_open, .note = sink_note, .ctx = s };
}

void store_sink_close(struct store_sink *s)
{
	own_close_fd(&s->dir_fd);
	own_close_fd(&s->index_fd);
}

/* Opens a directory by an absolute path in which no component is a link. */
static int open_absolute(const char *path, int flags, struct ward_err *e)
{
	auto_fd top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		return ward_fail_errno(e, "cannot open /");
	return path_open_nolink(top, path[1] ? path + 1 : ".", flags | O_DIRECTORY, e);
}

/* Opens the top of a tree, whatever mode the agent gave it and wherever the host has moved it
 * since; *ret_mode is the mode to put back, 0: none. */
static int open_top(const struct guard_root *g, mode_t *ret_mode, struct ward_err *e)
{
	const char *path = g->path;
	auto_fd at = g->held_fd > 0 ? fcntl(g->held_fd, F_DUPFD_CLOEXEC, 3)
				    : open_absolute(path, O_PATH, e);
	char link[32];
	struct stat st;
	int fd;

	if (at < 0)
		return at;
	if (fstat(at, &st) < 0)
		return ward_fail_errno(e, "cannot look at %s", path);
	if (st.st_uid == geteuid() && (st.st_mode & 0700) != 0700) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
		if (chmod(link, (st.st_mode & 07777) | 0700) < 0)
			return ward_fail_errno(e, "cannot open up %s", path);
		*ret_mode = st.st_mode & 07777;
	}
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? ward_fail_errno(e, "cannot open %s", path) : fd;
}

/* The policy that a person had ward write while the run went on ("always"). */
static bool spares(void *ctx, const char *path, int dir_fd, const char *name)
{
	const struct store_sink *s = ctx;
	auto_free char *whole = path_join(s->root, path);

	return whole && (strcmp(path, "ward.yaml") == 0 || strcmp(path, "ward.json") == 0) &&
	       trust_is_written(whole, dir_fd, name, s->since_ns);
}

int store_sweep_root(int state_fd, const char *run_id, const char *workspace,
		     const struct guard_root *g, size_t index, struct strv *moved,
		     struct guard_news *news, struct ward_err *e)
{
	struct store_sink s = { .state_fd = state_fd,
				.run_id = run_id,
				.workspace = workspace,
				.root = g->path,
				.root_index = index,
				.dir_fd = -1,
				.index_fd = -1 };
	struct guard_sink face = store_sink_face(&s);
	mode_t mode = 0;
	auto_fd root = open_top(g, &mode, e);
	int status;

	face.news = news;
	face.spares = spares;
	s.since_ns = g->since_ns;
	if (root == -ENOENT)
		return 0;
	if (root < 0)
		return ward_wrap(e, "looking for planted files in %s", g->path);
	status = guard_sweep_into(g, root, &face, moved, e);
	store_sink_close(&s);
	if (mode && fchmod(root, mode) < 0 && status >= 0)
		status = ward_fail_errno(e, "cannot restore the mode of %s", g->path);
	return status;
}

static void item_clear(struct store_item *i)
{
	free(i->run);
	free(i->workspace);
	free(i->root);
	free(i->path);
	free(i->stored);
	free(i->why);
}

void store_items_clear(struct store_items *v)
{
	for (size_t i = 0; i < v->len; i++)
		item_clear(&v->items[i]);
	free(v->items);
	*v = (struct store_items){ 0 };
}

/* One index while it is read. */
struct index {
	const char *run;
	int run_fd;
	char *workspace;
	struct strv roots; /* by number; "" where none was named */
	struct store_items *out;
};

/* Whether base_fd/path is there, whatever it is; path may be longer than PATH_MAX. */
static bool is_there(int base_fd, const char *path)
{
	auto_fd at = openat(base_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (at >= 0) {
		size_t n = strcspn(path, "/");
		auto_free char *name = strndup(path, n);
		struct stat st;
		int next;

		if (!name || !n || strcmp(name, "..") == 0)
			return false;
		if (!path[n])
			return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += n + 1;
	}
	return false;
}

static int index_item(struct index *x, size_t root, char *path, char *stored, char *why)
{
	struct store_items *v = x->out;
	struct store_item *grown;
	auto_buf where = { 0 };

	guard_unescape(path);
	guard_unescape(stored);
	guard_unescape(why);
	buf_printf(&where, "%zu/%s", root, stored);
	if (where.failed)
		return -ENOMEM;
	if (root >= x->roots.len || !is_there(x->run_fd, where.data))
		return 0;
	grown = reallocarray(v->items, v->len + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	v->items = grown;
	grown[v->len++] =
		(struct store_item){ .run = strdup(x->run),
				     .workspace = strdup(x->workspace ? x->workspace : ""),
				     .root = strdup(x->roots.items[root]),
				     .path = strdup(path),
				     .stored = strdup(where.data),
				     .why = strdup(why) };
	grown = &grown[v->len - 1];
	return grown->run && grown->workspace && grown->root && grown->path && grown->stored &&
			       grown->why
		       ? 0
		       : -ENOMEM;
}

static int index_line(struct index *x, char *line)
{
	char *key = strsep(&line, "\t"), *number, *path, *stored;
	size_t root;

	if (strcmp(key, "workspace") == 0 && line) {
		guard_unescape(line);
		free(x->workspace);
		x->workspace = strdup(line);
		return x->workspace ? 0 : -ENOMEM;
	}
	number = strsep(&line, "\t");
	if (!number || !line)
		return 0;
	root = strtoul(number, NULL, 10);
	if (strcmp(key, "root") == 0 && root < 4096) {
		guard_unescape(line);
		while (x->roots.len <= root && !x->roots.failed)
			strv_add(&x->roots, "");
		if (x->roots.failed)
			return -ENOMEM;
		free(x->roots.items[root]);
		x->roots.items[root] = strdup(line);
		return x->roots.items[root] ? 0 : -ENOMEM;
	}
	path = strsep(&line, "\t");
	stored = strsep(&line, "\t");
	return strcmp(key, "item") == 0 && stored && line ? index_item(x, root, path, stored, line)
							  : 0;
}

static int read_index(int all_fd, const char *run, struct store_items *out)
{
	struct index x = { .run = run, .out = out };
	auto_buf text = { 0 };
	auto_fd fd = openat(all_fd, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int status = fd < 0 ? 0 : io_read_file(fd, "index", INDEX_MAX, &text);
	char *rest = text.data, *line;

	if (fd < 0 || status == -ENOENT)
		return 0;
	x.run_fd = fd;
	while (status >= 0 && rest && (line = strsep(&rest, "\n")))
		if (*line)
			status = index_line(&x, line);
	free(x.workspace);
	strv_free(&x.roots);
	return status;
}

int store_list(struct store_items *ret_items, struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_strv runs = { 0 };
	auto_dir list = NULL;
	int fd, status = 0;

	*ret_items = (struct store_items){ 0 };
	if (state < 0)
		return state;
	fd = openat(state, STORE_QUARANTINE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open the quarantine");
	list = fdopendir(fd);
	if (!list) {
		close(fd);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
		if (entry->d_name[0] != '.')
			strv_add(&runs, entry->d_name);
	strv_sort(&runs);
	for (size_t i = 0; i < runs.len && status >= 0; i++)
		status = read_index(fd, runs.items[i], ret_items);
	if (status >= 0 && !runs.failed)
		return 0;
	store_items_clear(ret_items);
	return ward_fail(e, status ? -status : ENOMEM, "cannot read the quarantine: %s",
			 strerror(status ? -status : ENOMEM));
}

/* Removes directories of the run that are empty now, from below; the index goes with the last
 * thing. */
static int prune_leave(void *ctx unused_arg, const struct walk_dir *d, const char *name)
{
	/* not empty: something else still lies there */
	(void)unlinkat(d->fd, name, AT_REMOVEDIR);
	return 0;
}

static void prune(int all_fd, const char *run)
{
	static const struct walk_ops ops = { .leave = prune_leave };
	auto_fd fd = openat(all_fd, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct ward_err ignored;
	struct stat st;

	if (fd < 0 || walk_tree(fd, &ops, NULL, 0, &ignored) < 0 || fstat(fd, &st) < 0)
		return;
	if (st.st_nlink > 2)
		return; /* a directory is left */
	if (unlinkat(fd, "index", 0) == 0 && unlinkat(all_fd, run, AT_REMOVEDIR) < 0)
		return;
}

/* A thing may come back as what it was quarantined for, because the operator asks for just that; at
 * another place it must not become something else: a hook, a part of a repository, an editor's
 * task. */
static int check_new_place(const struct store_item *item, int base_fd, int from_fd,
			   const char *from_name, struct ward_err *e)
{
	auto_free char *top = strndup(item->path, strcspn(item->path, "/"));
	struct sniff gate = { .dir_fd = -1 };
	const char *why;
	struct stat st;
	int status;

	if (!top || fstatat(from_fd, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail_errno(e, "cannot access %s in the quarantine", item->path);
	status = gate_open(&gate, base_fd, top, NULL, e);
	why = status < 0 ? NULL
			 : gate_refuses(&gate, item->path, (unsigned char)IFTODT(st.st_mode));
	if (why && (gate.closed.len || strcmp(why, item->why) != 0)) {
		status = ward_fail(e, EPERM, "%s may not be restored there: %s", item->path, why);
		ward_remedy(
			e,
			"restore it to a directory outside repositories and protected directories");
	}
	gate_close(&gate);
	return status;
}

int store_restore(const struct store_item *item, const char *to, char **ret_where,
		  struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_fd all = state < 0 ? -1 : store_open_dir(state, STORE_QUARANTINE, e);
	auto_fd run =
		all < 0 ? -1
			: openat(all, item->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd from = -1, base = -1, target = -1;
	const char *from_name, *to_name;
	int status;

	if (state < 0 || all < 0)
		return -e->code;
	if (run < 0)
		return ward_fail_errno(e, "cannot open the quarantine of %s", item->run);
	from = guard_open_parent(run, item->stored, 0700, &from_name, e);
	if (from < 0)
		return from;
	if (to)
		base = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else
		base = open_absolute(item->root, O_RDONLY, e);
	if (base < 0 && to)
		ward_fail_errno(e, "cannot open %s", to);
	if (base < 0)
		return ward_remedy(e, "give an existing directory with --to");
	if (to && check_new_place(item, base, from, from_name, e) < 0)
		return -e->code;
	target = guard_open_parent(base, item->path, 0755, &to_name, e);
	status = target < 0 ? target : guard_move(from, from_name, target, to_name, e);
	if (status == -EEXIST) {
		ward_fail(e, EEXIST, "%s/%s already exists", to ? to : item->root, item->path);
		return ward_remedy(e, "move it away, or restore to another directory with --to");
	}
	if (status < 0)
		return ward_wrap(e, "restoring %s", item->path);
	prune(all, item->run);
	if (asprintf(ret_where, "%s/%s", to ? to : item->root, item->path) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}

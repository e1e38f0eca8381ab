/*
 * Objects of which git refuses some. In: loose objects and packs that the host's git did not take
 * as they are. Out: everything that a ref, a reflog, the index or a state file of the sandbox's
 * leads to and that git finds no fault with is in the host's store. Runs in ward-git with the
 * rights of the repository's owner, once the sandbox is dead.
 *
 * The objects go unjudged into a store beside the host's, in the view's directory. Whatever an id
 * of the sandbox's leads to there comes as one pack through the strict check; where git refuses
 * that, each half is tried, and so on. So one bad object keeps back what needs it and nothing else,
 * whatever pack it lies in, and what nothing leads to stays behind.
 */
#include "git/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/patch_binary.h"
#include "base/remove.h"
#include "git/pack.h"
#include "guard/guard_internal.h"

#define STORE "incoming"
#define JUDGING "judging"
#define IDS_MAX 200000
#define TRIES_MAX 150
#define INCOMING_MS 120000

struct incoming {
	struct take *t;
	const struct git_objects *objects;
	char *store;     /* owned */
	struct strv ids; /* that the sandbox's files name and that the host lacks */
	size_t tries, refused;
	int64_t until_ms;
};

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

/* An empty store that borrows from the host's. */
static int make_store(struct take *t, const char *name, const char *git_dir)
{
	auto_buf objects = { 0 }, line = { 0 }, path = { 0 };
	int status = remove_tree_at(t->dir_fd, name);

	if (status < 0 && status != -ENOENT)
		return status;
	buf_printf(&objects, "%s/objects", git_dir);
	patch_put_name(&line, "", buf_text(&objects)); /* it may have a line break */
	buf_puts(&line, "\n");
	buf_printf(&path, "%s/info/alternates", name);
	if (objects.failed || line.failed || path.failed)
		return -ENOMEM;
	if (mkdirat(t->dir_fd, name, 0700) < 0)
		return -errno;
	return file_write(t->dir_fd, path.data, line.data, line.len, NULL);
}

int objects_take_pack(struct take *t, const char *git_dir, const char *const *words, int fd,
		      int64_t until_ms)
{
	static const char *const judge[] = { "index-pack", "--stdin", "--fix-thin", STRICT, NULL };
	auto_free char *store = NULL;
	struct git_call call = {
		.git_dir = git_dir, .words = judge, .input_fd = fd, .until_ms = until_ms
	};
	int status;

	if (asprintf(&store, "%s/" JUDGING, t->dir) < 0) {
		store = NULL;
		return -ENOMEM;
	}
	call.store = store;
	status = make_store(t, JUDGING, git_dir);
	if (status == 0)
		status = git_call(&call, NULL);
	if (remove_tree_at(t->dir_fd, JUDGING) < 0 && status == 0)
		status = -EIO;
	if (status == 0 && lseek(fd, 0, SEEK_SET) < 0)
		status = -errno;
	call.words = words;
	call.store = NULL;
	return status ? status : git_call(&call, NULL);
}

/* Puts all into it. A pack that is damaged is refused. */
static int fill_store(struct incoming *in)
{
	int status = 0;

	for (size_t i = 0; i < in->objects->packs.len && status >= 0; i++) {
		status = objects_hand_over_pack(in->t, in->objects, in->objects->packs.items[i],
						in->store);
		if (status > 0)
			say(in->t, "refused", in->objects->packs.items[i],
			    "is a pack that git refuses");
	}
	if (status >= 0 && in->objects->loose.len)
		status = objects_hand_over(in->t, in->objects, in->store);
	if (status > 0)
		say_lost(in->t, "git rejects objects that the sandbox made: refs that need them "
				"were not imported");
	return status < 0 ? status : 0;
}

/* Every id that a file names. */
static void add_ids(const struct take *t, const struct file *f, struct strv *ids)
{
	size_t digits = (size_t)t->hash * 2;
	const char *at = f->bytes, *end = f->bytes + f->n;

	while (at < end && ids->len < IDS_MAX) {
		size_t n = strspn(at, "0123456789abcdef");

		if (n == digits && strspn(at, "0") < n)
			strv_addf(ids, "%.*s", (int)n, at);
		at += n ? n : 1;
	}
}

static int collect_ids(struct incoming *in)
{
	struct take *t = in->t;

	for (size_t i = 0; i < t->view.len; i++) {
		const struct file *f = &t->view.items[i];
		struct git_place place = git_path_find(f->path, GIT_DIR_MAIN, t->hash, false);

		if (strncmp(f->path, in->objects->prefix, strlen(in->objects->prefix)) != 0 ||
		    place.form == GIT_FORM_CONFIG || files_equal(f, files_find(&t->base, f->path)))
			continue;
		if (place.form == GIT_FORM_INDEX)
			index_ids(t, files_find(&t->base, f->path), f, &in->ids);
		else
			add_ids(t, f, &in->ids);
	}
	if (in->ids.failed)
		return -ENOMEM;
	strv_sort(&in->ids);
	return 0;
}

static void join(const struct strv *ids, size_t from, size_t to, struct buf *lines)
{
	for (size_t i = from; i < to; i++)
		if (i == from || strcmp(ids->items[i], ids->items[i - 1]) != 0)
			buf_printf(lines, "%s\n", ids->items[i]);
}

static void split(const struct buf *lines, struct strv *ret)
{
	strv_free(ret);
	*ret = (struct strv){ 0 };
	for (const char *at = buf_text(lines); *at; at = strchr(at, '\n') + 1)
		strv_addf(ret, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Those that the host lacks and the store has. */
static int keep_new(struct incoming *in)
{
	auto_buf all = { 0 }, lacking = { 0 }, nowhere = { 0 };
	auto_strv bad = { 0 };
	size_t kept = 0;
	int status;

	join(&in->ids, 0, in->ids.len, &all);
	status = all.failed ? -ENOMEM : ids_missing(in->objects->git_dir, NULL, &all, &lacking);
	if (status == 0)
		status = ids_missing(in->objects->git_dir, in->store, &lacking, &nowhere);
	if (status)
		return status < 0 ? status : -EIO;
	split(&nowhere, &bad);
	split(&lacking, &in->ids);
	if (bad.failed || in->ids.failed)
		return -ENOMEM;
	strv_sort(&bad);
	for (size_t i = 0; i < in->ids.len; i++)
		if (guard_list_has(&bad, in->ids.items[i], strlen(in->ids.items[i]), '\0'))
			free(in->ids.items[i]);
		else
			in->ids.items[kept++] = in->ids.items[i];
	in->ids.len = kept;
	return 0;
}

/* Makes a pack of the objects (one on a line) and hands it to index-pack, which looks at each. 0;
 * 1: it finds fault. */
static int check_strictly(struct take *t, struct git_call call, const struct buf *objects,
			  const char *to_store)
{
	static const char *const make[] = { "pack-objects", "-q", "--stdout", NULL };
	static const char *const take[] = { "index-pack", "--stdin", STRICT, NULL };
	struct pack p = { .fd = -1 };
	int status = pack_begin(&p, t->dir_fd);
	auto_fd fd = p.fd;

	if (status < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return status < 0 ? status : -errno;
	call.words = make;
	call.input = objects->data;
	call.input_n = objects->len;
	call.output_fd = fd;
	status = git_call(&call, NULL);
	if (status == 0 && lseek(fd, 0, SEEK_SET) < 0)
		status = -errno;
	call.words = take;
	call.input = NULL;
	call.output_fd = 0;
	call.input_fd = fd;
	call.store = to_store;
	if (status == 0)
		status = to_store ? git_call(&call, NULL)
				  : objects_take_pack(t, call.git_dir, take, fd, call.until_ms);
	return status < 0 ? status : status > 0;
}

bool files_are_good(struct take *t, const char *git_dir, const struct strv *entries)
{
	static const char *const words[] = { "mktree", "--missing", "--batch", "-z", NULL };
	auto_free char *store = NULL;
	struct git_call call = { .git_dir = git_dir, .words = words };
	auto_buf trees = { 0 }, ids = { 0 };
	bool good;

	/* a tree for each: they may have one name */
	for (size_t i = 0; i < entries->len; i++) {
		const char *id = strchr(entries->items[i], ' ') + 1, *name = strchr(id, ' ') + 1;

		buf_printf(&trees, "%.*s blob %.*s\t%s", (int)(id - entries->items[i] - 1),
			   entries->items[i], (int)(name - id - 1), id, name);
		buf_add(&trees, "\0\0", 2);
	}
	if (trees.failed || asprintf(&store, "%s/" STORE, t->dir) < 0) {
		store = NULL;
		return false;
	}
	call.store = store;
	call.input = trees.data;
	call.input_n = trees.len;
	good = make_store(t, STORE, git_dir) == 0 && git_call(&call, &ids) == 0;
	call.input = NULL;
	good = good && check_strictly(t, call, &ids, store) == 0;
	(void)!remove_tree_at(t->dir_fd, STORE);
	return good;
}

/* All that some ids lead to, through the strict check. 0: it is in the host's store; 1: git refuses
 * it. */
static int bring(struct incoming *in, size_t from, size_t to)
{
	static const char *const list[] = { "rev-list", "--objects", "--ignore-missing",
					    "--stdin",  "--not",     "--glob=refs/*",
					    NULL };
	auto_buf ids = { 0 }, objects = { 0 };
	struct git_call call = { .git_dir = in->objects->git_dir,
				 .words = list,
				 .store = in->store,
				 .until_ms = in->until_ms };
	int status;

	join(&in->ids, from, to, &ids);
	call.input = ids.data;
	call.input_n = ids.len;
	status = ids.failed ? -ENOMEM : git_call(&call, &objects);
	if (status || !objects.len)
		return status < 0 ? status : status > 0;
	return check_strictly(in->t, call, &objects, NULL);
}

static int bring_parts(struct incoming *in, size_t from, size_t to)
{
	int status;

	if (from == to)
		return 0;
	status = in->tries++ >= TRIES_MAX || now_ms() > in->until_ms ? 2 : bring(in, from, to);
	if (status <= 0)
		return status;
	if (status == 2 || to - from == 1) {
		in->refused += to - from;
		return 0;
	}
	status = bring_parts(in, from, from + (to - from) / 2);
	return status < 0 ? status : bring_parts(in, from + (to - from) / 2, to);
}

int take_piecemeal(struct take *t, const struct git_objects *o)
{
	struct incoming in = { .t = t, .objects = o, .until_ms = now_ms() + INCOMING_MS };
	int status = asprintf(&in.store, "%s/" STORE, t->dir) < 0
			     ? -ENOMEM
			     : make_store(t, STORE, o->git_dir);

	if (status == 0)
		status = fill_store(&in);
	if (status == 0)
		status = collect_ids(&in);
	if (status == 0)
		status = keep_new(&in);
	if (status == 0)
		status = bring_parts(&in, 0, in.ids.len);
	if (in.refused)
		say_lost(t,
			 "git: %zu objects were not imported: git rejects them, or something they "
			 "refer to",
			 in.refused);
	if (remove_tree_at(t->dir_fd, STORE) < 0 && status == 0)
		status = -EIO;
	strv_free(&in.ids);
	free(in.store);
	if (status == -ENOMEM)
		return out_of_memory(t);
	return status < 0 ? ward_fail(t->e, -status, "cannot import the sandbox's objects: %s",
				      strerror(-status))
			  : 0;
}

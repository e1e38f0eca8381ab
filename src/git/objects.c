/*
 * Objects. In: the loose objects and packs that the sandbox made. Out: the same content in the
 * host's store, under the names that the content itself has. Runs in ward-git with the rights of
 * the repository's owner.
 *
 * No name is believed: git on the host's side unpacks or indexes the bytes and computes every id
 * anew. Loose objects go there as one pack (pack.c); packs are read by index-pack alone. An index,
 * a commit graph or an alternates file of the sandbox's is never opened. Where git refuses
 * something, incoming.c finds out what can be taken over all the same.
 *
 * All is bounded: the number of objects (scan.c), the bytes that loose ones unfold to, packs, and
 * the time.
 */
#include "git/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "git/pack.h"
#include "guard/guard_internal.h"

#define PACKED_FROM 500 /* as many loose objects or more come as a pack */
#define LOOSE_BYTES_MAX ((uint64_t)4 << 30)
#define PACKS_MAX 1000
#define OBJECTS_MS 240000 /* for all calls of git for objects, in one taking */

static int fail(struct take *t, const char *what, int status)
{
	t->failed = true;
	return ward_fail(t->e, status < 0 ? -status : EIO, "git could not %s", what);
}

/* The id that a loose object's path says: the last two components. */
static void add_id(struct buf *ids, const char *path)
{
	const char *slash = strrchr(path, '/');

	buf_printf(ids, "%.2s%s\n", slash - 2, slash + 1);
}

/* Whether an item of t->objects belongs to the repository at prefix; its path. */
static const char *object_of(const char *item, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(item, prefix, n) == 0 && item[n] == '\n' ? item + n + 1 : NULL;
}

static bool is_pack(const char *path)
{
	return strstr(path, ".pack") != NULL;
}

/* A file of the view, through no link; -1: it is gone, or no plain file. */
static int open_object(const struct take *t, const char *path, struct stat *st)
{
	struct ward_err e = { 0 };
	auto_fd fd = path_open_nolink(t->view_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &e);

	return fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) ? take_fd(&fd) : -1;
}

int objects_hand_over(struct take *t, const struct git_objects *o, const char *store)
{
	static const char *const unpack[] = { "unpack-objects", "-q", NULL };
	static const char *const index[] = { "index-pack", "--stdin", NULL };
	struct pack p = { .fd = -1, .room = LOOSE_BYTES_MAX };
	struct git_call to = { .git_dir = o->git_dir,
			       .words = o->loose.len < PACKED_FROM ? unpack : index,
			       .store = store,
			       .until_ms = o->until_ms };
	int status = pack_begin(&p, t->dir_fd);

	for (size_t i = 0; i < o->loose.len && status >= 0; i++) {
		struct stat st;
		auto_fd fd = open_object(t, o->loose.items[i], &st);

		status = fd < 0 ? 0 : pack_add_loose(&p, fd);
	}
	if (status >= 0)
		status = pack_finish(&p, t->hash);
	to.input_fd = p.fd;
	if (status >= 0 && p.count)
		status = store ? git_call(&to, NULL)
			       : objects_take_pack(t, o->git_dir, to.words, p.fd, o->until_ms);
	own_close_fd(&p.fd);
	if (p.too_large && !store)
		say_lost(t,
			 "git: %zu objects were not imported: they are too large, %" PRIu64
			 " GiB alone or %" PRIu64 " GiB together",
			 p.too_large, PACK_OBJECT_MAX >> 30, LOOSE_BYTES_MAX >> 30);
	return status;
}

int objects_hand_over_pack(struct take *t, const struct git_objects *o, const char *path,
			   const char *store)
{
	static const char *const words[] = { "index-pack", "--stdin", "--fix-thin", NULL };
	struct stat st;
	auto_fd fd = open_object(t, path, &st);
	struct git_call call = { .git_dir = o->git_dir,
				 .words = words,
				 .input_fd = fd,
				 .store = store,
				 .until_ms = o->until_ms };

	if (fd < 0)
		return 0; /* gone this moment: it was repacked */
	return store ? git_call(&call, NULL)
		     : objects_take_pack(t, o->git_dir, words, fd, o->until_ms);
}

/* Whether the host has the pack already: its name is its content's hash, and the host computed
 * it. */
static bool has_pack(const struct take *t, const char *git_dir, const char *path)
{
	const char *name = strrchr(path, '/');
	auto_buf there = { 0 };
	struct stat st, own;
	auto_fd fd = open_object(t, path, &st);

	buf_printf(&there, "%s/objects/pack/%s", git_dir, name ? name + 1 : path);
	return fd >= 0 && !there.failed && lstat(there.data, &own) == 0 &&
	       own.st_size == st.st_size;
}

/* Which loose objects and packs of the repository the host lacks. */
static int find_new(struct take *t, const char *prefix, struct git_objects *o)
{
	auto_buf ids = { 0 }, missing = { 0 };
	auto_strv wanted = { 0 };
	int status;

	for (size_t i = 0; i < t->objects.len; i++) {
		const char *path = object_of(t->objects.items[i], prefix);

		if (path && !is_pack(path))
			add_id(&ids, path);
		else if (path && o->packs.len < PACKS_MAX && !has_pack(t, o->git_dir, path))
			strv_add(&o->packs, path);
	}
	status = ids.failed ? -ENOMEM : ids_missing(o->git_dir, NULL, &ids, &missing);
	if (status)
		return fail(t, "look for the sandbox's objects", status);
	for (const char *id = buf_text(&missing); *id; id = strchr(id, '\n') + 1)
		strv_addf(&wanted, "%.*s", (int)strcspn(id, "\n"), id);
	if (!wanted.failed)
		strv_sort(&wanted);
	for (size_t i = 0; i < t->objects.len && wanted.len; i++) {
		const char *path = object_of(t->objects.items[i], prefix);
		auto_buf id = { 0 };

		if (!path || is_pack(path))
			continue;
		add_id(&id, path);
		if (!id.failed && guard_list_has(&wanted, id.data, id.len - 1, '\0'))
			strv_add(&o->loose, path);
	}
	return wanted.failed || o->loose.failed || o->packs.failed
		       ? ward_fail(t->e, ENOMEM, "out of memory")
		       : 0;
}

/* Hands over what git likes at once; what it does not like stays in *o. */
static int take_at_once(struct take *t, struct git_objects *o)
{
	auto_strv refused = { 0 };
	int status = 0;

	for (size_t i = 0; i < o->packs.len && status >= 0; i++) {
		status = objects_hand_over_pack(t, o, o->packs.items[i], NULL);
		if (status > 0)
			strv_add(&refused, o->packs.items[i]);
	}
	if (status >= 0)
		status = o->loose.len ? objects_hand_over(t, o, NULL) : 0;
	if (status < 0 || refused.failed)
		return fail(t, "import the sandbox's objects", status < 0 ? status : -ENOMEM);
	if (status == 0)
		strv_free(&o->loose);
	strv_free(&o->packs);
	o->packs = refused;
	refused = (struct strv){ 0 };
	return 0;
}

static int take_repository(struct take *t, const char *prefix, int64_t until_ms)
{
	struct git_objects o = { .prefix = prefix, .until_ms = until_ms };
	auto_free char *git_dir = NULL;
	int status;

	if (asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0)
		return ward_fail(t->e, ENOMEM, "out of memory");
	o.git_dir = git_dir;
	status = find_new(t, prefix, &o);
	if (status == 0)
		status = take_at_once(t, &o);
	/* while it runs it may be written this moment */
	if (status == 0 && (o.loose.len || o.packs.len) && !t->live)
		status = take_piecemeal(t, &o);
	strv_free(&o.loose);
	strv_free(&o.packs);
	return status;
}

int take_objects(struct take *t)
{
	int64_t until_ms = now_ms() + OBJECTS_MS;
	int status = 0;

	for (size_t k = 0; k < t->repositories.len && status == 0; k++)
		status = go_on(t, t->repositories.items[k],
			       take_repository(t, t->repositories.items[k], until_ms));
	return status;
}

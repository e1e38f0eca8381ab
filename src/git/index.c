/*
 * The index. In: the indexes of both sides, as they had them last and have them now. Out: a list of
 * those that go to the host (take_state() writes them), and the branches that must not move because
 * theirs does not. Runs in ward-git with the rights of the repository's owner.
 *
 * `git status` on the host writes the index anew without changing it: indexes are compared by their
 * entries.
 */
#include "git/protect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "guard/guard_internal.h"
#include "rules/git_index.h"
#include "rules/git_ref.h"

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

struct digest {
	struct sha256 sum;
	unsigned hash;
};

static int add_entry(void *ctx, const struct git_index_entry *entry)
{
	struct digest *d = ctx;
	unsigned char flags[2] = { (unsigned char)entry->stage,
				   (unsigned char)(entry->assume_unchanged |
						   entry->skip_worktree << 1 |
						   entry->intent_to_add << 2) };

	sha256_add(&d->sum, &entry->mode, sizeof(entry->mode));
	sha256_add(&d->sum, entry->id, d->hash);
	sha256_add(&d->sum, flags, sizeof(flags));
	sha256_add(&d->sum, entry->path, entry->path_n + 1);
	return 0;
}

/* Whether two indexes say the same of the same files, whatever they know of times and inodes. */
static bool same_index(const struct take *t, const struct file *a, const struct file *b)
{
	const struct file *both[2] = { a, b };
	unsigned char sums[2][32];

	if (files_equal(a, b))
		return true;
	for (size_t i = 0; i < 2; i++) {
		struct git_index_info info;
		struct digest d = { .hash = t->hash };
		const char *why;

		sha256_begin(&d.sum);
		if (!both[i] ||
		    git_index_read((const uint8_t *)both[i]->bytes, both[i]->n, t->hash, add_entry,
				   &d, &info, &why) != 0 ||
		    info.split)
			return false;
		sha256_end(&d.sum, sums[i]);
	}
	return memcmp(sums[0], sums[1], sizeof(sums[0])) == 0;
}

/* The branch that the work tree of this index has checked out must not move on the host. */
static int block_branch(struct take *t, const char *index_path)
{
	size_t n = strlen(index_path) - strlen("index"), repository;
	auto_buf head = { 0 }, bytes = { 0 };
	struct file f;
	const char *name;
	size_t name_n;

	buf_printf(&head, "%.*sHEAD", (int)n, index_path);
	if (head.failed)
		return out_of_memory(t);
	repository = strncmp(index_path, "worktrees/", 10) == 0 ? 0 : n;
	if (!read_host(t, head.data, &bytes, &f) ||
	    git_head_read(f.bytes, f.n, t->hash, &name, &name_n) != GIT_REF_SYMBOLIC)
		return 0;
	strv_addf(&t->blocked, "%.*s%.*s", (int)repository, index_path, (int)name_n, name);
	return t->blocked.failed ? out_of_memory(t) : 0;
}

static bool is_index(const char *path)
{
	struct git_place place = git_path_find(path, GIT_DIR_MAIN, GIT_SHA1, false);

	return place.form == GIT_FORM_INDEX && strcmp(path + place.inner, "index") == 0;
}

static void id_text(const uint8_t *id, unsigned hash, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < hash; i++) {
		ret_text[2 * i] = digits[id[i] >> 4];
		ret_text[2 * i + 1] = digits[id[i] & 15];
	}
	ret_text[2 * hash] = '\0';
}

/* What is asked about an index, found in one reading: those of large trees have many entries. */
struct listing {
	unsigned hash;
	struct git_index_info info;
	struct buf ids; /* of its files, as bytes, in its order */
	/* the same, sorted; made when they are looked for out of their order */
	struct buf sorted;
	size_t at; /* in ids: where the next one of the other index is, as a rule */
	/* "MODE ID NAME" of names that git itself reads: they begin with a dot, or are short names
	 * of such on other systems */
	struct strv special;
};

static int list_entry(void *ctx, const struct git_index_entry *entry)
{
	struct listing *l = ctx;
	const char *name = strrchr(entry->path, '/');
	char text[GIT_HASH_MAX * 2 + 1];

	if (entry->mode == GIT_MODE_GITLINK || entry->intent_to_add)
		return 0;
	buf_add(&l->ids, entry->id, l->hash);
	name = name ? name + 1 : entry->path;
	if (entry->mode != GIT_MODE_TREE && (*name == '.' || strchr(name, '~'))) {
		id_text(entry->id, l->hash, text);
		strv_addf(&l->special, "%o %s %s", entry->mode, text, name);
	}
	return l->ids.failed || l->special.failed ? -ENOMEM : 0;
}

/* Lists an index; one that is not there (NULL) has nothing. -EINVAL: it is none. */
static int list_index(const struct take *t, const struct file *index, struct listing *ret)
{
	const char *why;

	*ret = (struct listing){ .hash = t->hash };
	return index ? git_index_read((const uint8_t *)index->bytes, index->n, t->hash, list_entry,
				      ret, &ret->info, &why)
		     : 0;
}

static void listing_clear(struct listing *l)
{
	buf_free(&l->ids);
	buf_free(&l->sorted);
	strv_free(&l->special);
}

static int compare_ids(const void *a, const void *b, void *hash)
{
	return memcmp(a, b, *(const unsigned *)hash);
}

static bool is_at(struct listing *l, size_t at, const uint8_t *id)
{
	if (l->ids.len < at + l->hash || memcmp(l->ids.data + at, id, l->hash) != 0)
		return false;
	l->at = at + l->hash;
	return true;
}

struct id_key {
	const uint8_t *id;
	unsigned hash;
};

static int compare_key(const void *key, const void *id)
{
	const struct id_key *k = key;

	return memcmp(k->id, id, k->hash);
}

static bool has_id(struct listing *l, const uint8_t *id)
{
	struct id_key key = { id, l->hash };

	if (is_at(l, l->at, id) || is_at(l, l->at + l->hash, id))
		return true;
	if (!l->ids.len)
		return false;
	if (!l->sorted.len) {
		buf_add(&l->sorted, l->ids.data, l->ids.len);
		if (l->sorted.failed)
			return false; /* it is looked for in the store, then */
		qsort_r(l->sorted.data, l->sorted.len / l->hash, l->hash, compare_ids, &l->hash);
	}
	return bsearch(&key, l->sorted.data, l->sorted.len / l->hash, l->hash, compare_key);
}

/* The ids that the old index does not have, as text. */
static void add_new_ids(struct listing *old, const struct listing *now, struct strv *ids)
{
	const uint8_t *id = (const uint8_t *)buf_text(&now->ids);
	char text[GIT_HASH_MAX * 2 + 1];

	for (size_t i = 0; i < now->ids.len; i += now->hash)
		if (!has_id(old, id + i)) {
			id_text(id + i, now->hash, text);
			strv_add(ids, text);
		}
}

void index_ids(const struct take *t, const struct file *old, const struct file *index,
	       struct strv *ids)
{
	struct listing before, now;

	if (list_index(t, old, &before) == -ENOMEM)
		ids->failed = true;
	(void)!list_index(t, index, &now);
	add_new_ids(&before, &now, ids);
	listing_clear(&before);
	listing_clear(&now);
}

/* Whether the shared part that a split index is read with may come, too. */
static bool has_shared_part(const struct take *t, const char *path, const struct listing *index)
{
	auto_buf name = { 0 };
	bool any = false;

	buf_printf(&name, "%.*ssharedindex.", (int)(strlen(path) - strlen("index")), path);
	for (unsigned i = 0; index->info.split && i < t->hash; i++) {
		buf_printf(&name, "%02x", index->info.base[i]);
		any |= index->info.base[i] != 0;
	}
	return !name.failed && (!any || files_find(&t->view, name.data));
}

/* Where the objects of an index or HEAD are. */
int repository_of(struct take *t, const char *path, char **ret_git_dir)
{
	const char *prefix = "";

	for (size_t i = 0; i < t->repositories.len; i++) {
		const char *one = t->repositories.items[i];

		if (strlen(one) > strlen(prefix) && strncmp(path, one, strlen(one)) == 0)
			prefix = one;
	}
	if (asprintf(ret_git_dir, "%s/%s", t->record.git_dir, prefix) < 0) {
		*ret_git_dir = NULL;
		return out_of_memory(t);
	}
	return 0;
}

/* Whether git takes those that the old index does not have under the same name. */
static bool has_good_names(struct take *t, const char *git_dir, const struct listing *old,
			   const struct listing *now)
{
	auto_strv before = { 0 }, entries = { 0 };

	for (size_t i = 0; i < old->special.len; i++)
		strv_add(&before, old->special.items[i]);
	strv_sort(&before);
	for (size_t i = 0; i < now->special.len; i++) {
		const char *line = now->special.items[i];

		if (!guard_list_has(&before, line, strlen(line), '\0'))
			strv_add(&entries, line);
	}
	return !before.failed && !entries.failed &&
	       (!entries.len || files_are_good(t, git_dir, &entries));
}

/* What is wrong with the content of the entries that the old index does not have; NULL: nothing.
 * git fails in a repository whose index leads nowhere. */
static const char *find_fault(struct take *t, const char *path, struct listing *old,
			      const struct listing *now)
{
	auto_strv ids = { 0 };
	auto_free char *git_dir = NULL;
	auto_buf lines = { 0 }, missing = { 0 };

	add_new_ids(old, now, &ids);
	for (size_t i = 0; i < ids.len; i++)
		buf_printf(&lines, "%s\n", ids.items[i]);
	if (ids.failed || lines.failed || repository_of(t, path, &git_dir) < 0)
		return "cannot be read";
	if (lines.len && (ids_missing(git_dir, NULL, &lines, &missing) != 0 || missing.len))
		return "is an index of files whose content is missing";
	return has_good_names(t, git_dir, old, now)
		       ? NULL
		       : "is an index with a file that git refuses, such as .gitmodules";
}

/* The same for the shared parts that come with the index. */
static const char *find_shared_fault(struct take *t, const char *path, struct listing *old)
{
	const char *why = NULL;
	auto_buf shared = { 0 };

	buf_printf(&shared, "%.*ssharedindex.", (int)(strlen(path) - strlen("index")), path);
	for (size_t i = 0; i < t->view.len && !why && !shared.failed; i++) {
		struct listing now;

		if (strncmp(t->view.items[i].path, shared.data, shared.len) != 0 ||
		    files_find(&t->base, t->view.items[i].path))
			continue;
		why = list_index(t, &t->view.items[i], &now) == 0 ? find_fault(t, path, old, &now)
								  : "cannot be read";
		listing_clear(&now);
	}
	return shared.failed ? "cannot be read" : why;
}

/* A checkout or a stash on the host would write what the index has. */
static const char *find_protected(struct take *t, const char *path, const struct file *b,
				  const struct file *v)
{
	auto_free char *brings = NULL;

	if (index_brings(t, path, b, v, &brings) < 0)
		return "cannot be read";
	if (!brings)
		return NULL;
	say_lost(t,
		 "git: the index was not imported: it has a new or changed %s, which is "
		 "protected",
		 brings);
	return "is an index with a new or changed file that is protected";
}

/* Why the sandbox's index must not go to the host; NULL: it may. */
static const char *refuse_index(struct take *t, const char *path, const struct file *b,
				const struct file *v)
{
	struct listing old, now;
	bool read = list_index(t, b, &old) != -ENOMEM;
	const char *why = list_index(t, v, &now) == 0 && read ? NULL : "cannot be read";

	if (!why && !has_shared_part(t, path, &now))
		why = "is a split index without its shared part";
	if (!why)
		why = find_fault(t, path, &old, &now);
	if (!why)
		why = find_shared_fault(t, path, &old);
	if (!why)
		why = find_protected(t, path, b, v);
	listing_clear(&old);
	listing_clear(&now);
	return why;
}

/* 1: the sandbox's index goes to the host. */
static int decide_index(struct take *t, const char *path)
{
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	auto_buf bytes = { 0 };
	struct file now;
	bool there = read_host(t, path, &bytes, &now);
	const struct file *h = there ? &now : NULL;
	const char *why;

	if (files_equal(v, b))
		return files_equal(h, b) ? 0 : pull(t, path, h);
	if (files_equal(h, v))
		return agree(t, path, v);
	why = v ? refuse_index(t, path, b, v) : NULL;
	if (why) {
		if (!t->live)
			say(t, "refused", path, why);
		return block_branch(t, path);
	}
	if (files_equal(h, b) || (h && b && same_index(t, h, b)) || !h)
		return 1;
	if (v && same_index(t, h, v))
		return agree(t, path, v);
	say_lost(t, "git: the index changed on the host and in the sandbox; the host's index and "
		    "checked-out branch stay");
	return block_branch(t, path);
}

int take_indexes(struct take *t)
{
	int status = 0;

	for (int k = 0; k < 2; k++) {
		const struct files *list = k ? &t->base : &t->view;

		for (size_t i = 0; i < list->len && status >= 0; i++) {
			const char *path = list->items[i].path;

			if (!is_index(path) || (k && files_find(&t->view, path)))
				continue;
			status = decide_index(t, path);
			if (status == 1)
				strv_add(&t->indexes, path);
		}
	}
	return t->indexes.failed ? out_of_memory(t) : status < 0 ? status : 0;
}

/*
 * The index. In: the indexes of both sides, as they had them last and have them now. Out: a list of
 * those that go to the host (take_state() writes them), and the branches that must not move because
 * theirs does not. Runs in ward-git with the rights of the repository's owner.
 *
 * `git status` on the host writes the index anew without changing it: indexes are compared by their
 * entries.
 */
#include "git/git.h"

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

/* Whether the shared part that a split index is read with may come, too. */
static bool has_shared_part(const struct take *t, const char *path, const struct file *index)
{
	struct git_index_info info = { 0 };
	auto_buf name = { 0 };
	const char *why;
	bool any = false;

	if (git_index_read((const uint8_t *)index->bytes, index->n, t->hash, NULL, NULL, &info,
			   &why) != 0)
		return false;
	buf_printf(&name, "%.*ssharedindex.", (int)(strlen(path) - strlen("index")), path);
	for (unsigned i = 0; info.split && i < t->hash; i++) {
		buf_printf(&name, "%02x", info.base[i]);
		any |= info.base[i] != 0;
	}
	return !name.failed && (!any || files_find(&t->view, name.data));
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

/* The ids of an index, as bytes. An index of a large tree has many, and most of another one are the
 * same in the same order. */
struct known_ids {
	unsigned hash;
	struct buf ids; /* in the order of the index */
	struct buf sorted;
	size_t at; /* in ids: where the next one of the other index is, as a rule */
};

static int know_id(void *ctx, const struct git_index_entry *entry)
{
	struct known_ids *k = ctx;

	if (entry->mode != GIT_MODE_GITLINK && !entry->intent_to_add)
		buf_add(&k->ids, entry->id, k->hash);
	return k->ids.failed ? -ENOMEM : 0;
}

static int compare_ids(const void *a, const void *b, void *hash)
{
	return memcmp(a, b, *(const unsigned *)hash);
}

static int know_index(struct known_ids *k, const struct take *t, const struct file *index)
{
	struct git_index_info info;
	const char *why;

	k->hash = t->hash;
	if (index && git_index_read((const uint8_t *)index->bytes, index->n, t->hash, know_id, k,
				    &info, &why) == -ENOMEM)
		return -ENOMEM;
	buf_add(&k->sorted, buf_text(&k->ids), k->ids.len);
	if (k->sorted.failed)
		return -ENOMEM;
	qsort_r(k->sorted.data, k->sorted.len / k->hash, k->hash, compare_ids, &k->hash);
	return 0;
}

static void forget_ids(struct known_ids *k)
{
	buf_free(&k->ids);
	buf_free(&k->sorted);
}

static bool is_at(struct known_ids *k, size_t at, const uint8_t *id)
{
	if (k->ids.len < at + k->hash || memcmp(k->ids.data + at, id, k->hash) != 0)
		return false;
	k->at = at + k->hash;
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

static bool knows_id(struct known_ids *k, const uint8_t *id)
{
	struct id_key key = { id, k->hash };

	return is_at(k, k->at, id) || is_at(k, k->at + k->hash, id) ||
	       bsearch(&key, k->sorted.data, k->sorted.len / k->hash, k->hash, compare_key);
}

struct id_list {
	const struct take *t;
	struct known_ids *before; /* those are left out; NULL: none */
	struct strv *ids;
};

static int add_index_id(void *ctx, const struct git_index_entry *entry)
{
	struct id_list *l = ctx;
	char text[GIT_HASH_MAX * 2 + 1];

	if (entry->mode == GIT_MODE_GITLINK || entry->intent_to_add ||
	    (l->before && knows_id(l->before, entry->id)))
		return 0;
	id_text(entry->id, l->t->hash, text);
	strv_add(l->ids, text);
	return l->ids->failed ? -ENOMEM : 0;
}

void index_ids(const struct take *t, const struct file *old, const struct file *index,
	       struct strv *ids)
{
	struct known_ids before = { 0 };
	struct id_list l = { .t = t, .before = &before, .ids = ids };
	struct git_index_info info;
	const char *why;

	if (know_index(&before, t, old) < 0)
		ids->failed = true;
	else
		(void)!git_index_read((const uint8_t *)index->bytes, index->n, t->hash,
				      add_index_id, &l, &info, &why);
	forget_ids(&before);
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

struct name_list {
	unsigned hash;
	struct strv *lines;
};

/* Names that git itself reads begin with a dot, or are short names of such on other systems: "MODE
 * ID NAME". */
static int add_special(void *ctx, const struct git_index_entry *entry)
{
	struct name_list *l = ctx;
	const char *name = strrchr(entry->path, '/');
	char text[GIT_HASH_MAX * 2 + 1];

	name = name ? name + 1 : entry->path;
	if (entry->mode == GIT_MODE_GITLINK || entry->mode == GIT_MODE_TREE ||
	    entry->intent_to_add || (*name != '.' && !strchr(name, '~')))
		return 0;
	id_text(entry->id, l->hash, text);
	strv_addf(l->lines, "%o %s %s", entry->mode, text, name);
	return l->lines->failed ? -ENOMEM : 0;
}

static int list_special(const struct take *t, const struct file *index, struct strv *lines)
{
	struct name_list l = { .hash = t->hash, .lines = lines };
	struct git_index_info info;
	const char *why;

	return git_index_read((const uint8_t *)index->bytes, index->n, t->hash, add_special, &l,
			      &info, &why);
}

/* Whether git takes those that the old index does not have under the same name. */
static bool has_good_names(struct take *t, const char *git_dir, const struct file *old,
			   const struct file *now)
{
	auto_strv before = { 0 }, lines = { 0 }, entries = { 0 };

	if (list_special(t, now, &lines) != 0 || (old && list_special(t, old, &before) == -ENOMEM))
		return false;
	strv_sort(&before);
	for (size_t i = 0; i < lines.len; i++)
		if (!guard_list_has(&before, lines.items[i], strlen(lines.items[i]), '\0'))
			strv_add(&entries, lines.items[i]);
	return !entries.failed && (!entries.len || files_are_good(t, git_dir, &entries));
}

/* What is wrong with the content of the entries that the old index does not have; NULL: nothing.
 * git fails in a repository whose index leads nowhere. */
static const char *find_fault(struct take *t, const char *path, const struct file *old,
			      const struct file *now)
{
	auto_strv ids = { 0 };
	auto_free char *git_dir = NULL;
	auto_buf lines = { 0 }, missing = { 0 };

	index_ids(t, old, now, &ids);
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

/* The same for the index and the shared parts that come with it. */
static const char *find_any_fault(struct take *t, const char *path, const struct file *old,
				  const struct file *now)
{
	const char *why = find_fault(t, path, old, now);
	auto_buf shared = { 0 };

	buf_printf(&shared, "%.*ssharedindex.", (int)(strlen(path) - strlen("index")), path);
	for (size_t i = 0; i < t->view.len && !why && !shared.failed; i++)
		if (strncmp(t->view.items[i].path, shared.data, shared.len) == 0 &&
		    !files_find(&t->base, t->view.items[i].path))
			why = find_fault(t, path, old, &t->view.items[i]);
	return shared.failed ? "cannot be read" : why;
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
	if (v && !has_shared_part(t, path, v)) {
		if (!t->live)
			say(t, "refused", path, "is a split index without its shared part");
		return block_branch(t, path);
	}
	why = v ? find_any_fault(t, path, b, v) : NULL;
	if (why) {
		if (!t->live)
			say(t, "refused", path, why);
		return block_branch(t, path);
	}
	if (files_equal(h, b) || (h && b && same_index(t, h, b)) || !h)
		return 1;
	if (v && same_index(t, h, v))
		return agree(t, path, v);
	say_note(t, "git: the index changed on the host and in the sandbox; the host's index and "
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

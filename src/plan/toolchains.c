/*
 * Toolchains on this host. In: tables/toolchains.def, the caller's HOME and environment. Out: for a
 * preset the directories and files that are shown, and why one may not be. Runs in the supervisor,
 * and in `ward learn`, with the user's rights; only looks. A plain run comes here for the names of
 * markers alone (toolchain_has_marker()).
 *
 * What is shown becomes programs that the sandbox runs, so it must be in the hands of the user or
 * of root: every directory on the way to it is owned by one of them, and nobody else may write
 * there. Links are followed first, and what they lead to is judged: a directory that is a link to
 * ~/.ssh is ~/.ssh, which tables/learn.def knows as a place of secrets, and is refused.
 */
#include "plan/toolchains.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "policy/secret_path.h"

#define ITEMS_MAX 120 /* a mount each */

/* Texts lie in the rows: pointers would have to be relocated in every run. */
static const char presets[][8] = {
#define PRESET(name, help) name,
#include "toolchains.def"
};

static const struct marker_row {
	char preset[8], file[24];
} markers[] = {
#define MARKER(preset, file) { preset, file },
#include "toolchains.def"
};

static const struct cache_row {
	char preset[8], cache[8], file[24];
} caches[] = {
#define CACHES(preset, cache, file) { preset, cache, file },
#include "toolchains.def"
};

static const struct manager_row {
	char preset[8], name[12], variable[24], path[32], proof[20];
} managers[] = {
#define MANAGER(preset, name, variable, path, proof) { preset, name, variable, path, proof },
#include "toolchains.def"
};

struct part_row {
	char owner[12], text[36];
};

static const struct part_row shows[] = {
#define SHOW(manager, path) { manager, path },
#include "toolchains.def"
};

static const struct part_row bins[] = {
#define BIN(manager, path) { manager, path },
#include "toolchains.def"
};

static const struct part_row sets[] = {
#define SETS(manager, variable) { manager, variable },
#include "toolchains.def"
};

static const struct part_row passes[] = {
#define PASS(preset, variable) { preset, variable },
#include "toolchains.def"
};

static const char hidden[][24] = {
#define HIDE(pattern) pattern,
#include "toolchains.def"
};

/* Each text has room for its NUL. */
#define FITS(text, type, member)                                                                   \
	_Static_assert(sizeof(text) <= sizeof(((type *)0)->member), "too long: " text);
#define PRESET(name, help) _Static_assert(sizeof(name) <= sizeof(presets[0]), "too long");
#define MARKER(p, f) FITS(p, struct marker_row, preset) FITS(f, struct marker_row, file)
#define CACHES(p, c, f) FITS(c, struct cache_row, cache) FITS(f, struct cache_row, file)
#define MANAGER(p, n, v, path_, proof_)                                                            \
	FITS(n, struct manager_row, name)                                                          \
	FITS(v, struct manager_row, variable)                                                      \
	FITS(path_, struct manager_row, path) FITS(proof_, struct manager_row, proof)
#define SHOW(m, t) FITS(m, struct part_row, owner) FITS(t, struct part_row, text)
#define BIN(m, t) FITS(t, struct part_row, text)
#define SETS(m, t) FITS(t, struct part_row, text)
#define PASS(m, t) FITS(t, struct part_row, text)
#define HIDE(t) _Static_assert(sizeof(t) <= sizeof(hidden[0]), "too long: " t);
#include "toolchains.def"

const char *toolchain_preset(size_t i)
{
	return i < ARRAY_LEN(presets) ? presets[i] : NULL;
}

bool toolchain_is_marker(const char *preset, const char *file)
{
	for (size_t i = 0; i < ARRAY_LEN(markers); i++)
		if (markers[i].file[0] == file[0] && strcmp(markers[i].file, file) == 0 &&
		    (!preset || strcmp(markers[i].preset, preset) == 0))
			return true;
	return false;
}

/* One listing instead of a question for each name. */
bool toolchain_has_marker(const char *dir, const char *preset)
{
	char entries[4096] __attribute__((aligned(8)));
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	while (fd >= 0 && (n = getdents64(fd, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(entries + at);

			if (toolchain_is_marker(preset, entry->d_name))
				return true;
			at += entry->d_reclen;
		}
	return false;
}

bool toolchain_has_cache(const char *preset, const char *cache, const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(caches); i++) {
		const struct cache_row *row = &caches[i];
		auto_free char *file = NULL;

		if (strcmp(row->preset, preset) != 0 || strcmp(row->cache, cache) != 0)
			continue;
		file = path_join(dir, *row->file ? row->file : ".");
		if (file && access(file, F_OK) == 0)
			return true;
	}
	return false;
}

bool toolchain_hides(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (fnmatch(hidden[i], name, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

const char *toolchain_passes(const char *preset, size_t i)
{
	for (size_t k = 0; k < ARRAY_LEN(passes); k++)
		if (strcmp(passes[k].owner, preset) == 0 && i-- == 0)
			return passes[k].text;
	return NULL;
}

/* ---- what may be shown ---- */

/* Whether others than the user and root may change what is there. A directory for everybody is fine
 * on the way if it is sticky: nobody else can replace what the user has put there. */
static const char *judge_owner(const struct stat *st, bool on_the_way)
{
	bool sticky = st->st_mode & S_ISVTX;

	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "another user owns it, or a directory above it";
	if (st->st_mode & S_IWOTH && !(on_the_way && sticky))
		return "everybody may write to it, or to a directory above it";
	if (st->st_mode & S_IWGRP && st->st_gid != getegid() && st->st_gid != 0 &&
	    !(sticky && st->st_uid == 0))
		return "a group may write to it, or to a directory above it";
	return NULL;
}

static const char *judge_way(const char *real)
{
	struct stat st;
	const char *why = lstat("/", &st) < 0 ? "it cannot be examined" : judge_owner(&st, true);

	for (size_t n = 0; !why && real[n];) {
		auto_free char *part = NULL;

		n++;
		n += strcspn(real + n, "/");
		part = strndup(real, n);
		if (!part || lstat(part, &st) < 0 || S_ISLNK(st.st_mode))
			return "it cannot be examined";
		why = judge_owner(&st, real[n] == '/');
	}
	return why;
}

static const char *judge(const char *real, const struct stat *st)
{
	const char *home = getenv("HOME");
	auto_free char *real_home = home && *home == '/' ? realpath(home, NULL) : NULL;

	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return "it is neither a directory nor a file";
	if (secret_is_path(real, real_home) || secret_is_path(real, home))
		return "it is a place of secrets";
	if (!real[1] || !strchr(real + 1, '/') || (real_home && path_is_beneath(real_home, real)))
		return "it would expose too much";
	return judge_way(real);
}

/* ---- looking ---- */

static bool has_item(const struct toolchain_items *t, const char *path)
{
	for (size_t i = 0; i < t->len; i++)
		if (strcmp(t->items[i].path, path) == 0)
			return true;
	return false;
}

static void add_item(struct toolchain_items *t, const char *path, const char *row)
{
	auto_free char *clean = path_clean(path), *real = clean ? realpath(clean, NULL) : NULL;
	struct toolchain_item *grown;
	struct stat st;

	if (!real || stat(real, &st) < 0 || t->len >= ITEMS_MAX || has_item(t, clean))
		return;
	grown = reallocarray(t->items, t->len + 1, sizeof(*grown));
	if (!grown) {
		t->failed = true;
		return;
	}
	t->items = grown;
	t->items[t->len] = (struct toolchain_item){ .refused = judge(real, &st),
						    .is_file = S_ISREG(st.st_mode) };
	t->items[t->len].row = strdup(row);
	t->failed |= !t->items[t->len].row;
	t->items[t->len].path = take_ptr(clean);
	t->items[t->len++].real = take_ptr(real);
}

/* Every path that the pattern fits: root is taken as it is, sub may have stars. */
static void expand(const char *root, const char *sub, struct strv *ret)
{
	auto_buf pattern = { 0 };
	glob_t found = { 0 };

	for (const char *c = root; *c; c++) {
		buf_puts(&pattern, strchr("*?[\\", *c) ? "\\" : "");
		buf_add(&pattern, c, 1);
	}
	if (strcmp(sub, ".") != 0)
		buf_printf(&pattern, "%s%s", *root ? "/" : "", sub);
	if (!pattern.failed && glob(buf_text(&pattern), GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			strv_add(ret, found.gl_pathv[i]);
	globfree(&found);
}

/* The highest version of several: by the order of numbers in names. */
static void add_bin(struct toolchain_items *t, const char *root, const char *sub)
{
	auto_strv all = { 0 };
	const char *best = NULL;

	expand(root, sub, &all);
	for (size_t i = 0; i < all.len; i++)
		if (!best || strverscmp(all.items[i], best) > 0)
			best = all.items[i];
	if (best && !strv_has(&t->bins, best))
		strv_add(&t->bins, best);
}

static void add_root(struct toolchain_items *t, const struct manager_row *m, const char *root)
{
	auto_strv proof = { 0 };

	if (*m->proof)
		expand(root, m->proof, &proof);
	if (*m->proof ? !proof.len : access(root, F_OK) < 0)
		return;
	if (!strv_has(&t->managers, m->name))
		strv_add(&t->managers, m->name);
	for (size_t i = 0; i < ARRAY_LEN(shows); i++) {
		auto_strv found = { 0 };
		auto_buf row = { 0 };

		if (strcmp(shows[i].owner, m->name) != 0)
			continue;
		buf_printf(&row, "%s%s%s", root, strcmp(shows[i].text, ".") ? "/" : "",
			   strcmp(shows[i].text, ".") ? shows[i].text : "");
		expand(root, shows[i].text, &found);
		strv_sort(&found);
		for (size_t k = 0; k < found.len; k++)
			add_item(t, found.items[k], buf_text(&row));
	}
	for (size_t i = 0; i < ARRAY_LEN(bins); i++)
		if (strcmp(bins[i].owner, m->name) == 0)
			add_bin(t, root, bins[i].text);
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (strcmp(sets[i].owner, m->name) == 0)
			strv_addf(&t->env, "%s=%s", sets[i].text, root);
}

static void add_manager(struct toolchain_items *t, const struct manager_row *m)
{
	const char *home = getenv("HOME"), *value = *m->variable ? getenv(m->variable) : NULL;
	auto_free char *named = value && *value == '/' ? path_clean(value) : NULL;
	auto_strv roots = { 0 };

	if (named) {
		add_root(t, m, named);
		return;
	}
	if (strncmp(m->path, "~/", 2) == 0 && home && *home == '/')
		expand(home, m->path + 2, &roots);
	else if (*m->path == '/')
		expand("", m->path, &roots);
	strv_sort(&roots);
	for (size_t i = 0; i < roots.len; i++)
		add_root(t, m, roots.items[i]);
}

void toolchain_find(const char *preset, struct toolchain_items *ret)
{
	*ret = (struct toolchain_items){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(managers); i++)
		if (strcmp(managers[i].preset, preset) == 0)
			add_manager(ret, &managers[i]);
	ret->failed |= ret->managers.failed || ret->bins.failed || ret->env.failed;
}

void toolchain_clear(struct toolchain_items *t)
{
	for (size_t i = 0; i < t->len; i++) {
		free(t->items[i].path);
		free(t->items[i].real);
		free(t->items[i].row);
	}
	free(t->items);
	strv_free(&t->managers);
	strv_free(&t->bins);
	strv_free(&t->env);
	*t = (struct toolchain_items){ 0 };
}

static bool shows_path(const struct toolchain_items *t, const char *path, const char *real)
{
	for (size_t i = 0; i < t->len; i++)
		if (!t->items[i].refused && (path_is_beneath(path, t->items[i].path) ||
					     (real && path_is_beneath(real, t->items[i].real))))
			return true;
	return false;
}

const char *toolchain_of(const char *path)
{
	auto_free char *clean = path_clean(path), *real = realpath(path, NULL);

	if (!clean || (real && path_is_beneath(real, "/usr")))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(presets); i++) {
		struct toolchain_items t;
		bool found;

		toolchain_find(presets[i], &t);
		found = shows_path(&t, clean, real);
		toolchain_clear(&t);
		if (found)
			return presets[i];
	}
	return NULL;
}

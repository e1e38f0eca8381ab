/*
 * Protected names in what comes by git. In: a path of a commit or an index. Out: whether it is
 * protected in the work tree, by the built-in names and by what the run's policy and the scan added
 * (git_view.h: the record has them). Runs in ward-git.
 *
 * A protected name that a run makes goes to the quarantine, but a commit or an index can hold it,
 * too, and any checkout, stash or reset on the host would write it from there. So what is not the
 * user's own under such a name does not get into a ref or an index (history.c, index.c).
 */
#include "git/protect.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/walk.h"
#include "guard/guard.h"
#include "guard/guard_internal.h"
#include "policy/gitconfig.h"

struct protect {
	struct guard_root g;
};

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

static int open_rules(struct take *t)
{
	struct protect *p = t->protect ? t->protect : calloc(1, sizeof(*p));
	int status = 0;

	if (t->protect)
		return 0;
	t->protect = p;
	if (!p)
		return out_of_memory(t);
	p->g.path = strdup(t->record.host_root);
	for (size_t i = 0; i < t->record.rules.len; i++)
		strv_add(&p->g.rules, t->record.rules.items[i]);
	if (!p->g.path || p->g.rules.failed)
		return out_of_memory(t);
	status = guard_restore_rules(&p->g, t->e);
	return status < 0 ? status : 0;
}

void protect_free(struct protect *p)
{
	if (p)
		guard_clear(&p->g);
	free(p);
}

static int find_worktree(void *ctx, const struct gitconfig_entry *entry)
{
	char **value = ctx;

	if (strcmp(entry->section, "core") != 0 || strcmp(entry->key, "worktree") != 0 ||
	    !entry->value)
		return 0;
	free(*value);
	*value = strdup(entry->value);
	return *value ? 0 : -ENOMEM;
}

/* The directory of a submodule's files, as its configuration on the host says. */
static char *submodule_place(const struct take *t, const char *git_dir, const char *prefix)
{
	auto_free char *config = NULL, *value = NULL;
	const struct file *f;

	if (asprintf(&config, "%sconfig", prefix) < 0) {
		config = NULL;
		return NULL;
	}
	f = files_find(&t->base, config);
	if (f)
		(void)!gitconfig_read(f->bytes, f->n, find_worktree, &value);
	return value ? path_join(git_dir, value) : NULL;
}

int protect_open(struct take *t, const char *prefix, char **ret_tree)
{
	const char *root = t->record.host_root;
	auto_free char *git_dir = path_join(t->record.git_dir, *prefix ? prefix : "."),
		       *place = NULL;
	size_t n = git_dir ? strlen(git_dir) : 0;
	int status = open_rules(t);

	if (status < 0)
		return status;
	if (!git_dir)
		return out_of_memory(t);
	if (*prefix)
		place = submodule_place(t, git_dir, prefix);
	else if (n > 5 && strcmp(git_dir + n - 5, "/.git") == 0)
		place = strndup(git_dir, n - 5);
	/* a bare repository's commits may be checked out anywhere */
	if (place && path_is_beneath(place, root) && strlen(place) > strlen(root))
		*ret_tree = strdup(place + strlen(root) + (root[1] ? 1 : 0));
	else
		*ret_tree = strdup("");
	return *ret_tree ? 0 : out_of_memory(t);
}

bool protect_has(const struct take *t, const char *tree, const char *path, unsigned mode)
{
	auto_buf full = { 0 };
	bool dir = mode == GIT_MODE_GITLINK || mode == GIT_MODE_TREE;
	unsigned char type = mode == GIT_MODE_LINK ? DT_LNK : dir ? DT_DIR : DT_REG;

	buf_printf(&full, "%s%s%s", tree, *tree ? "/" : "", path);
	if (full.failed)
		return true;
	while (full.len && full.data[full.len - 1] == '/') /* a directory of a sparse index */
		full.data[--full.len] = '\0';
	return guard_ask_way(&t->protect->g, full.data, type) != NULL;
}

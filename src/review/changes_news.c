/*
 * What a person should know of a review before it is applied. In: the list of changes, and the
 * layer that the run wrote. Out: which of them steer tools that a person starts
 * (tables/steers.def), and which links lead out of the workspace: the same that the sweep tells
 * after a run that writes the workspace itself. Runs in the verbs, and at the end of a run, with
 * the user's rights.
 */
#include "review/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/path.h"
#include "guard/guard_internal.h"
#include "guard/guard_sweep.h"
#include "guard/guard_trail.h"

struct way {
	const char *workspace;
	bool leaves;
};

static int see_way(void *ctx, const struct trail_place *place)
{
	struct way *w = ctx;

	w->leaves |= !path_is_beneath(place->path, w->workspace);
	return 0;
}

/* By its letters, or through a link that the workspace has. */
static bool leaves(const struct review *r, const char *path, const char *target)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	auto_free char *full = dir ? path_join(r->record.workspace, *dir ? dir : ".") : NULL;
	struct way w = { .workspace = r->record.workspace };

	return changes_link_leaves(r->record.workspace, path, target) || !full ||
	       trail_follow(full, target, NULL, see_way, &w) < 0 || w.leaves;
}

static int look_at(const struct review *r, struct change *c, struct ward_err *e)
{
	const char *name, *slash = strrchr(c->path, '/');
	size_t n = strlen(c->path);
	struct walk_entry entry = { .path = c->path,
				    .path_len = n,
				    .name_at = slash ? (size_t)(slash + 1 - c->path) : 0,
				    .type = (unsigned char)IFTODT(c->new_mode) };
	auto_fd dir = changes_open_parent(r->upper_fd, c->path, &name);
	char target[PATH_MAX];
	ssize_t len;

	entry.name = c->path + entry.name_at;
	c->steers = guard_steer_why(dir, &entry);
	if (!S_ISLNK(c->new_mode) || dir < 0)
		return 0;
	len = readlinkat(dir, name, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = '\0';
	if (len >= 0 && !leaves(r, c->path, target))
		return 0;
	free(c->leads_to);
	c->leads_to = strdup(target);
	return c->leads_to ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int changes_find_news(const struct review *r, struct changes *c, struct ward_err *e)
{
	int status = 0;

	for (size_t i = 0; i < c->len && status == 0; i++)
		if ((S_ISREG(c->items[i].new_mode) || S_ISLNK(c->items[i].new_mode)) &&
		    c->items[i].kind != CHANGE_MODE)
			status = look_at(r, &c->items[i], e);
	return status;
}

int changes_tell_news(const struct changes *c, struct guard_news *news, struct ward_err *e)
{
	for (size_t i = 0; i < c->len; i++) {
		const struct change *x = &c->items[i];

		if (x->steers)
			strv_addf(&news->steers, "%s: %s, %s", x->path,
				  x->old_mode ? "changed" : "new", x->steers);
		if (x->leads_to)
			strv_addf(&news->leaving, "%s -> %s", x->path, x->leads_to);
	}
	return news->steers.failed || news->leaving.failed ? ward_fail(e, ENOMEM, "out of memory")
							   : 0;
}

/*
 * What git takes for a repository. In: names seen in a directory, or a workspace's .git file. Out: whether it is a git
 * directory; which directories outside the workspace its git needs. Runs in the supervisor with the user's rights, on
 * files that a hostile project may have brought.
 *
 * A repository is known by its parts, as git knows it, not by the name ".git": a bare one in any directory has a
 * configuration and hooks that git reads once somebody stands in it.
 */
#include "lib/guard_internal.h"

#include <string.h>

static const struct {
	const char *name, *why;
} parts[GIT_PARTS] = {
#define GIT_PART(id, name, why) [GIT_##id] = { name, why },
#define PROTECT(pattern, why)
#include "protect.def"
#undef GIT_PART
#undef PROTECT
	[GIT_HEAD] = { "HEAD", NULL },
	[GIT_OBJECTS] = { "objects", NULL },
	[GIT_REFS] = { "refs", NULL },
	[GIT_LOGS] = { "logs", NULL },
};

const char *guard_git_name(enum git_part part)
{
	return parts[part].name;
}

const char *guard_git_why(enum git_part part)
{
	return parts[part].why;
}

void guard_git_note(struct git_seen *s, const struct walk_entry *entry)
{
	if (!strchr("hcHorl", entry->name[0]))	/* their first letters: most names end here */
		return;
	for (size_t i = 0; i < GIT_PARTS; i++)
		if (strcmp(parts[i].name, entry->name) == 0) {
			s->type[i] = entry->type;
			s->any = true;
		}
}

bool guard_is_git_dir(const struct git_seen *s, const char *path, size_t path_len)
{
	if (path_len >= 4 && memcmp(path + path_len - 4, ".git", 4) == 0 &&
	    (path_len == 4 || path[path_len - 5] == '/'))
		return true;
	return s->type[GIT_HEAD] &&
	       ((s->type[GIT_OBJECTS] && s->type[GIT_REFS]) || s->type[GIT_commondir]);
}

bool guard_is_git_data(const char *name)
{
	return strcmp(name, parts[GIT_OBJECTS].name) == 0 || strcmp(name, parts[GIT_REFS].name) == 0 ||
	       strcmp(name, parts[GIT_LOGS].name) == 0;
}

/* Profiles: policies that suit an agent, built in or the user's own. */
#ifndef WARD_PLAN_PROFILE_H
#define WARD_PLAN_PROFILE_H

#include "base/buf.h"
#include "guard/guard.h"
#include "model/spec.h"

/* The directory of the user's own settings: $XDG_CONFIG_HOME/ward, ~/.config/ward; NULL: there is
 * no home. The caller frees. */
must_check char *profile_own_root(void);
/* The text of a profile. *ret_where is the file's path, NULL for a built-in one; the caller frees.
 * An unknown name is -ENOENT with the nearest. */
must_check int profile_read(const char *name, struct buf *ret_text, char **ret_where,
			    struct ward_err *e);
/* Appends the name of every profile, sorted, each once. */
must_check int profile_names(struct strv *names, struct ward_err *e);
/* The first comment of a profile's text: what it is for. */
void profile_about(const struct buf *text, struct buf *ret_about);

/* Reads the profile over s->policy, which holds the defaults. What it says of the network and this
 * build cannot do is dropped, with a note: that only narrows. Relative paths in it are below its
 * own directory. */
must_check int profile_apply(const char *name, struct spec *s, struct policy_errors *errors,
			     struct ward_err *e);
/* Refuses a profile that lies in the workspace: the agent could have written it. */
must_check int profile_check_place(const struct spec *s, struct ward_err *e);
/* What a sandbox writes today must not be what ward believes tomorrow: protects in the tree g the
 * directory of the user's own settings, and every link on the way to it; a tree in that directory
 * is refused. */
must_check int profile_protect(struct guard_root *g, struct ward_err *e);

#endif

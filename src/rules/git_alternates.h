/* The objects that a private git directory borrows from the host's. */
#ifndef WARD_RULES_GIT_ALTERNATES_H
#define WARD_RULES_GIT_ALTERNATES_H

#include "base/own.h"

#include <stddef.h>

#define GIT_VIEW_OBJECTS "ward-objects" /* where the host's objects appear in the view */

/* Whether the text of an objects/info/alternates says nothing but that the objects of a view are
 * borrowed: the path of that view's git directory, as the sandbox saw it. The caller frees. NULL:
 * it says something else. A pure function. */
must_check char *git_view_borrowed(const char *text, size_t n);

#endif

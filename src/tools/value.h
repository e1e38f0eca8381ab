/* One value of one parameter, checked. Private to src/tools. */
#ifndef WARD_TOOLS_VALUE_H
#define WARD_TOOLS_VALUE_H

#include "tools/tools.h"

struct value_place {
	const struct tool_tool *tool;
	const char *dir, *home;
};

/* Checks a value and appends what the command gets of it: a path becomes absolute. -EINVAL with *e.
 * A pure function. */
must_check int value_check(const struct value_place *at, const struct tool_param *p,
			   const char *value, struct buf *out, struct ward_err *e);

/* Whether some allowed value of the parameter begins with "-". */
bool value_may_begin_with_dash(const struct tool_param *p);

#endif

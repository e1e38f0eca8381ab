/* Parts of `ward check` of tools. */
#ifndef WARD_CLI_TOOL_CHECK_PARTS_H
#define WARD_CLI_TOOL_CHECK_PARTS_H

#include "cli/tool/parts.h"
#include "tools/check.h"

/* The bytes of a file, by its path from the source's directory, in a git revision. 1: there are
 * some, 0: the revision has no such file, -errno with *e. */
must_check int check_read_base(const struct tools_source *s, const char *path, const char *revision,
			       struct buf *ret, struct ward_err *e);
int check_score(struct options *o);

#endif

/* Finding programs that are started outside of the sandbox. */
#ifndef WARD_BASE_FIND_H
#define WARD_BASE_FIND_H

#include "base/buf.h"

/* Which file a command word means: absolute, or looked for in PATH; links resolved. Nothing beneath
 * one of `seen` is taken: a sandbox could have put it there. The caller frees. */
must_check int find_program(const char *word, const struct strv *seen, char **ret_path,
			    struct ward_err *e);

#endif

/* For clang-tidy and gcc -fanalyzer alone: they do not look into another file, so they are told
 * here that the functions that make an error return one. gcc 12 knows that realloc() leaves the old
 * block alone when it fails, but not that reallocarray() does. Included before everything else by
 * tools/lint.sh. */
#include <errno.h>
#include <malloc.h> /* declares it, too */
#include <stdlib.h>

#include "base/err.h"

#define ward_fail(...) ((void)ward_fail(__VA_ARGS__), -EIO)
#define ward_fail_errno(...) ((void)ward_fail_errno(__VA_ARGS__), -EIO)
#define ward_wrap(...) ((void)ward_wrap(__VA_ARGS__), -EIO)
#define ward_remedy(...) ((void)ward_remedy(__VA_ARGS__), -EIO)
#define reallocarray(p, n, size) realloc(p, (n) * (size))

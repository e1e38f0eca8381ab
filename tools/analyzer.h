/* For clang-tidy alone: it cannot look into another file, so it is told here that the functions that make an error return one. */
#include <errno.h>

#include "base/err.h"

#define ward_fail(...) ((void)ward_fail(__VA_ARGS__), -EIO)
#define ward_fail_errno(...) ((void)ward_fail_errno(__VA_ARGS__), -EIO)
#define ward_wrap(...) ((void)ward_wrap(__VA_ARGS__), -EIO)
#define ward_remedy(...) ((void)ward_remedy(__VA_ARGS__), -EIO)

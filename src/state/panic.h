/* The mark that refuses new runs until somebody clears it. */
#ifndef WARD_STATE_PANIC_H
#define WARD_STATE_PANIC_H

#include <stdbool.h>

#include "base/err.h"
#include "base/own.h"

/* Sets or clears the mark. Changes a mode bit of the state directory and writes no file. Returns
 * whether it was set before, or -errno. */
must_check int panic_set(bool on, struct ward_err *e);

#endif

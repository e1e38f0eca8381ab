/* ward-init as an open file that can be executed, for what is started outside of the sandbox's
 * root. */
#ifndef WARD_HOST_INIT_IMAGE_H
#define WARD_HOST_INIT_IMAGE_H

#include "base/own.h"

/* Opens a copy of ward-init: in memory under that name, or, where memory files are closed (an outer
 * sandbox that holds memory by looking), in a file in dir that has lost its name already. The
 * descriptor is at least 10 and closed on exec; the caller owns it. Returns it or -errno. */
must_check int init_image_open(const char *name, const char *dir);

#endif

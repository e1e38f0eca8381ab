/* The content of a file into another. */
#ifndef WARD_BASE_CONTENT_H
#define WARD_BASE_CONTENT_H

#include <stdint.h>

#include "base/own.h"

/* Copies the first size bytes, holes as holes, by reference where the file system can. 0 or
 * -errno. */
must_check int content_copy(int from_fd, int to_fd, uint64_t size);

#endif

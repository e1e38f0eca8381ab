/* Images, which another program keeps. */
#ifndef WARD_CLI_IMAGE_H
#define WARD_CLI_IMAGE_H

#include "model/spec.h"

/* Imports what the spec's image names by its path, if that has not been done yet. Nothing to do for
 * a name or a directory. */
must_check int image_prepare(const struct spec *s, struct ward_err *e);

#endif

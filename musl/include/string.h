/* What musl lacks of string.h. */
#ifndef WARD_MUSL_STRING_H
#define WARD_MUSL_STRING_H

#include_next <string.h>

const char *sigabbrev_np(int signal);

#endif

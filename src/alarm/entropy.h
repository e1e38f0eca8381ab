/* Whether bytes look random. */
#ifndef WARD_ALARM_ENTROPY_H
#define WARD_ALARM_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

#define ENTROPY_LEAST 4096 /* bytes; fewer say nothing */
#define ENTROPY_MOST 16384 /* more are not needed */

/* Shannon entropy in hundredths of a bit per byte, at most 800. 0: there are too few bytes, or they
 * begin as a known compressed format does. Pure. */
unsigned entropy_of(const uint8_t *bytes, size_t n);

#endif

/* What the two ways to compute SHA-1 share: for sha1.c and sha1_x86.c. */
#ifndef WARD_BASE_SHA1_INTERNAL_H
#define WARD_BASE_SHA1_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

#define SHA1_BLOCK 64

/* Whether this processor has the instructions. */
bool sha1_is_fast(void);
/* Mixes count blocks of 64 bytes in. */
void sha1_mix_fast(uint32_t state[5], const uint8_t *blocks, size_t count);

#endif

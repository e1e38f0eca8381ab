/* Shared by SHA-256's two ways. */
#ifndef WARD_BASE_SHA256_INTERNAL_H
#define WARD_BASE_SHA256_INTERNAL_H

#include <stdbool.h>

#include "base/own.h"
#include "base/sha256.h"

#define SHA256_BLOCK 64

extern const uint32_t sha256_constants[64];

/* Whether the processor has instructions for it. */
bool sha256_is_fast(void);
/* Mixes in so many blocks by those instructions. */
void sha256_mix_fast(uint32_t state[8], const uint8_t *blocks, size_t count);
/* The same in plain C. */
void sha256_mix_plain(uint32_t state[8], const uint8_t *blocks, size_t count);

#endif

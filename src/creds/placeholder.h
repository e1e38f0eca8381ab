/* What stands inside in the place of a secret. A pure function. */
#ifndef WARD_CREDS_PLACEHOLDER_H
#define WARD_CREDS_PLACEHOLDER_H

#include <stddef.h>
#include <stdint.h>

/* Writes n characters that look like value (its prefix, its alphabet, its separators) and are none
 * of it: random, and with WARD in them where there is room. random: n bytes. out has room for n. */
void placeholder_write(const uint8_t *value, size_t n, const uint8_t *random, uint8_t *out);

#endif

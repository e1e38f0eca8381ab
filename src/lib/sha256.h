/* SHA-256, for telling one content from another. A pure function. */
#ifndef WARD_LIB_SHA256_H
#define WARD_LIB_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX 65	/* 64 digits and a NUL */

/* Writes the digest of n bytes as lower-case hexadecimal digits. */
void sha256_hex(const void *bytes, size_t n, char ret_hex[SHA256_HEX]);

#endif

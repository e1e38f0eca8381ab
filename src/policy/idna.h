/* Internationalised host names in a policy: their ASCII form. */
#ifndef WARD_POLICY_IDNA_H
#define WARD_POLICY_IDNA_H

#include <stdbool.h>
#include <stddef.h>

/* Turns a host name in UTF-8 into A-labels ("münchen.example" -> "xn--mnchen-3ya.example"), label
 * by label; what is ASCII stays as it is. Nothing is mapped: a character that IDNA would change
 * first (upper case, compatibility forms), or whose meaning hangs on its neighbours, is refused.
 * Returns NULL, or what is expected instead. */
const char *idna_to_ascii(const char *name, char *out, size_t cap);

#endif

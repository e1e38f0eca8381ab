/* What git gives to a program that signs: the text of a commit or of a tag. */
#ifndef WARD_RULES_GIT_SIGNED_H
#define WARD_RULES_GIT_SIGNED_H

#include <stddef.h>
#include <stdint.h>

/* Longest text that is signed; a long commit message has some kilobytes. */
#define GIT_SIGNED_MAX (256 * 1024)

enum git_signed { GIT_SIGNED_OTHER, GIT_SIGNED_COMMIT, GIT_SIGNED_TAG };

/* Whether these bytes are a whole commit or tag as git writes it before it is signed. OTHER: they
 * are anything else, and must not be signed. Pure. */
enum git_signed git_signed_read(const uint8_t *bytes, size_t n);

#endif

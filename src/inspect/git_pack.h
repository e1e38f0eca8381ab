/*
 * Whether a push only goes forward. The commits of the pack are read as they come, each under the
 * id that its content has; an update is proven when a way of parents leads from the new id to the
 * old one through commits of the pack. The server has the old one, so the pack of an honest push
 * has all of that way. Bounded in memory and work: what is not proven within the bounds is not
 * proven. Pure, fuzzed (fuzz/git_pack.c).
 */
#ifndef WARD_INSPECT_GIT_PACK_H
#define WARD_INSPECT_GIT_PACK_H

#include "inspect/git_push.h"

#define GIT_UPDATES_MAX 16

struct git_pack;

/* id_len: 20 (SHA-1) or 32 (SHA-256). NULL: out of memory. */
must_check struct git_pack *git_pack_new(unsigned id_len);
void git_pack_free(struct git_pack *p);
/* An update to prove. False: too many. */
must_check bool git_pack_want(struct git_pack *p, const uint8_t *old, const uint8_t *new);
/* The next n bytes of the pack. */
void git_pack_take(struct git_pack *p, const uint8_t *bytes, size_t n);
/* Whether all updates are proven by what has come. last: nothing more will be taken. */
must_check bool git_pack_proves(struct git_pack *p, bool last);
/* Bytes that it holds. */
size_t git_pack_size(const struct git_pack *p);
/* The first update that is not, by the order of git_pack_want(). */
unsigned git_pack_unproven(const struct git_pack *p);

#endif

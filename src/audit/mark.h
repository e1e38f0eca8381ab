/* How far the index of the journals has come, noted outside of the directory that holds it. */
#ifndef WARD_AUDIT_MARK_H
#define WARD_AUDIT_MARK_H

#include "audit/chain.h"

#define MARK_NAME "trusted-head" /* in the state directory, beside audit */
#define MARK_TEXT (20 + 1 + 2 * CHAIN_BYTES + 2)

/* "ENTRY:HASH", as verify prints it and --head takes it; more behind it than a newline is refused.
 * False: it is none. Pure. */
bool mark_read(const char *text, size_t n, struct chain *ret);
void mark_text(const struct chain *c, char ret[MARK_TEXT]);

/* Reads the note beside audit_fd. 0; -ENOENT: there is none; -EBADMSG: it is no such note; another
 * -errno. */
must_check int mark_get(int audit_fd, struct chain *ret);
/* Writes it, in one write. Where that fails the old one stays, which still is true: the index had
 * come that far. */
void mark_put(int audit_fd, const struct chain *c);

#endif

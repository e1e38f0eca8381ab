/* What the file system says about a path, as clients read it: EntryInfo. */
#ifndef WARD_ENVD_ENTRY_H
#define WARD_ENVD_ENTRY_H

#include "base/buf.h"

#define ENTRY_XATTR "user.e2b." /* in front of a client's own names */

/* Appends the JSON of an entry; 0 or -errno. path is what the client sees, and what is looked
 * up. */
must_check int entry_write(const char *path, struct buf *out);
/* Appends the client's own attributes of the file as an object: {} if there are none. */
void entry_metadata(const char *path, struct buf *out);

#endif

/* What the keeper sends to the front about a template. */
#ifndef WARD_DAEMON_KEEPER_FACTS_H
#define WARD_DAEMON_KEEPER_FACTS_H

#include <limits.h>

#include "base/buf.h"
#include "ward/ward.h"

/* Appends "MEMORY_MIB DISK_MIB NETWORK ENGINE ASKS\n" of the spec, whose policy is that file; 0: no
 * limit, and no network. */
int keeper_facts(const struct ward_spec *s, const char *policy, struct buf *out,
		 struct ward_error *e);
/* Appends a digest of what the policy grants and of the image, whatever files it is made of. */
int keeper_version(const struct ward_spec *s, const char *policy, struct buf *out,
		   struct ward_error *e);

#endif

/* The processes of the gateway's programs; their rights are rows of tables/procs.def. */
#ifndef WARD_GATEWAY_PROC_H
#define WARD_GATEWAY_PROC_H

#include "confine/confine.h"

/* front: parses what programs inside say. Returns the exit code. */
struct inspect_ops;
int front_main(const struct inspect_ops *inspect);
/* dial: resolves and connects. */
int dial_main(void);
/* keys: holds the secrets. NULL: this program has no such role. */
extern int (*const keys_here)(void);

#endif

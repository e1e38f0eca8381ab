/* Connections that a sandbox without a network asks for: what `ward run --hints` and `ward explain`
 * go by. */
#ifndef WARD_OBSERVE_UNREACHED_H
#define WARD_OBSERVE_UNREACHED_H

#include "model/result.h"
#include "observe/observe.h"

#define UNREACHED_MAX 32 /* addresses that are reported, each once */

struct unreached {
	uint8_t seen[UNREACHED_MAX][28];
	size_t count;
};

/* Reports a connection that was seen, if it leads out: one event, net.connect. The sandbox has no
 * network. */
void unreached_report(struct unreached *u, const struct observation *o, struct result *r);

#endif

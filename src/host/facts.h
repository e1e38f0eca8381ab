/* What this host can give: asked once, cheaply, without side effects. */
#ifndef WARD_HOST_FACTS_H
#define WARD_HOST_FACTS_H

#include <sched.h>

#include "base/err.h"
#include "model/facts.h"

/* How many there are; the C library's own way takes a microsecond, before anything else can
 * begin. */
unsigned facts_count(const cpu_set_t *cpus);
/* Fills *f. Never fails for want of a feature: that is a fact. */
void facts_read(struct facts *f);

#endif

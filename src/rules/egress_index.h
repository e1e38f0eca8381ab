/* What the three files of the rules share. Private to src/gateway. */
#ifndef WARD_RULES_EGRESS_INDEX_H
#define WARD_RULES_EGRESS_INDEX_H

#include "rules/egress_rules.h"

/* Allocates for these counts, all of it zero; NULL: out of memory. */
must_check struct rules *rules_new(uint32_t n_items, uint32_t n_services, uint32_t n_ports,
				   uint32_t n_text);
/* Makes the index over what r holds. -ENOMEM. */
must_check int rules_index(struct rules *r);

#endif

/* The configuration that both processes are started with, and the later ones. */
#ifndef WARD_GATEWAY_CONFIG_H
#define WARD_GATEWAY_CONFIG_H

#include "protocol/gateway.h"

/* Reads it from a descriptor, which stays open. ret_config may be NULL. The rules are the caller's,
 * for rules_free(). */
must_check int config_read(int fd, struct rules **ret_rules, struct gate_config *ret_config,
			   struct ward_err *e);

/* The hosts that are for ward-keys, each ended by NUL, an empty one behind the last; NULL: none.
 * The caller's. */
must_check int config_read_keys(const struct gate_config *config, char **ret, struct ward_err *e);
/* What looks for canaries; NULL: there are none. The caller's. */
struct canary_finder;
must_check int config_read_canaries(const struct gate_config *config, struct canary_finder **ret,
				    struct ward_err *e);
/* The upstream proxy; ret->port is 0 when there is none. For dial. */
struct upstream;
must_check int config_read_proxy(struct upstream *ret, struct ward_err *e);

#endif

/* An egress rule of a policy, taken apart: what a line of struct policy's net_egress says. */
#ifndef WARD_POLICY_RULE_H
#define WARD_POLICY_RULE_H

#include "policy/policy.h"

#define POLICY_RULE_PORTS 64

/* In the order of the table. */
enum policy_rule_mode { POLICY_RULE_SPLICE, POLICY_RULE_INSPECT, POLICY_RULE_HTTP, POLICY_RULE_TCP, POLICY_RULE_BY_PORT };

struct policy_rule {
	char host[256];		/* canonical: name, *.suffix, *, address or block; no brackets */
	unsigned n_ports;
	uint16_t ports[POLICY_RULE_PORTS];
	enum policy_rule_mode mode;
	bool inspect;		/* it has methods, paths or waf */
	bool private;
	uint64_t connections, connection_rate, receive, send, bandwidth;	/* POLICY_NONE: no limit */
};

/* Takes apart one line of canonical JSON, as struct policy holds rules. -EINVAL with *e. */
must_check int policy_rule_read(const char *line, struct policy_rule *ret, struct ward_err *e);

/* Takes apart "host[:port]" or a map in flow syntax, as an entry of egress_allowlist. *ret_port_said: the text has a port. */
must_check int policy_rule_parse(const char *text, struct policy_rule *ret, bool *ret_port_said, struct ward_err *e);

/* Takes apart NAME=ADDRESS:PORT of host_services; the parts are in *ret as host and ports[0], the name in ret_name. */
must_check int policy_service_read(const char *text, char ret_name[64], struct policy_rule *ret, struct ward_err *e);

#endif

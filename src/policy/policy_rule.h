/* An egress rule of a policy, taken apart: what a line of struct policy's net_egress says. */
#ifndef WARD_POLICY_POLICY_RULE_H
#define WARD_POLICY_POLICY_RULE_H

#include "policy/policy.h"

#define POLICY_RULE_PORTS 64
#define POLICY_RULE_HTTP_MAX 8192 /* bytes of what one rule says about HTTP */

/* What a rule can say about HTTP: the first letter of each condition. */
enum policy_http {
	POLICY_HTTP_METHOD = 'm',   /* GET */
	POLICY_HTTP_PATH = 'p',     /* a pattern */
	POLICY_HTTP_QUERY = 'q',    /* NAME=pattern */
	POLICY_HTTP_HEADER = 'h',   /* name:pattern, the name in lower case */
	POLICY_HTTP_TYPE = 't',     /* a pattern, in lower case */
	POLICY_HTTP_REQUEST = 'S',  /* a number */
	POLICY_HTTP_RESPONSE = 'R', /* a number */
	POLICY_HTTP_WEBSOCKET = 'w',
	POLICY_HTTP_GRAPHQL = 'g',    /* OPERATION, OPERATION:pattern or "persisted" */
	POLICY_HTTP_RPC = 'j',        /* pattern or pattern:pattern */
	POLICY_HTTP_GIT = 'v',        /* fetch, push, force, delete, options */
	POLICY_HTTP_REPOSITORY = 'r', /* a pattern, without ".git" */
	POLICY_HTTP_REF = 'f'         /* a pattern */
};

/* The word of a policy that makes conditions of this kind. Static. */
const char *policy_http_name(char kind);

/* In the order of the table. */
enum policy_rule_mode {
	POLICY_RULE_SPLICE,
	POLICY_RULE_INSPECT,
	POLICY_RULE_HTTP,
	POLICY_RULE_TCP,
	POLICY_RULE_BY_PORT
};

enum policy_waf { POLICY_WAF_OFF, POLICY_WAF_DETECT, POLICY_WAF_BLOCK };

struct policy_rule {
	char host[256]; /* canonical: name, *.suffix, *, address or block; no brackets */
	unsigned n_ports;
	uint16_t ports[POLICY_RULE_PORTS];
	enum policy_rule_mode mode;
	bool inspect; /* it says something about HTTP */
	bool llm;     /* what it costs is counted */
	unsigned waf; /* enum policy_waf */
	bool private;
	bool ask; /* a person has to say yes first */
	/* POLICY_NONE: no limit */
	uint64_t connections, connection_rate, receive, send, bandwidth, request_rate, spend;
	unsigned http_len;
	/* its conditions, each with a NUL behind; last, for only http_len bytes of it are set */
	char http[POLICY_RULE_HTTP_MAX];
};

/* Takes apart one line of canonical JSON, as struct policy holds rules. -EINVAL with *e. */
must_check int policy_rule_read(const char *line, struct policy_rule *ret, struct ward_err *e);

/* Takes apart "host[:port]" or a map in flow syntax, as an entry of egress_allowlist.
 * *ret_port_said: the text has a port. */
must_check int policy_rule_parse(const char *text, struct policy_rule *ret, bool *ret_port_said,
				 struct ward_err *e);

/* What a model costs, in millionths of the currency for a million tokens. */
struct policy_price {
	char model[64]; /* may end in "*" */
	uint64_t input, output, cache_read, cache_write;
	uint64_t max_output; /* tokens */
};
/* Takes apart one line of network.prices. */
must_check int policy_price_read(const char *line, struct policy_price *ret, struct ward_err *e);

/* Takes apart NAME=ADDRESS:PORT of host_services; the parts are in *ret as host and ports[0], the
 * name in ret_name. */
must_check int policy_service_read(const char *text, char ret_name[64], struct policy_rule *ret,
				   struct ward_err *e);

#endif

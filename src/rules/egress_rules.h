/*
 * The egress rules, compiled. In: struct policy (or a line of `ward net`). Out: struct rules, which
 * the matcher reads: constant once made, handed to the gateway's processes in its serialised form
 * over a descriptor. A change makes a new one with the next generation; a rule keeps its index over
 * all generations, so that what was counted for it stays its.
 *
 * Precedence. Rules allow; which one decides matters for its mode, its limits and `private`. For a
 * name and port: of the rules whose ports have the port, the most specific host wins: the name
 * itself, then the longest *.suffix, then *. For an address: the longest prefix. Of equal ones the
 * first in the policy, and before it the one that `ward net` added last. A rule for another port
 * hides nothing. A deny rule (`ward net deny`) wins over every allow rule and over host_services,
 * by name and by address. *.suffix does not match the suffix itself; wildcards never match
 * addresses, and address rules never match names, whatever those resolve to.
 *
 * Mode of a rule: as it says, else by port: 443 splice, 80 http, others tcp; address rules tcp. A
 * rule that says something about HTTP is inspect: TLS on every port but 80; in mode http, and on
 * port 80, plain.
 */
#ifndef WARD_RULES_EGRESS_RULES_H
#define WARD_RULES_EGRESS_RULES_H

#include "base/buf.h"
#include "policy/hostname.h"
#include "policy/policy.h"
#include "rules/tokens.h"

#define RULES_MAX 4096
#define RULES_SERVICES_MAX 256
#define RULES_PRICES_MAX 256
#define RULES_PORTS_MAX 64                /* of one rule */
#define RULES_BYTES_MAX (2 * 1024 * 1024) /* serialised */
#define RULE_NONE UINT64_MAX              /* no limit */

enum rules_network { RULES_NONE, RULES_RESTRICTED, RULES_OPEN };

/* BLOCK: an address or CIDR block */
enum rule_kind { RULE_NAME, RULE_SUFFIX, RULE_ANY, RULE_BLOCK };

/* How much the gateway looks into. */
enum rule_mode {
	RULE_SPLICE, /* the name in TLS */
	RULE_HTTP,   /* Host of every request, in plain HTTP */
	RULE_TCP,
	RULE_INSPECT, /* TLS is ended here, every request is looked at and written anew */
	RULE_PLAIN,   /* the same without TLS */
	RULE_MODES
};

/* Shaping, of one rule or of the whole sandbox; RULE_NONE: no limit. */
struct rule_limits {
	uint64_t connections;     /* open at one time */
	uint64_t connection_rate; /* a second */
	uint64_t receive_bytes;   /* in all, from outside */
	uint64_t send_bytes;      /* in all, to outside */
	uint64_t bandwidth;       /* bytes a second, both ways together */
	uint64_t request_rate;    /* requests a minute */
	uint64_t spend;           /* in all, millionths of the currency */
};

struct rule {
	uint8_t kind; /* enum rule_kind */
	bool deny;
	bool added;   /* by rules_change() */
	bool dead;    /* taken back: matches nothing, keeps its index */
	bool private; /* private addresses count too */
	bool ask;     /* a person has to say yes first */
	/* of approvals.never, and dead: what asks, or was added, does not reach these hosts */
	bool never;
	bool llm;            /* what its requests cost is counted */
	uint8_t waf;         /* enum policy_waf */
	bool moded;          /* the rule names a mode; else it goes by port */
	uint8_t mode;        /* enum rule_mode */
	uint8_t prefix;      /* BLOCK: its bits */
	uint8_t len;         /* of host */
	uint16_t n_ports;    /* 0: every port (deny rules only) */
	uint32_t first_port; /* in rules->ports */
	uint32_t host;       /* offset in rules->text; SUFFIX: without "*."; ANY: "" */
	/* offset in rules->text of http_len bytes: conditions (policy_rule.h), each with a NUL
	 * behind */
	uint32_t http;
	uint16_t http_len;
	struct ip ip; /* BLOCK */
	struct rule_limits limits;
};

/* host_services: reachable inside under its name and port, and nothing else of the host is. */
struct rule_service {
	uint8_t len;
	uint32_t host; /* offset in rules->text */
	uint16_t port;
	struct ip ip;
};

struct rules {
	uint64_t generation;             /* rises with every change; stands in every verdict */
	uint8_t network;                 /* enum rules_network */
	bool asks;                       /* there is a person to ask; else ask rules deny */
	struct rule_limits limits;       /* of the whole sandbox */
	uint8_t unpriced, spend_warning; /* UNPRICED_*; percent, 0: none */
	uint32_t n_items, n_services, n_ports, n_text, n_prices;
	struct price *prices;
	struct rule *items;
	struct rule_service *services;
	uint16_t *ports;    /* of all rules, each rule's sorted */
	char *text;         /* the hosts, each NUL-terminated */
	bool has_suffix;    /* some rule has a "*." */
	uint32_t n_buckets; /* a power of two */
	/* index + 1 of rules by host; within a chain in the policy's order */
	uint32_t *buckets, *chain;
	uint32_t n_blocks, *blocks; /* BLOCK rules, longest prefix first */
	uint32_t n_any, *any;       /* ANY rules in order */
};

/* Compiles what the policy says about egress. Refuses, with place and remedy: splice, inspect or
 * http for a CIDR block, too many rules. *ret is the caller's, for rules_free(). */
must_check int rules_compile(const struct policy *p, uint64_t generation, struct rules **ret,
			     struct ward_err *e);

/* A copy of old with one more rule and the next generation: line is "host[:port]" or a rule map as
 * in egress_allowlist; "host" alone denies every port (deny) or allows 443. An allow takes back
 * deny rules for the same host that have one of its ports; an added rule for the same host and
 * ports is replaced. */
must_check int rules_change(const struct rules *old, const char *line, bool deny,
			    struct rules **ret, struct ward_err *e);

/* A copy of old with the next generation in which those rules, by index, are taken back. */
must_check int rules_retire(const struct rules *old, const uint32_t *items, size_t count,
			    struct rules **ret, struct ward_err *e);

void rules_free(struct rules *r);

/* The serialised form: one message, checked completely by rules_decode (it comes from a process of
 * the same user, but the gateway believes no length). -EINVAL: not such a message; -ENOMEM. */
must_check int rules_encode(const struct rules *r, struct buf *out);
must_check int rules_decode(const uint8_t *bytes, size_t n, struct rules **ret);

/* Whether approvals.never names the host. */
bool rules_never(const struct rules *r, const struct host *host);
/* Whether it may name a host of the same registrant: one with the same last two labels. */
bool rules_never_near(const struct rules *r, const struct host *host);

/* The rule that decides for host and port (port 0: any port, for DNS), -1 if there is none.
 * *ret_denied: a deny rule decided, the index is its. *ret_other_port: there is none, but another
 * port of the host is allowed. */
struct rules_match {
	int32_t rule;
	bool denied, other_port;
};
struct rules_match rules_match(const struct rules *r, const struct host *host, uint16_t port);

/* The service with this name and port (0: any), -1. *ret_denied_by: the deny rule for its name or
 * its address that wins over it, -1: none. */
int32_t rules_service(const struct rules *r, const struct host *host, uint16_t port,
		      int32_t *ret_denied_by);

/* The mode in which rule (an index, or -1: open) lets port pass. */
enum rule_mode rules_mode(const struct rules *r, int32_t rule, uint16_t port);

/* Whether some rule in force has its TLS ended here (RULE_INSPECT), or is looked into at all (also
 * RULE_PLAIN). */
bool rules_inspect(const struct rules *r);
bool rules_look(const struct rules *r);
/* Whether rule, or one for the same host and port, has a firewall; rule -1: whether any rule in
 * force has. */
bool rules_waf(const struct rules *r, int32_t rule, uint16_t port);

/* Whether rule i of new can be served by a gateway that was started with the rules `first`: it is
 * not looked into, or its names are among those that the sandbox's authority is for. */
bool rules_is_prepared(const struct rules *first, const struct rules *new, uint32_t i);

/* The next rule behind `rule` (an index, looked into) that is for the same host and has port, -1:
 * of such rules any one may allow a request. */
int32_t rules_sibling(const struct rules *r, int32_t rule, uint16_t port);

/* "*.example.com:443,8443": the rule as a person would name it. */
void rules_text(const struct rules *r, int32_t rule, struct buf *out);

#define auto_rules __attribute__((cleanup(rules_free_ptr))) struct rules *
static inline void rules_free_ptr(struct rules **r)
{
	rules_free(*r);
}

#endif

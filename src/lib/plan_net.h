/* The part of a plan that says what of the network exists inside. */
#ifndef WARD_LIB_PLAN_NET_H
#define WARD_LIB_PLAN_NET_H

#include "base/buf.h"
#include "lib/net.h"
#include "gateway/rules.h"
#include "gateway/upstream.h"
#include "policy/policy.h"

#define PLAN_NET_MATCHES_MAX 64

struct plan_net {
	bool on;
	struct rules *rules;		/* owned */
	struct upstream *proxy;		/* that the gateway has to use; owned, NULL: none */
	struct net_match matches[PLAN_NET_MATCHES_MAX];	/* what the kernel brings to the gateway */
	size_t match_count;
	struct net_classes classes;
	uint16_t ports[NET_PORTS_MAX];	/* of the policy; more than fit: not on a kernel without nf_tables */
	size_t port_count;
	bool ports_left_out;
	uint16_t published[NET_PUBLISHED_MAX];	/* ports inside, on the same port of the host's loopback */
	size_t published_count;
};

/* Fills *n from the policy. */
must_check int plan_net_fill(const struct policy *p, struct plan_net *n, struct ward_err *e);
/* Of *n, which is empty but for the classes so far, what the kernel has to bring for these rules: matches, ports and classes. */
void plan_net_bring(const struct rules *rules, struct plan_net *n);
void plan_net_clear(struct plan_net *n);

#endif

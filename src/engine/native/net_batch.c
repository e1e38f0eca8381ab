/*
 * Netlink messages, as bytes. In: which connections the gateway decides about. Out: batches for
 * rtnetlink and nfnetlink that the child sends as they are. Runs in the supervisor while the child
 * builds its root; touches nothing.
 *
 * Loopback gets an address that is no loopback address (AI_ADDRCONFIG), and a local default route:
 * every destination is this machine. The preferred source is that address: without it a packet's
 * source would be its destination. TPROXY finds the listening socket whatever the destination was,
 * without connection tracking. There is one chain, in PREROUTING, for every packet comes over the
 * loopback and passes it once; what no rule takes is logged and refused there. It decides about the
 * first packet of a connection alone: what follows finds its socket by itself, and a packet that
 * belongs to none is answered with a reset. A chain costs each packet a tenth of a microsecond and
 * a rule a few nanoseconds, so there is no second one, and that rule comes first.
 */
#include "engine/native/net_batch.h"
#include "rules/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define LOOPBACK 1 /* its index in every new namespace */
#define LOG_GROUP 1
#define LOG_BYTES 128 /* of a packet: its headers */

#define TABLE "ward"
#define PRE "pre"
#define PRIORITY (-150) /* that of mangle, where TPROXY is at home */

/* -- messages and attributes */

static size_t begin_message(struct buf *b, unsigned type, unsigned flags)
{
	struct nlmsghdr header = { .nlmsg_type = (uint16_t)type,
				   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };
	size_t at = b->len;

	buf_add(b, &header, sizeof(header));
	return at;
}

static void end_message(struct buf *b, size_t at)
{
	uint32_t n = (uint32_t)(b->len - at);

	if (!b->failed)
		memcpy(b->data + at, &n, sizeof(n));
}

static void add_attribute(struct buf *b, unsigned type, const void *bytes, size_t n)
{
	static const char zeros[4];
	struct nlattr header = { .nla_len = (uint16_t)(sizeof(header) + n),
				 .nla_type = (uint16_t)type };

	buf_add(b, &header, sizeof(header));
	buf_add(b, bytes, n);
	buf_add(b, zeros, -n & 3);
}

static void add_text(struct buf *b, unsigned type, const char *text)
{
	add_attribute(b, type, text, strlen(text) + 1);
}

static void add_number(struct buf *b, unsigned type, uint32_t number)
{
	uint32_t big = htonl(number);

	add_attribute(b, type, &big, sizeof(big));
}

static size_t begin_nest(struct buf *b, unsigned type)
{
	size_t at = b->len;

	add_attribute(b, type | NLA_F_NESTED, NULL, 0);
	return at;
}

static void end_nest(struct buf *b, size_t at)
{
	uint16_t n = (uint16_t)(b->len - at);

	if (!b->failed)
		memcpy(b->data + at, &n, sizeof(n));
}

/* -- routes */

static const uint8_t own4[4] = NET_OWN4, own6[16] = NET_OWN6, gate4[4] = NET_GATE4;

int net_batch_routes(bool v6, struct buf *out)
{
	unsigned family = v6 ? AF_INET6 : AF_INET;
	struct ifaddrmsg address = { .ifa_family = (uint8_t)family,
				     .ifa_prefixlen = v6 ? 128 : 32,
				     .ifa_flags = IFA_F_PERMANENT,
				     .ifa_index = LOOPBACK };
	struct rtmsg route = { .rtm_family = (uint8_t)family,
			       .rtm_table = RT_TABLE_LOCAL,
			       .rtm_type = RTN_LOCAL,
			       .rtm_protocol = RTPROT_BOOT,
			       .rtm_scope = v6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_HOST };
	const uint8_t *own = v6 ? own6 : own4;
	size_t n = v6 ? sizeof(own6) : sizeof(own4), at;
	uint32_t index = LOOPBACK;

	at = begin_message(out, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	buf_add(out, &address, sizeof(address));
	add_attribute(out, IFA_LOCAL, own, n);
	add_attribute(out, IFA_ADDRESS, own, n);
	end_message(out, at);
	at = begin_message(out, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
	buf_add(out, &route, sizeof(route));
	add_attribute(out, RTA_OIF, &index, sizeof(index));
	if (!v6) /* there the only address that is no loopback's is chosen anyway */
		add_attribute(out, RTA_PREFSRC, own, n);
	end_message(out, at);
	return out->failed ? -ENOMEM : 0;
}

/* -- rules */

static void add_family_header(struct buf *b, unsigned family, unsigned resource)
{
	struct nfgenmsg header = { .nfgen_family = (uint8_t)family,
				   .version = NFNETLINK_V0,
				   .res_id = htons((uint16_t)resource) };

	buf_add(b, &header, sizeof(header));
}

static size_t begin_rules_message(struct buf *b, unsigned type, unsigned flags)
{
	size_t at = begin_message(b, NFNL_SUBSYS_NFTABLES << 8 | type, flags);

	add_family_header(b, NFPROTO_INET, 0);
	return at;
}

static void add_batch_mark(struct buf *b, unsigned type)
{
	size_t at = begin_message(b, type, 0);

	add_family_header(b, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	end_message(b, at);
}

static void add_chain(struct buf *b)
{
	size_t at = begin_rules_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE), nest;

	add_text(b, NFTA_CHAIN_TABLE, TABLE);
	add_text(b, NFTA_CHAIN_NAME, PRE);
	nest = begin_nest(b, NFTA_CHAIN_HOOK);
	add_number(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	add_number(b, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
	end_nest(b, nest);
	add_number(b, NFTA_CHAIN_POLICY, NF_DROP);
	add_text(b, NFTA_CHAIN_TYPE, "filter");
	end_message(b, at);
}

/* A rule being written: the places where its lengths go. */
struct rule {
	struct buf *b;
	size_t message, list;
};

static struct rule begin_rule(struct buf *b, bool last)
{
	struct rule r = { .b = b };

	r.message = begin_rules_message(b, NFT_MSG_NEWRULE,
					NLM_F_CREATE | NLM_F_APPEND | (last ? NLM_F_ACK : 0));
	add_text(b, NFTA_RULE_TABLE, TABLE);
	add_text(b, NFTA_RULE_CHAIN, PRE);
	r.list = begin_nest(b, NFTA_RULE_EXPRESSIONS);
	return r;
}

static void end_rule(const struct rule *r)
{
	end_nest(r->b, r->list);
	end_message(r->b, r->message);
}

/* An expression: its name, then numbers as TYPE, VALUE pairs up to type 0. */
struct expression {
	size_t element, data;
};

static struct expression begin_expression(const struct rule *r, const char *name)
{
	struct expression x = { .element = begin_nest(r->b, NFTA_LIST_ELEM) };

	add_text(r->b, NFTA_EXPR_NAME, name);
	x.data = begin_nest(r->b, NFTA_EXPR_DATA);
	return x;
}

static void end_expression(const struct rule *r, struct expression x)
{
	end_nest(r->b, x.data);
	end_nest(r->b, x.element);
}

static void add_value(const struct rule *r, unsigned type, const void *bytes, size_t n)
{
	size_t nest = begin_nest(r->b, type);

	add_attribute(r->b, NFTA_DATA_VALUE, bytes, n);
	end_nest(r->b, nest);
}

static void load_meta(const struct rule *r, unsigned key)
{
	struct expression x = begin_expression(r, "meta");

	add_number(r->b, NFTA_META_DREG, NFT_REG_1);
	add_number(r->b, NFTA_META_KEY, key);
	end_expression(r, x);
}

static void load_payload(const struct rule *r, unsigned base, unsigned offset, unsigned n)
{
	struct expression x = begin_expression(r, "payload");

	add_number(r->b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	add_number(r->b, NFTA_PAYLOAD_BASE, base);
	add_number(r->b, NFTA_PAYLOAD_OFFSET, offset);
	add_number(r->b, NFTA_PAYLOAD_LEN, n);
	end_expression(r, x);
}

static void compare(const struct rule *r, unsigned operation, const void *bytes, size_t n)
{
	struct expression x = begin_expression(r, "cmp");

	add_number(r->b, NFTA_CMP_SREG, NFT_REG_1);
	add_number(r->b, NFTA_CMP_OP, operation);
	add_value(r, NFTA_CMP_DATA, bytes, n);
	end_expression(r, x);
}

static void want_byte(const struct rule *r, unsigned key, uint8_t value)
{
	load_meta(r, key);
	compare(r, NFT_CMP_EQ, &value, 1);
}

static void set_register(const struct rule *r, unsigned reg, const void *bytes, size_t n)
{
	struct expression x = begin_expression(r, "immediate");

	add_number(r->b, NFTA_IMMEDIATE_DREG, reg);
	add_value(r, NFTA_IMMEDIATE_DATA, bytes, n);
	end_expression(r, x);
}

static void accept_it(const struct rule *r)
{
	struct expression x = begin_expression(r, "immediate");
	size_t data, verdict;

	add_number(r->b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = begin_nest(r->b, NFTA_IMMEDIATE_DATA);
	verdict = begin_nest(r->b, NFTA_DATA_VERDICT);
	add_number(r->b, NFTA_VERDICT_CODE, NF_ACCEPT);
	end_nest(r->b, verdict);
	end_nest(r->b, data);
	end_expression(r, x);
}

static void mask_register(const struct rule *r, const uint8_t *mask, unsigned n,
			  const uint8_t *none)
{
	struct expression x = begin_expression(r, "bitwise");

	add_number(r->b, NFTA_BITWISE_SREG, NFT_REG_1);
	add_number(r->b, NFTA_BITWISE_DREG, NFT_REG_1);
	add_number(r->b, NFTA_BITWISE_LEN, n);
	add_value(r, NFTA_BITWISE_MASK, mask, n);
	add_value(r, NFTA_BITWISE_XOR, none, n);
	end_expression(r, x);
}

/* The destination lies in this block. */
static void want_destination(const struct rule *r, bool v6, const uint8_t *address, unsigned prefix)
{
	unsigned n = v6 ? 16 : 4;
	uint8_t mask[16] = { 0 }, none[16] = { 0 };

	want_byte(r, NFT_META_NFPROTO, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	if (!prefix)
		return;
	load_payload(r, NFT_PAYLOAD_NETWORK_HEADER, v6 ? 24 : 16, n);
	for (unsigned i = 0; i < prefix; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	if (prefix < n * 8)
		mask_register(r, mask, n, none);
	compare(r, NFT_CMP_EQ, address, n);
}

static void want_ports(const struct rule *r, uint16_t first, uint16_t last)
{
	uint16_t low = htons(first), high = htons(last);

	if (first <= 1 && last == 65535)
		return;
	load_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
	if (first == last) {
		compare(r, NFT_CMP_EQ, &low, 2);
		return;
	}
	compare(r, NFT_CMP_GTE, &low, 2);
	compare(r, NFT_CMP_LTE, &high, 2);
}

/* To the listening socket of that family. */
static void bring(const struct rule *r, bool v6)
{
	static const uint8_t loopback6[16] = { [15] = 1 };
	uint16_t port = htons(NET_GATE_PORT);
	struct expression x;

	set_register(r, NFT_REG_1, v6 ? loopback6 : gate4, v6 ? 16 : 4);
	set_register(r, NFT_REG_2, &port, 2);
	x = begin_expression(r, "tproxy");
	add_number(r->b, NFTA_TPROXY_FAMILY, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	add_number(r->b, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
	add_number(r->b, NFTA_TPROXY_REG_PORT, NFT_REG_2);
	end_expression(r, x);
	accept_it(r);
}

/* What the sandbox says to itself. */
static void add_own_rules(struct buf *b)
{
	static const uint8_t loopback4[4] = { 127 }, loopback6[16] = { [15] = 1 };
	const struct {
		bool v6;
		unsigned prefix;
		const uint8_t *address;
	} own[] = { { false, 32, own4 },
		    { false, 8, loopback4 },
		    { true, 128, own6 },
		    { true, 128, loopback6 } };

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		struct rule r = begin_rule(b, false);

		want_destination(&r, own[i].v6, own[i].address, own[i].prefix);
		accept_it(&r);
		end_rule(&r);
	}
}

/* What belongs to a connection that was let in at its first packet, or to none, which the kernel
 * resets: only a SYN is ever decided about. */
static void add_later_rule(struct buf *b)
{
	static const uint8_t syn = 0x02, none;
	struct rule r = begin_rule(b, false);

	want_byte(&r, NFT_META_L4PROTO, IPPROTO_TCP);
	load_payload(&r, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	mask_register(&r, &syn, 1, &none);
	compare(&r, NFT_CMP_EQ, &none, 1);
	accept_it(&r);
	end_rule(&r);
}

static void add_match(struct buf *b, const struct net_match *m)
{
	struct rule r = begin_rule(b, false);

	want_destination(&r, m->v6, m->address, m->prefix);
	want_byte(&r, NFT_META_L4PROTO, IPPROTO_TCP);
	want_ports(&r, m->first, m->last);
	bring(&r, m->v6);
	end_rule(&r);
}

/* Not in OUTPUT: the attempt shall be seen on the loopback. */
static void add_refusal(struct buf *b, bool tcp)
{
	struct rule r = begin_rule(b, !tcp);
	struct expression x;
	uint8_t code = NFT_REJECT_ICMPX_PORT_UNREACH;

	uint16_t group = htons(LOG_GROUP);

	if (tcp)
		want_byte(&r, NFT_META_L4PROTO, IPPROTO_TCP);
	x = begin_expression(&r, "log");
	add_attribute(b, NFTA_LOG_GROUP, &group, sizeof(group));
	add_number(b, NFTA_LOG_SNAPLEN, LOG_BYTES);
	end_expression(&r, x);
	x = begin_expression(&r, "reject");
	add_number(b, NFTA_REJECT_TYPE, tcp ? NFT_REJECT_TCP_RST : NFT_REJECT_ICMPX_UNREACH);
	add_attribute(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	end_expression(&r, x);
	end_rule(&r);
}

int net_batch_log(struct buf *out)
{
	struct nfulnl_msg_config_cmd bind = { .command = NFULNL_CFG_CMD_BIND };
	struct nfulnl_msg_config_mode mode = { .copy_range = htonl(LOG_BYTES),
					       .copy_mode = NFULNL_COPY_PACKET };
	size_t at = begin_message(out, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_ACK);

	add_family_header(out, AF_UNSPEC, LOG_GROUP);
	add_attribute(out, NFULA_CFG_CMD, &bind, sizeof(bind));
	add_attribute(out, NFULA_CFG_MODE, &mode, sizeof(mode));
	add_number(out, NFULA_CFG_QTHRESH, 1); /* at once, not each second */
	end_message(out, at);
	return out->failed ? -ENOMEM : 0;
}

static void add_rules(const struct net_match *matches, size_t count, struct buf *out)
{
	add_later_rule(out);
	add_own_rules(out);
	for (size_t i = 0; i < count; i++)
		add_match(out, &matches[i]);
	add_refusal(out, true);
	add_refusal(out, false);
}

int net_batch_bring(const struct net_match *matches, size_t count, struct buf *out)
{
	size_t at;

	add_batch_mark(out, NFNL_MSG_BATCH_BEGIN);
	at = begin_rules_message(out, NFT_MSG_DELRULE, 0);
	add_text(out, NFTA_RULE_TABLE, TABLE);
	add_text(out, NFTA_RULE_CHAIN, PRE);
	end_message(out, at);
	add_rules(matches, count, out);
	add_batch_mark(out, NFNL_MSG_BATCH_END);
	return out->failed ? -ENOMEM : 0;
}

int net_batch_rules(const struct net_match *matches, size_t count, struct buf *out)
{
	size_t at;

	add_batch_mark(out, NFNL_MSG_BATCH_BEGIN);
	at = begin_rules_message(out, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	add_text(out, NFTA_TABLE_NAME, TABLE);
	end_message(out, at);
	add_chain(out);
	add_rules(matches, count, out);
	add_batch_mark(out, NFNL_MSG_BATCH_END);
	return out->failed ? -ENOMEM : 0;
}

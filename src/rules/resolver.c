/*
 * The resolver inside the sandbox. In: one DNS message, the rules, the table of names. Out: the
 * answer and what became of the question. Nothing is ever asked upstream here: whether a name
 * exists outside is found out at connect, and a name that the rules do not have is never sent
 * anything. Pure but for the table of names; run by the gateway's parsing process. Fuzzed
 * (fuzz/dns.c).
 */
#include <string.h>

#include "rules/dns.h"
#include "rules/port_classes.h"

static bool ends_with(const struct host *h, const char *suffix)
{
	size_t n = strlen(suffix);

	return h->kind == HOST_NAME && h->len >= n && memcmp(h->name + h->len - n, suffix, n) == 0;
}

/* "4.3.2.1.in-addr.arpa" as 1.2.3.4. */
static bool read_reverse(const struct host *h, struct ip *ret)
{
	char dotted[16];
	size_t len = 0, end, start;
	struct host address;

	if (!ends_with(h, ".in-addr.arpa"))
		return false;
	end = (size_t)h->len - strlen(".in-addr.arpa");
	while (end) {
		for (start = end; start && h->name[start - 1] != '.'; start--)
			;
		if (len + (end - start) + 1 >= sizeof(dotted) + 1)
			return false;
		memcpy(dotted + len, h->name + start, end - start);
		len += end - start;
		end = start ? start - 1 : 0;
		if (end && len < sizeof(dotted))
			dotted[len++] = '.';
	}
	if (host_read(dotted, len, &address) != HOST_FINE || address.kind != HOST_ADDRESS)
		return false;
	*ret = address.ip;
	return true;
}

static bool is_localhost(const struct host *h)
{
	return ends_with(h, ".localhost") ||
	       (h->kind == HOST_NAME && strcmp(h->name, "localhost") == 0);
}

/* A name that stands in a rule as such, or is a service, always has room in the table. */
static bool is_listed(const struct rules *rules, const struct verdict *v)
{
	return v->service >= 0 || (v->rule >= 0 && rules->items[v->rule].kind == RULE_NAME);
}

/* Decides on the name and gives it its address. */
static void decide_question(const struct rules *rules, struct name_table *names,
			    struct dns_outcome *o)
{
	o->decided = true;
	want_host(&o->want, WANT_DNS, &o->query.host, 0);
	if (o->query.host.kind != HOST_NAME)
		o->want.host.kind = HOST_NONE; /* an address is not asked for by name */
	decide_name(rules, &o->want, &o->verdict);
	o->want.host = o->query.host;
	if (!o->verdict.allow && !o->verdict.ask) { /* a person is asked at connect */
		o->rcode = DNS_NXDOMAIN;
	} else if (o->query.type != DNS_A && o->query.type != DNS_ANY) {
		o->rcode = DNS_NOERROR;
	} else if (!name_table_give(names, &o->query.host, is_listed(rules, &o->verdict),
				    classes_of(rules, name_table_classes(names), &o->query.host),
				    &o->ip)) {
		verdict_refuse(&o->verdict, REASON_NAMES_FULL);
		o->ip = (struct ip){ 0 };
		o->rcode = DNS_SERVFAIL;
	}
}

size_t resolver_answer(const struct rules *rules, struct name_table *names, const uint8_t *bytes,
		       size_t n, uint8_t *out, size_t cap, struct dns_outcome *ret)
{
	struct host reverse_name;
	const struct host *pointed = NULL;
	struct ip reverse;

	memset(ret, 0, sizeof(*ret));
	if (!dns_read(bytes, n, &ret->query))
		return 0;
	ret->rcode = ret->query.rcode;
	if (ret->rcode != DNS_NOERROR)
		return dns_write(bytes, &ret->query, ret->rcode, NULL, NULL, out, cap);
	if (read_reverse(&ret->query.host, &reverse)) {
		bool known = name_table_find(names, &reverse, &reverse_name);

		ret->rcode = known ? DNS_NOERROR : DNS_NXDOMAIN;
		pointed = known && ret->query.type == DNS_PTR ? &reverse_name : NULL;
	} else if (is_localhost(&ret->query.host)) { /* the sandbox's own; RFC 6761 */
		if (ret->query.type == DNS_A)
			ret->ip = ip_from_4((const uint8_t[]){ 127, 0, 0, 1 });
	} else {
		decide_question(rules, names, ret);
	}
	return dns_write(bytes, &ret->query, ret->rcode, ret->ip.family ? &ret->ip : NULL, pointed,
			 out, cap);
}

size_t resolver_refuse(const uint8_t *bytes, size_t n, uint8_t *out, size_t cap,
		       struct dns_query *ret)
{
	const struct ip loopback = ip_from_4((const uint8_t[]){ 127, 0, 0, 1 });
	bool own;

	memset(ret, 0, sizeof(*ret));
	if (!dns_read(bytes, n, ret))
		return 0;
	if (ret->rcode != DNS_NOERROR)
		return dns_write(bytes, ret, ret->rcode, NULL, NULL, out, cap);
	own = is_localhost(&ret->host);
	return dns_write(bytes, ret, own ? DNS_NOERROR : DNS_NXDOMAIN,
			 own && ret->type == DNS_A ? &loopback : NULL, NULL, out, cap);
}

void want_destination(struct want *ret, const struct name_table *names, const struct ip *ip,
		      uint16_t port)
{
	struct host host = { .kind = HOST_ADDRESS, .ip = *ip };
	bool synthetic = name_table_is_synthetic(ip),
	     known = synthetic && name_table_find(names, ip, &host);

	want_host(ret, WANT_TRANSPARENT, &host, port);
	ret->stale = synthetic && !known;
}

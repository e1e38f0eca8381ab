/*
 * A sandbox without a network refuses connections in the kernel, unseen by ward. In: observations
 * of connect (observe.h), if they were asked for. Out: an event for each address outside the
 * sandbox that was asked for, once. The address was seen in the caller's memory: observed, not
 * proven, and nothing is decided by it. Runs in the supervisor.
 */
#include "observe/unreached.h"

#include <netinet/in.h>
#include <string.h>

#include "event/event.h"
#include "policy/hostname.h"
#include "rules/remedy.h"

#define RESOLVER 53

/* Address and port; false: it stays inside. */
static bool read_target(const struct observation *o, struct ip *ret_ip, uint16_t *ret_port)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	memcpy(&four, o->address, sizeof(four));
	if (four.sin_family == AF_INET) {
		*ret_ip = ip_from_4((const uint8_t *)&four.sin_addr);
		*ret_port = ntohs(four.sin_port);
	} else {
		memcpy(&six, o->address, sizeof(six));
		*ret_ip = ip_from_16((const uint8_t *)&six.sin6_addr);
		*ret_port = ntohs(six.sin6_port);
	}
	if (*ret_port == RESOLVER)
		return true; /* the resolver's own guess where none is named */
	if (ret_ip->family == 4)
		return ret_ip->bytes[0] != 127 && ret_ip->bytes[0] != 0;
	return memcmp(ret_ip->bytes, &in6addr_loopback, 16) != 0 &&
	       memcmp(ret_ip->bytes, &in6addr_any, 16) != 0;
}

static bool is_new(struct unreached *u, const struct observation *o)
{
	uint8_t key[sizeof(o->address)] = { 0 };

	memcpy(key, o->address, o->address_len < 24 ? o->address_len : 24);
	for (size_t i = 0; i < u->count; i++)
		if (memcmp(u->seen[i], key, sizeof(key)) == 0)
			return false;
	if (u->count == UNREACHED_MAX)
		return false;
	memcpy(u->seen[u->count++], key, sizeof(key));
	return true;
}

void unreached_report(struct unreached *u, const struct observation *o, struct result *r)
{
	struct ward_event v;
	char host[HOST_TEXT], link[32], exe[512];
	auto_buf object = { 0 }, remedy = { 0 };
	struct ip ip;
	uint16_t port;
	ssize_t n;

	if (o->act != ACT_CONNECT || !o->address_len || !r->events || !read_target(o, &ip, &port) ||
	    !port || !is_new(u, o))
		return;
	ip_text(&ip, host);
	buf_printf(&object, ip.family == 6 ? "[%s]:%u" : "%s:%u", host, port);
	/* a name that is asked for is no address that would help, and one that hands out
	 * credentials is not offered */
	if (port != RESOLVER && remedy_may_name(&(struct host){ .kind = HOST_ADDRESS, .ip = ip }))
		buf_printf(&remedy, "network.egress_allowlist: [\"%s\"]", buf_text(&object));
	snprintf(link, sizeof(link), "/proc/%d/exe", o->pid);
	n = readlink(link, exe, sizeof(exe));
	v = event_make(EVENT_CONNECT, ACTION_DENY, buf_text(&object));
	event_text(&v, FIELD_HOST, host);
	event_number(&v, FIELD_PORT, port);
	event_text(&v, FIELD_RULE, "network.mode");
	event_text(&v, FIELD_REASON, "no_network");
	event_text(&v, FIELD_WHY,
		   port == RESOLVER ? "the policy grants no network, so names do not resolve"
				    : "the policy grants no network");
	event_text(&v, FIELD_REMEDY, remedy.len ? buf_text(&remedy) : NULL);
	event_bytes(&v, FIELD_EXE, n > 0 ? exe : NULL, n > 0 ? (size_t)n : 0);
	event_flag(&v, FIELD_OBSERVED);
	event_emit(r->events, &v);
}

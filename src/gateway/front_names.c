/*
 * Names inside. In: DNS messages of whatever programs inside send, over UDP and TCP. Out: answers
 * that the gateway's own resolver makes (dns.h); nothing is ever asked upstream. Runs in front.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/front.h"

#define AT_ONCE 64

static size_t answer(struct front *f, const uint8_t *question, size_t n, uint8_t *out, size_t cap)
{
	struct dns_outcome outcome = { 0 };
	size_t len = resolver_answer(f->rules, f->names, question, n, out, cap, &outcome);

	if (outcome.decided && !outcome.verdict.allow && !outcome.verdict.ask)
		front_denied(f, &outcome.want, &outcome.verdict, IPPROTO_UDP);
	else if (outcome.decided)
		front_flow_report_name(f, &outcome.want, &outcome.verdict, &outcome.ip);
	f->totals.names = name_table_count(f->names);
	return len;
}

void front_datagrams(struct front *f, int fd)
{
	uint8_t question[DNS_QUERY_MAX + 1], out[DNS_ANSWER_MAX];

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_storage peer;
		socklen_t peer_n = sizeof(peer);
		ssize_t n = recvfrom(fd, question, sizeof(question), MSG_DONTWAIT,
				     (struct sockaddr *)&peer, &peer_n);
		size_t len;

		if (n < 0)
			return;
		len = answer(f, question, (size_t)n, out, sizeof(out));
		if (len)
			(void)!sendto(fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL,
				      (struct sockaddr *)&peer, peer_n);
	}
}

/* One message of a TCP client. False: not whole yet, or the flow is over. */
static bool answer_one(struct front *f, struct flow *w)
{
	uint8_t out[2 + DNS_TCP_MAX];
	int n = dns_frame(w->held, w->held_len);
	size_t len;

	if (n < 0)
		flow_close(f, w, true);
	if (n <= 0)
		return false;
	len = answer(f, w->held + 2, (size_t)n, out + 2, sizeof(out) - 2);
	w->held_len -= (uint32_t)n + 2;
	memmove(w->held, w->held + 2 + n, w->held_len);
	out[0] = (uint8_t)(len >> 8);
	out[1] = (uint8_t)len;
	if (len && !pump_send(f, w, DOWN, out, len + 2))
		flow_close(f, w, true);
	return w->state != FLOW_DEAD;
}

bool front_name_stream(struct front *f, struct flow *w)
{
	ssize_t n;

	(void)pump_kept(f, w, DOWN);
	if (w->state == FLOW_DEAD || w->lanes[DOWN].kept_len)
		return false;
	if (!w->held) {
		w->held_cap = DNS_QUERY_MAX + 2;
		w->held = malloc(w->held_cap);
	}
	n = w->held ? pump_read(f, w, CLIENT, w->held + w->held_len, w->held_cap - w->held_len)
		    : -2;
	if (n < 0)
		flow_close(f, w, n == -2);
	if (n <= 0)
		return false;
	w->held_len += (uint32_t)n;
	while (answer_one(f, w))
		;
	if (w->state != FLOW_DEAD)
		(void)pump_kept(f, w, DOWN);
	return w->state != FLOW_DEAD;
}

/*
 * Connections that a person has allowed once. In: orders of the supervisor, over the socket that
 * front passes on unread. Out: whether dial may connect though the rule asks. So an attacker who
 * takes over front cannot answer a question: only what was granted is connected to, as often as it
 * was granted, and for a short time. Fixed room: the grant that ends first gives way. Runs in dial.
 */
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/dial.h"

#define GRANT_MS 30000

void dial_grant_add(struct dial *d, const struct dial_order *order)
{
	const struct dial_word word = { .kind = DIAL_GRANTED, .generation = order->tag };
	struct dial_grant *place = &d->grants[0];

	for (size_t i = 0; i < DIAL_GRANTS && place->left; i++)
		if (!d->grants[i].left || d->grants[i].until_ms < place->until_ms)
			place = &d->grants[i];
	*place = (struct dial_grant){ .host = order->host,
				      .port = order->port,
				      .left = order->count,
				      .until_ms = io_now_ms() + GRANT_MS };
	if (send(GATE_FD_ORDERS, &word, sizeof(word), MSG_NOSIGNAL) < 0)
		d->gone = true;
}

bool dial_grant_use(struct dial *d, const struct host *host, uint16_t port)
{
	uint64_t now = io_now_ms();

	for (size_t i = 0; i < DIAL_GRANTS; i++) {
		struct dial_grant *g = &d->grants[i];

		if (!g->left || g->port != port || !host_equal(&g->host, host))
			continue;
		g->left = now >= g->until_ms ? 0 : g->left - 1;
		if (now < g->until_ms)
			return true;
	}
	return false;
}

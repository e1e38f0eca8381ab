/*
 * What the operator sees of the network. In: a request for some rows. Out: one message with at most
 * GATE_ROWS of them and where to go on; nothing is kept between two requests, and no process is
 * waited for. Runs in front.
 */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/front.h"

static struct gate_meter meter_of(const struct ratelimit_meter *m, const struct purse *p)
{
	return (struct gate_meter){ .requests = p ? p->requests : 0,
				    .spent = p ? p->spent : 0,
				    .held = p ? p->held : 0,
				    .opened = m->opened,
				    .denied = m->denied,
				    .open = m->connections,
				    .bytes_in = m->bytes[RATELIMIT_RECEIVE],
				    .bytes_out = m->bytes[RATELIMIT_SEND] };
}

static void show_meters(const struct front *f, uint32_t from, struct gate_shown *s)
{
	for (uint32_t i = from; i < f->shape.n && s->count < GATE_ROWS; i++)
		s->rows.meters[s->count++] =
			meter_of(&f->shape.rules[i], i < f->budget.n ? &f->budget.rules[i] : NULL);
	if (from + s->count < f->shape.n)
		s->next = from + s->count;
}

static void show_flow(const struct flow *w, uint64_t now, struct gate_flow *row)
{
	host_text(&w->want.host, row->host);
	row->port = w->want.port;
	row->how = w->want.how;
	row->state = w->state;
	row->inward = w->inward;
	row->rule = w->admitted ? w->verdict.rule : -1;
	row->generation = w->verdict.generation;
	row->bytes_in = w->lanes[DOWN].moved;
	row->bytes_out = w->lanes[UP].moved;
	row->age_ms = now > w->began_ms ? now - w->began_ms : 0;
}

static void show_flows(const struct front *f, uint32_t from, struct gate_shown *s)
{
	uint32_t numbers = f->flow_count + f->next_free, i;
	uint64_t now = io_now_ms();

	for (i = from; i < numbers && i < f->flow_max && s->count < GATE_ROWS; i++)
		if (f->flows[i] && f->flows[i]->state != FLOW_NAMES && !f->flows[i]->server)
			show_flow(f->flows[i], now, &s->rows.flows[s->count++]);
	if (s->count == GATE_ROWS && i < numbers)
		s->next = i;
}

void front_show(struct front *f, const struct gate_order *order)
{
	struct gate_shown s = { .kind = GATE_SHOWN,
				.tag = order->tag,
				.what = order->what,
				.flows = f->flow_count,
				.generation = f->rules->generation,
				.totals = f->totals,
				.whole = meter_of(&f->shape.whole, &f->budget.whole) };

	if (order->what == SHOW_METERS)
		show_meters(f, order->from, &s);
	else
		show_flows(f, order->from, &s);
	(void)!send(f->control_fd, &s, sizeof(s), MSG_NOSIGNAL | MSG_DONTWAIT);
}

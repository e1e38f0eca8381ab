/*
 * The life of a flow: made with its socket, in lists, closed, freed. In: sockets, ends. Out: a
 * struct with a number, watched by epoll. A client that is silent for HEAD_MS is dropped, and so is
 * a flow of which one half has ended when the other is silent for HALF_MS; one that waits for
 * nothing but data costs its struct alone. Runs in front.
 *
 * A wake-up costs more than most of what it is for, so a socket is watched for no more than its
 * flow waits for: one whose server dial connects to only when that takes longer than DIAL_MS (the
 * program may give up meanwhile), and room to write when there was none.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/flow.h"
#include "gateway/inspect_main.h"

#define HEAD_MS 15000
#define HALF_MS 300000 /* one side has ended, and nothing comes from the other */
#define DIAL_MS 100
#define GONE_MS 5000 /* an answer for a program that has ended, and may be gone */

/* -- lists */

void flow_mark_ready(struct front *f, struct flow *w)
{
	if (w->ready || w->state == FLOW_DEAD)
		return;
	w->ready = true;
	w->ready_next = NULL;
	if (f->ready.last)
		f->ready.last->ready_next = w;
	else
		f->ready.first = w;
	f->ready.last = w;
}

static const unsigned wait_ms[FLOW_WAITS] = { [FLOW_WAIT_HEAD] = HEAD_MS,
					      [FLOW_WAIT_HALF] = HALF_MS,
					      [FLOW_WAIT_DIAL] = DIAL_MS,
					      [FLOW_WAIT_GONE] = GONE_MS };

void flow_untime(struct front *f, struct flow *w)
{
	struct flow_list *list = &f->timed[w->timed];

	if (w->timed == FLOW_WAIT_NONE)
		return;
	*(w->timed_prev ? &w->timed_prev->timed_next : &list->first) = w->timed_next;
	*(w->timed_next ? &w->timed_next->timed_prev : &list->last) = w->timed_prev;
	w->timed = FLOW_WAIT_NONE;
}

void flow_time_out(struct front *f, struct flow *w, enum flow_wait what)
{
	struct flow_list *list = &f->timed[what];

	flow_untime(f, w);
	w->end_at_ms = io_now_ms() + wait_ms[what];
	w->timed = (uint8_t)what;
	w->timed_next = NULL;
	w->timed_prev = list->last;
	*(list->last ? &list->last->timed_next : &list->first) = w;
	list->last = w;
}

uint64_t flow_next_end(const struct front *f)
{
	uint64_t first = 0;

	for (int i = FLOW_WAIT_HEAD; i < FLOW_WAITS; i++)
		if (f->timed[i].first && (!first || f->timed[i].first->end_at_ms < first))
			first = f->timed[i].first->end_at_ms;
	return first;
}

void flow_expire(struct front *f, uint64_t now)
{
	for (int i = FLOW_WAIT_HEAD; i < FLOW_WAITS; i++)
		while (f->timed[i].first && f->timed[i].first->end_at_ms <= now) {
			struct flow *w = f->timed[i].first;

			flow_untime(f, w);
			if (i != FLOW_WAIT_DIAL || !flow_watch(f, w, CLIENT, WATCH_READ))
				flow_close(f, w, true);
		}
}

/* -- begin and end */

bool flow_watch(struct front *f, struct flow *w, enum side s, enum flow_watch what)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET,
				     .data.u64 = flow_event(w, s) };
	int change = w->watched[s] == WATCH_NOT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (w->watched[s] >= what)
		return true;
	if (what == WATCH_ALL)
		event.events |= EPOLLOUT;
	w->watched[s] = (uint8_t)what;
	return epoll_ctl(f->epoll_fd, change, w->fds[s], &event) == 0;
}

struct flow *flow_new(struct front *f, int fd, enum flow_state state)
{
	struct flow *w;
	uint32_t number;

	if (f->flow_count >= f->flow_max && f->timed[FLOW_WAIT_HEAD].first)
		/* the flow that has been silent longest gives way */
		flow_close(f, f->timed[FLOW_WAIT_HEAD].first, true);
	if (f->flow_count >= f->flow_max)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	number = f->next_free ? f->free_numbers[f->next_free - 1] : f->flow_count;
	w->id = number | ++f->serial << 16;
	if (f->next_free)
		f->next_free--;
	f->flows[number] = w;
	f->flow_count++;
	w->fds[CLIENT] = fd;
	w->fds[SERVER] = -1;
	w->can_read[CLIENT] = w->can_write[CLIENT] = true;
	w->state = (uint8_t)state;
	flow_time_out(f, w, FLOW_WAIT_HEAD);
	w->began_ms = w->end_at_ms - HEAD_MS;
	return w;
}

void flow_probe(int fd)
{
	int on = 1, idle_s = 5, count = 2;

	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

void flow_reset_socket(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void flow_close(struct front *f, struct flow *w, bool reset)
{
	uint32_t number = (uint32_t)(w->id & 0xffff);

	if (w->state == FLOW_DEAD)
		return;
	flow_untime(f, w);
	flow_leave(f, w);
	if (w->state == FLOW_ASK)
		flow_stop_waiting(f, w);
	if (w->inspect ? !w->server : w->fds[SERVER] >= 0)
		front_flow_report_flow(f, w, FLOW_REPORT_CLOSED);
	if (w->inspect)
		f->inspect->closed(f, w);
	for (int s = 0; s < SIDES; s++) {
		if (w->fds[s] >= 0 && reset)
			flow_reset_socket(w->fds[s]);
		own_close_fd(&w->fds[s]);
		w->fds[s] = -1;
	}
	for (int d = 0; d < DIRECTIONS; d++) {
		pump_release(f, &w->lanes[d]);
		pump_drop_kept(f, &w->lanes[d]);
	}
	flow_free_held(f, w);
	free(take_ptr(w->gate));
	free(take_ptr(w->canary));
	w->state = FLOW_DEAD;
	f->flows[number] = NULL;
	f->free_numbers[f->next_free++] = number;
	f->flow_count--;
	/* a list may still name it; events do so by its id, for dial may have the server's socket a
	 * moment longer */
	w->dead_next = f->dead;
	f->dead = w;
}

void flow_free_dead(struct front *f)
{
	struct flow *kept = NULL;

	while (f->dead) {
		struct flow *w = f->dead;

		f->dead = w->dead_next;
		if (w->ready || w->asked || w->asleep) { /* still in a list: next time */
			w->dead_next = kept;
			kept = w;
		} else {
			free(w);
		}
	}
	f->dead = kept;
}

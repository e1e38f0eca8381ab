/*
 * What flows may fill. In: how much a flow holds already, how much more it wants. Out: yes or no. A
 * sandbox decides how many connections it opens, what it begins to say on each, and whether it
 * reads; none of that may take the gateway's memory, or the host's, from the next one that has an
 * honest request. So each flow has a small block for the asking; what is larger comes out of one
 * budget for all, and a flow that finds it empty has to do with small pieces, or is refused if a
 * piece cannot be small. Sockets are treated alike: the first few have buffers that the kernel fits
 * to the line, those beside many others have small ones, since what waits in them is the host's
 * memory. Runs in front.
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include "gateway/flow.h"

#define SMALL 4352U /* the first block of a flow, a DNS message */
#define PURSE (32U << 20)

static const struct {
	uint32_t flows; /* from so many on */
	/* of each buffer; the kernel doubles it for its own needs */
	int bytes;
} buffers[] = { { 512, 16 << 10 }, { 16, 128 << 10 } };

static uint32_t large(uint32_t bytes)
{
	return bytes > SMALL ? bytes : 0;
}

bool room_grow(struct front *f, uint32_t from, uint32_t to)
{
	if (large(to) > large(from) && f->room_used + large(to) - large(from) > PURSE)
		return false;
	f->room_used += large(to) - large(from);
	return true;
}

void room_give_back(struct front *f, uint32_t bytes)
{
	f->room_used -= large(bytes);
}

size_t room_for_reading(const struct front *f)
{
	return f->room_used + SCRATCH_BYTES > PURSE ? 4096 : SCRATCH_BYTES;
}

void room_fit_sockets(const struct front *f, const struct flow *w)
{
	for (size_t i = 0; i < ARRAY_LEN(buffers); i++) {
		if (f->flow_count < buffers[i].flows)
			continue;
		for (int s = 0; s < SIDES; s++) {
			setsockopt(w->fds[s], SOL_SOCKET, SO_RCVBUF, &buffers[i].bytes,
				   sizeof(int));
			setsockopt(w->fds[s], SOL_SOCKET, SO_SNDBUF, &buffers[i].bytes,
				   sizeof(int));
		}
		return;
	}
}

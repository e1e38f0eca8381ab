/* What front calls for flows that are looked into; ward-gateway has none of it, ward-gateway-tls
 * has inspect.c. */
#ifndef WARD_GATEWAY_INSPECT_MAIN_H
#define WARD_GATEWAY_INSPECT_MAIN_H

#include <stdbool.h>

#include "base/err.h"

struct front;
struct flow;
struct gate_order;

struct inspect_ops {
	int (*prepare)(struct front *f, struct ward_err *e); /* before front is confined */
	/* the verdict is a yes of mode inspect or plain */
	void (*begin)(struct front *f, struct flow *w);
	bool (*run)(struct front *f, struct flow *w);     /* whether something moved */
	void (*dialled)(struct front *f, struct flow *w); /* w->fds[SERVER] is connected */
	/* frees w->inspect; the sockets are still open */
	void (*closed)(struct front *f, struct flow *w);
	int (*record)(struct front *f, struct ward_err *e); /* a recording begins; */
	void (*recorded)(struct front *f);                  /* no more comes */
	void (*record_failed)(struct front *f);             /* it cannot be written any more */
	/* the processes record and replay */
	int (*record_main)(void);
	int (*replay_main)(void);
	/* ward-waf has answered, or can be written to */
	void (*waf_ready)(struct front *f);
	/* a person has answered about requests; the supervisor has room for questions */
	void (*answered)(struct front *f, const struct gate_order *order);
	void (*ask_later)(struct front *f);
};

/* Of this program; NULL: it has none. */
extern const struct inspect_ops *const inspect_here;

#endif

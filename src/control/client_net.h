/* The network of a sandbox that runs, as the verbs and libward see it. */
#ifndef WARD_CONTROL_CLIENT_NET_H
#define WARD_CONTROL_CLIENT_NET_H

#include "base/json.h"
#include "control/client.h"

/* All that there is to see. Rows are owned. */
struct client_net {
	struct control_net now;
	struct control_net_rule *rules;
	struct control_net_flow *flows;
	size_t rule_count, flow_count;
};

/* The sandbox that a word names, detached or in the foreground, alive; the caller clears. */
must_check int client_net_find(const char *word, struct box_info *ret_info, struct ward_err *e);
/* All that run, with or without a network. */
must_check int client_net_list(struct boxes *ret_boxes, struct ward_err *e);

must_check int client_net_show(struct client *c, struct client_net *ret, struct ward_err *e);
/* The totals alone. */
must_check int client_net_show_now(struct client *c, struct control_net *ret, struct ward_err *e);
void client_net_clear(struct client_net *n);
/* Changes the rules, all lines or none, and waits until they are in force. seconds 0: for good.
 * *ret is how it is then. */
must_check int client_net_change(struct client *c, bool deny, char *const *lines, size_t count,
				 unsigned seconds, struct control_net *ret, struct ward_err *e);

const char *client_net_mode(const struct control_net *n);    /* none restricted open */
const char *client_net_gateway(const struct control_net *n); /* waiting running ended */
/* splice http tcp, "" by port */
const char *client_net_rule_mode(const struct control_net_rule *r);
/* How many connections to a service of the host are open; s is its row. */
size_t client_net_service_open(const struct client_net *n, const struct control_net_rule *s);
/* Into an object that was begun: mode, gateway, generation, totals, limits, rules, services,
 * connections. */
void client_net_json(struct json *j, const struct client_net *n);
/* The same without rows: what a change answers. */
void client_net_json_now(struct json *j, const struct control_net *n);

#endif

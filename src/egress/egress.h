/* The gateway as the supervisor sees it: started with the rules, given the sandbox's sockets, read
 * from, ended. */
#ifndef WARD_EGRESS_EGRESS_H
#define WARD_EGRESS_EGRESS_H

#include "model/running.h"

struct egress;

/* Makes sure that there is a gateway for a plan with a network. It is started when the sandbox
 * first wants something of it: what wants it waits in the sockets. p and engine are borrowed. */
must_check int egress_begin(const struct plan *p, const struct engine *engine, struct egress **ret,
			    struct ward_err *e);
/* Takes the sockets that were made in the sandbox. *ret_ask_fd: the one of http://ward.internal/,
 * which the caller owns; -1: there is none. */
must_check int egress_take(struct egress *g, struct running *run, int *ret_ask_fd,
			   struct ward_err *e);
/* What to poll; -1: nothing. The second is about changes. */
int egress_fd(const struct egress *g);
int egress_orders_fd(const struct egress *g);
/* Whether the gateway has yet to be started. NULL is fine. */
bool egress_is_waiting(const struct egress *g);
/* Starts the gateway and hands it the sockets (no other process has them from then on), or takes
 * what it says. */
void egress_handle(struct egress *g, struct result *r);
/* The same for the second descriptor. */
void egress_handle_orders(struct egress *g);

/* ---- while it runs (egress_live.c) ---- */

/* not asked for anything yet; serves; the network is gone */
enum egress_state { EGRESS_WAITING, EGRESS_RUNNING, EGRESS_ENDED };
enum egress_state egress_state(const struct egress *g);
/* Rules on top of those in force, as egress_allowlist has them (rules/egress_rules.h:
 * rules_change), all or none; seconds 0: for good. They are in force when egress_generation() has
 * reached *ret_generation; the gateway is ended if it does not take them. */
must_check int egress_change(struct egress *g, char *const *lines, size_t count, bool deny,
			     uint64_t seconds, uint64_t *ret_generation, struct ward_err *e);
uint64_t egress_generation(const struct egress *g);
/* The rules in force or on their way. */
const struct rules *egress_rules(const struct egress *g);
/* How long a rule still lasts; 0: for good. */
uint64_t egress_remaining_ms(const struct egress *g, uint32_t rule);
/* Flows that the last change closed. */
uint32_t egress_closed(const struct egress *g);
/* Whether the kernel has no nf_tables: one socket a port. */
bool egress_by_port(const struct egress *g);
/* Asks the gateway; its answer is passed to the function, once. -ENOTCONN: there is none. */
struct gate_shown;
typedef void (*egress_shown)(void *context, const struct gate_shown *shown);
void egress_on_shown(struct egress *g, egress_shown shown, void *context);
must_check int egress_ask(struct egress *g, unsigned what, uint32_t from, uint32_t tag);
/* ---- a person's answers (egress_ask.c) ---- */

/* A connection waits (waits), or has gone away. The want was checked, the verdict is the
 * supervisor's own. < 0: nobody can be asked, and it is refused; -EACCES: approvals.never names
 * it. */
struct want;
struct verdict;
typedef int (*egress_asked)(void *context, bool waits, const struct want *w,
			    const struct verdict *v, uint64_t serial);
void egress_on_asked(struct egress *g, egress_asked asked, void *context);
/* Answers for the connections to host and port that wait and are not younger than serial. once:
 * count of them are made, and no others. The gateway is ended if it does not take a no. */
must_check int egress_allow_once(struct egress *g, const char *host, uint16_t port, uint64_t serial,
				 uint32_t count, struct ward_err *e);
void egress_refuse(struct egress *g, const char *host, uint16_t port, uint64_t serial,
		   unsigned reason);

/* The same for requests. said: as front has it, with its texts ended. < 0: nobody can be asked. */
struct gate_request;
typedef int (*egress_requested)(void *context, bool waits, const struct want *w,
				const struct verdict *v, const struct gate_request *said);
void egress_on_requested(struct egress *g, egress_requested requested, void *context);
/* Answers for the requests to host and port with that digest that wait; reason: REASON_ALLOWED is a
 * yes. */
must_check int egress_answer_request(struct egress *g, const char *host, uint16_t port,
				     const uint8_t exact[32], uint64_t serial, unsigned reason,
				     struct ward_err *e);

/* When something is due, of io_now_ms(); 0: nothing. And what is due. NULL is fine. */
uint64_t egress_due_ms(const struct egress *g);
void egress_on_time(struct egress *g, uint64_t now_ms, struct result *r);

/* Asks for the totals and ends it. NULL is fine. */
void egress_end(struct egress *g, struct result *r);

#endif

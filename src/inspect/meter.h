/*
 * What is counted about a request that is looked into: its pace, and where its rule is for language
 * models what it costs. The exchange and the streams of HTTP/2 call these at five places of a
 * request's life:
 *
 *   meter_request() it is decided about: may it go on? *ret: what to hand to the others, NULL:
 *   nothing is counted of it
 *   meter_body()     bytes of its body
 *   meter_judge() behind each piece of the body, before that piece goes to the server: when all is
 *   there that a server needs to begin
 *                    (the JSON document, or the body) the most that it may cost is held back
 *   meter_answer()   the head of the final answer; meter_data() its bytes, false: break it off
 *   meter_end() it is over, whatever came of it: what it has cost is spent. If that is unknown,
 *   that
 *                    is what it may have cost: a program that resets its request stops neither the
 *                    model nor the bill.
 *
 * A refusal leaves its words in ex->why and how long to wait in ex->retry_s. Runs in front.
 */
#ifndef WARD_INSPECT_METER_H
#define WARD_INSPECT_METER_H

#include "inspect/inspect.h"

struct meter;

/* Takes what cannot be counted out of r (compressed answers). */
must_check enum verdict_reason meter_request(struct front *f, struct exchange *ex,
					     struct http_request *r, const struct http_verdict *v,
					     struct meter **ret);
void meter_body(struct meter *m, const uint8_t *bytes, size_t n);
must_check enum verdict_reason meter_judge(struct front *f, struct exchange *ex, struct meter *m,
					   bool complete);
must_check bool meter_answer(struct front *f, struct exchange *ex, struct meter *m, unsigned status,
			     struct http_text type, struct http_text encoding);
/* A line for the answer's head, "83% of the budget is spent"; NULL: none. */
const char *meter_note(const struct front *f, struct meter *m);
must_check bool meter_data(struct front *f, struct meter *m, const uint8_t *bytes, size_t n);
/* What a program receives in the middle of an answer of server-sent events; false: it is not one.
 */
must_check bool meter_cut_off(struct front *f, struct exchange *ex, const struct meter *m,
			      struct buf *out);
/* How it ended: the server never had it, the answer was broken off (or never came), or it was
 * whole. Frees it; NULL is fine. */
enum meter_way { METER_UNSENT, METER_CUT, METER_WHOLE };
void meter_end(struct front *f, struct meter *m, enum meter_way how);

/* Whether the body of this refusal is written by meter_say(), in the form of the APIs of language
 * models. */
bool meter_is_about(const struct exchange *ex, enum verdict_reason reason);
void meter_say(const struct exchange *ex, enum verdict_reason reason, const char *rule,
	       const char *remedy, struct buf *out);

#endif

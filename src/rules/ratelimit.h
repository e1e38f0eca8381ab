/*
 * Shaping: what a sandbox and each of its rules may spend on the network. The clock is the caller's
 * (microseconds, monotonic); nothing here waits. A rule keeps its counts when the rules change,
 * because it keeps its index.
 *
 * Each call checks and counts in one step, so that nothing can happen between the two: what a call
 * grants is spent, whatever other connections do next. Bytes are taken before they are read, and
 * what the read did not fill is given back. Bytes that wait in a buffer have been counted.
 *
 * Rules for one host and port that are looked into have their connections in common: any of them
 * may allow a request. So the limits of each hold for all of them together. port: the connection's.
 *
 *   ratelimit_open()       before dialing: REASON_ALLOWED, or which limit refuses the connection
 *   ratelimit_take() before reading bytes: how many may be read, which are counted; 0: none before
 *                      *ret_wait_us have passed (0: never again, close the flow)
 *   ratelimit_take_all()   all of them or none, where they are in hand already
 *   ratelimit_give_back()  what was taken and not used
 *   ratelimit_close()      when the connection is over
 */
#ifndef WARD_RULES_RATELIMIT_H
#define WARD_RULES_RATELIMIT_H

#include "rules/decide.h"

enum ratelimit_way { RATELIMIT_RECEIVE, RATELIMIT_SEND }; /* from outside, to outside */

/* What one rule, or the whole, has spent. */
struct ratelimit_meter {
	uint64_t connections;               /* open now */
	uint64_t opened;                    /* in all */
	uint64_t denied;                    /* by it */
	uint64_t bytes[2];                  /* by enum ratelimit_way */
	uint64_t rate_tokens, rate_time_us; /* connections, in millionths */
	uint64_t band_tokens, band_time_us; /* bytes, in millionths */
};

struct ratelimit {
	struct ratelimit_meter whole;
	struct ratelimit_meter *rules; /* by index */
	uint32_t n;
};

/* Makes room for the rules; also after each change. -ENOMEM. Free with ratelimit_free(). */
must_check int ratelimit_fit(struct ratelimit *s, const struct rules *r);
void ratelimit_free(struct ratelimit *s);

/* rule: the verdict's index, -1 for services and mode open. */
must_check enum verdict_reason ratelimit_open(struct ratelimit *s, const struct rules *r,
					      int32_t rule, uint16_t port, uint64_t now_us);
void ratelimit_close(struct ratelimit *s, int32_t rule);
/* The rules changed, and an open connection counts for another rule now. */
void ratelimit_move(struct ratelimit *s, int32_t from, int32_t to);
/* Counts a refusal. */
void ratelimit_denied(struct ratelimit *s, int32_t rule);
/* now_us is not looked at where no bandwidth is limited. */
must_check uint64_t ratelimit_take(struct ratelimit *s, const struct rules *r, int32_t rule,
				   uint16_t port, enum ratelimit_way way, uint64_t want,
				   uint64_t now_us, uint64_t *ret_wait_us);
/* Bandwidth delays what follows and refuses nothing here. */
must_check bool ratelimit_take_all(struct ratelimit *s, const struct rules *r, int32_t rule,
				   uint16_t port, enum ratelimit_way way, uint64_t bytes);
void ratelimit_give_back(struct ratelimit *s, const struct rules *r, int32_t rule,
			 enum ratelimit_way way, uint64_t bytes);
/* Whether bytes of this rule are limited at all. */
bool ratelimit_limits_bytes(const struct rules *r, int32_t rule, uint16_t port);

#endif

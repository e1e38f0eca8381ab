/*
 * How many tokens an answer of a language model cost, read from the answer as it passes: plain JSON
 * or server-sent events, in the forms of OpenAI (chat, responses, embeddings) and Anthropic
 * (messages), which most others speak too. Constant memory, any pieces. What a model writes cannot
 * be mistaken for it: only numbers in an object "usage" count, and text is text. What a request may
 * cost is read from the request in the same way. Pure, fuzzed (fuzz/tokens.c).
 */
#ifndef WARD_RULES_TOKENS_H
#define WARD_RULES_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKENS_DEPTH 48
#define TOKENS_MODEL 64

/* Keys of a request that limit its answer; each service has its own. */
enum tokens_limit { TOKENS_LIMIT_ALL, TOKENS_LIMIT_COMPLETION, TOKENS_LIMIT_OUTPUT, TOKENS_LIMITS };
#define TOKENS_LIMIT_KEYS                                                                          \
	{                                                                                          \
		"max_tokens", "max_completion_tokens", "max_output_tokens"                         \
	}

/* Counts are the largest that were said: streams repeat them as they grow. */
struct tokens {
	uint64_t input, output; /* input without what is counted below */
	uint64_t cache_read, cache_write;
	char model[TOKENS_MODEL]; /* "" until it was said */
	/* by a usage that is final: not that of an answer that begins */
	bool said;
	/* what the model has written so far, and in how many events: an estimate until usage is
	 * reported */
	uint64_t text_bytes, events_seen;

	/* of a request */
	bool request;
	bool odd;   /* servers may read it in another way than this does */
	bool whole; /* the document has ended */
	bool model_said;
	/* to what the server fetches or does itself: its bytes do not bound its input */
	bool refers;
	/* it is answered in the background: the answer does not say what it costs */
	bool later;
	/* which known key it is at, 0: another; those that were there, bits */
	uint8_t known, seen;
	/* tokens that the answer may have, 0: not said; how many answers */
	uint64_t most, choices;
	uint64_t limits[TOKENS_LIMITS]; /* the same, by the key that says it */

	/* where the reading is */
	bool events;  /* server-sent events */
	uint8_t line; /* of those */
	uint8_t state;
	/* deeper or stranger than any such answer: the rest of this document is not read */
	bool broken;
	uint8_t depth;
	/* of each level: object, in usage, about a model, of a beginning, of a source */
	uint8_t kinds[TOKENS_DEPTH];
	uint8_t key_len, text_len;
	uint8_t escape;
	bool text_counts;
	uint64_t number;
	bool number_ends;   /* at a dot or an exponent: the whole part counts */
	bool cached_inside; /* OpenAI's way: what was cached is part of the input */
	char key[32], text[TOKENS_MODEL];
};

/* events: the answer's type is text/event-stream. */
void tokens_begin(struct tokens *t, bool events);
/* What follows is a request's body, JSON. */
void tokens_begin_request(struct tokens *t);
/* Whether the answer has said what it cost. */
static inline bool tokens_said(const struct tokens *t)
{
	return t->said && (t->input || t->output || t->cache_read || t->cache_write);
}
void tokens_take(struct tokens *t, const uint8_t *bytes, size_t n);
/* The answer is over. */
void tokens_end(struct tokens *t);

/* What a model costs, in millionths of the currency for a million tokens. */
struct price {
	char model[TOKENS_MODEL]; /* may end in "*" */
	uint64_t input, output, cache_read, cache_write;
	uint64_t max_output; /* tokens of an answer, where a request does not say */
};

/* The row for a model: the longest that fits; NULL: none. */
const struct price *price_find(const struct price *rows, size_t count, const char *model);
/* In millionths of the currency, rounded up; never overflows. */
uint64_t price_of(const struct price *p, const struct tokens *t);

/* Requests a minute: a bucket that is full at the beginning. */
struct pace {
	uint64_t at_ms, left_milli; /* thousandths of a request */
};
/* Whether one more may go now; *ret_wait_ms: else after that. per_minute 0: none ever may. */
bool pace_take(struct pace *p, uint64_t per_minute, uint64_t now_ms, uint64_t *ret_wait_ms);

#endif

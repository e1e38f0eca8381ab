/*
 * The one way in which the processes of a start wait for each other. In: a row of
 * tables/start_sync.def. Out: the word has changed, or the peer is dead.
 * Runs in every process of a start, beside the supervisor in its memory: raw system calls only.
 *
 * A wait has three phases, each as long as its row says. Spinning: the peer works on a processor of
 * its own and is done soon, and to sleep and be woken would take a good part of that. Yielding: the
 * peer may have been put on this processor. Sleeping, in slices: after each the waiter looks
 * whether its peer lives. A waiter that the kernel kills together with its peer sleeps until it is
 * woken.
 */
#include "engine/native/sync.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <time.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "start_tricks.h"

#define UNTIL_WOKEN 0
#define NO_WORD UINT16_MAX

/* The words' pending values, by name. */
enum {
#define SYNC_WORD(name, pending, writers, meaning) PENDING_##name = pending,
#include "start_sync.def"
};

static const struct sync_rule {
	uint16_t offset; /* of the word; NO_WORD: none */
	uint16_t pending, spins, yields;
	uint32_t slice_us;
} rules[SYNC_WAITS] = {
#define SYNC_WAIT(name, word, waiter, spins, yields, slice, peer, death)                           \
	[SYNC_##name] = { offsetof(struct native_sync, word), PENDING_##word, spins, yields,       \
			  slice },
#define SYNC_LOOK(name, what, waiter, spins, yields, slice, peer, death)                           \
	[SYNC_##name] = { NO_WORD, 0, spins, yields, slice },
#include "start_sync.def"
};

/* One wait under way. */
struct waiting {
	const struct sync_rule *rule;
	uint32_t *word; /* NULL: none */
	const struct sync_peer *peer;
};

static bool is_over(const struct waiting *w)
{
	return (w->word && sync_get(w->word) != w->rule->pending) ||
	       (w->peer && w->peer->is_done && w->peer->is_done(w->peer->argument));
}

/* One slice; whether all of it has passed. */
static bool sleep_slice(const struct waiting *w)
{
	struct timespec slice = { .tv_nsec = (long)w->rule->slice_us * 1000 };

	if (!w->word)
		return raw_call(SYS_ppoll, 0, 0, &slice, 0, 8) == 0;
	return raw_call(SYS_futex, w->word, FUTEX_WAIT, w->rule->pending,
			w->rule->slice_us == UNTIL_WOKEN ? NULL : &slice, 0, 0) == -ETIMEDOUT;
}

long sync_wait(struct native_sync *s, enum sync_wait wait, const struct sync_peer *peer)
{
	const struct sync_rule *rule = &rules[wait];
	struct waiting w = { .rule = rule, .peer = peer };
	unsigned spins = TRICK_SPIN ? rule->spins : 0;

	if (rule->offset != NO_WORD)
		w.word = (uint32_t *)(void *)((char *)s + rule->offset);
	for (unsigned turn = 0; !is_over(&w); turn++) {
		if (turn < spins)
			__builtin_ia32_pause();
		else if (turn < spins + rule->yields)
			raw_call(SYS_sched_yield);
		else if (sleep_slice(&w) && peer && peer->is_dead && peer->is_dead(peer->argument))
			return is_over(&w) ? 0 : -ESRCH; /* it may have been its last deed */
	}
	return 0;
}

void sync_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	raw_call(SYS_futex, word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

bool sync_claim(bool *claim)
{
	return !__atomic_exchange_n(claim, true, __ATOMIC_ACQ_REL);
}

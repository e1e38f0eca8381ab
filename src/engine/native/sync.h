/*
 * What the processes of a start share to wait for each other. tables/start_sync.def is the list:
 * every word, who writes it, who waits, and what happens if the other side dies.
 * docs/start.md shows the sequence.
 */
#ifndef WARD_ENGINE_NATIVE_SYNC_H
#define WARD_ENGINE_NATIVE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

/* In the memory that supervisor, child, helper, reaper and the command's process share. */
struct native_sync {
#define SYNC_WORD(name, pending, writers, meaning) uint32_t name;
#define SYNC_CLAIM(name, claimants, meaning) bool name;
#include "start_sync.def"
};

enum sync_wait {
#define SYNC_WAIT(name, ...) SYNC_##name,
#define SYNC_LOOK(name, ...) SYNC_##name,
#include "start_sync.def"
	SYNC_WAITS
};

/* What a waiter knows beside the word. Both may be NULL. */
struct sync_peer {
	bool (*is_done)(
		void *argument); /* what is waited for has happened, whatever the word says */
	bool (*is_dead)(void *argument); /* the peer is, so that the word will not change */
	void *argument;
};

/* Waits as the row says; peer NULL: the row needs none. 0, or -ESRCH: the peer died before. Raw
 * system calls only. */
long sync_wait(struct native_sync *s, enum sync_wait wait, const struct sync_peer *peer);
/* Gives a word its value and wakes every process that waits for it. */
void sync_set(uint32_t *word, uint32_t value);
/* Whether the caller is the first to claim this duty. */
bool sync_claim(bool *claim);

static inline uint32_t sync_get(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

#endif

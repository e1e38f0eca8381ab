/* The one wait of a start: a word that is set, a peer that dies, something that is no word, a
 * claim. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "engine/native/sync.h"

/* What a peer does while another process waits for it. */
struct peer {
	struct native_sync sync;
	unsigned looks;  /* how often the waiter looked whether it lives */
	bool does_last;  /* it sets the word just before it dies */
	bool happens_at; /* is_done() says yes at the third look */
};

static bool is_dead(void *argument)
{
	struct peer *p = argument;

	p->looks++;
	if (p->does_last)
		sync_set(&p->sync.net_done, 1);
	return true;
}

static bool is_done(void *argument)
{
	struct peer *p = argument;

	return p->happens_at && ++p->looks > 2;
}

static void *set_later(void *argument)
{
	struct peer *p = argument;

	usleep(5000);
	sync_set(&p->sync.helper_go, 1);
	return NULL;
}

static void waiter_is_woken(unused_arg void **state)
{
	struct peer p = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, set_later, &p), 0);
	assert_int_equal(sync_wait(&p.sync, SYNC_HELPER_GO, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sync_wait(&p.sync, SYNC_HELPER_GO, NULL), 0); /* it stays so */
}

static void dead_peer_is_seen(unused_arg void **state)
{
	struct peer p = { 0 };
	const struct sync_peer peer = { .is_dead = is_dead, .argument = &p };

	assert_int_equal(sync_wait(&p.sync, SYNC_NET_DONE, &peer), -ESRCH);
	assert_int_equal(p.looks, 1);
	p.does_last = true;
	assert_int_equal(sync_wait(&p.sync, SYNC_NET_DONE, &peer), 0);
}

static void wait_without_word_ends(unused_arg void **state)
{
	struct peer p = { .happens_at = true };
	struct sync_peer peer = { .is_done = is_done, .argument = &p };

	assert_int_equal(sync_wait(&p.sync, SYNC_ARGUMENTS, &peer), 0);
	assert_int_equal(p.looks, 3);
	p = (struct peer){ 0 };
	peer.is_dead = is_dead;
	assert_int_equal(sync_wait(&p.sync, SYNC_ARGUMENTS, &peer), -ESRCH);
	assert_int_equal(p.looks, 1);
}

static void word_may_be_pending_at_one(unused_arg void **state)
{
	struct peer p = { .sync.child_in_memory = 0 };

	assert_int_equal(sync_wait(&p.sync, SYNC_CHILD_LEFT, NULL), 0);
}

static void duty_is_claimed_once(unused_arg void **state)
{
	struct native_sync s = { 0 };

	assert_true(sync_claim(&s.net_claimed));
	assert_false(sync_claim(&s.net_claimed));
	assert_true(sync_claim(&s.mounts_claimed));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(waiter_is_woken),
					    cmocka_unit_test(dead_peer_is_seen),
					    cmocka_unit_test(wait_without_word_ends),
					    cmocka_unit_test(word_may_be_pending_at_one),
					    cmocka_unit_test(duty_is_claimed_once) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* For the tests of the watch: a family of processes that stands for a sandbox, and two small file
 * systems in a mount namespace of the test's own. */
#ifndef WARD_TESTS_WATCH_FAMILY_H
#define WARD_TESTS_WATCH_FAMILY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "limit/watch_parts.h"

#define MIB (1ULL << 20)

extern struct plan plan;
extern char *disk_dir, *tmpfs_dir; /* two small tmpfs */

/* The first process says when it is ready, then goes on as work() does. */
struct family {
	pid_t pid;
	int ready_fd, go_fd;
};

/* A plan without limits, and one limit of it. */
void plan_none(void);
void plan_set(enum limit l, uint64_t value, enum held_by held);

struct family begin(int (*work)(int ready_fd));
void go(struct family *f);
void end(struct family *f);
/* What work() ends with: says so and waits to be killed. */
int ready(int fd);

struct watch *watch(const struct family *f);
void tick_sleep(void);
/* What the supervisor does, for a quarter of a second. *looks counts the close looks. */
bool supervise(struct watch *w, const struct family *f, struct usage *u, enum limit *l, int *looks);
/* Runs work() under the plan's limits; which limit ended it, or LIMITS. */
enum limit run(int (*work)(int), struct usage *u, int *ret_looks);
void expect(int (*work)(int), enum limit l);

/* For cmocka: the group's setup and teardown. */
int make_world(void **state);
int end_world(void **state);

#endif

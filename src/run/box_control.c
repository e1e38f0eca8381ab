/*
 * What the control socket (serve.c) does with a sandbox: signals, holding still, the end. In:
 * struct box of a detached run. Out: marks in it and words to ward-init. Runs in ward-box's loop;
 * nothing here waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "limit/limits.h"
#include "run/children.h"
#include "run/box_internal.h"
#include "run/serve.h"

#define TICK_QUIET_MS 100

bool box_is_idle(const struct box *b)
{
	return !b->plan->argv || !b->plan->argv[0];
}

void box_signal(struct box *b, int signal, uint32_t tag)
{
	struct guest_message m = { .op = GUEST_SIGNAL, .a = signal, .tag = tag };

	(void)!send(b->run.control_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The freezer of version 1 has to move every process first, which takes milliseconds; signals take
 * none. But they are not for everybody. */
void box_hold(struct box *b, bool hold, bool quick)
{
	if (b->held == hold)
		return;
	if (hold && quick && !(box_runner_holds(b) && b->run.cgroup)) {
		b->stopped_by_init = true;
		box_tell_stop(b, true);
	} else {
		box_stop_all(b, hold);
	}
	b->frozen = hold && !b->stopped_by_init;
	b->held = hold;
	b->paused = false;
	children_hold(b->plan->live, hold);
}

void box_ended_one(struct box *b)
{
	if (!b->ending || !box_is_idle(b) || serve_is_busy(b->serve))
		return;
	b->exited = true; /* nothing was left to do: that is a good end */
	b->status = 0;
	box_kill(b);
}

void box_stop(struct box *b, uint64_t grace_ms)
{
	b->forwarded = SIGTERM;
	if (b->held && b->suspect) {
		box_kill(b); /* to go on for a last time is what the freeze is there against */
		return;
	}
	box_hold(b, false, false); /* a frozen process cannot end */
	b->ending = true;
	b->kill_at_ms = io_now_ms() + grace_ms;
	if (box_is_idle(b))
		box_ended_one(b);
	else
		box_signal(b, SIGTERM, 0);
}

void box_look_again(struct box *b)
{
	if (!b->tick_at_ms && (b->watch || b->run.cgroup))
		b->tick_at_ms = io_now_ms() + WATCH_TICK_MS;
}

void box_look_now(struct box *b)
{
	if (b->run.cgroup)
		cgroup_usage(b->run.cgroup, &b->result->usage);
	if (b->watch && !b->held) {
		watch_look(b->watch, &b->result->usage);
		b->tick_at_ms = io_now_ms();
	}
}

/* Hundreds of sandboxes wait for something most of the time: where the kernel itself holds
 * memory, and nothing has changed since the last look, the next one can come a little later. */
static uint64_t usual_tick_ms(struct box *b)
{
	const struct usage *u = &b->result->usage, *seen = &b->seen;
	enum held_by memory = b->plan->limits[LIMIT_MEMORY].held_by;
	bool quiet = u->memory_bytes == seen->memory_bytes && u->disk_bytes == seen->disk_bytes &&
		     u->pids == seen->pids && u->inodes == seen->inodes;

	if (memory != HELD_CGROUP1 && memory != HELD_CGROUP2)
		return WATCH_TICK_MS;
	b->seen = *u;
	b->tick_ms = !quiet || !b->tick_ms            ? WATCH_TICK_MS
		     : b->tick_ms < TICK_QUIET_MS / 2 ? 2 * b->tick_ms
						      : TICK_QUIET_MS;
	return b->tick_ms;
}

uint64_t box_tick_ms(struct box *b)
{
	uint64_t usual = usual_tick_ms(b),
		 most = b->watch ? watch_wait_ms(b->watch, &b->result->usage) : usual;

	return usual < most ? usual : most;
}

bool box_is_quiet(const struct box *b)
{
	return !b->detached && (!b->tick_at_ms || b->tick_ms >= TICK_QUIET_MS);
}

bool box_is_empty(const struct box *b)
{
	char path[64], byte;
	auto_fd fd = -1;

	if (!b->serve || !box_is_idle(b) || serve_is_busy(b->serve))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", running_inside(&b->run),
		 running_inside(&b->run));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &byte, 1) == 0;
}

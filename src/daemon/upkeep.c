/*
 * What keeps the ends of sandboxes and their rows right while the machine does not behave. In: the
 * clocks, failures to write. Out: a calendar that is set forward ends no sandbox, and one that is
 * set back lets none live longer: how long each has left stays as it was. Time that the machine was
 * suspended counts. What could not be written (a full disk, a registry that another process locks)
 * is written when it can be. Run by the front, from its tick.
 */
#include <time.h>

#include "base/io.h"
#include "daemon/front.h"

#define JUMP_MS 2000 /* between two ticks; what adjusts a clock by and by does less */
#define SAVE_EVERY_MS 1000

static int64_t boot_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void follow_clock(struct front *f)
{
	int64_t offset = front_now_ms() - boot_ms(), jump = offset - f->clock_offset_ms;
	auto_buf fields = { 0 };
	bool first = !f->clock_offset_ms;

	f->clock_offset_ms = offset;
	if (first || (jump < JUMP_MS && jump > -JUMP_MS))
		return;
	for (struct sandbox *s = f->sandboxes; s; s = s->next) {
		s->started_ms += jump;
		s->end_ms += jump;
	}
	f->unsaved = true;
	buf_printf(&fields, ",\"by_ms\":%lld", (long long)jump);
	front_log("clock_was_set", &fields);
}

static void save_again(struct front *f)
{
	uint64_t now = io_now_ms();
	int r = 0;

	if (!f->unsaved || now < f->save_ms)
		return;
	f->save_ms = now + SAVE_EVERY_MS;
	if (registry_begin(f) < 0)
		return;
	f->unsaved = false;
	for (struct sandbox *s = f->sandboxes; s && r == 0; s = s->next)
		r = s->pool ? 0 : registry_put(f, s);
	if (r < 0 || registry_commit(f) < 0)
		f->unsaved = true;
	if (f->unsaved)
		registry_roll_back(f);
	else
		front_log("registry_written_again", NULL);
}

void upkeep_tick(struct front *f)
{
	follow_clock(f);
	save_again(f);
}

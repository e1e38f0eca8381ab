/*
 * The disk limits between the ticks of the watch. In: the roots of the writable trees, the plan's
 * limits, the sandbox's processes. Out: suspicion at a tick, and a verdict after a close look; at
 * the end what is left and what of it was removed. Runs in the supervisor, called by watch.c; reads
 * only, except where watch_excess.c removes what is too much of ward's own trees.
 *
 * See watch_disk.c for what counts, watch_pace.c for how often it is looked at. While a look goes
 * on, the sandbox must not outrun it: processes in the middle of a large write stand still only
 * when it ends. Where the trees grow past a quarter of the margin (limits_disk_margin()), and what
 * the last look found and the processes have written since is more than the limit, that is the
 * verdict, at a tick as well as during a look. While the disk fills too fast for a look, looks are
 * put off, for a tenth of a second at most, and each tick measures the disk.
 */
#include <errno.h>

#include "base/io.h"
#include "limit/watch_parts.h"
#include "model/inner.h"

#define LOOK_SECONDS 10
#define LOOK_PAUSE_MS 1000 /* most that an acquittal delays the next close look */
#define OWN_SECONDS 1
/* between two counts of files with a name, while others are looked for */
#define AGAIN_MS 30
/* that a freezer may take where many write: it moves each process, and waits for its call to end */
#define FREEZE_MS 400
/* who writes a quarter of the margin in that time is too fast for a look */
#define BURST_MS 10
#define BUSY_MS 400                    /* that a busy machine may let the supervisor wait */
#define NEAR_BYTES ((uint64_t)1 << 30) /* left of the limit: looks are urgent */
#define PUT_OFF_MS 100                 /* most that a look waits for the end of a burst */
#define HOLD_MS 20                     /* that it may take to hold the threads back */
#define NAMES_MS 3                     /* for a count of the files with a name at a tick */
/* in a row: while processes move, one may be closed for a moment; and an inner runtime's own hand
 * each other descriptors */
#define HIDDEN_LOOKS 3

static bool watched(const struct tree_watch *t, enum limit l)
{
	return t->plan->limits[l].held_by == HELD_WATCH && t->plan->limits[l].value != POLICY_NONE;
}

static uint64_t limit_of(const struct tree_watch *t, enum limit l)
{
	return t->plan->limits[l].value;
}

static uint64_t bytes_limit_of(const struct tree_watch *t)
{
	return watched(t, LIMIT_DISK) ? limit_of(t, LIMIT_DISK) : POLICY_NONE;
}

static uint64_t files_limit_of(const struct tree_watch *t)
{
	return watched(t, LIMIT_INODES) ? limit_of(t, LIMIT_INODES) : POLICY_NONE;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

static uint64_t later(uint64_t least_ms, uint64_t cost_ms)
{
	return io_now_ms() + (cost_ms > least_ms ? cost_ms : least_ms);
}

/* ---- creating ---- */

/* Beginning of the run by the clock that stamps files, which runs up to a tick behind. */
static void note_start(struct tree_watch *t)
{
	struct timespec mono;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME_COARSE, &t->start);
	t->start_offset.tv_sec = t->start.tv_sec - mono.tv_sec;
}

/* The same, moved with the clock if it was set back since. */
static struct timespec start_now(const struct tree_watch *t)
{
	struct timespec mono, real, start = t->start;
	time_t moved;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &real);
	moved = real.tv_sec - mono.tv_sec - t->start_offset.tv_sec;
	if (moved < -1)
		start.tv_sec += moved - 1;
	return start;
}

int tree_watch_start(struct tree_watch *t, const struct watch_config *c, struct ward_err *e)
{
	t->plan = c->plan;
	t->init_pid = c->init_pid;
	t->next_bytes = limit_of(t, LIMIT_DISK) / 2; /* a first look before it is urgent */
	t->next_files = limit_of(t, LIMIT_INODES);
	note_start(t);
	if (c->disk_count > WATCH_TREES_MAX)
		return ward_fail(e, E2BIG, "%zu writable trees, but ward can watch at most %d",
				 c->disk_count, WATCH_TREES_MAX);
	for (size_t i = 0; i < c->disk_count; i++) {
		struct disk *d = &t->disks[t->disk_count];
		bool known = false;
		int r = disk_start(d, c->disk_fds[i], e);

		if (r < 0)
			return r;
		t->own[t->count] = c->disk_own && c->disk_own[i];
		t->fds[t->count++] = c->disk_fds[i];
		for (size_t k = 0; k < t->disk_count; k++)
			known |= disk_same(d, &t->disks[k]);
		if (!known)
			t->disk_count++;
	}
	return 0;
}

/* ---- each tick ---- */

static void measure_disks(struct tree_watch *t, struct usage *u)
{
	u->disk_bytes = u->inodes = t->gross_bytes = t->gross_files = 0;
	for (size_t i = 0; i < t->disk_count; i++) {
		disk_measure(&t->disks[i]);
		u->disk_bytes += t->disks[i].grown_bytes;
		u->inodes += t->disks[i].grown_files;
		t->gross_bytes += t->disks[i].gross_bytes;
		t->gross_files += t->disks[i].gross_files;
	}
}

/* Whether the trees grow past a quarter of the margin, and by the sandbox's own doing as far as its
 * counters tell. */
bool tree_watch_is_outrun(struct tree_watch *t, struct usage *u)
{
	uint64_t limit = limit_of(t, LIMIT_DISK), written;

	if (!watched(t, LIMIT_DISK))
		return false;
	measure_disks(t, u);
	if (u->disk_bytes <= limit + limits_disk_margin(limit) / 4)
		return false;
	if (proc_list(t->view, t->table) < 0)
		return false;
	written = proc_written(t->view, t->table);
	return written > t->found_written && t->found_bytes + (written - t->found_written) > limit;
}

static bool is_over(const struct tree_watch *t, const struct usage *u)
{
	return u->disk_bytes > bytes_limit_of(t) || u->inodes > files_limit_of(t);
}

/* Whether the trees have grown by so much since the last look that the next cannot wait. */
static bool is_growing(const struct tree_watch *t, const struct usage *u)
{
	uint64_t limit = bytes_limit_of(t);

	return limit != POLICY_NONE && u->disk_bytes > limit && u->disk_bytes > t->look_bytes &&
	       u->disk_bytes - t->look_bytes > limits_disk_margin(limit) / 4;
}

/* Whether the look has to wait because the disk fills faster than a look takes; not longer than
 * PUT_OFF_MS. */
static bool is_put_off(struct tree_watch *t, uint64_t now)
{
	if (!watched(t, LIMIT_DISK) ||
	    t->pace.rate * BURST_MS < limits_disk_margin(limit_of(t, LIMIT_DISK)) / 4) {
		t->put_off_ms = 0;
		return false;
	}
	if (!t->put_off_ms)
		t->put_off_ms = now + PUT_OFF_MS;
	return now < t->put_off_ms;
}

/* What goes on while a look does, or while threads are moved. */
struct meanwhile {
	struct tree_watch *t;
	struct usage *u;
	uint64_t again_ms; /* when to count the files with a name again */
};

static bool ask_written(void *arg)
{
	const struct meanwhile *m = arg;

	return tree_watch_is_outrun(m->t, m->u);
}

/* Whether so much is written that the limit and a quarter of the margin are passed before threads
 * could be held back, each of which finishes a part of its write first. Then the verdict is
 * quicker. */
static bool is_verdict_near(const struct tree_watch *t, const struct usage *u)
{
	uint64_t limit = limit_of(t, LIMIT_DISK), passed = limit + limits_disk_margin(limit) / 4;

	return !t->brake.on && u->disk_bytes <= passed &&
	       u->disk_bytes + t->pace.rate * HOLD_MS > passed;
}

/* Where the disk limit and half of the margin can be written in the time that a busy machine may
 * let this process wait. */
static void hold_back(struct tree_watch *t, struct usage *u)
{
	uint64_t limit = bytes_limit_of(t), room;
	struct meanwhile arg = { .t = t, .u = u };

	if (limit == POLICY_NONE)
		return;
	room = limit > u->disk_bytes ? limit - u->disk_bytes : 0;
	brake_hurry(&t->brake, !t->ended && (room < NEAR_BYTES || t->brake.on));
	t->brake.enough = ask_written;
	t->brake.enough_arg = &arg;
	brake_tick(&t->brake, t->init_pid,
		   t->pace.rate * BUSY_MS >= room + limits_disk_margin(limit) / 2 &&
			   !is_verdict_near(t, u));
	t->brake.enough = NULL;
}

/* Whether the files with a name prove the limit passed, where they can be counted within a few
 * milliseconds: what ended processes have written is on no counter. */
static bool is_proven_by_names(struct tree_watch *t, struct usage *u)
{
	struct disk_look names = { .since = start_now(t), .moving = true };
	uint64_t began = io_now_ms(), limit = limit_of(t, LIMIT_DISK);

	if (!watched(t, LIMIT_DISK) || began < t->prove_ms ||
	    u->disk_bytes <= limit + limits_disk_margin(limit) / 4)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &names.deadline);
	names.deadline.tv_nsec += NAMES_MS * 1000000;
	if (names.deadline.tv_nsec >= 1000000000) {
		names.deadline.tv_nsec -= 1000000000;
		names.deadline.tv_sec++;
	}
	for (size_t i = 0; i < t->count && names.new_bytes <= limit; i++)
		disk_look_tree(&names, t->fds[i]);
	t->prove_ms = later(0, (io_now_ms() - began) * 8);
	return names.new_bytes > limit;
}

/* A look stops the processes first, and each finishes the write that it is in: no look where the
 * verdict is clear without. */
static bool is_clear(struct tree_watch *t, struct usage *u)
{
	if (!is_over(t, u) || !(tree_watch_is_outrun(t, u) || is_proven_by_names(t, u)))
		return false;
	u->hit[LIMIT_DISK] = true;
	t->suspect = false;
	return true;
}

void tree_watch_tick(struct tree_watch *t, struct usage *u)
{
	uint64_t now = io_now_ms();
	bool over, risen;

	measure_disks(t, u);
	disk_pace_note(&t->pace, t->gross_bytes, now);
	if (is_clear(t, u))
		return;
	hold_back(t, u);
	/* that takes its time, and the disk was measured meanwhile */
	if (is_clear(t, u))
		return;
	over = is_over(t, u);
	risen = (watched(t, LIMIT_DISK) && t->gross_bytes > t->next_bytes) ||
		(watched(t, LIMIT_INODES) && t->gross_files > t->next_files);
	/* a look before the limit was passed does not delay the first one after, nor does one the
	 * next when much was written since */
	t->suspect = (over && (now >= t->over_look_ms || !t->over || is_growing(t, u))) ||
		     (risen && now >= t->rise_look_ms);
	if (t->suspect && is_put_off(t, now))
		t->suspect = false;
}

bool tree_watch_is_urgent(const struct tree_watch *t, const struct usage *u)
{
	uint64_t limit = limit_of(t, LIMIT_DISK);
	uint64_t room = limit > u->disk_bytes ? limit - u->disk_bytes : 0;

	return watched(t, LIMIT_DISK) && t->pace.rate * 2 * FREEZE_MS >= room;
}

uint64_t tree_watch_wait_ms(const struct tree_watch *t, const struct usage *u)
{
	if (!watched(t, LIMIT_DISK))
		return UINT64_MAX;
	return disk_pace_wait(&t->pace, limit_of(t, LIMIT_DISK), u->disk_bytes,
			      t->plan->facts.cpus);
}

/* ---- the close look ---- */

/* How much the file systems may rise until the next look: half of what is left, for others may
 * remove meanwhile. */
static uint64_t next_look(uint64_t gross, uint64_t limit, uint64_t own)
{
	uint64_t left = limit > own ? (limit - own) / 2 : 0;

	return gross + (left > limit / 16 ? left : limit / 16);
}

/* While the processes move, one look proves nothing in their favour: the next comes soon, and very
 * soon where little is missing or more was written. */
static void acquit_disk(struct tree_watch *t, const struct disk_look *look, uint64_t began,
			bool near)
{
	uint64_t now = io_now_ms(), took = now - began;

	if (look->moving) {
		t->over_look_ms = now + at_most(took * (near ? 1 : 10), LOOK_PAUSE_MS);
		t->rise_look_ms = now + at_most(took * 2, LOOK_PAUSE_MS);
	}
	for (size_t i = 0; i < t->disk_count && !look->hidden && !look->moving;
	     i++) /* what is hidden is no one else's */
		disk_forgive(&t->disks[i], look->new_bytes + look->old_bytes, look->new_files);
	t->suspect = false;
}

/* Whether the look may end: the sandbox outruns it, or the files with a name prove it by now. */
static bool ask_outrun(void *arg)
{
	struct meanwhile *m = arg;
	uint64_t limit = limit_of(m->t, LIMIT_DISK), began = io_now_ms();
	struct disk_look names = { .since = start_now(m->t), .moving = true };

	if (tree_watch_is_outrun(m->t, m->u))
		return true;
	if (began < m->again_ms || !watched(m->t, LIMIT_DISK) || m->u->disk_bytes <= limit)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &names.deadline);
	names.deadline.tv_sec += LOOK_SECONDS;
	for (size_t i = 0; i < m->t->count; i++)
		disk_look_tree(&names, m->t->fds[i]);
	m->again_ms = later(AGAIN_MS, (io_now_ms() - began) * 4);
	return names.new_bytes > limit;
}

/* Files with a name, or all: whether they prove a limit passed. *look has what else is known. */
static void look_at_disk(struct tree_watch *t, struct usage *u, struct disk_look *look, bool all)
{
	struct meanwhile arg = { t, u, io_now_ms() + AGAIN_MS };
	uint64_t bytes_limit = bytes_limit_of(t), files_limit = files_limit_of(t);

	look->since = start_now(t);
	look->memory_devs = t->memory_devs;
	look->memory_dev_count = t->memory_dev_count;
	look->enough = ask_outrun;
	look->enough_arg = &arg;
	clock_gettime(CLOCK_MONOTONIC, &look->deadline);
	look->deadline.tv_sec += LOOK_SECONDS;
	for (size_t i = 0; i < t->count && !look->ended; i++)
		disk_look_tree(look, t->fds[i]);
	/* else it is proven */
	if (all && look->new_bytes <= bytes_limit && look->new_files <= files_limit)
		disk_look_open(look, t->init_pid);
	look->enough = NULL;
	/* whatever the free space says: others may have freed what it filled */
	u->hit[LIMIT_DISK] |= look->new_bytes > bytes_limit || look->ended;
	u->hit[LIMIT_INODES] |= look->new_files > files_limit;
}

/* Some do not stand still yet: what they have written may be proof enough. */
bool tree_watch_prove(struct tree_watch *t, struct usage *u)
{
	struct disk_look look = { .moving = true };

	if (!t->suspect)
		return false;
	look_at_disk(t, u, &look, false);
	return u->hit[LIMIT_DISK] || u->hit[LIMIT_INODES];
}

void tree_watch_confirm(struct tree_watch *t, struct usage *u, bool moving, bool settled)
{
	uint64_t bytes_limit = bytes_limit_of(t), files_limit = files_limit_of(t), own,
		 began = io_now_ms();
	struct disk_look look = { .hidden = !moving && !settled, .moving = moving };

	/* before the look: what is written while it goes on is not forgiven */
	measure_disks(t, u);
	t->over = is_over(t, u);
	t->look_bytes = u->disk_bytes;
	look_at_disk(t, u, &look, true);
	/* some that never stand still may wait for a busy processor: three times in a row they do
	 * not */
	if (moving || !settled || (t->plan->spec->inner && t->plan->spec->inner->holds)) {
		look.moving |= look.hidden; /* neither proven nor forgiven */
		t->hidden_looks = look.hidden ? t->hidden_looks + 1 : 0;
		look.hidden = t->hidden_looks >= HIDDEN_LOOKS;
	}
	own = look.new_bytes + look.old_bytes;
	if (u->disk_bytes > bytes_limit && (look.hidden || own > bytes_limit))
		u->hit[LIMIT_DISK] = true;
	if (u->inodes > files_limit && look.hidden)
		u->hit[LIMIT_INODES] = true;
	t->found_bytes = look.new_bytes;
	t->found_written = proc_written(t->view, t->table);
	if (u->hit[LIMIT_DISK] || u->hit[LIMIT_INODES])
		return;
	acquit_disk(t, &look, began,
		    look.new_bytes > bytes_limit / 8 * 7 || look.new_files > files_limit / 8 * 7);
	t->next_bytes = next_look(t->gross_bytes, bytes_limit, look.new_bytes);
	t->next_files = next_look(t->gross_files, files_limit, look.new_files);
}

/* ---- the end ---- */

/* What lies in the trees now that the sandbox made or made grow. */
static uint64_t count_left(struct tree_watch *t, struct usage *u, time_t seconds)
{
	struct disk_look look = { .since = start_now(t) };
	uint64_t grown;

	clock_gettime(CLOCK_MONOTONIC, &look.deadline);
	look.deadline.tv_sec += seconds;
	for (size_t i = 0; i < t->count; i++)
		disk_look_tree(&look, t->fds[i]);
	measure_disks(t, u);
	grown = u->disk_bytes > look.new_bytes ? u->disk_bytes - look.new_bytes : 0;
	return look.new_bytes + (look.hidden ? grown : at_most(look.old_bytes, grown));
}

uint64_t tree_watch_own_bytes(struct tree_watch *t, struct usage *u)
{
	uint64_t began = io_now_ms();

	if (!t->count)
		return u->disk_bytes;
	if (began >= t->own_ms) {
		t->own_bytes = count_left(t, u, OWN_SECONDS);
		t->own_ms = later(0, (io_now_ms() - began) * 20);
	}
	return t->own_bytes;
}

void tree_watch_remove_excess(struct tree_watch *t, struct usage *u)
{
	struct timespec since = start_now(t);
	uint64_t limit = limit_of(t, LIMIT_DISK);
	int own[WATCH_TREES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->own[i])
			own[count++] = t->fds[i];
	u->disk_left_bytes = count_left(t, u, LOOK_SECONDS);
	if (!count || u->disk_left_bytes <= limit)
		return;
	u->disk_removed_bytes = disk_remove_excess(own, count, &since, u->disk_left_bytes - limit,
						   &u->disk_removed_files);
	u->disk_left_bytes = count_left(t, u, LOOK_SECONDS);
}

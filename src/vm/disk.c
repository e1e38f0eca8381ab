/*
 * Pieces of a tree between ward-vm and the guest, both sides' code. The channel's stream, over
 * virtio-serial, announces them; what is large lies in a slot of a block device of one MiB, because
 * the port moves a byte at many times the price. In: on the host's side, announcements and a device
 * that a hostile guest wrote. A piece is copied out of its slot before it is read, so that what was
 * looked at is what is used; the device never grows, and a receiver that does not take pieces stops
 * the other side and costs nothing. Nothing is parsed here but the announcements: disk_read(), a
 * pure function.
 */
#include "vm/disk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whole pages, as the guest's device needs them. */
static uint8_t *slot_memory(void)
{
	void *p = mmap(NULL, DISK_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void free_slot(uint8_t *slot)
{
	if (slot)
		munmap(slot, DISK_SLOT_BYTES);
}

/* ---- reading ---- */

static bool check_piece(const struct disk_reader *r)
{
	if (r->piece.place == DISK_INLINE)
		return r->piece.len > 0 && r->piece.len <= DISK_INLINE_MAX;
	return r->has_slots && r->piece.place == r->next && r->piece.len > 0 &&
	       r->piece.len <= DISK_SLOT_BYTES;
}

static int take_piece(struct disk_reader *r)
{
	r->have = 0;
	if (!check_piece(r))
		return -EPROTO;
	if (r->piece.place == DISK_INLINE) {
		r->left = r->piece.len;
		return 0;
	}
	r->next = (r->next + 1) % DISK_SLOTS;
	return r->load(r->ctx, r->piece.place, r->piece.len);
}

int disk_read(struct disk_reader *r, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	int err = 0;

	while (n && err == 0) {
		size_t want = r->left ? r->left : sizeof(r->piece) - r->have,
		       take = want < n ? want : n;

		if (r->left) {
			r->left -= (uint32_t)take;
			err = r->take(r->ctx, at, take);
		} else {
			memcpy((uint8_t *)&r->piece + r->have, at, take);
			r->have += take;
			err = r->have == sizeof(r->piece) ? take_piece(r) : 0;
		}
		at += take;
		n -= take;
	}
	return err;
}

static int transfer(int fd, uint8_t *bytes, size_t n, off_t at, bool out)
{
	while (n) {
		ssize_t done = out ? pwrite(fd, bytes, n, at) : pread(fd, bytes, n, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		bytes += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

static size_t aligned(size_t n)
{
	return (n + DISK_ALIGN - 1) & ~(size_t)(DISK_ALIGN - 1);
}

static int put_all(int fd, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

struct pump {
	int answer_fd, disk_fd;
	int (*take)(void *ctx, const void *bytes, size_t n);
	void *ctx;
	uint8_t *slot;
};

static int pump_take(void *ctx, const void *bytes, size_t n)
{
	const struct pump *p = ctx;

	return p->take(p->ctx, bytes, n);
}

/* The copy is complete before the slot is given back, and before anything of it is looked at. */
static int pump_load(void *ctx, uint32_t slot, uint32_t len)
{
	const struct pump *p = ctx;
	int r = transfer(p->disk_fd, p->slot, aligned(len), (off_t)slot * DISK_SLOT_BYTES, false);

	if (r == 0)
		r = put_all(p->answer_fd, "", 1);
	return r < 0 ? r : p->take(p->ctx, p->slot, len);
}

int disk_read_all(int in_fd, int answer_fd, int disk_fd,
		  int (*take)(void *ctx, const void *bytes, size_t n), void *ctx)
{
	struct pump p = { .answer_fd = answer_fd, .disk_fd = disk_fd, .take = take, .ctx = ctx };
	struct disk_reader r = {
		.has_slots = disk_fd >= 0, .take = pump_take, .load = pump_load, .ctx = &p
	};
	uint8_t bytes[8192];
	ssize_t n = 0;
	int err = 0;

	if (disk_fd >= 0)
		p.slot = slot_memory();
	if (disk_fd >= 0 && !p.slot)
		return -ENOMEM;
	while (err == 0 && (n = read(in_fd, bytes, sizeof(bytes))) != 0)
		err = n > 0 ? disk_read(&r, bytes, (size_t)n) : errno == EINTR ? 0 : -errno;
	if (err == 0 && (r.have || r.left))
		err = -EPIPE;
	free_slot(p.slot);
	return err;
}

/* ---- writing ---- */

int disk_writer_begin(struct disk_writer *w, int out_fd, int answer_fd, int disk_fd)
{
	*w = (struct disk_writer){ .out_fd = out_fd, .answer_fd = answer_fd, .disk_fd = disk_fd };
	w->bytes = slot_memory();
	return w->bytes ? 0 : -ENOMEM;
}

/* No more than `most` slots wait for an answer afterwards. */
static int wait_for_answers(struct disk_writer *w, uint32_t most)
{
	uint8_t answers[DISK_SLOTS];

	while (w->waiting > most) {
		ssize_t n = read(w->answer_fd, answers, w->waiting);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		w->waiting -= (uint32_t)n;
	}
	return 0;
}

static int put_in_slot(struct disk_writer *w)
{
	struct disk_piece piece = { .place = w->next, .len = (uint32_t)w->len };
	int r = wait_for_answers(w, DISK_SLOTS - 1);

	memset(w->bytes + w->len, 0, aligned(w->len) - w->len);
	if (r == 0)
		r = transfer(w->disk_fd, w->bytes, aligned(w->len),
			     (off_t)w->next * DISK_SLOT_BYTES, true);
	if (r == 0)
		r = put_all(w->out_fd, &piece, sizeof(piece));
	w->next = (w->next + 1) % DISK_SLOTS;
	w->waiting++;
	return r;
}

static int put_inline(const struct disk_writer *w)
{
	struct disk_piece piece = { .place = DISK_INLINE, .len = (uint32_t)w->len };
	int r = put_all(w->out_fd, &piece, sizeof(piece));

	return r < 0 ? r : put_all(w->out_fd, w->bytes, w->len);
}

static void flush(struct disk_writer *w)
{
	int r = 0;

	if (w->len && !w->error)
		r = w->len > DISK_INLINE_MAX ? put_in_slot(w) : put_inline(w);
	if (r < 0)
		w->error = -r;
	w->len = 0;
}

void disk_put(struct disk_writer *w, const void *bytes, size_t n)
{
	size_t room = w->disk_fd >= 0 ? DISK_SLOT_BYTES : DISK_INLINE_MAX;
	const uint8_t *at = bytes;

	while (n && !w->error) {
		size_t take = room - w->len < n ? room - w->len : n;

		memcpy(w->bytes + w->len, at, take);
		w->len += take;
		at += take;
		n -= take;
		if (w->len == room)
			flush(w);
	}
}

int disk_writer_end(struct disk_writer *w)
{
	flush(w);
	if (!w->error)
		w->error = -wait_for_answers(w, 0);
	free_slot(w->bytes);
	w->bytes = NULL;
	return -w->error;
}

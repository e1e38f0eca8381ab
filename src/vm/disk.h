/* How a tree's records travel: in pieces, each announced in its channel's stream. A large piece
 * lies in a slot of a block device that both sides have, a small one follows in the stream
 * itself. */
#ifndef WARD_VM_DISK_H
#define WARD_VM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DISK_SLOT_BYTES 262144u
#define DISK_SLOTS 4u
/* of the device: the same in every machine, so that clones of a template see theirs */
#define DISK_BYTES (DISK_SLOTS * DISK_SLOT_BYTES)
#define DISK_INLINE_MAX 32768u /* more than this goes over the device, if there is one */
#define DISK_INLINE UINT32_MAX
/* of whatever the guest reads and writes there, past its own cache */
#define DISK_ALIGN 4096u

/* Eight bytes in the stream. Slots are used one after the other, in a circle; a receiver that has
 * taken a piece out of one answers with a byte, and no slot is filled again before. */
struct disk_piece {
	uint32_t place; /* the slot's number, or DISK_INLINE: its bytes follow */
	uint32_t len;   /* 1 to DISK_SLOT_BYTES, or DISK_INLINE_MAX */
};

/* ---- the reading side ---- */

/* Reader of announced pieces; it is fed the stream in parts of any size. */
struct disk_reader {
	bool has_slots; /* false: there is no device, pieces in slots are lies */
	/* Bytes of the stream that was cut into pieces. 0 or -errno, which ends it. */
	int (*take)(void *ctx, const void *bytes, size_t n);
	/* A piece lies in the slot: the callee gets it, hands it to its consumer, and answers. 0 or
	 * -errno. */
	int (*load)(void *ctx, uint32_t slot, uint32_t len);
	void *ctx;
	struct disk_piece piece;
	size_t have;   /* bytes of the announcement */
	uint32_t left; /* bytes of an inline piece that are still to come */
	uint32_t next; /* the slot that comes next */
};

/* Takes n bytes. 0, or -errno: -EPROTO where they announce what cannot be. No I/O of its own. */
int disk_read(struct disk_reader *r, const void *bytes, size_t n);

/* Reads a whole stream from in_fd and hands its pieces to take(); answers go to answer_fd. disk_fd
 * -1: there is no device. Blocks. 0 or -errno. */
int disk_read_all(int in_fd, int answer_fd, int disk_fd,
		  int (*take)(void *ctx, const void *bytes, size_t n), void *ctx);

/* ---- the writing side ---- */

struct disk_writer {
	int out_fd, answer_fd;
	int disk_fd;            /* -1: there is none */
	uint32_t next, waiting; /* the slot to be filled next; how many were not answered yet */
	size_t len;
	/* errno of the first failure; what comes behind it is thrown away */
	int error;
	uint8_t *bytes; /* DISK_SLOT_BYTES */
};

/* Prepares *w; -ENOMEM. disk_writer_end() says what is left, waits until all of it was taken, and
 * frees; it returns 0 or -errno of the first failure. Both block. */
int disk_writer_begin(struct disk_writer *w, int out_fd, int answer_fd, int disk_fd);
void disk_put(struct disk_writer *w, const void *bytes, size_t n);
int disk_writer_end(struct disk_writer *w);

#endif

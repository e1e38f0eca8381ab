/* A tree of files on its way into the guest, or what changed in it on its way back: records in a
 * stream of bytes. */
#ifndef WARD_VM_TREE_H
#define WARD_VM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_MAGIC 0x31747677 /* "wvt1" */
#define TREE_NAME_MAX 4095
#define TREE_DEEP 200 /* directories within each other */
#define TREE_CHUNK_MAX 65536

/* Names are relative to the tree, "" is its top. Parents come before children; TREE_DIR_END comes
 * after them. */
enum tree_type {
	TREE_DIR = 1, /* make it, or leave it */
	TREE_DIR_END, /* all of it was sent: its mode and time */
	TREE_FILE,    /* chunks follow, the last is empty */
	TREE_LINK,    /* size bytes of target follow */
	TREE_CLOSED,  /* into the guest: a file that no process may read stands there */
	TREE_GONE,    /* out of the guest: it was removed there */
	TREE_ERROR,   /* it could not be read: code */
	TREE_END,     /* that was all of this tree */
	TREE_TYPES
};

/* Into the guest: a mount of the native sandbox begins here, and nothing at this place can be
 * removed or renamed. */
enum tree_mount {
	TREE_NO_MOUNT,
	TREE_READ_ONLY, /* and nothing in it can be written */
	TREE_WRITABLE,  /* and it can be, unlike what is around it */
};

struct tree_head {
	uint32_t magic;
	uint16_t type;
	uint16_t mode; /* permission bits */
	uint32_t name_len;
	/* TREE_ERROR: errno; into the guest, of a directory or a file: enum tree_mount */
	uint32_t code;
	uint64_t size; /* of a file with its holes; of a link's target */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t zero;
};

/* What lies at one place of a file; holes are not sent. An empty one is the file's end. */
struct tree_chunk {
	uint64_t offset;
	uint32_t len; /* at most TREE_CHUNK_MAX */
	uint32_t zero;
};

/* Whether a head may be believed. A pure function. */
bool tree_check_head(const struct tree_head *h);
/* Whether a chunk belongs into a file of that size, behind `done`, where the chunk before ended. A
 * pure function. */
bool tree_check_chunk(const struct tree_chunk *c, uint64_t size, uint64_t done);
/* Whether a name stays beneath the tree: no "..", no empty part, no NUL, not absolute. A pure
 * function. */
bool tree_check_name(const char *name, size_t n);

/* What happens to a tree's records. Each returns 0 or -errno, which ends the stream; what fails for
 * one file alone the sink keeps to itself. */
struct tree_sink {
	/* a link's target comes with target() before this */
	int (*head)(void *ctx, const struct tree_head *h, const char *name);
	int (*link)(void *ctx, const struct tree_head *h, const char *name, const char *target);
	/* of the file that head() announced; in pieces */
	int (*chunk)(void *ctx, uint64_t offset, const void *bytes, size_t n);
	int (*file_end)(void *ctx);
};

/* A reader of records that is fed pieces of any size. */
struct tree_reader {
	const struct tree_sink *sink;
	void *ctx;
	struct tree_head head;
	struct tree_chunk piece;
	enum {
		TREE_AT_HEAD,
		TREE_AT_NAME,
		TREE_AT_TARGET,
		TREE_AT_CHUNK,
		TREE_AT_BYTES,
		TREE_AT_END
	} at;
	size_t have;             /* bytes of the present part */
	uint64_t done;           /* where the last chunk of the present file ended */
	uint64_t bytes, records; /* in all */
	uint64_t bytes_max, records_max;
	size_t more; /* trees that follow behind the end of the present one */
	char name[TREE_NAME_MAX + 1];
	char target[TREE_NAME_MAX + 1];
};

/* Takes n bytes. Returns 0, or -errno when the stream cannot be trusted any more (-EPROTO, -E2BIG)
 * or the sink gave up. */
int tree_read(struct tree_reader *r, const void *bytes, size_t n);

#endif

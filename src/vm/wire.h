/* What ward-vm and the guest's init say to each other over virtio-serial: frames with a fixed head,
 * each type with its row. */
#ifndef WARD_VM_WIRE_H
#define WARD_VM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VM_MAGIC 0x5657 /* "WV" */
#define VM_VERSION 3
#define VM_HEAD_BYTES 12
#define VM_PAYLOAD_MAX 65536
#define VM_FRAME_MAX (VM_HEAD_BYTES + VM_PAYLOAD_MAX)
/* what one frame of data is made of: the guest's driver writes no more at once */
#define VM_DATA_MAX 32768
/* what may be on its way in a stream; both sides begin with that much credit */
#define VM_WINDOW_BYTES 131072
/* 0 is the connection itself; the command, 64 more of `ward exec`, one copy */
#define VM_CHANNELS 67
#define VM_STREAMS 3            /* as descriptors; from the guest 0 is what its terminal shows */
#define VM_WORDS_MAX (1u << 20) /* directory, words and variables of one command */
#define VM_ERROR_TEXT 240
#define VM_ECHO_MAX 64
/* beside a wait status: the kernel killed it, because the machine had no memory left */
#define VM_EXIT_SPENT 0x10000

enum vm_type {
	VM_READY = 1, /* guest: it has booted and listens. struct vm_ready */
	VM_TIME,      /* host: the time, and randomness of this guest's own. struct vm_time */
	VM_SETUP,     /* host: the ids of commands, and what they may use. struct vm_setup_frame */
	/* host: a piece of the directory, words and variables of the channel's command, each ended
	 * by NUL */
	VM_WORDS,
	VM_START, /* host: they are complete: start it. struct vm_start */
	VM_DATA,  /* both: bytes of a stream */
	/* both: that many bytes more may be sent in the other direction's stream. u32 */
	VM_WINDOW,
	VM_EOF,     /* both: no more bytes in this stream */
	VM_BROKEN,  /* both: the stream has no reader any more */
	VM_SIGNAL,  /* host: to the command's process group. u32 */
	VM_RESIZE,  /* host: its terminal. struct vm_resize */
	VM_STOPPED, /* guest: the command on a terminal was stopped. u32: the signal */
	/* guest: how it ended; the last of the channel. u32: wait status, and VM_EXIT_SPENT */
	VM_EXIT,
	/* guest: something of the channel (0: of the guest) failed. struct vm_error, text behind
	 * it */
	VM_ERROR,
	VM_QUIESCE, /* host: end every process of every command */
	VM_QUIET,   /* guest: they have ended */
	VM_ECHO,    /* host: bytes; guest: the same. For measurements (bench/vm.py) */
	VM_TYPES
};

/* What a channel is for: what VM_START begins. The last three are the init's own code, in a process
 * of its own. */
enum vm_kind {
	VM_RUN = 1, /* a command */
	/* `ward cp`: words "get" PATH or "put" PATH NAME; records of protocol/guest.h */
	VM_COPY,
	/* words PATH...: makes the trees of records (vm/tree.h), one behind the other, and
	 * remembers what it made */
	VM_TREE_IN,
	VM_TREE_OUT, /* words PATH...: sends what differs from that as records */
	VM_KINDS
};

struct vm_ready {
	uint32_t version;
};

struct vm_time {
	int64_t s;
	uint32_t ns;
	uint32_t zero;
	uint8_t seed[32];
};

struct vm_setup_frame {
	uint32_t uid, gid;
	uint64_t pids, memory_bytes, files; /* 0: no limit but the guest's own */
	char hostname[64];                  /* "": as it is */
};

struct vm_start {
	uint32_t kind;
	uint32_t argc, envc;
	uint16_t terminals; /* bits 0-2: which descriptors are its terminal */
	uint16_t rows, columns;
	uint16_t zero;
};

struct vm_resize {
	uint16_t rows, columns;
};

struct vm_error {
	uint32_t code; /* errno */
};

/* A frame as it was parsed; the payload is borrowed. */
struct vm_frame {
	enum vm_type type;
	unsigned stream;
	unsigned channel;
	const uint8_t *payload;
	size_t len;
};

/* Reads one frame that `from_guest` or the host sent: known type, from that side, with a length,
 * channel and stream that its row allows. Returns its length, 0 while it is not complete, -EPROTO
 * if it is none. A pure function. */
long wire_parse(const uint8_t *bytes, size_t n, bool from_guest, struct vm_frame *ret);
/* Writes a frame into out (VM_FRAME_MAX bytes) and returns its length; a payload that is there
 * already is not copied. */
size_t wire_put(uint8_t *out, enum vm_type type, unsigned channel, unsigned stream,
		const void *payload, size_t n);
/* Where wire_put() has its payload. */
uint8_t *wire_payload(uint8_t *out);
/* A payload that is one number. */
uint32_t wire_number(const struct vm_frame *f);
/* Whether words are what VM_START says of them: a directory, argc words (one at least) and envc
 * variables, each ended by NUL. */
bool wire_check_words(const char *words, size_t n, uint32_t argc, uint32_t envc);

#endif

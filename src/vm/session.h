/* The host's side of the protocol over virtio-serial: channels, streams, credit. No I/O of its own.
 */
#ifndef WARD_VM_SESSION_H
#define WARD_VM_SESSION_H

#include "base/err.h"
#include "vm/wire.h"

/* Bytes that came and wait for their reader; at most a window. */
struct vm_inbox {
	uint8_t *bytes; /* owned; NULL until something came */
	size_t at, len;
	uint32_t credit; /* what the guest may still send */
	uint32_t owed;   /* what was taken since the last credit */
	bool ended;      /* the guest said so */
	bool broken;     /* not wanted: what comes is thrown away */
	bool tell_broken;
};

enum vm_channel_state { VM_FREE, VM_OPENING, VM_RUNNING, VM_ENDED };

struct vm_channel {
	enum vm_channel_state state;
	struct vm_start start;
	char *words; /* owned, until all of them are sent */
	size_t words_len, words_at;
	struct vm_inbox in[VM_STREAMS];
	uint32_t credit; /* bytes of standard input that the guest takes */
	bool input_ended, input_end_sent;
	bool input_broken; /* no process inside reads standard input */
	uint64_t signals;  /* bits: to be sent */
	struct vm_resize size;
	bool tell_size;
	/* the command was stopped by it; its reader sets it to 0 */
	uint32_t stop_signal;
	int status; /* VM_ENDED: wait status */
	bool spent; /* VM_ENDED: because the machine had no memory left */
	int error;  /* errno that the guest gave for it, 0: none */
	/* More of standard input, up to n bytes: their count, 0 at the end, -EAGAIN: not now. NULL:
	 * there is none. */
	ssize_t (*fill)(void *ctx, uint8_t *bytes, size_t n);
	void *ctx;
};

struct vm_session {
	struct vm_channel channels[VM_CHANNELS]; /* [0] is none */
	bool tell_echo, tell_time, tell_setup, tell_quiesce;
	bool echoing, echoed; /* an answer is waited for; it came */
	bool quiescing, quiet;
	int guest_error; /* errno of the guest as a whole */
	struct vm_time time;
	struct vm_setup_frame setup;
	unsigned next; /* which channel speaks next */
};

/* A channel for what start says, with these words (taken, even where it fails). Its number, or
 * -errno: -EAGAIN when all are in use. */
must_check int session_open(struct vm_session *s, const struct vm_start *start, char *words,
			    size_t words_len, struct ward_err *e);
/* Frees what a channel had, which must have ended. */
void session_close(struct vm_session *s, unsigned channel);
void session_free(struct vm_session *s);
/* What the guest said. Returns 0, or -EPROTO with *e: it is not one that can be talked to. */
must_check int session_take(struct vm_session *s, const struct vm_frame *f, struct ward_err *e);
/* The next frame for the guest in out (VM_FRAME_MAX bytes): its length, 0 when there is nothing to
 * say. */
must_check size_t session_next(struct vm_session *s, uint8_t *out);
/* Whether the channel would take standard input now. */
bool session_wants_input(const struct vm_channel *c);
/* What waits in a stream; n bytes of it were taken. */
void session_taken(struct vm_inbox *in, size_t n);
/* The stream is not wanted any more: the command finds that out by writing to it. */
void session_break(struct vm_inbox *in);

#endif

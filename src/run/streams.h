/* Standard input, output and error of the command: what may go inside goes, the rest is relayed or
 * refused. */
#ifndef WARD_RUN_STREAMS_H
#define WARD_RUN_STREAMS_H

#include <poll.h>

#include "base/terminal.h"
#include "model/plan.h"
#include "run/console.h"
#include "run/output_scan.h"
#include "run/tail.h"

#define STREAMS_POLLS (3 + CONSOLE_POLLS)

struct relay {
	int from_fd, to_fd;    /* -1: closed */
	bool own_from, own_to; /* ours to close */
	/* a regular file: always ready, and the kernel can move the bytes itself */
	bool from_file, to_file;
	bool from_terminal; /* standard input: read only in its foreground */
	/* standard input: only what the command has read is taken out of it */
	bool from_pipe;
	/* from_pipe: bytes that the command has before it and that are still in the pipe */
	size_t ahead;
	unsigned to_type; /* output: what to_fd is, as in st_mode */
	uint64_t moved;   /* bytes taken from from_fd */
	bool copied;      /* the kernel would not: through pending */
	bool tapped;      /* what is shown is looked at, too */
	bool heard;       /* standard error: its end is kept */
	bool clean;       /* to the operator's terminal: only what may pass */
	struct terminal terminal;
	struct buf pending; /* read, and not yet written but for the first `done` bytes */
	size_t done;
};

struct streams {
	/* for the engine; ours until streams_started(); -1: the terminal inside */
	int inside[3];
	bool terminal;           /* there is one */
	bool no_terminal;        /* there would be one if the engine had any */
	struct console *console; /* NULL: none, or not yet */
	/* the pipe that standard input is relayed into, to see what was not read; -1: none */
	int unread_fd;
	struct relay relays[3];
	size_t relay_count;
	struct output_scan scan; /* of the output; nothing where the policy does not ask */
	int tap_fd;              /* to the look at a terminal; 0: none */
	struct tail tail;        /* of standard error, or of the terminal inside */
	uint64_t out_bytes;      /* that went through output relays, or were shown */
	uint64_t most;           /* of out_bytes that are passed on; 0: all */
};

/* Looks at 0-2 and prepares them. -EINVAL for a directory, a device, or whatever could be a way
 * out. terminals: the engine can make a terminal inside. */
must_check int streams_prepare(struct streams *s, const struct plan *p, bool terminals,
			       struct ward_err *e);
/* The terminal inside is there: takes both ends. */
must_check int streams_open_terminal(struct streams *s, const struct plan *p, int master_fd,
				     int slave_fd, struct ward_err *e);
/* *outer_fd is the reading end of the command's output, which another process reads: what comes out
 * of it is relayed, and counted, into another pipe, which takes its place. */
must_check int streams_count_output(struct streams *s, int *outer_fd, struct ward_err *e);
/* The sandbox has its copies: closes ours. */
void streams_started(struct streams *s);
/* Fills poll entries for what can be done now (at most STREAMS_POLLS); moves bytes for what poll
 * said. */
size_t streams_poll(struct streams *s, struct pollfd *polled);
void streams_move(struct streams *s, const struct pollfd *polled, size_t count);
/* How long a poll may wait: -1 for ever, else milliseconds. */
int streams_wait_ms(const struct streams *s);
/* After the end: moves what is left in the pipes until until_ms (io_now_ms; UINT64_MAX: as long as
 * it takes). 1: stop_fd became readable before the end. */
int streams_drain(struct streams *s, uint64_t until_ms, int stop_fd);
/* The output has ended, and what looks for secrets in it passes on what it has, at most until
 * until_ms. 1: stop_fd became readable before the end. */
int streams_wait_scan(struct streams *s, uint64_t until_ms, int stop_fd);
/* Gives standard input back what the command did not read, and closes everything. */
void streams_finish(struct streams *s);

#endif

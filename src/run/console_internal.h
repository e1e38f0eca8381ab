/* Shared by the console's own files: console.c (bytes and modes), console_ask.c (questions). */
#ifndef WARD_RUN_CONSOLE_INTERNAL_H
#define WARD_RUN_CONSOLE_INTERNAL_H

#include <sys/stat.h>
#include <termios.h>

#include "base/terminal.h"
#include "host/sidecar.h"
#include "run/console.h"

struct console {
	int tty_fd;        /* the operator's terminal; -1: none */
	int in_fd, out_fd; /* where typed bytes come from and shown ones go to; -1: ended */
	bool own_tty;
	/* standard output is not the terminal; perhaps a pager that uses the terminal, too */
	bool shared;
	mode_t out_type; /* of out_fd: S_IFIFO, ... */
	int master_fd, slave_fd;
	struct termios saved;           /* the operator's terminal modes */
	unsigned char kernel_modes[60]; /* the same, as the kernel has it */
	uint32_t known;                 /* what of the filter's state the keeper knows */
	bool raw, ending, hung_up, reported_hung_up, unfiltered;
	char last_typed;
	struct terminal filter;
	/* read and not yet written, except for the first in_done, out_done bytes */
	struct buf in, out;
	size_t in_done, out_done;
	uint64_t out_bytes;
	void (*tap)(void *ctx, const char *bytes, size_t n);
	void *tap_ctx;
	struct tail *heard; /* borrowed; NULL: none */
	struct sidecar keeper;
	/* questions; NULL: none can be asked here */
	struct prompt *prompt;
	bool keeper_knows_bar;  /* that a bar is shown over the normal screen */
	uint64_t place_wait_ms; /* until then the terminal may say where its cursor is */
};

/* The operator's terminal has become ours, or goes. */
void console_ask_take(struct console *c);
void console_ask_give(struct console *c);
/* What has to be done by now. */
void console_ask_on_time(struct console *c);
/* Keys of the operator. */
void console_ask_keys(struct console *c, char *bytes, size_t n);
/* When console_ask_on_time() is to be called; -1: not before something happens. */
int console_ask_wait_ms(const struct console *c);
/* Appends what takes a bar away, for the process that restores the terminal after ward. */
void console_ask_undo(const struct console *c, struct buf *out);
/* Tells the keeper what to restore. */
void console_tell_keeper(struct console *c, bool keep);

#endif

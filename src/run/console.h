/* The operator's side of a terminal that lives in a sandbox: shared by everything that sits between
 * the two. */
#ifndef WARD_RUN_CONSOLE_H
#define WARD_RUN_CONSOLE_H

#include <poll.h>

#include "base/buf.h"
#include "base/own.h"
#include "model/running.h"
#include "run/tail.h"

#define CONSOLE_POLLS 3

struct console;
struct prompt_ops;

struct console_config {
	/* of the terminal inside; taken, whatever the answer is. slave_fd may be -1 */
	int master_fd, slave_fd;
	/* called with what the sandbox has written; NULL: nothing is */
	void (*tap)(void *ctx, const char *bytes, size_t n);
	void *tap_ctx;
	struct tail *heard; /* what the sandbox writes is kept there; borrowed, NULL: nowhere */
	bool unfiltered;    /* process.terminal: raw */
	bool no_answers;    /* another process answers the queries of programs inside */
};

/* Which of 0-2 are the operator's terminal: bit 0 for standard input, and so on. 0 where neither of
 * the first two is one. */
unsigned console_terminals(void);

/* Whether a terminal is known to speak UTF-8; any other could take bytes of it for control
 * characters. */
bool console_knows_utf8(int tty_fd);

/* The operator's terminal as it is now; without one 80 columns and 24 rows. */
void console_look(struct console_shape *shape);

/* Brings the operator and a terminal inside together. The operator's terminal is the first of 0-2
 * that is one: it goes into raw mode while we are in its foreground. Where none is one, standard
 * input is typed and standard output shows what comes. The caller keeps SIGWINCH, SIGTSTP, SIGCONT,
 * SIGTTIN and SIGTTOU blocked and tells of them below. */
must_check int console_create(const struct console_config *config, struct console **ret_console,
			      struct ward_err *e);

/* Fills CONSOLE_POLLS poll entries (a closed one has -1), and moves bytes for what poll said. */
void console_poll(struct console *c, struct pollfd *polled);
void console_move(struct console *c, const struct pollfd *polled);
/* How long a poll may wait: -1 for ever, else milliseconds (in the background nothing tells us of
 * the foreground). */
int console_wait_ms(const struct console *c);
/* Bytes that the sandbox has written. */
uint64_t console_out_bytes(const struct console *c);
/* True once after the operator's terminal has gone away: the caller acts as for SIGHUP. */
bool console_hung_up(struct console *c);

/* The operator's window has changed its size (SIGWINCH). */
void console_resize(struct console *c);
/* We were continued (SIGCONT): raw again, if we are in the foreground. */
void console_resume(struct console *c);
/* Stops this process by `signal` (SIGTSTP, SIGTTIN), its whole group where group is set, as the
 * operator's shell expects it of a job; the terminal is put back before and taken again after. c
 * may be NULL: nothing but the stop. Returns when continued. */
void console_suspend(struct console *c, int signal, bool group);
/* The same question about any descriptor; true for one that is not our controlling terminal. */
bool console_is_foreground(int tty_fd);
/* in the background nothing tells us of the foreground: how often to look */
#define CONSOLE_LOOK_MS 300
/* Whether this process owns the operator's terminal at the moment, so that stopping makes sense. */
bool console_in_front(const struct console *c);

/* Lets questions be answered on this terminal from now on (term/prompt.h); ops and context are
 * borrowed. A terminal that cannot show them is left alone. */
must_check int console_ask(struct console *c, const struct prompt_ops *ops, void *context,
			   struct ward_err *e);
/* What waits may have changed. */
void console_asked(struct console *c);
/* For prompt_ops: two digits by chance. */
void console_digits(void *context, char ret_digits[2]);
/* Whether somebody sees a question there now. */
bool console_shows_questions(const struct console *c);

/* The command has ended: from now on only output moves, and when all of it is read and shown, poll
 * entries are -1. */
void console_end(struct console *c);
/* Puts the operator's terminal back and frees everything. NULL is fine. */
void console_destroy(struct console *c);

/* Makes a terminal in the devpts of the sandbox whose /proc proc_fd is. The caller owns both
 * ends. */
must_check int console_open_pty(int proc_fd, int *ret_master_fd, int *ret_slave_fd,
				struct ward_err *e);

#endif

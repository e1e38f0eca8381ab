/* ward-box's side of the control socket: joins the supervisor's loop. */
#ifndef WARD_RUN_SERVE_H
#define WARD_RUN_SERVE_H

#include <poll.h>

#include "protocol/guest.h"
#include "state/boxes.h"

struct box;
struct serve;

#define SERVE_CLIENTS_MAX 96
#define SERVE_POLL_MAX (3 + 2 * SERVE_CLIENTS_MAX)

/* Listens in the entry's runtime directory and prepares the command's output. entry and box are
 * borrowed for the life of the server. inside_fds become the command's 0-2; the caller closes them;
 * with `terminal` they stay -1, and serve_open_terminal() follows. */
must_check int serve_create(struct box *b, struct box_entry *entry, bool terminal,
			    struct serve **ret_serve, int inside_fds[3], struct ward_err *e);
/* The same for a run in the foreground: only its network can be spoken about. */
must_check int serve_create_net(struct box *b, struct box_entry *entry, struct serve **ret_serve,
				struct ward_err *e);
/* The command's terminal is there: takes both ends. */
void serve_open_terminal(struct serve *s, int master_fd, int slave_fd);
/* Fills poll entries (at most SERVE_POLL_MAX), then sees to what poll said; true when there was
 * something. */
size_t serve_poll(struct serve *s, struct pollfd *polled);
bool serve_handle(struct serve *s, const struct pollfd *polled, size_t count, uint64_t now_ms);
/* When something is due next, of io_now_ms(); 0: nothing. */
uint64_t serve_due_ms(const struct serve *s);
/* What ward-init said about a command that was started through the socket. Untrusted. */
void serve_guest(struct serve *s, const struct guest_message *m);
/* The gateway has said something, or is gone: the client that waits for it is answered. */
void serve_net_look(struct serve *s);
/* Whether commands that clients started are running. */
bool serve_is_busy(const struct serve *s);
/* The sandbox is dead: takes what is left of its output. */
void serve_drain(struct serve *s);
/* The sandbox is dead, the rest takes a while: ends every connection but those that wait for the
 * end. */
void serve_close(struct serve *s);
void serve_destroy(struct serve *s);

/* A listening socket "control" in an entry's directory (runs.h). */
must_check int serve_listen_late(int dir_fd, struct ward_err *e);
/* Whether the peer of a Unix socket is a process of the same user outside of every sandbox, or
 * root. */
bool serve_may_ask(int fd);
/* What waits for a person has changed: clients that watch get an event. */
void serve_questions_changed(struct serve *s);

#endif

/* Talking to a detached sandbox: find it, connect, ask. Never prints, never waits longer than its
 * caller allows. */
#ifndef WARD_CONTROL_CLIENT_H
#define WARD_CONTROL_CLIENT_H

#include "control/control.h"
#include "state/boxes.h"

#define CLIENT_ANSWER_MS 5000 /* a supervisor that does not answer for so long is stuck */

/* A connection to one ward-box. */
struct client {
	int fd; /* -1: none */
	char id[24];
};
#define NO_CLIENT ((struct client){ .fd = -1 })

/* An answer, and the descriptors that came with it (the caller owns them). */
struct client_answer {
	struct control_message message;
	struct control_usage usage; /* of CONTROL_USAGE */
	int fds[CONTROL_FDS_MAX];
	size_t fd_count;
};

/* Every sandbox of this user, oldest first: detached ones and runs in the foreground. */
must_check int client_list(struct boxes *ret_boxes, struct ward_err *e);
/* Finds a sandbox by name, id or short id and finishes what it left if its supervisor was killed.
 * The caller clears. */
must_check int client_find(const char *word, struct box_info *ret_info, struct ward_err *e);
/* The same for one that must be alive: -ESRCH with the reason if it is not. */
must_check int client_find_alive(const char *word, struct box_info *ret_info, struct ward_err *e);
/* Finishes what sandboxes whose supervisor was killed left behind, and marks them so. */
void client_recover(struct boxes *all);

/* Says that it is not alive, and how it ended. Returns -ESRCH. */
int client_fail_not_alive(const struct box_info *i, struct ward_err *e);

must_check int client_connect(const struct box_info *i, struct client *ret_client,
			      struct ward_err *e);
void client_close(struct client *c);
/* Sends a request without waiting for its answer. */
must_check int client_send(struct client *c, enum control_op op, unsigned flags, int32_t a,
			   int32_t b, struct ward_err *e);
must_check int client_send_packet(struct client *c, const void *bytes, size_t n,
				  struct ward_err *e);
must_check int client_send_exec(struct client *c, const struct control_exec *x, struct ward_err *e);
/* The next answer. 0 when there is one; a refusal of the sandbox's is an error; -ESRCH: the
 * connection ended; -ETIMEDOUT after timeout_ms (-1: never). */
must_check int client_receive(struct client *c, struct client_answer *ret_answer, int timeout_ms,
			      struct ward_err *e);
/* Both, where the answer is CONTROL_OK. */
must_check int client_ask(struct client *c, enum control_op op, unsigned flags, int32_t a,
			  int32_t b, struct ward_err *e);
/* A connection that ends when the sandbox has ended and its result is kept. 1: it has ended
 * already, there is none. One that is ending accepts no requests any more: its end is awaited,
 * -ETIMEDOUT after timeout_ms (-1: as long as an end may take). */
must_check int client_connect_end(const char *id, int timeout_ms, struct client *ret_client,
				  struct ward_err *e);
/* After that, or CONTROL_WAIT: until the sandbox has ended and its result is kept. -ETIMEDOUT after
 * timeout_ms (-1: never). */
must_check int client_wait_end(struct client *c, int timeout_ms, struct ward_err *e);
/* Whether the sandbox was dead already and only its end took so long: waits for that. */
bool client_is_ending(const char *id);
/* The supervisor does not respond: kills it, and with it the sandbox, and finishes the run. One
 * that is busy with the end of the sandbox is waited for instead. */
must_check int client_kill_supervisor(const struct box_info *i, struct ward_err *e);

#endif

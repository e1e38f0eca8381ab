/* ward-vm's server: the process that has the guest's port. */
#ifndef WARD_VM_SERVER_H
#define WARD_VM_SERVER_H

#include <poll.h>

#include "vm/party.h"

/* a party: its streams, its input, its socket */
#define SERVER_FDS (4 + PARTY_PENDING + VM_CHANNELS * (VM_STREAMS + 2))

struct server {
	const struct vm_setup *setup;
	int serial_fd, listen_fd;
	int early_fd; /* of the first command's process, until that is started; else -1 */
	struct vm_session session;
	struct party parties[VM_CHANNELS]; /* [1] is the sandbox's own command's */
	int pending[PARTY_PENDING];        /* connections; -1: none */
	bool first_gone;                   /* the client of the first command is gone */
	int lost;                          /* trees of which something did not come back */
	size_t in_len, out_at, out_len;
	uint8_t in[VM_FRAME_MAX], out[VM_FRAME_MAX];
};

/* Waits and moves everything that can be moved, once. clients: others may ask for commands now.
 * Negative: the guest or the machine is no more, with *e. */
must_check int server_turn(struct server *v, bool clients, struct ward_err *e);
/* ---- server_clients.c ---- */

/* Makes the socket; nothing where the setup has none. */
must_check int server_listen(struct server *v, struct ward_err *e);
void server_accept(struct server *v);
/* One more message of a connection that has not started anything yet. */
void server_meet(struct server *v, int *sock_fd);
/* What the process behind a command says; it may be gone. */
void server_read(struct server *v, struct party *p);
/* The same of the first, before its command was started. */
void server_read_early(struct server *v);
/* A free party, or NULL. One is kept for copies of trees. */
struct party *server_party(struct server *v, bool copy);
/* The machine ends: no more commands; clients that do not read are not waited for. */
void server_turn_away(struct server *v);
void server_drop_slow(struct server *v);
/* ---- server_trees.c ---- */

/* Copies all trees into the guest. */
must_check int server_trees_in(struct server *v, struct ward_err *e);
/* Copies back what changed in the writable ones. */
must_check int server_trees_out(struct server *v, struct ward_err *e);
/* ---- tree_send.c, tree_take.c: in a process of its own, blocking ---- */

/* The ends of a tree's channel (disk.h). */
struct tree_way {
	int in_fd, out_fd; /* records announced, and pieces answered; or the other way round */
	int disk_fd;       /* -1: there is none */
};

/* Writes the records of trees, one at least; what cannot be read is left out and said. Returns 0,
 * or -errno. */
must_check int tree_send(const struct tree_way *way, char *const *paths, size_t count,
			 struct ward_err *e);
/* Makes files of the records that come, which a hostile guest wrote. *ret_lost counts what did not
 * come back; each is reported on standard error. Returns 0, or -errno: the stream was none. */
must_check int tree_take(const struct tree_way *way, char *const *paths, size_t count,
			 uint64_t bytes_max, uint64_t *ret_lost, struct ward_err *e);

#endif

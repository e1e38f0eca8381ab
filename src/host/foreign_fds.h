/* Descriptors of a sandbox's own making. Closing one can take as long as the sandbox wants (a TCP
 * socket with SO_LINGER and unsent data, a socket in whose queue one lies), and so can receiving
 * more than there is room for. Threads do both, which share nothing with their process but its
 * memory and its table of descriptors. */
#ifndef WARD_HOST_FOREIGN_FDS_H
#define WARD_HOST_FOREIGN_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define FOREIGN_FDS_MESSAGE 253 /* SCM_MAX_FD: the most that the kernel puts into a message */

struct foreign_fds;

/* A message that was received. */
struct foreign_message {
	uint64_t serial;
	int32_t fd; /* of the socket */
	int32_t fds[FOREIGN_FDS_MESSAGE];
	uint32_t fd_count;
	ssize_t len;    /* 0: the other end is gone; or -errno */
	uint8_t *bytes; /* foreign_message_free() */
};

/* Starts the thread that closes; room > 0: also the one that receives, messages of at most so many
 * bytes (a longer one has room as its length). Descriptors that are numbers in this process only,
 * so a process that is started later has copies until it executes. */
must_check int foreign_fds_start(size_t room, struct foreign_fds **ret, struct ward_err *e);
/* Closes what was handed over, as long as that may take, and ends the threads; the caller does not
 * wait. With the process everything ends at once. NULL is fine. */
void foreign_fds_end(struct foreign_fds *f);

/* Takes the descriptor, sets *fd to -1. NULL: there is no thread, and it stays open until the
 * process ends. */
void foreign_fds_close(struct foreign_fds *f, int *fd);
/* Whether so many wait to be closed that no more should be taken: foreign_fds_fd() becomes
 * readable when they are fewer. */
bool foreign_fds_is_full(struct foreign_fds *f);

/* Receives the next message of a socket, without waiting for one; the answer comes through
 * foreign_fds_next(). One at a time; the socket is not to be closed before. */
void foreign_fds_receive(struct foreign_fds *f, int sock_fd, uint64_t serial);
/* Readable when there is an answer. */
int foreign_fds_fd(const struct foreign_fds *f);
/* False: none. The caller owns descriptors and bytes. */
must_check bool foreign_fds_next(struct foreign_fds *f, struct foreign_message *ret);
void foreign_message_free(const struct foreign_fds *f, struct foreign_message *m);

#endif

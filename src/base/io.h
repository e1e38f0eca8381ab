/* Whole reads and writes, and descriptors over sockets. */
#ifndef WARD_BASE_IO_H
#define WARD_BASE_IO_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Writes all n bytes; EINTR and short writes are handled. Returns 0 or -errno. */
must_check int io_write_all(int fd, const void *bytes, size_t n);
/* The same at a place of the file. */
must_check int io_write_at(int fd, const void *bytes, size_t n, uint64_t offset);
/* Reads all n bytes; -EPIPE: they end before. */
must_check int io_read_exactly(int fd, void *bytes, size_t n);
/* Writes what there is room for, without waiting and without changing the descriptor's flags, which
 * others share. type is its kind as in st_mode. Returns as write(2) does; EAGAIN: no room. */
must_check ssize_t io_write_some(int fd, unsigned type, const char *bytes, size_t n);
/* Reads to the end into b, at most max bytes (more is -EFBIG). Returns 0 or -errno. */
must_check int io_read_all(int fd, size_t max, struct buf *b);
/* Reads the file dir_fd/path to the end, at most max bytes. Returns 0 or -errno. */
must_check int io_read_file(int dir_fd, const char *path, size_t max, struct buf *b);
/* Writes text into the existing file dir_fd/path with one write(2), as kernel files want it.
 * Returns 0 or -errno. */
must_check int io_write_file(int dir_fd, const char *path, const char *text);
/* Most descriptors of one message. */
#define IO_FDS_MAX 96
/* Receives one message of at most n bytes with at most max_fds descriptors (close-on-exec, the
 * caller owns them). *ret_fds is their count. Returns the message's length, 0 at the end, or
 * -errno. */
must_check ssize_t io_recv_fds(int sock_fd, void *bytes, size_t n, int *fds, size_t max_fds,
			       size_t *ret_fds);
/* sendmsg(2) with descriptors, again after EINTR. The kernel counts descriptors under way for all
 * processes of a user, those of sandboxes too, and refuses whose own soft limit of open files is
 * below that: it is raised to the hard one then. Returns what was sent or -1 with errno. */
struct msghdr;
ssize_t io_sendmsg(int sock_fd, const struct msghdr *m, int flags);
/* The same with one part and count descriptors, which stay the caller's. No SIGPIPE. */
ssize_t io_sendmsg_fds(int sock_fd, const void *bytes, size_t n, const int *fds, size_t count,
		       int flags);
/* Sends one message with count descriptors, which stay the caller's. No SIGPIPE. Returns 0 or
 * -errno. */
must_check int io_send_fds(int sock_fd, const void *bytes, size_t n, const int *fds, size_t count);
/* Closes what takes long to close, and lets the kernel do it: the last process that closes an
 * inotify descriptor waits for every processor, some 20 ms. The kernel does that one by one, and
 * till then it counts as the user's, who may have few: there are at most 16 of each user's at once.
 * Waits itself where that cannot be had. -1: nothing. */
void io_close_later(int fd);
/* Milliseconds of the monotonic clock. */
uint64_t io_now_ms(void);
/* The machine's boot, without the end of the line; "": unknown. It is read once. */
const char *io_boot_id(void);

#endif

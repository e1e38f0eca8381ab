/* What a detached sandbox's command wrote: two files that replace each other, so that the disk is
 * never filled. */
#ifndef WARD_STATE_LOG_H
#define WARD_STATE_LOG_H

#include <stdint.h>

#include "base/buf.h"

#define LOG_FILE_BYTES (4u << 20)
#define LOG_NOW "log.0"    /* being written */
#define LOG_BEFORE "log.1" /* full */

struct log {
	int dir_fd;    /* borrowed */
	int fd;        /* -1: none */
	uint64_t size; /* of the present file */
	uint64_t lost; /* bytes that could not be written */
};

must_check int log_open(struct log *l, int dir_fd, struct ward_err *e);
/* Appends; what cannot be written (a full disk) is counted and gone. */
void log_add(struct log *l, const void *bytes, size_t n);
void log_close(struct log *l);
/* All that is kept of the log in this directory, oldest first. Nothing at all where there is
 * none. */
must_check int log_read(int dir_fd, struct buf *out, struct ward_err *e);

#endif

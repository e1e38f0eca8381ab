/* QEMU's control channel: one JSON object a line. What comes is read by a pure function; QEMU may
 * be the guest's by then. */
#ifndef WARD_VM_QMP_H
#define WARD_VM_QMP_H

#include "base/buf.h"

#define QMP_LINE_MAX 65536

enum qmp_kind { QMP_OTHER, QMP_GREETING, QMP_RETURN, QMP_ERROR, QMP_EVENT };

struct qmp_line {
	enum qmp_kind kind;
	char status[32]; /* RETURN: its "status", "" if it has none */
	char text[200];  /* ERROR: its "desc"; EVENT: its name */
};

/* Reads one line (without its end). False: it is no JSON object. A pure function, fuzzed
 * (fuzz/qmp.c). */
must_check bool qmp_read(const uint8_t *bytes, size_t n, struct qmp_line *ret);

/* Sends a command (a whole JSON object) with a descriptor (-1: none) and waits for its answer.
 * *received keeps what comes behind it. */
must_check int qmp_call(int fd, struct buf *received, const char *command, int pass_fd,
			int timeout_ms, struct qmp_line *ret, struct ward_err *e);
/* Waits for the greeting and answers it. */
must_check int qmp_greet(int fd, struct buf *received, int timeout_ms, struct ward_err *e);

#endif

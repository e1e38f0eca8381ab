/* The process that a command in the guest is for everybody outside. */
#ifndef WARD_VM_CLIENT_H
#define WARD_VM_CLIENT_H

#include "base/err.h"

/* Passes signals and the terminal's size on to the server at the other end, stops when the command
 * was stopped, and waits until it has ended. The terminal is raw meanwhile. All signals must be
 * blocked. Returns the wait status, or -errno with *e. */
must_check int client_follow(int sock_fd, struct ward_err *e);

#endif

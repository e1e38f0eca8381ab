/* wardd-tls, and how wardd starts it: TLS in front of the front, in a process of its own. */
#ifndef WARD_DAEMON_TLS_H
#define WARD_DAEMON_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* A message of so many bytes, without a connection, asks the front to end one that is idle. */
#define TLS_MAKE_ROOM 1

/* What comes with each connection. */
struct tls_hello {
	uint8_t address[4]; /* of the client, IPv4 */
};

#define TLS_CLIENTS "clients" /* wardd-tls DIR clients: they need a certificate */

/* Starts it with the directory of cert.pem and key.pem, and of clients.pem where clients need a
 * certificate; takes the listener. Returns when it is ready: *ret_fd is where connections come
 * from, *ret_pid its process. */
must_check int tls_start(const char *dir, bool clients, int listen_fd, int *ret_fd, pid_t *ret_pid,
			 struct ward_err *e);

#endif

/* The process at the other end of a socket inside. */
#ifndef WARD_RUN_PEER_H
#define WARD_RUN_PEER_H

#include <stddef.h>

/* The programs of the process that has connected, without its own, and of its parents, from the
 * outside and escaped: "bash < make". "": unknown. What a process is called is its own choice. */
void peer_chain(int sock_fd, char *ret, size_t cap);

#endif
